//! Where each layer's parameters are among all of them.

use std::ops::Range;

use super::Composition;
use super::composition::branch_shapes;
use super::layer::{Layer, Shape};
use crate::compute::{Real, Stream};

/// One layer's matrix of parameters, column-major: a column for each unit, a row for each input that a unit combines, and one
/// more for its bias if it has one.
#[derive(Debug, Clone, PartialEq)]
pub struct ParameterMatrix {
    /// The layer's number from 0, and in a parallel layer that of the parallel layer, the branch and the layer there, with dots;
    /// `readout` for the readout.
    pub name: String,
    /// Fan-in, and one if there is a bias.
    pub rows: usize,
    /// Units, or channels.
    pub units: usize,
    /// Whether the last row is a bias.
    pub has_bias: bool,
    /// Whether they are γ and β of batch normalisation.
    pub is_normalisation: bool,
    /// Its own among all parameters.
    pub range: Range<usize>,
    /// What the network multiplies weights and biases by, σ_w/√fan-in and σ_b: in the NTK parametrisation their standard
    /// deviations under the prior of the standard one.
    pub factors: [f64; 2],
}

impl ParameterMatrix {
    /// Weights of a unit.
    pub fn fan_in(&self) -> usize {
        self.rows - usize::from(self.has_bias)
    }
}

/// All layers' parameters, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct ParameterLayout {
    /// From the first layer to the readout.
    pub layers: Vec<ParameterMatrix>,
}

impl ParameterLayout {
    /// Of a network whose layers fit.
    pub fn new(network: &Composition) -> Self {
        let mut layout = Self { layers: Vec::new() };
        if let Ok(shapes) = network.shapes() {
            layout.push(&network.layers, &shapes, "");
        }
        let (scale, features) = (network.readout_scale, network.features());
        let factors = [scale.factor(features), scale.bias];
        let shape = [features + 1, network.outputs];
        layout.push_matrix("readout", shape, true, factors);
        layout
    }

    fn push(&mut self, layers: &[Layer], shapes: &[Shape], prefix: &str) {
        for (index, (layer, &input)) in layers.iter().zip(shapes).enumerate() {
            let name = format!("{prefix}{index}");
            let scale = match layer {
                Layer::Dense(layer) => Some(layer.scale),
                Layer::Convolution(layer) => Some(layer.scale),
                Layer::Parallel(layer) => {
                    for (branch, index) in layer.branches.iter().zip(0..) {
                        let shapes = branch_shapes(branch, input);
                        self.push(&branch.layers, &shapes, &format!("{name}.{index}."));
                    }
                    continue;
                }
                _ => None,
            };
            for shape in layer.parameter_shapes(input) {
                // β after γ
                let has_bias = scale.is_none_or(|scale| scale.bias > 0.0);
                let fan_in = shape[0] - usize::from(has_bias);
                let factors = scale.map_or([1.0; 2], |scale| [scale.factor(fan_in), scale.bias]);
                self.push_matrix(&name, shape, has_bias, factors);
                if let (Layer::BatchNorm(_), Some(own)) = (layer, self.layers.last_mut()) {
                    own.is_normalisation = true;
                }
            }
        }
    }

    fn push_matrix(
        &mut self,
        name: &str,
        [rows, units]: [usize; 2],
        has_bias: bool,
        factors: [f64; 2],
    ) {
        let start = self.len();
        self.layers.push(ParameterMatrix {
            name: name.to_owned(),
            rows,
            units,
            has_bias,
            is_normalisation: false,
            range: start..start + rows * units,
            factors,
        });
    }

    /// Parameters in all.
    pub fn len(&self) -> usize {
        self.layers.last().map_or(0, |layer| layer.range.end)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A draw from N(0, 1) for every parameter: the prior of the NTK parametrisation.
    pub fn draw_standard_normal<R: Real>(&self, stream: &mut Stream) -> Vec<R> {
        let mut position = vec![R::ZERO; self.len()];
        stream.fill_normal(&mut position);
        position
    }

    /// Multiplies weights and biases by [`ParameterMatrix::factors`]: what the NTK parametrisation's are in the standard one.
    pub fn scale_by_factors<R: Real>(&self, position: &mut [R]) {
        for layer in &self.layers {
            let [weight, bias] = layer.factors.map(R::from_f64);
            for unit in position[layer.range.clone()].chunks_exact_mut(layer.rows.max(1)) {
                let (weights, biases) = unit.split_at_mut(layer.fan_in());
                weights.iter_mut().for_each(|value| *value *= weight);
                biases.iter_mut().for_each(|value| *value *= bias);
            }
        }
    }

    /// γ ← 1 and β ← 0 in batch normalisation, where training begins.
    pub fn start_normalisation<R: Real>(&self, position: &mut [R]) {
        for layer in self.layers.iter().filter(|layer| layer.is_normalisation) {
            for pair in position[layer.range.clone()].chunks_exact_mut(2) {
                pair.copy_from_slice(&[R::from_f64(1.0), R::ZERO]);
            }
        }
    }

    /// Weights from N(0, `gain`/fan-in), biases zero, of batch normalisation γ = 1 and β = 0: a start for the standard parametrisation (`gain` 1 in Marceau-Caron &
    /// Ollivier 2017, 2 in He et al. 2015).
    pub fn draw_by_fan_in<R: Real>(&self, gain: f64, stream: &mut Stream) -> Vec<R> {
        let mut position = self.draw_standard_normal::<R>(stream);
        for layer in &self.layers {
            let fan_in = layer.fan_in();
            let scale = R::from_f64((gain / fan_in.max(1) as f64).sqrt());
            for unit in position[layer.range.clone()].chunks_exact_mut(layer.rows.max(1)) {
                let (weights, bias) = unit.split_at_mut(fan_in);
                weights.iter_mut().for_each(|weight| *weight *= scale);
                bias.fill(R::ZERO);
            }
        }
        self.start_normalisation(&mut position);
        position
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::Purpose;
    use crate::network::Activation;

    #[test]
    fn layers_follow_one_another() {
        let network = Composition::fully_connected(3, &[4, 5], 2, Activation::Relu);
        let layout = ParameterLayout::new(&network);
        let ranges: Vec<_> = layout
            .layers
            .iter()
            .map(|layer| layer.range.clone())
            .collect();
        assert_eq!(ranges, [0..16, 16..41, 41..53]);
        assert_eq!(layout.len(), 3 * 4 + 4 + 5 * 5 + 2 * 6);
        let mut stream = Stream::new(0, 0, Purpose::Initial, 0);
        let start: Vec<f64> = layout.draw_by_fan_in(1.0, &mut stream);
        assert!(start[3] == 0.0 && start[20] == 0.0 && start[52] == 0.0 && start[0] != 0.0);
    }
}
