//! Any network: its layers through the [`Executor`]. Its first layer is not told apart from the others.

use super::{FeatureCotangent, FeaturePlan, NetworkInputs, Part, Parts};
use crate::compute::{Matrix, Real, matrix, matrix_mut};
use crate::network::{Composition, Executor};

pub(super) struct LayerFeatures<R> {
    executor: Executor<R>,
    /// n × p, the readout's constant column included.
    features: Vec<R>,
    /// n × d_L; empty until needed.
    cotangent: Vec<R>,
}

impl<R: Real> LayerFeatures<R> {
    pub fn new(network: &Composition, executor: Executor<R>, rows: usize) -> Self {
        let columns = executor.features_count();
        let constant = network.readout_scale.constant(columns);
        let mut features = vec![R::from_f64(constant); rows * (columns + 1)];
        features[..rows * columns].fill(R::ZERO);
        Self {
            executor,
            features,
            cotangent: Vec::new(),
        }
    }
}

impl<R: Real> FeaturePlan<R> for LayerFeatures<R> {
    fn evaluate(
        &mut self,
        inputs: &dyn NetworkInputs<R>,
        weights: &[R],
        _: bool,
        visit: &mut dyn FnMut(Matrix<'_, R>),
    ) {
        let x = inputs.matrix();
        let (rows, columns) = (x.nrows(), self.executor.features_count());
        let features = matrix_mut(&mut self.features[..rows * columns], rows, columns);
        self.executor.features(weights, x, features);
        visit(self.features(x));
    }

    fn features<'a>(&'a self, _: Matrix<'a, R>) -> Matrix<'a, R> {
        let columns = self.executor.features_count() + 1;
        matrix(&self.features, self.features.len() / columns, columns)
    }

    fn backward(
        &mut self,
        inputs: &dyn NetworkInputs<R>,
        weights: &[R],
        gradient: &mut [R],
        _: Parts,
        cotangent: &FeatureCotangent<'_, R>,
    ) {
        let x = inputs.matrix();
        let (rows, columns) = (x.nrows(), self.executor.features_count());
        self.cotangent.resize(rows * columns, R::ZERO);
        let features = matrix(&self.features, rows, columns + 1);
        let out = matrix_mut(&mut self.cotangent, rows, columns);
        let all = Part {
            rows: 0..rows,
            units: 0..columns,
        };
        cotangent(out, features, &all);
        let cotangent = matrix(&self.cotangent, rows, columns);
        self.executor
            .vjp_features(weights, x, cotangent, gradient, None);
    }
}

/// Bytes for the features and, with gradients, their cotangents and copies of the weights in the order of the way back.
pub(super) fn bytes<R: Real>(network: &Composition, rows: usize, with_gradients: bool) -> usize {
    let features = rows * network.readout_rows();
    let gradients = if with_gradients {
        features + 2 * network.inner_parameters()
    } else {
        0
    };
    (features + gradients) * R::BYTES
}
