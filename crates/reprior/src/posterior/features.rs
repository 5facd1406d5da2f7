//! From a chain's inner weights to last-layer features of the model's inputs, and the vjp back.

use std::ops::Range;

use crate::compute::{Matrix, MatrixMut, Real, blend, one_minus_cos};
use crate::model::design::Design;
use crate::model::{Model, TestInputs};
use crate::network::{Composition, Features, NetworkInputs, Part, Parts};

/// Features h̃ (n × p, the readout's constant column included) of a model's inputs.
///
/// For a linear model (no hidden layers) the features are the inputs and there are no inner weights.
pub struct FeatureMap<R> {
    features: Features<R>,
    /// Units of a fully connected network's first layer; 0 of other networks.
    first_units: usize,
    /// First pre-activations at the position and the direction of an ellipse; empty until one is asked for.
    ellipse: [Vec<R>; 2],
}

/// The training inputs of a chain that is on an ellipse: the first layer's parameters there need no product.
struct OnEllipse<'a, R> {
    design: &'a Design<R>,
    /// First pre-activations at the position and in the direction.
    ends: &'a [Vec<R>; 2],
    angle: f64,
}

impl<R: Real> NetworkInputs<R> for OnEllipse<'_, R> {
    fn matrix(&self) -> Matrix<'_, R> {
        self.design.matrix()
    }

    fn forward(&self, mut out: MatrixMut<'_, R>, _: Matrix<'_, R>, part: &Part) {
        let n = self.design.rows();
        let [position, direction] = self.ends;
        let (shrink, sine) = (one_minus_cos(self.angle), self.angle.sin());
        for (unit, column) in part.units.clone().zip(out.as_mut().col_iter_mut()) {
            if let Some(column) = column.try_as_col_major_mut() {
                let rows = unit * n + part.rows.start..unit * n + part.rows.end;
                let (x, y) = (&position[rows.clone()], &direction[rows]);
                blend(column.as_slice_mut(), shrink, x, sine, y);
            }
        }
    }

    fn vjp_weights(
        &self,
        gradient: MatrixMut<'_, R>,
        cotangent: Matrix<'_, R>,
        rows: Range<usize>,
    ) {
        self.design.vjp_weights(gradient, cotangent, rows);
    }
}

impl<R: Real> FeatureMap<R> {
    /// Buffers for the training inputs of `model`.
    pub fn new(model: &Model<R>) -> Self {
        Self::for_rows(model, model.rows())
    }

    /// Buffers for any `rows` inputs of `model`.
    pub(super) fn for_rows(model: &Model<R>, rows: usize) -> Self {
        let widths = model.architecture.hidden_widths();
        Self {
            features: Features::new(&model.architecture, rows),
            first_units: widths.first().copied().unwrap_or(0),
            ellipse: [Vec::new(), Vec::new()],
        }
    }

    /// Evaluates the features at the inner weights `z`: the first layer's r × width matrix, then the others'. `visit` is
    /// shown them block by block of columns, in order, while they are in the cache.
    pub fn evaluate(
        &mut self,
        model: &Model<R>,
        z: &[R],
        with_derivatives: bool,
        visit: impl FnMut(Matrix<'_, R>),
    ) {
        self.features
            .evaluate(&model.design, z, with_derivatives, visit);
    }

    /// Inner weights of the first layer, with which its pre-activations are linear.
    pub(super) fn first_parameters(&self, model: &Model<R>) -> usize {
        model.design.columns() * self.first_units
    }

    /// Prepares [`evaluate_on_ellipse`](Self::evaluate_on_ellipse) for the points z cos α + ν sin α.
    pub(super) fn prepare_ellipse(&mut self, model: &Model<R>, z: &[R], direction: &[R]) {
        let (n, rows, units) = (model.rows(), model.design.columns(), self.first_units);
        if units == 0 {
            return;
        }
        for (values, weights) in self.ellipse.iter_mut().zip([z, direction]) {
            values.resize(n * units, R::ZERO);
            model.design.multiply(&weights[..rows * units], values);
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
        let inputs = OnEllipse {
            design: &model.design,
            ends: &self.ellipse,
            angle,
        };
        self.features.evaluate(&inputs, z, false, visit);
    }

    /// Evaluates the features of the model's test inputs with `noise` (residual columns × width) for the weights that
    /// the training data do not touch.
    pub(super) fn evaluate_test(&mut self, model: &Model<R>, z: &[R], noise: &[R]) {
        let inputs = TestInputs {
            design: &model.test_design,
            noise,
        };
        self.features.evaluate(&inputs, z, false, |_| {});
    }

    /// The features of the last [`evaluate`](Self::evaluate), n × p.
    pub fn features<'a>(&'a self, model: &'a Model<R>) -> Matrix<'a, R> {
        self.features.features(model.design.matrix())
    }

    /// The features of the last [`evaluate_test`](Self::evaluate_test), n* × p.
    pub(super) fn test_features<'a>(&'a self, model: &'a Model<R>) -> Matrix<'a, R> {
        self.features.features(model.test_design.known())
    }

    /// The gradient with respect to the inner weights: `cotangent` writes the features' cotangent (n × d_L, without
    /// the constant column) given the features; `gradient` is overwritten.
    pub fn backward(
        &mut self,
        model: &Model<R>,
        z: &[R],
        gradient: &mut [R],
        cotangent: impl FnOnce(MatrixMut<'_, R>, Matrix<'_, R>) + Send,
    ) {
        self.features
            .backward(&model.design, z, gradient, cotangent);
    }

    /// As [`backward`](Self::backward), for a `cotangent` that can be computed in `parts`.
    pub(super) fn backward_in_parts(
        &mut self,
        model: &Model<R>,
        z: &[R],
        gradient: &mut [R],
        parts: Parts,
        cotangent: impl Fn(MatrixMut<'_, R>, Matrix<'_, R>, &Part) + Sync,
    ) {
        self.features
            .backward_in_parts(&model.design, z, gradient, parts, cotangent);
    }

    /// Whether a gradient evaluates the features a second time, as there are too many rows to keep what it needs.
    pub fn evaluates_again(network: &Composition, rows: usize) -> bool {
        Features::<R>::evaluates_again(network, rows)
    }

    /// Bytes of the buffers for `rows` inputs of a network, with or without those for gradients.
    pub fn bytes(network: &Composition, rows: usize, with_gradients: bool) -> usize {
        Features::<R>::bytes(network, rows, with_gradients)
    }
}
