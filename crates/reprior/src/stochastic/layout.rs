//! Where each layer's parameters are among all of them.

use std::ops::Range;

use crate::compute::{Real, Stream};
use crate::network::{Composition, ParameterMatrix};

/// One layer's matrix of parameters, column-major, a column for each unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// The layer's name, as in [`ParameterMatrix`]; `readout` for the readout.
    pub name: String,
    /// Fan-in, and one if there is a bias.
    pub rows: usize,
    /// Units, or channels.
    pub units: usize,
    /// Whether the last row is a bias.
    pub has_bias: bool,
    /// Its own among all parameters.
    pub range: Range<usize>,
    /// What the network multiplies weights and biases by: in the NTK parametrisation their standard deviations under the prior
    /// of the standard one.
    pub factors: [f64; 2],
}

impl Parameters {
    /// Weights of a unit.
    pub fn fan_in(&self) -> usize {
        self.rows - usize::from(self.has_bias)
    }
}

/// All layers' parameters, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    /// From the first layer to the readout.
    pub layers: Vec<Parameters>,
}

impl Layout {
    /// Of a network whose layers fit.
    pub fn new(network: &Composition) -> Self {
        let readout = ParameterMatrix {
            name: "readout".to_owned(),
            rows: network.features() + 1,
            units: network.outputs,
            has_bias: true,
            factors: [
                network.readout_scale.factor(network.features()),
                network.readout_scale.bias,
            ],
        };
        let matrices = network.parameter_matrices().into_iter();
        let mut end = 0;
        let layers = matrices.chain([readout]).map(|matrix| {
            let start = end;
            end += matrix.rows * matrix.units;
            Parameters {
                name: matrix.name,
                rows: matrix.rows,
                units: matrix.units,
                has_bias: matrix.has_bias,
                range: start..end,
                factors: matrix.factors,
            }
        });
        Self {
            layers: layers.collect(),
        }
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

    /// Multiplies weights and biases by [`Parameters::factors`]: what the NTK parametrisation's are in the standard one.
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

    /// Weights from N(0, `gain`/fan-in), biases zero: a start for the standard parametrisation (`gain` 1 in Marceau-Caron &
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
        position
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::Purpose;
    use crate::network::{Activation, Architecture};

    #[test]
    fn layers_follow_one_another() {
        let network = Architecture::new(3, &[4, 5], 2, Activation::Relu).to_composition();
        let layout = Layout::new(&network);
        let ranges: Vec<_> = layout
            .layers
            .iter()
            .map(|layer| layer.range.clone())
            .collect();
        assert_eq!(ranges, [0..16, 16..41, 41..53]);
        assert_eq!(layout.len(), network.parameters().unwrap());
        let mut stream = Stream::new(0, 0, Purpose::Initial, 0);
        let start: Vec<f64> = layout.draw_by_fan_in(1.0, &mut stream);
        assert!(start[3] == 0.0 && start[20] == 0.0 && start[52] == 0.0 && start[0] != 0.0);
    }
}
