//! Statistics of all batch normalisation of a network as one vector: layer after layer, branches of parallel layers in order,
//! of each the means of its channels and then their variances.

use super::Composition;
use super::composition::branch_shapes;
use super::layer::{BatchNorm, Layer, Shape};

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
}
