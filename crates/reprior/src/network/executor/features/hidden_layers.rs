//! Hidden layers of a fully connected network, for a fixed number of inputs: products of whole matrices.
//!
//! With the inputs h (n × d) extended by the constant column c = σ_b√d/σ_w to h̃ (n × (d + 1)), a layer is the single product
//! z = (σ_w/√d)·h̃·W̃, where the last row of W̃ is the bias: 2·n·(d + 1)·units operations forward, twice that for the vjp.
//!
//! The first layer's product is that of the [`NetworkInputs`], which may be reduced. They are asked for [`BLOCK`] units at a time, so that
//! these are still in the cache when the activation is applied and, with one hidden layer, when the features are used.
//!
//! Memory: one n × width buffer per layer, a second one per layer once gradients are asked for.

use super::{FeatureCotangent, FeaturePlan, NetworkInputs};
use crate::compute::{Matrix, Real, matrix, matrix_mut, multiply};
use crate::network::{Activation, Composition, HiddenLayer};

/// Units of the first layer at a time: as many as the packed product takes at once.
const BLOCK: usize = 126;

/// Buffers and shapes for evaluating the hidden layers on n inputs.
pub(super) struct HiddenLayers<R> {
    rows: usize,
    layers: Vec<HiddenLayerBuffers<R>>,
    /// Cotangents, as large as the widest layer; empty until needed.
    cotangent: Vec<R>,
    next_cotangent: Vec<R>,
}

struct HiddenLayerBuffers<R> {
    shape: HiddenLayer,
    activation: Activation,
    /// n × (units + 1): activations, then the constant column of the layer above.
    output: Vec<R>,
    /// n × units: derivatives of the activation; empty until gradients are asked for.
    derivative: Vec<R>,
}

impl<R: Real> HiddenLayerBuffers<R> {
    fn units(&self) -> usize {
        self.shape.units
    }

    /// Rows of its matrix of parameters, which are as many columns of the layer below.
    fn rows(&self) -> usize {
        self.shape.rows()
    }

    /// σ_w/√d.
    fn factor(&self) -> f64 {
        self.shape.scale.factor(self.shape.fan_in)
    }

    fn parameters(&self) -> usize {
        self.rows() * self.units()
    }

    /// Its first `columns` columns: with the constant one if the layer above has a bias.
    fn inputs(&self, rows: usize, columns: usize) -> Matrix<'_, R> {
        matrix(&self.output[..rows * columns], rows, columns)
    }
}

impl<R: Real> HiddenLayers<R> {
    /// `hidden` are the layers, of which there is at least one, of `network`.
    pub fn new(network: &Composition, hidden: &[HiddenLayer], rows: usize) -> Self {
        let scales = hidden.iter().map(|layer| layer.scale);
        let above = scales.skip(1).chain([network.readout_scale]);
        let layers = hidden.iter().zip(above).map(|(&shape, above)| {
            let units = shape.units;
            let mut output = vec![R::ZERO; rows * (units + 1)];
            output[rows * units..].fill(R::from_f64(above.constant(units)));
            HiddenLayerBuffers {
                shape,
                activation: shape.activation.unwrap_or(Activation::Identity),
                output,
                derivative: Vec::new(),
            }
        });
        Self {
            rows,
            layers: layers.collect(),
            cotangent: Vec::new(),
            next_cotangent: Vec::new(),
        }
    }

    fn last(&self) -> &HiddenLayerBuffers<R> {
        &self.layers[self.layers.len() - 1]
    }

    /// n × (d_L + 1), the constant column of the readout included.
    fn output(&self) -> Matrix<'_, R> {
        matrix(&self.last().output, self.rows, self.last().units() + 1)
    }

    /// From the cotangents of the features, which stand in their place, to the gradient of the `weights` above the first layer, and
    /// the cotangents of the first layer's pre-activations.
    fn pull_back(&mut self, weights: &[R], gradient: &mut [R]) -> Matrix<'_, R> {
        let rows = self.rows;
        let mut end = weights.len();
        for index in (0..self.layers.len()).rev() {
            let layer = &self.layers[index];
            let units = layer.units();
            let delta = &mut self.cotangent[..rows * units];
            scale_by(delta, &layer.derivative);
            let Some(below) = index.checked_sub(1).map(|below| &self.layers[below]) else {
                break;
            };
            let own = end - layer.parameters()..end;
            let delta = matrix(delta, rows, units);
            let inputs = below.inputs(rows, layer.rows());
            let out = matrix_mut(&mut gradient[own.clone()], layer.rows(), units);
            multiply(out, false, layer.factor(), inputs.transpose(), delta);
            let fan_in = layer.shape.fan_in;
            let out = matrix_mut(&mut self.next_cotangent[..rows * fan_in], rows, fan_in);
            let w = matrix(&weights[own.clone()], layer.rows(), units).subrows(0, fan_in);
            multiply(out, false, layer.factor(), delta, w.transpose());
            end = own.start;
            std::mem::swap(&mut self.cotangent, &mut self.next_cotangent);
        }
        let first = self.layers[0].units();
        matrix(&self.cotangent[..rows * first], rows, first)
    }

    /// The vjp with one hidden layer, block by block of units, each of which stays in the cache on its way.
    fn pull_back_in_blocks(
        &mut self,
        inputs: &dyn NetworkInputs<R>,
        gradient: &mut [R],
        cotangent: &mut FeatureCotangent<'_, R>,
    ) {
        let rows = self.rows;
        let layer = &self.layers[0];
        let units = layer.units();
        let features = matrix(&layer.output, rows, units + 1);
        let mut gradient = matrix_mut(gradient, inputs.matrix().ncols(), units);
        self.cotangent.resize(rows * BLOCK.min(units), R::ZERO);
        for start in (0..units).step_by(BLOCK) {
            let block = start..units.min(start + BLOCK);
            let delta = &mut self.cotangent[..rows * block.len()];
            let out = matrix_mut(delta, rows, block.len());
            cotangent(out, features, block.clone());
            scale_by(delta, &layer.derivative[rows * start..rows * block.end]);
            let gradient = gradient.as_mut().subcols_mut(start, block.len());
            inputs.vjp_weights(gradient, matrix(delta, rows, block.len()));
        }
    }
}

impl<R: Real> FeaturePlan<R> for HiddenLayers<R> {
    fn evaluate(
        &mut self,
        inputs: &dyn NetworkInputs<R>,
        weights: &[R],
        with_derivatives: bool,
        visit: &mut dyn FnMut(Matrix<'_, R>),
    ) {
        let (rows, count) = (self.rows, self.layers.len());
        let columns = inputs.matrix().ncols();
        let (first, mut weights) = weights.split_at(columns * self.layers[0].units());
        for index in 0..count {
            let (below, rest) = self.layers.split_at_mut(index);
            let layer = &mut rest[0];
            let units = layer.units();
            if with_derivatives {
                layer.derivative.resize(rows * units, R::ZERO);
            }
            let block = if index == 0 { BLOCK } else { units };
            for start in (0..units).step_by(block) {
                let units = start..layer.units().min(start + block);
                let values = rows * start..rows * units.end;
                let factor = layer.factor();
                let parameters = [layer.rows(), layer.units()];
                let active = &mut layer.output[values.clone()];
                let out = matrix_mut(active, rows, units.len());
                if let Some(below) = below.last() {
                    let (own, above) = weights.split_at(parameters[0] * parameters[1]);
                    weights = above;
                    let inputs = below.inputs(rows, parameters[0]);
                    let w = matrix(own, parameters[0], parameters[1]);
                    multiply(out, false, factor, inputs, w);
                } else {
                    let first = matrix(first, columns, parameters[1]);
                    let own = first.subcols(start, units.len());
                    inputs.forward(out, own, units.clone());
                }
                if with_derivatives {
                    let derivative = &mut layer.derivative[values.clone()];
                    derivative.copy_from_slice(active);
                    layer.activation.apply_with_derivative(derivative, active);
                } else {
                    layer.activation.apply(active);
                }
                if index + 1 == count {
                    visit(matrix(&layer.output[values], rows, units.len()));
                }
            }
        }
        visit(self.output().subcols(self.last().units(), 1));
    }

    fn features<'a>(&'a self, _: Matrix<'a, R>) -> Matrix<'a, R> {
        self.output()
    }

    fn backward(
        &mut self,
        inputs: &dyn NetworkInputs<R>,
        weights: &[R],
        gradient: &mut [R],
        in_blocks: bool,
        cotangent: &mut FeatureCotangent<'_, R>,
    ) {
        if in_blocks && self.layers.len() == 1 {
            return self.pull_back_in_blocks(inputs, gradient, cotangent);
        }
        let rows = self.rows;
        let widest = self
            .layers
            .iter()
            .map(HiddenLayerBuffers::units)
            .max()
            .unwrap_or(0);
        self.cotangent.resize(rows * widest, R::ZERO);
        if self.layers.len() > 1 {
            self.next_cotangent.resize(rows * widest, R::ZERO);
        }
        let last = &self.layers[self.layers.len() - 1];
        let units = last.units();
        let out = matrix_mut(&mut self.cotangent[..rows * units], rows, units);
        cotangent(out, matrix(&last.output, rows, units + 1), 0..units);
        let (columns, units) = (inputs.matrix().ncols(), self.layers[0].units());
        let (first, above) = gradient.split_at_mut(columns * units);
        let delta = self.pull_back(&weights[columns * units..], above);
        inputs.vjp_weights(matrix_mut(first, columns, units), delta);
    }
}

/// Bytes that the buffers take, with or without those for gradients.
pub(super) fn bytes<R: Real>(hidden: &[HiddenLayer], rows: usize, with_gradients: bool) -> usize {
    let units: usize = hidden.iter().map(|layer| layer.units).sum();
    let widest = hidden.iter().map(|layer| layer.units).max().unwrap_or(0);
    let cotangents = if hidden.len() > 1 { 2 } else { 1 };
    let gradients = if with_gradients {
        units + cotangents * widest
    } else {
        0
    };
    rows * (units + hidden.len() + gradients) * R::BYTES
}

/// values ← values∘factors.
pub(crate) fn scale_by<R: Real>(values: &mut [R], factors: &[R]) {
    crate::compute::simd(
        #[inline(always)]
        || {
            for (value, &factor) in values.iter_mut().zip(factors) {
                *value *= factor;
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::super::Features;
    use super::*;
    use crate::compute::{MatrixMut, Purpose, Stream, dot};

    /// First pre-activations that do not depend on any input: the parameters of the first layer themselves.
    struct Identity<'a>(Matrix<'a, f64>);

    impl NetworkInputs<f64> for Identity<'_> {
        fn matrix(&self) -> Matrix<'_, f64> {
            self.0
        }

        fn forward(&self, mut out: MatrixMut<'_, f64>, weights: Matrix<'_, f64>, _: Range<usize>) {
            out.copy_from(weights);
        }

        fn vjp_weights(&self, mut gradient: MatrixMut<'_, f64>, cotangent: Matrix<'_, f64>) {
            gradient.copy_from(cotangent);
        }
    }

    /// ⟨cotangent, features(weights)⟩ and its gradient against central differences.
    #[test]
    fn vjp_agrees_with_central_differences() {
        for activation in [
            Activation::Gelu,
            Activation::Tanh,
            Activation::Sin,
            Activation::Erf,
        ] {
            let network = Composition::fully_connected(7, &[5, 4, 6], 1, activation);
            let rows = 7;
            let mut stream = Stream::new(1, 0, Purpose::Initial, 0);
            let mut noise = |n: usize| {
                let mut values = vec![0.0_f64; n];
                stream.fill_normal(&mut values);
                values
            };
            let (first, above, cotangent) =
                (noise(rows * 5), noise(6 * 4 + 5 * 6), noise(rows * 6));
            let weights = [first, above].concat();
            let square = vec![0.0; rows * rows];
            let inputs = Identity(matrix(&square, rows, rows));
            let mut layers = Features::<f64>::new(&network, rows);
            let mut value = |weights: &[f64]| {
                layers.evaluate(&inputs, weights, false, |_| {});
                let features = layers.features(inputs.matrix());
                let features: Vec<f64> = (0..6)
                    .flat_map(|j| features.col(j).iter().copied().collect::<Vec<_>>())
                    .collect();
                dot(&features, &cotangent)
            };
            let mut numeric = Vec::new();
            for at in 0..weights.len() {
                let mut moved = weights.clone();
                moved[at] += 1e-5;
                let up = value(&moved);
                moved[at] -= 2e-5;
                numeric.push((up - value(&moved)) / 2e-5);
            }
            let mut visited = 0;
            let visit = |block: Matrix<'_, f64>| visited += block.ncols();
            layers.evaluate(&inputs, &weights, true, visit);
            assert_eq!(visited, 7);
            let mut gradient = vec![f64::NAN; weights.len()];
            let view = matrix(&cotangent, rows, 6);
            layers.backward(&inputs, &weights, &mut gradient, |mut into, _| {
                into.copy_from(view);
            });
            for (a, b) in gradient.iter().zip(&numeric) {
                assert!(
                    (a - b).abs() < 1e-8 * (1.0 + b.abs()),
                    "{activation}: {a} {b}"
                );
            }
        }
    }
}
