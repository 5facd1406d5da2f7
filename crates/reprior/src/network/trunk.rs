//! Everything below the readout, for a fixed set of inputs: first-layer pre-activations to last-layer features.
//!
//! The first layer's product is the caller's (its inputs may be reduced, see [`Design`](crate::model::Design)), who is
//! asked for [`BLOCK`] units at a time, so that they are still in the cache when the activation is applied and, with one
//! hidden layer, when the features are used. [`Trunk::backward`] is the vjp back to the first pre-activations. Features
//! come extended by the constant column of the readout's bias.
//!
//! Memory: one n × width buffer per layer, a second one per layer once gradients are asked for.

use std::ops::Range;

use super::{Activation, Architecture, Dense, LayerScale};
use crate::compute::{Matrix, MatrixMut, Real, matrix, matrix_mut};

/// Units of the first layer at a time: as many as the packed product takes at once.
const BLOCK: usize = 126;

/// Buffers and shapes for evaluating a network's hidden layers on n inputs.
pub struct Trunk<R> {
    rows: usize,
    activation: Activation,
    layers: Vec<Layer<R>>,
    /// Cotangents, as large as the widest layer; empty until needed.
    cotangent: Vec<R>,
    next_cotangent: Vec<R>,
}

struct Layer<R> {
    units: usize,
    /// The dense layer above the first that produces this layer; `None` for the first.
    dense: Option<Dense>,
    /// n × (units + 1): activations, then the constant column of the layer above.
    output: Vec<R>,
    /// n × units: derivatives of the activation; empty until gradients are asked for.
    derivative: Vec<R>,
}

impl<R: Real> Trunk<R> {
    /// A trunk for `rows` inputs. The architecture must have at least one hidden layer.
    pub fn new(architecture: &Architecture, rows: usize) -> Self {
        let hidden = &architecture.hidden;
        let scale_above = |index: usize| -> LayerScale {
            let scales = &architecture.hidden_scales;
            scales
                .get(index + 1)
                .copied()
                .unwrap_or(architecture.readout_scale)
        };
        let layers = hidden.iter().enumerate().map(|(index, &units)| {
            let mut output = vec![R::ZERO; rows * (units + 1)];
            output[rows * units..].fill(R::from_f64(scale_above(index).constant(units)));
            let dense = (index > 0).then(|| Dense {
                fan_in: hidden[index - 1],
                units,
                scale: architecture.hidden_scales[index],
            });
            Layer {
                units,
                dense,
                output,
                derivative: Vec::new(),
            }
        });
        Self {
            rows,
            activation: architecture.activation,
            layers: layers.collect(),
            cotangent: Vec::new(),
            next_cotangent: Vec::new(),
        }
    }

    /// From the first pre-activations to the features. `first` writes those of a range of units (rows × units).
    /// `weights` are the parameters of the layers above the first, layer by layer, each column-major (fan-in + 1) × units.
    /// Keeps derivatives if `with_derivatives`. `visit` is shown the features block by block, the constant column last.
    pub fn propagate(
        &mut self,
        mut first: impl FnMut(MatrixMut<'_, R>, Range<usize>),
        mut weights: &[R],
        with_derivatives: bool,
        mut visit: impl FnMut(Matrix<'_, R>),
    ) {
        let (rows, count) = (self.rows, self.layers.len());
        for index in 0..count {
            let (below, rest) = self.layers.split_at_mut(index);
            let layer = &mut rest[0];
            if with_derivatives {
                layer.derivative.resize(rows * layer.units, R::ZERO);
            }
            let block = if index == 0 { BLOCK } else { layer.units };
            for start in (0..layer.units).step_by(block) {
                let units = start..layer.units.min(start + block);
                let values = rows * start..rows * units.end;
                let active = &mut layer.output[values.clone()];
                let out = matrix_mut(active, rows, units.len());
                if let (Some(dense), Some(below)) = (layer.dense, below.last()) {
                    let (own, above) = weights.split_at(dense.rows() * dense.units);
                    weights = above;
                    let inputs = matrix(&below.output, rows, dense.rows());
                    dense.forward(out, inputs, matrix(own, dense.rows(), dense.units));
                } else {
                    first(out, units.clone());
                }
                if with_derivatives {
                    let derivative = &mut layer.derivative[values.clone()];
                    derivative.copy_from_slice(active);
                    self.activation.apply_with_derivative(derivative, active);
                } else {
                    self.activation.apply(active);
                }
                if index + 1 == count {
                    visit(matrix(&layer.output[values], rows, units.len()));
                }
            }
        }
        visit(self.features().subcols(self.layers[count - 1].units, 1));
    }

    /// Features with the constant column, rows × (d_L + 1), of the last [`propagate`](Self::propagate).
    pub fn features(&self) -> Matrix<'_, R> {
        let last = &self.layers[self.layers.len() - 1];
        matrix(&last.output, self.rows, last.units + 1)
    }

    /// Where the cotangent of the features (rows × d_L, no constant column) is to be written before
    /// [`backward`](Self::backward), together with the features themselves.
    pub fn cotangent_and_features(&mut self) -> (MatrixMut<'_, R>, Matrix<'_, R>) {
        let widest = self
            .layers
            .iter()
            .map(|layer| layer.units)
            .max()
            .unwrap_or(0);
        self.cotangent.resize(self.rows * widest, R::ZERO);
        if self.layers.len() > 1 {
            self.next_cotangent.resize(self.rows * widest, R::ZERO);
        }
        let last = &self.layers[self.layers.len() - 1];
        (
            matrix_mut(
                &mut self.cotangent[..self.rows * last.units],
                self.rows,
                last.units,
            ),
            matrix(&last.output, self.rows, last.units + 1),
        )
    }

    /// The vjp: from the cotangent of the features to the gradient of the `weights` above the first layer, which is
    /// written to `gradient`, and the cotangent of the first pre-activations, which is returned.
    /// Needs a [`propagate`](Self::propagate) with derivatives before it.
    pub fn backward(&mut self, weights: &[R], gradient: &mut [R]) -> Matrix<'_, R> {
        let rows = self.rows;
        let mut end = weights.len();
        for index in (0..self.layers.len()).rev() {
            let layer = &self.layers[index];
            let delta = &mut self.cotangent[..rows * layer.units];
            scale_by(delta, &layer.derivative);
            let Some(dense) = layer.dense else { break };
            let start = end - dense.rows() * dense.units;
            let delta = matrix(delta, rows, layer.units);
            let below = &self.layers[index - 1];
            dense.vjp_weights(
                matrix_mut(&mut gradient[start..end], dense.rows(), dense.units),
                matrix(&below.output, rows, dense.rows()),
                delta,
            );
            dense.vjp_inputs(
                matrix_mut(
                    &mut self.next_cotangent[..rows * dense.fan_in],
                    rows,
                    dense.fan_in,
                ),
                delta,
                matrix(&weights[start..end], dense.rows(), dense.units),
            );
            end = start;
            std::mem::swap(&mut self.cotangent, &mut self.next_cotangent);
        }
        let first = self.layers[0].units;
        matrix(&self.cotangent[..rows * first], rows, first)
    }

    /// The vjp with one hidden layer, block by block of units: `cotangent` writes that of the features of a range of units,
    /// `first` is given that of their pre-activations.
    pub fn backward_in_blocks(
        &mut self,
        mut cotangent: impl FnMut(MatrixMut<'_, R>, Matrix<'_, R>, Range<usize>),
        mut first: impl FnMut(Matrix<'_, R>, Range<usize>),
    ) {
        let rows = self.rows;
        let layer = &self.layers[self.layers.len() - 1];
        let features = matrix(&layer.output, rows, layer.units + 1);
        self.cotangent
            .resize(rows * BLOCK.min(layer.units), R::ZERO);
        for start in (0..layer.units).step_by(BLOCK) {
            let units = start..layer.units.min(start + BLOCK);
            let delta = &mut self.cotangent[..rows * units.len()];
            cotangent(
                matrix_mut(delta, rows, units.len()),
                features,
                units.clone(),
            );
            scale_by(delta, &layer.derivative[rows * start..rows * units.end]);
            first(matrix(delta, rows, units.len()), units);
        }
    }

    /// Bytes that the buffers take, with or without those for gradients.
    pub fn bytes(architecture: &Architecture, rows: usize, with_gradients: bool) -> usize {
        let units: usize = architecture.hidden.iter().sum();
        let widest = architecture.hidden.iter().copied().max().unwrap_or(0);
        let cotangents = if architecture.hidden.len() > 1 { 2 } else { 1 };
        let gradients = if with_gradients {
            units + cotangents * widest
        } else {
            0
        };
        rows * (units + architecture.hidden.len() + gradients) * R::BYTES
    }
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
    use super::*;
    use crate::compute::{Purpose, Stream, dot};

    /// ⟨cotangent, features(first, weights)⟩ and its gradient against central differences.
    #[test]
    fn vjp_agrees_with_central_differences() {
        for activation in [
            Activation::Gelu,
            Activation::Tanh,
            Activation::Sin,
            Activation::Erf,
        ] {
            let architecture = Architecture::new(3, &[5, 4, 6], 1, activation);
            let rows = 7;
            let mut stream = Stream::new(1, 0, Purpose::Initial, 0);
            let mut noise = |n: usize| {
                let mut values = vec![0.0_f64; n];
                stream.fill_normal(&mut values);
                values
            };
            let (first, weights, cotangent) =
                (noise(rows * 5), noise(6 * 4 + 5 * 6), noise(rows * 6));
            let mut trunk = Trunk::<f64>::new(&architecture, rows);
            let mut value = |first: &[f64], weights: &[f64]| {
                let first = matrix(first, rows, 5);
                let copy = |mut out: MatrixMut<'_, f64>, units: Range<usize>| {
                    out.copy_from(first.subcols(units.start, units.len()));
                };
                trunk.propagate(copy, weights, false, |_| {});
                let features = trunk.features();
                let features: Vec<f64> = (0..6)
                    .flat_map(|j| features.col(j).iter().copied().collect::<Vec<_>>())
                    .collect();
                dot(&features, &cotangent)
            };
            let mut numeric = Vec::new();
            for at in 0..first.len() + weights.len() {
                let mut both = [first.clone(), weights.clone()].concat();
                both[at] += 1e-5;
                let up = value(&both[..first.len()], &both[first.len()..]);
                both[at] -= 2e-5;
                numeric.push((up - value(&both[..first.len()], &both[first.len()..])) / 2e-5);
            }
            let view = matrix(&first, rows, 5);
            let mut visited = 0;
            trunk.propagate(
                |mut out, units| out.copy_from(view.subcols(units.start, units.len())),
                &weights,
                true,
                |block| visited += block.ncols(),
            );
            assert_eq!(visited, 7);
            let (mut into, _) = trunk.cotangent_and_features();
            into.copy_from(matrix(&cotangent, rows, 6));
            let mut gradient = vec![f64::NAN; weights.len()];
            let back = trunk.backward(&weights, &mut gradient);
            let mut exact: Vec<f64> = (0..5)
                .flat_map(|j| back.col(j).iter().copied().collect::<Vec<_>>())
                .collect();
            exact.extend(&gradient);
            for (a, b) in exact.iter().zip(&numeric) {
                assert!(
                    (a - b).abs() < 1e-8 * (1.0 + b.abs()),
                    "{activation}: {a} {b}"
                );
            }
        }
    }
}
