//! Features below the readout of a fixed number of inputs, and their vjp: what posteriors of networks are made of.
//!
//! How they are evaluated follows from the network: a linear model's features are its inputs, the hidden layers of a fully connected
//! network are products of whole matrices whose inputs may be reduced, and any other network goes through the [`Executor`]. Features
//! come extended by the constant column of the readout's bias.

mod hidden_layers;
mod layers;
mod linear;

use std::ops::Range;

use super::Executor;
use crate::compute::{Matrix, MatrixMut, Real};
use crate::network::Composition;
use hidden_layers::HiddenLayers;
pub(crate) use hidden_layers::scale_by;
use layers::LayerFeatures;
use linear::LinearFeatures;

/// Inputs of a network, and what the first layer of a fully connected one makes of them.
pub(crate) trait NetworkInputs<R> {
    /// The inputs, n × columns.
    fn matrix(&self) -> Matrix<'_, R>;

    /// `out` (n × units) ← the first layer's pre-activations for a range of its units, whose parameters are `weights`
    /// (columns × units).
    fn forward(&self, out: MatrixMut<'_, R>, weights: Matrix<'_, R>, units: Range<usize>);

    /// `gradient` (columns × units) ← the vjp of [`forward`](Self::forward) for the `cotangent` (n × units).
    fn vjp_weights(&self, gradient: MatrixMut<'_, R>, cotangent: Matrix<'_, R>);
}

/// Writes the cotangent (n × units) of a range of features, given all features.
type FeatureCotangent<'a, R> = dyn FnMut(MatrixMut<'_, R>, Matrix<'_, R>, Range<usize>) + 'a;

/// One way to evaluate the features.
trait FeaturePlan<R>: Send {
    /// Evaluates the features, and shows them block by block of columns, in order, while they are in the cache; the constant column
    /// comes last. Keeps what [`backward`](Self::backward) needs if `with_derivatives`.
    fn evaluate(
        &mut self,
        inputs: &dyn NetworkInputs<R>,
        weights: &[R],
        with_derivatives: bool,
        visit: &mut dyn FnMut(Matrix<'_, R>),
    );

    /// The features of the last [`evaluate`](Self::evaluate), which had the same inputs.
    fn features<'a>(&'a self, inputs: Matrix<'a, R>) -> Matrix<'a, R>;

    /// `gradient` ← the vjp at the last point that was evaluated with derivatives. If `in_blocks`, the cotangent may be asked for
    /// ranges of features in order; otherwise it is asked for once.
    fn backward(
        &mut self,
        inputs: &dyn NetworkInputs<R>,
        weights: &[R],
        gradient: &mut [R],
        in_blocks: bool,
        cotangent: &mut FeatureCotangent<'_, R>,
    );
}

/// A network's features for n inputs. Weights are those below the readout: see
/// [`Composition::with_design_columns`] where the first layer's are reduced.
pub(crate) struct Features<R> {
    plan: Box<dyn FeaturePlan<R>>,
}

impl<R: Real> Features<R> {
    /// Of a network whose layers fit, for `rows` inputs.
    pub fn new(network: &Composition, rows: usize) -> Self {
        let plan: Box<dyn FeaturePlan<R>> = match network.as_fully_connected() {
            Some(hidden) if !hidden.is_empty() => {
                Box::new(HiddenLayers::new(network, &hidden, rows))
            }
            None if let Ok(executor) = Executor::new(network) => {
                Box::new(LayerFeatures::new(network, executor, rows))
            }
            _ => Box::new(LinearFeatures::new()),
        };
        Self { plan }
    }

    /// Evaluates the features. `visit` is shown them block by block of columns, in order, while they are in the cache.
    pub fn evaluate(
        &mut self,
        inputs: &dyn NetworkInputs<R>,
        weights: &[R],
        with_derivatives: bool,
        mut visit: impl FnMut(Matrix<'_, R>),
    ) {
        self.plan
            .evaluate(inputs, weights, with_derivatives, &mut visit);
    }

    /// The features of the last [`evaluate`](Self::evaluate), which had the same inputs: n × p, the constant column included.
    pub fn features<'a>(&'a self, inputs: Matrix<'a, R>) -> Matrix<'a, R> {
        self.plan.features(inputs)
    }

    /// `gradient` ← the vjp: `cotangent` writes the features' cotangent (n × d_L, without the constant column) given the features.
    pub fn backward(
        &mut self,
        inputs: &dyn NetworkInputs<R>,
        weights: &[R],
        gradient: &mut [R],
        cotangent: impl FnOnce(MatrixMut<'_, R>, Matrix<'_, R>),
    ) {
        let mut cotangent = Some(cotangent);
        let mut once = |out: MatrixMut<'_, R>, features: Matrix<'_, R>, _| {
            if let Some(cotangent) = cotangent.take() {
                cotangent(out, features);
            }
        };
        self.plan
            .backward(inputs, weights, gradient, false, &mut once);
    }

    /// As [`backward`](Self::backward), for a `cotangent` that can be computed for ranges of features.
    pub fn backward_in_blocks(
        &mut self,
        inputs: &dyn NetworkInputs<R>,
        weights: &[R],
        gradient: &mut [R],
        mut cotangent: impl FnMut(MatrixMut<'_, R>, Matrix<'_, R>, Range<usize>),
    ) {
        self.plan
            .backward(inputs, weights, gradient, true, &mut cotangent);
    }

    /// Bytes of the buffers, with or without those for gradients.
    pub fn bytes(network: &Composition, rows: usize, with_gradients: bool) -> usize {
        match network.as_fully_connected() {
            Some(hidden) => hidden_layers::bytes::<R>(&hidden, rows, with_gradients),
            None => layers::bytes::<R>(network, rows, with_gradients),
        }
    }
}
