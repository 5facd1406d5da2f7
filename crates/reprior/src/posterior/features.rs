//! From the chain's inner weights to last-layer features of the training inputs, and the vjp back.

use std::ops::Range;

use crate::compute::{Matrix, MatrixMut, Real, blend, matrix, matrix_mut, one_minus_cos};
use crate::model::Model;
use crate::network::{Executor, Trunk};

/// Features h̃ (n × p, the readout's constant column included) of a model's training inputs.
///
/// For a linear model (no hidden layers) the features are the inputs and there are no inner weights.
pub struct FeatureMap<R> {
    /// Of a fully connected network.
    trunk: Option<Trunk<R>>,
    /// Of any other.
    layers: Option<Layers<R>>,
    first_units: usize,
    /// First pre-activations at the position and the direction of an ellipse; empty until one is asked for.
    ellipse: [Vec<R>; 2],
    /// The cotangent that a linear model has no use for.
    unused: Vec<R>,
}

/// A network of any layers on n inputs. Its first layer is not told apart from the others: no reduction of inputs, no
/// ellipses of pre-activations.
struct Layers<R> {
    executor: Executor<R>,
    /// n × p, the readout's constant column included.
    features: Vec<R>,
    /// n × d_L; empty until needed.
    cotangent: Vec<R>,
}

impl<R: Real> Layers<R> {
    /// `None` for fully connected networks. A composition that does not fit together is refused by
    /// [`Model::new`](crate::model::Model::new).
    fn new(model: &Model<R>, rows: usize) -> Option<Self> {
        let architecture = &model.architecture;
        let executor = Executor::new(architecture.composition.as_ref()?).ok()?;
        let columns = architecture.features();
        let constant = architecture.readout_scale.constant(columns);
        let mut features = vec![R::from_f64(constant); rows * (columns + 1)];
        features[..rows * columns].fill(R::ZERO);
        Some(Self {
            executor,
            features,
            cotangent: Vec::new(),
        })
    }

    fn evaluate(&mut self, inputs: Matrix<'_, R>, z: &[R]) {
        let (rows, columns) = (inputs.nrows(), self.executor.features_count());
        let features = matrix_mut(&mut self.features[..rows * columns], rows, columns);
        self.executor.features(z, inputs, features);
    }

    fn features(&self) -> Matrix<'_, R> {
        let columns = self.executor.features_count() + 1;
        matrix(&self.features, self.features.len() / columns, columns)
    }

    fn backward(
        &mut self,
        inputs: Matrix<'_, R>,
        z: &[R],
        gradient: &mut [R],
        cotangent: impl FnOnce(MatrixMut<'_, R>, Matrix<'_, R>),
    ) {
        let (rows, columns) = (inputs.nrows(), self.executor.features_count());
        self.cotangent.resize(rows * columns, R::ZERO);
        let features = matrix(&self.features, rows, columns + 1);
        cotangent(matrix_mut(&mut self.cotangent, rows, columns), features);
        let cotangent = matrix(&self.cotangent, rows, columns);
        self.executor
            .vjp_features(z, inputs, cotangent, gradient, None);
    }
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
            layers: Layers::new(model, rows),
            first_units: architecture.hidden.first().copied().unwrap_or(0),
            ellipse: [Vec::new(), Vec::new()],
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
        } else if let Some(layers) = &mut self.layers {
            layers.evaluate(model.design.matrix(), z);
            visit(layers.features());
        } else {
            visit(model.design.matrix());
        }
    }

    /// Inner weights of the first layer, with which its pre-activations are linear.
    pub(super) fn first_parameters(&self, model: &Model<R>) -> usize {
        model.design.columns() * self.first_units
    }

    /// Prepares [`evaluate_on_ellipse`](Self::evaluate_on_ellipse) for the points z cos α + ν sin α.
    pub(super) fn prepare_ellipse(&mut self, model: &Model<R>, z: &[R], direction: &[R]) {
        if self.trunk.is_none() {
            return;
        }
        let (n, rows, units) = (model.rows(), model.design.columns(), self.first_units);
        for (values, weights) in self.ellipse.iter_mut().zip([z, direction]) {
            values.resize(n * units, R::ZERO);
            let weights = matrix(&weights[..rows * units], rows, units);
            model.design.forward(matrix_mut(values, n, units), weights);
        }
    }

    /// As [`evaluate`](Self::evaluate) at the point of the prepared ellipse at `angle`, of which `z` has the inner weights
    /// above the first layer in their places.
    pub(super) fn evaluate_on_ellipse(
        &mut self,
        model: &Model<R>,
        z: &[R],
        angle: f64,
        visit: impl FnMut(Matrix<'_, R>),
    ) {
        let first = self.first_parameters(model);
        let Some(trunk) = &mut self.trunk else {
            return self.evaluate(model, z, false, visit);
        };
        let n = model.rows();
        let [position, direction] = &self.ellipse;
        let (shrink, sine) = (one_minus_cos(angle), angle.sin());
        let combination = |mut out: MatrixMut<'_, R>, units: Range<usize>| {
            for (unit, column) in units.zip(out.as_mut().col_iter_mut()) {
                if let Some(column) = column.try_as_col_major_mut() {
                    let rows = unit * n..(unit + 1) * n;
                    let (x, y) = (&position[rows.clone()], &direction[rows]);
                    blend(column.as_slice_mut(), shrink, x, sine, y);
                }
            }
        };
        trunk.propagate(combination, &z[first..], false, visit);
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
        } else if let Some(layers) = &mut self.layers {
            layers.evaluate(model.test_design.known(), z);
        }
    }

    /// The features of the last [`evaluate`](Self::evaluate), n × p.
    pub fn features<'a>(&'a self, model: &'a Model<R>) -> Matrix<'a, R> {
        match (&self.trunk, &self.layers) {
            (Some(trunk), _) => trunk.features(),
            (None, Some(layers)) => layers.features(),
            (None, None) => model.design.matrix(),
        }
    }

    /// The features of the last [`evaluate_test`](Self::evaluate_test), n* × p.
    pub(super) fn test_features<'a>(&'a self, model: &'a Model<R>) -> Matrix<'a, R> {
        match (&self.trunk, &self.layers) {
            (Some(trunk), _) => trunk.features(),
            (None, Some(layers)) => layers.features(),
            (None, None) => model.test_design.known(),
        }
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
        if let Some(layers) = &mut self.layers {
            return layers.backward(model.design.matrix(), z, gradient, cotangent);
        }
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

    /// As [`backward`](Self::backward), for a `cotangent` that can be had for ranges of units: with one hidden layer
    /// block by block of units, each of which stays in the cache on its way.
    pub fn backward_in_blocks(
        &mut self,
        model: &Model<R>,
        z: &[R],
        gradient: &mut [R],
        mut cotangent: impl FnMut(MatrixMut<'_, R>, Matrix<'_, R>, Range<usize>),
    ) {
        match &mut self.trunk {
            Some(trunk) if model.architecture.hidden.len() == 1 => {
                let rows = model.design.columns();
                let mut gradient = matrix_mut(gradient, rows, self.first_units);
                trunk.backward_in_blocks(cotangent, |delta, units| {
                    let gradient = gradient.as_mut().subcols_mut(units.start, units.len());
                    model.design.vjp_weights(gradient, delta);
                });
            }
            _ => self.backward(model, z, gradient, |out, features| {
                let units = 0..out.ncols();
                cotangent(out, features, units);
            }),
        }
    }
}
