//! From the chain's inner weights to last-layer features of the training inputs, and the vjp back.

use std::ops::Range;

use crate::compute::{Matrix, MatrixMut, Real, matrix, matrix_mut};
use crate::model::Model;
use crate::network::Trunk;

/// Features h̃ (n × p, the readout's constant column included) of a model's training inputs.
///
/// For a linear model (no hidden layers) the features are the inputs and there are no inner weights.
pub struct FeatureMap<R> {
    trunk: Option<Trunk<R>>,
    first_units: usize,
    /// The cotangent that a linear model has no use for.
    unused: Vec<R>,
}

impl<R: Real> FeatureMap<R> {
    /// Buffers for the training inputs of `model`.
    pub fn new(model: &Model<R>) -> Self {
        Self::for_rows(model, model.rows())
    }

    /// Buffers for any `rows` inputs of `model`.
    pub(super) fn for_rows(model: &Model<R>, rows: usize) -> Self {
        let architecture = &model.architecture;
        let trunk = (!architecture.hidden.is_empty()).then(|| Trunk::new(architecture, rows));
        Self {
            trunk,
            first_units: architecture.hidden.first().copied().unwrap_or(0),
            unused: Vec::new(),
        }
    }

    /// Evaluates the features at the inner weights `z`: the first layer's r × width matrix, then the others'. `visit` is
    /// shown them block by block of columns, in order, while they are in the cache.
    pub fn evaluate(
        &mut self,
        model: &Model<R>,
        z: &[R],
        with_derivatives: bool,
        mut visit: impl FnMut(Matrix<'_, R>),
    ) {
        let (rows, units) = (model.design.columns(), self.first_units);
        if let Some(trunk) = &mut self.trunk {
            let (first, above) = z.split_at(rows * units);
            let first = matrix(first, rows, units);
            let product = |out: MatrixMut<'_, R>, units: Range<usize>| {
                let weights = first.subcols(units.start, units.len());
                model.design.forward(out, weights);
            };
            trunk.propagate(product, above, with_derivatives, visit);
        } else {
            visit(model.design.matrix());
        }
    }

    /// Evaluates the features of the model's test inputs with `noise` (residual columns × width) for the weights that
    /// the training data do not touch.
    pub(super) fn evaluate_test(&mut self, model: &Model<R>, z: &[R], noise: &[R]) {
        let (rows, units) = (model.design.columns(), self.first_units);
        if let Some(trunk) = &mut self.trunk {
            let (first, above) = z.split_at(rows * units);
            let first = matrix(first, rows, units);
            let noise = matrix(noise, model.test_design.residual_columns(), units);
            let product = |out: MatrixMut<'_, R>, units: Range<usize>| {
                let (start, count) = (units.start, units.len());
                let (first, noise) = (first.subcols(start, count), noise.subcols(start, count));
                model.test_design.forward(out, first, noise);
            };
            trunk.propagate(product, above, false, |_| {});
        }
    }

    /// The features of the last [`evaluate`](Self::evaluate), n × p.
    pub fn features<'a>(&'a self, model: &'a Model<R>) -> Matrix<'a, R> {
        self.trunk
            .as_ref()
            .map_or_else(|| model.design.matrix(), Trunk::features)
    }

    /// The features of the last [`evaluate_test`](Self::evaluate_test), n* × p.
    pub(super) fn test_features<'a>(&'a self, model: &'a Model<R>) -> Matrix<'a, R> {
        self.trunk
            .as_ref()
            .map_or_else(|| model.test_design.known(), Trunk::features)
    }

    /// The gradient with respect to the inner weights: `cotangent` writes the features' cotangent (n × d_L, without
    /// the constant column) given the features; `gradient` is overwritten.
    pub fn backward(
        &mut self,
        model: &Model<R>,
        z: &[R],
        gradient: &mut [R],
        cotangent: impl FnOnce(MatrixMut<'_, R>, Matrix<'_, R>),
    ) {
        let Some(trunk) = &mut self.trunk else {
            // nothing lies below the features of a linear model, but `cotangent` may find other derivatives on its way
            let features = model.design.matrix();
            let (rows, columns) = (features.nrows(), features.ncols() - 1);
            self.unused.resize(rows * columns, R::ZERO);
            cotangent(matrix_mut(&mut self.unused, rows, columns), features);
            return;
        };
        let (into, features) = trunk.cotangent_and_features();
        cotangent(into, features);
        let (rows, units) = (model.design.columns(), self.first_units);
        let (first, above) = gradient.split_at_mut(rows * units);
        let delta = trunk.backward(&z[rows * units..], above);
        model
            .design
            .vjp_weights(matrix_mut(first, rows, units), delta);
    }
}
