//! Features below the readout of a fixed number of inputs, and their vjp: what posteriors of networks are made of.
//!
//! How they are evaluated follows from the network: a linear model's features are its inputs, the hidden layers of a fully connected
//! network are products of whole matrices whose inputs may be reduced, and any other network goes through the [`Executor`]. Features
//! come extended by the constant column of the readout's bias.

mod hidden_layers;
mod layers;
mod linear;
mod row_groups;

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::Executor;
use crate::compute::{Matrix, MatrixMut, OfPrecision, Real};
use crate::network::Composition;
use hidden_layers::HiddenLayers;
use layers::LayerFeatures;
use linear::LinearFeatures;
use row_groups::{Groups, RowGroups};

/// Inputs of a network, and what the first layer of a fully connected one makes of them.
pub(crate) trait NetworkInputs<R>: Sync {
    /// The inputs, n × columns.
    fn matrix(&self) -> Matrix<'_, R>;

    /// `out` (rows × units) ← part of the first layer's pre-activations; the parameters of these units are `weights` (columns ×
    /// units). Rows begin at a multiple of `panel_rows`.
    fn forward(&self, out: MatrixMut<'_, R>, weights: Matrix<'_, R>, part: &Part);

    /// Whether [`forward`](Self::forward) goes through all inputs however many units there are, so that they had better come together.
    fn wants_all_units(&self) -> bool {
        false
    }

    /// `gradient` (columns × units) ← the vjp of [`forward`](Self::forward) for the `cotangent` (rows × units) of some rows, which is
    /// added to what is there but for the first rows.
    fn vjp_weights(&self, gradient: MatrixMut<'_, R>, cotangent: Matrix<'_, R>, rows: Range<usize>);
}

/// Part of a matrix of n rows and a column for each unit.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// Of the n rows.
    pub rows: Range<usize>,
    /// Of the columns.
    pub units: Range<usize>,
}

/// What the cotangent of the features may be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parts {
    /// All of it, once.
    Whole,
    /// Ranges of features, in order.
    Units,
    /// Ranges of rows, in order.
    Rows,
}

/// Writes part of the cotangent (rows × units) of the features, given all features.
type FeatureCotangent<'a, R> = dyn Fn(MatrixMut<'_, R>, Matrix<'_, R>, &Part) + Sync + 'a;

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

    /// `gradient` ← the vjp at the last point that was evaluated with derivatives.
    fn backward(
        &mut self,
        inputs: &dyn NetworkInputs<R>,
        weights: &[R],
        gradient: &mut [R],
        parts: Parts,
        cotangent: &FeatureCotangent<'_, R>,
    );
}

/// A network's features for n inputs. Weights are those below the readout: see
/// [`Composition::with_design_columns`] where the first layer's are reduced.
pub(crate) struct Features<R> {
    plan: Box<dyn FeaturePlan<R>>,
}

/// The plan for so many inputs of a network.
struct NewPlan<'a> {
    network: &'a Composition,
    rows: usize,
}

impl NewPlan<'_> {
    fn plan<R: Real>(self) -> Box<dyn FeaturePlan<R>> {
        let Self { network, rows } = self;
        match network.as_fully_connected() {
            Some(hidden) if !hidden.is_empty() => {
                let groups = Groups::new::<R>(&hidden, rows);
                match groups.count() {
                    1 => {
                        let block_and_kept = groups.block_and_kept(rows);
                        let layers =
                            HiddenLayers::in_blocks(network, &hidden, rows, block_and_kept);
                        Box::new(layers)
                    }
                    _ => Box::new(RowGroups::new(network, &hidden, rows, groups)),
                }
            }
            None if let Ok(executor) = Executor::new(network) => {
                Box::new(LayerFeatures::new(network, executor, rows))
            }
            _ => Box::new(LinearFeatures::new()),
        }
    }
}

impl OfPrecision for NewPlan<'_> {
    type Of<R: Real> = Box<dyn FeaturePlan<R>>;

    fn single(self) -> Box<dyn FeaturePlan<f32>> {
        self.plan()
    }
    fn double(self) -> Box<dyn FeaturePlan<f64>> {
        self.plan()
    }
}

impl<R: Real> Features<R> {
    /// Of a network whose layers fit, for `rows` inputs.
    pub fn new(network: &Composition, rows: usize) -> Self {
        let plan = R::of_precision(NewPlan { network, rows });
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
        cotangent: impl FnOnce(MatrixMut<'_, R>, Matrix<'_, R>) + Send,
    ) {
        let cotangent = Mutex::new(Some(cotangent));
        let once = |out: MatrixMut<'_, R>, features: Matrix<'_, R>, _: &Part| {
            let mut cotangent = cotangent.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(cotangent) = cotangent.take() {
                cotangent(out, features);
            }
        };
        self.plan
            .backward(inputs, weights, gradient, Parts::Whole, &once);
    }

    /// As [`backward`](Self::backward), for a `cotangent` that can be computed in `parts`.
    pub fn backward_in_parts(
        &mut self,
        inputs: &dyn NetworkInputs<R>,
        weights: &[R],
        gradient: &mut [R],
        parts: Parts,
        cotangent: impl Fn(MatrixMut<'_, R>, Matrix<'_, R>, &Part) + Sync,
    ) {
        self.plan
            .backward(inputs, weights, gradient, parts, &cotangent);
    }

    /// Whether [`backward`](Self::backward) evaluates the layers again, as there are too many rows to keep what it needs.
    pub fn evaluates_again(network: &Composition, rows: usize) -> bool {
        let hidden = network.as_fully_connected();
        hidden.is_some_and(|hidden| hidden_layers::evaluates_again::<R>(&hidden, rows))
    }

    /// Rows of the inputs that a fully connected network is given together, of so many: those of a block.
    pub fn block_rows(network: &Composition, rows: usize) -> usize {
        let hidden = network.as_fully_connected().unwrap_or_default();
        hidden_layers::block_rows::<R>(&hidden, rows)
    }

    /// Bytes of the buffers, with or without those for gradients.
    pub fn bytes(network: &Composition, rows: usize, with_gradients: bool) -> usize {
        match network.as_fully_connected() {
            Some(hidden) => hidden_layers::bytes::<R>(&hidden, rows, with_gradients),
            None => layers::bytes::<R>(network, rows, with_gradients),
        }
    }
}
