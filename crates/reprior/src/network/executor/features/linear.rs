//! A linear model: its features are its inputs, and nothing lies below them.

use super::{FeatureCotangent, FeaturePlan, NetworkInputs, Part, Parts};
use crate::compute::{Matrix, Real, matrix_mut};

pub(super) struct LinearFeatures<R> {
    /// The cotangent that nothing uses.
    unused: Vec<R>,
}

impl<R> LinearFeatures<R> {
    pub fn new() -> Self {
        Self { unused: Vec::new() }
    }
}

impl<R: Real> FeaturePlan<R> for LinearFeatures<R> {
    fn evaluate(
        &mut self,
        inputs: &dyn NetworkInputs<R>,
        _: &[R],
        _: bool,
        visit: &mut dyn FnMut(Matrix<'_, R>),
    ) {
        visit(inputs.matrix());
    }

    fn features<'a>(&'a self, inputs: Matrix<'a, R>) -> Matrix<'a, R> {
        inputs
    }

    fn backward(
        &mut self,
        inputs: &dyn NetworkInputs<R>,
        _: &[R],
        _: &mut [R],
        _: Parts,
        cotangent: &FeatureCotangent<'_, R>,
    ) {
        // whoever writes the cotangent may find other derivatives on the way
        let features = inputs.matrix();
        let (rows, columns) = (features.nrows(), features.ncols() - 1);
        self.unused.resize(rows * columns, R::ZERO);
        let out = matrix_mut(&mut self.unused, rows, columns);
        let all = Part {
            rows: 0..rows,
            units: 0..columns,
        };
        cotangent(out, features, &all);
    }
}
