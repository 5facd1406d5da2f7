//! Statistics of all batch normalisation of a network as one vector: layer after layer, branches of parallel layers in order,
//! of each the means of its channels and then their variances.

use super::Composition;
use super::composition::branch_shapes;
use super::layer::{BatchNorm, Layer, Shape};
use super::parameters::ParameterLayout;
use crate::compute::Real;

impl Composition {
    /// Means and variances of all batch normalisation, defaults included; none of a network without, and of layers that do not
    /// fit.
    pub fn statistics(&self) -> Vec<f64> {
        let mut statistics = Vec::new();
        self.clone().each_batch_norm(|layer, input| {
            statistics.extend(layer.statistics(input.channels).concat());
        });
        statistics
    }

    /// Changes γ and β of `position` so that this network, with its own statistics, is the function that it was with other
    /// [`statistics`](Self::statistics): for draws that have statistics each, with one network.
    pub fn absorb_statistics<R: Real>(&self, statistics: &[f64], position: &mut [R]) {
        let layout = ParameterLayout::new(self);
        let mut layers = layout.layers.iter().filter(|layer| layer.is_normalisation);
        let mut rest = statistics;
        self.clone().each_batch_norm(|norm, input| {
            let channels = input.channels;
            let found = rest.split_at_checked(2 * channels).zip(layers.next());
            let Some(((other, others), layer)) = found else {
                return;
            };
            rest = others;
            let (mean, variance) = other.split_at(channels);
            let [own_mean, own_variance] = norm.statistics(channels);
            let own = position[layer.range.clone()].chunks_exact_mut(2);
            for (channel, pair) in own.enumerate() {
                let [scale, shift] = [pair[0], pair[1]].map(R::to_f64);
                let slope = scale / (variance[channel] + norm.epsilon).sqrt();
                let scale = slope * (own_variance[channel] + norm.epsilon).sqrt();
                let shift = shift + slope * (own_mean[channel] - mean[channel]);
                (pair[0], pair[1]) = (R::from_f64(scale), R::from_f64(shift));
            }
        });
    }

    /// Values of a channel that one row has in batch normalisation, at least; 1 without any.
    pub(crate) fn fewest_positions(&self) -> usize {
        let mut fewest = None;
        self.clone().each_batch_norm(|_, input| {
            fewest =
                Some(fewest.map_or(input.pixels(), |fewest: usize| fewest.min(input.pixels())));
        });
        fewest.unwrap_or(1)
    }

    /// The network with other [`statistics`](Self::statistics), of the same length. What is missing stays as it is.
    #[must_use]
    pub fn with_statistics(&self, statistics: &[f64]) -> Self {
        let (mut network, mut rest) = (self.clone(), statistics);
        network.each_batch_norm(|layer, input| {
            let channels = input.channels;
            if let Some((own, others)) = rest.split_at_checked(2 * channels) {
                let (mean, variance) = own.split_at(channels);
                (layer.mean, layer.variance) = (mean.to_vec(), variance.to_vec());
                rest = others;
            }
        });
        network
    }

    /// Visits all batch normalisation, with the shape of its input.
    fn each_batch_norm(&mut self, mut visit: impl FnMut(&mut BatchNorm, Shape)) {
        if let Ok(shapes) = self.shapes() {
            each(&mut self.layers, &shapes, &mut visit);
        }
    }
}

fn each(layers: &mut [Layer], shapes: &[Shape], visit: &mut dyn FnMut(&mut BatchNorm, Shape)) {
    for (layer, &input) in layers.iter_mut().zip(shapes) {
        match layer {
            Layer::BatchNorm(layer) => visit(layer, input),
            Layer::Parallel(layer) => {
                for branch in &mut layer.branches {
                    let shapes = branch_shapes(branch, input);
                    each(&mut branch.layers, &shapes, visit);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::compute::{Purpose, Stream};
    use crate::network::{Activation, Executor, LayerScale};

    #[test]
    fn statistics_go_out_and_in_again() {
        let named: crate::network::named::NamedNetwork = "resnet-small".parse().unwrap();
        let network = named.network([8, 8, 3].into(), 4, Activation::Relu, LayerScale::HIDDEN);
        let network = network.unwrap();
        let before = network.statistics();
        // 7, 6 and 6 layers of 16, 32 and 64 channels
        assert_eq!(before.len(), 2 * (7 * 16 + 6 * 32 + 6 * 64));
        assert_eq!([before[15], before[16]], [0.0, 1.0]);
        let other: Vec<f64> = (1..=before.len()).map(|at| at as f64).collect();
        let changed = network.with_statistics(&other);
        assert_eq!(changed.statistics(), other);
        let mut executor = Executor::<f64>::new(&network).unwrap();
        executor.set_statistics(&other);
        let mut same = Executor::<f64>::new(&changed).unwrap();
        let weights = vec![0.1; network.parameters()];
        let inputs = vec![0.5; 192];
        let inputs = crate::compute::matrix(&inputs, 1, 192);
        let mut out = [[0.0; 4]; 2];
        for (executor, out) in [&mut executor, &mut same].into_iter().zip(&mut out) {
            executor.outputs(&weights, inputs, crate::compute::matrix_mut(out, 1, 4));
        }
        assert_eq!(out[0], out[1]);
    }

    /// γ and β take over what statistics say.
    #[test]
    fn absorbed_statistics_leave_the_function_as_it_is() {
        let named: crate::network::named::NamedNetwork = "resnet-small".parse().unwrap();
        let network = named.network([6, 5, 2].into(), 3, Activation::Relu, LayerScale::HIDDEN);
        let network = network.unwrap();
        let mut stream = Stream::new(3, 0, Purpose::Initial, 0);
        let mut drawn = |count: usize| -> Vec<f64> {
            let mut values = vec![0.0; count];
            stream.fill_normal(&mut values);
            values
        };
        let count = network.statistics().len();
        let [own, other] = [drawn(count), drawn(count)]
            .map(|values| values.iter().map(|v| 0.2 + v * v).collect::<Vec<f64>>());
        let (weights, inputs) = (drawn(network.parameters()), drawn(60));
        let outputs = |statistics: &[f64], weights: &[f64]| {
            let mut out = [0.0; 3];
            let mut executor = Executor::<f64>::new(&network.with_statistics(statistics)).unwrap();
            let inputs = crate::compute::matrix(&inputs, 1, 60);
            let view = crate::compute::matrix_mut(&mut out, 1, 3);
            executor.outputs(weights, inputs, view);
            out
        };
        let mut absorbed = weights.clone();
        let frozen = network.with_statistics(&own);
        frozen.absorb_statistics(&other, &mut absorbed);
        assert_ne!(absorbed, weights);
        let (found, expected) = (outputs(&own, &absorbed), outputs(&other, &weights));
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-9 * (1.0 + expected.abs()));
        }
    }
}
