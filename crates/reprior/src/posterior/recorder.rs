//! From a position of a chain to what a run keeps of it.
//!
//! Given the inner weights, the prediction for a test input is Gaussian with closed-form mean and variance; these are
//! kept rather than those of a drawn readout (Rao-Blackwell: the same expectations, less variance). A readout is drawn
//! (`marginal`), transformed (`repriorised`) or read off (`standard`) for the projections, norms and moments of whole
//! weights.

use std::sync::Arc;

use super::{Coordinates, EvaluationError, FeatureMap, NetworkPosterior, Projection};
use crate::compute::{Real, Stream};
use crate::model::Model;

/// What is kept of one draw.
#[derive(Debug, Clone, Default)]
pub struct DrawRecord<R> {
    /// Column-major n* × C means of the function at the test inputs, in standardised units.
    pub mean: Vec<f64>,
    /// n* variances of the function (no noise), the same for every output, in standardised units.
    pub variance: Vec<f64>,
    /// Projections of all weights.
    pub projections: Vec<f64>,
    /// Mean square of each layer's weights, 1 a priori.
    pub mean_squares: Vec<f64>,
    /// All weights in the chain's coordinates: the inner weights, then the readout's p × C.
    pub weights: Vec<R>,
    /// How many of the variances came out below zero by rounding and were set to zero.
    pub clamped: u64,
}

/// Work space for recording the draws of one chain.
pub struct Recorder<R> {
    model: Arc<Model<R>>,
    test: FeatureMap<R>,
    noise: Vec<R>,
    projection: Projection<R>,
    record: DrawRecord<R>,
}

impl<R: Real> Recorder<R> {
    /// A recorder for the draws of one chain, with the given projections.
    pub fn new(model: Arc<Model<R>>, projection: Projection<R>) -> Self {
        let architecture = &model.architecture;
        let rows = model.test_design.rows();
        let first = architecture.hidden.first().copied().unwrap_or(0);
        let parameters = model.inner_parameters() + architecture.readout_parameters();
        Self {
            test: FeatureMap::for_rows(&model, rows),
            noise: vec![R::ZERO; model.test_design.residual_columns() * first],
            record: DrawRecord {
                mean: vec![0.0; rows * architecture.outputs],
                variance: vec![0.0; rows],
                projections: vec![0.0; projection.count()],
                mean_squares: vec![0.0; projection.layers()],
                weights: vec![R::ZERO; parameters],
                clamped: 0,
            },
            projection,
            model,
        }
    }

    /// The record of position `z`; `stream` draws what the position leaves open.
    ///
    /// # Errors
    /// As ℓ itself; a position that a chain is at can be evaluated.
    pub fn record(
        &mut self,
        posterior: &mut NetworkPosterior<R>,
        z: &[R],
        stream: &mut Stream,
    ) -> Result<&DrawRecord<R>, EvaluationError> {
        let model = &*self.model;
        let (inner, rest) = z.split_at(model.inner_parameters());
        posterior.features.evaluate(model, inner, false);
        let features = posterior.features.features(model);
        let readout = &mut posterior.readout;
        readout.log_ratio(features)?;
        let clamped = readout.clamp_count();
        if model.test_design.rows() > 0 {
            stream.fill_normal(&mut self.noise);
            self.test.evaluate_test(model, inner, &self.noise);
            let test = self.test.test_features(model);
            readout.predict(
                test,
                features,
                &mut self.record.mean,
                &mut self.record.variance,
            );
        }
        self.record.clamped = readout.clamp_count() - clamped;
        let (inner_weights, readout_weights) = self.record.weights.split_at_mut(inner.len());
        inner_weights.copy_from_slice(inner);
        match posterior.coordinates() {
            Coordinates::Marginal => {
                posterior.readout.draw(features, stream, readout_weights);
            }
            Coordinates::Repriorised => {
                readout_weights.copy_from_slice(rest);
                posterior.readout.transform(features, readout_weights)?;
            }
            Coordinates::Standard => readout_weights.copy_from_slice(rest),
        }
        let DrawRecord {
            weights,
            projections,
            mean_squares,
            ..
        } = &mut self.record;
        self.projection
            .project(weights, stream, projections, mean_squares);
        Ok(&self.record)
    }
}
