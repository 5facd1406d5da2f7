//! From a position of a chain to what a run keeps of it.
//!
//! Under a Gaussian likelihood the prediction for a test input given the inner weights is Gaussian with closed-form mean
//! and variance; these are kept rather than those of a drawn readout (Rao-Blackwell: the same expectations, less variance).
//! Under other likelihoods the outputs of the readout at hand are kept. A readout is drawn (`marginal`), transformed
//! (`repriorised`) or read off (`standard`) for the projections, norms and moments of whole weights.

use std::sync::Arc;

use super::features::FeatureMap;
use super::leave_one_out::LogLikelihoodRows;
use super::projection::Projection;
use super::readout::Moments;
use super::{Coordinates, EvaluationError, Posterior};
use crate::compute::{Real, Stream, matrix, matrix_mut, multiply};
use crate::model::Model;

/// What is kept of one draw.
#[derive(Debug, Clone, Default)]
pub struct DrawRecord<R> {
    /// Column-major n* × C means of the outputs at the test inputs, in the likelihood's (standardised) units.
    pub mean: Vec<f64>,
    /// The outputs themselves at this draw's weights, n* × C: what the means are of, readout included.
    pub outputs: Vec<f64>,
    /// Their variances given what was conditioned on (no noise), n* × C; zero unless the likelihood is Gaussian.
    pub variance: Vec<f64>,
    /// Scale σ of the noise of every output, in the likelihood's (standardised) units.
    pub noise: Vec<f64>,
    /// Learned scales of weights, in units of the network's own; empty if none are learned.
    pub weight_scales: Vec<f64>,
    /// Projections of all weights.
    pub projections: Vec<f64>,
    /// Mean square of each layer's weights, 1 a priori without learned scales.
    pub mean_squares: Vec<f64>,
    /// All weights in the chain's coordinates: the inner weights, then the readout's p × C.
    pub weights: Vec<R>,
    /// log p of the rows of [`Recorder::with_log_likelihood`], in the likelihood's (standardised) units, outputs together: under a Gaussian likelihood
    /// given the inner weights and the other rows, under others given all weights.
    pub log_likelihood: Vec<f64>,
    /// How many of the variances came out below zero by rounding and were set to zero.
    pub clamped: u64,
}

/// Work space for recording the draws of one chain.
pub struct Recorder<R> {
    model: Arc<Model<R>>,
    test: FeatureMap<R>,
    noise: Vec<R>,
    /// n* × C outputs, where there is no closed form.
    outputs: Vec<R>,
    projection: Projection<R>,
    log_likelihood: LogLikelihoodRows<R>,
    record: DrawRecord<R>,
}

impl<R: Real> Recorder<R> {
    /// A recorder for the draws of one chain, without projections.
    pub fn new(model: Arc<Model<R>>) -> Self {
        let projection = Projection::new(&model, 0, 0);
        let architecture = &model.architecture;
        let rows = model.test_design.rows();
        let first = architecture.hidden_widths().first().copied().unwrap_or(0);
        let parameters = model.inner_parameters() + architecture.readout_parameters();
        Self {
            test: FeatureMap::for_rows(&model, rows),
            noise: vec![R::ZERO; model.test_design.residual_columns() * first],
            outputs: vec![R::ZERO; rows * architecture.outputs],
            record: DrawRecord {
                mean: vec![0.0; rows * architecture.outputs],
                outputs: vec![0.0; rows * architecture.outputs],
                variance: vec![0.0; rows * architecture.outputs],
                noise: vec![0.0; architecture.outputs],
                weight_scales: vec![1.0; model.scale_coordinates()],
                projections: Vec::new(),
                mean_squares: vec![0.0; projection.layers()],
                weights: vec![R::ZERO; parameters],
                log_likelihood: Vec::new(),
                clamped: 0,
            },
            log_likelihood: LogLikelihoodRows::new(&model, Vec::new()),
            projection,
            model,
        }
    }

    /// The same with projections of the weights.
    #[must_use]
    pub fn with_projection(mut self, projection: Projection<R>) -> Self {
        self.record.projections = vec![0.0; projection.count()];
        self.projection = projection;
        self
    }

    /// The same with the log-likelihoods of some training rows; a row beyond the last is left out.
    #[must_use]
    pub fn with_log_likelihood(mut self, mut rows: Vec<usize>) -> Self {
        rows.retain(|&row| row < self.model.rows());
        self.log_likelihood = LogLikelihoodRows::new(&self.model, rows);
        self.record.log_likelihood = vec![0.0; self.log_likelihood.count()];
        self
    }

    /// The record of position `z`; `stream` draws what the position leaves open.
    ///
    /// # Errors
    /// As ℓ itself; a position that a chain is at can be evaluated.
    pub fn record(
        &mut self,
        posterior: &mut Posterior<R>,
        z: &[R],
        stream: &mut Stream,
    ) -> Result<&DrawRecord<R>, EvaluationError> {
        self.record_of(posterior, z, None, stream)
    }

    /// The same, given moments of more rows than those of `posterior`.
    ///
    /// # Errors
    /// As for [`record`](Self::record).
    pub(super) fn record_among(
        &mut self,
        posterior: &mut Posterior<R>,
        z: &[R],
        moments: Moments<'_>,
        stream: &mut Stream,
    ) -> Result<&DrawRecord<R>, EvaluationError> {
        self.record_of(posterior, z, Some(moments), stream)
    }

    fn record_of(
        &mut self,
        posterior: &mut Posterior<R>,
        z: &[R],
        moments: Option<Moments<'_>>,
        stream: &mut Stream,
    ) -> Result<&DrawRecord<R>, EvaluationError> {
        let weights = posterior.tangent_weights(z)?.map(<[R]>::to_vec);
        let z = weights.as_deref().unwrap_or(z);
        let model = &*self.model;
        let [inner, noise, scales, rest] = posterior.split(z);
        posterior.set_noise(noise);
        if let Some(learned) = &model.scales {
            let own = self.record.weight_scales.iter_mut();
            for (out, scale) in own.zip(learned.scales(scales)) {
                *out = scale;
            }
        }
        let weights_below = posterior.scaled.weights(model, inner, scales);
        let inner = &*weights_below;
        self.record.noise.copy_from_slice(&posterior.scales);
        // of rows that are elsewhere there are moments where ℓ is made of them
        let solves_readout = match moments {
            None => posterior.readout.is_some(),
            Some(_) => posterior.is_integrated(),
        };
        // with the readout at hand, outputs at test inputs need nothing of the training rows
        let is_apart = !solves_readout
            && posterior.coordinates() == Coordinates::Standard
            && self.log_likelihood.count() == 0;
        if !is_apart {
            posterior.evaluate_features(inner, false, solves_readout);
        }
        let features = posterior.features.features(model);
        let (inner_weights, readout_weights) = self.record.weights.split_at_mut(inner.len());
        inner_weights.copy_from_slice(inner);
        match (&mut posterior.readout, moments) {
            (Some(readout), None) => {
                readout.log_ratio(features)?;
            }
            (Some(readout), Some(moments)) if solves_readout => readout.solve_among(moments)?,
            _ => {}
        }
        match (posterior.coordinates(), &mut posterior.readout) {
            (Coordinates::Marginal, Some(readout)) => {
                readout.draw(features, stream, readout_weights);
            }
            _ => readout_weights.copy_from_slice(rest),
        }
        posterior.transform_readout(readout_weights)?;
        if model.test_design.rows() > 0 {
            stream.fill_normal(&mut self.noise);
            self.test.evaluate_test(model, inner, &self.noise);
        }
        let test = self.test.test_features(model);
        let (p, c) = (test.ncols(), model.architecture.outputs);
        let factor = model.architecture.readout_scale.factor(p - 1);
        let weights = matrix(readout_weights, p, c);
        let outputs = matrix_mut(&mut self.outputs, test.nrows(), c);
        multiply(outputs, false, factor, test, weights);
        for (output, f) in self.record.outputs.iter_mut().zip(&self.outputs) {
            *output = f.to_f64();
        }
        let (mean, variance) = (&mut self.record.mean, &mut self.record.variance);
        if let Some(readout) = &mut posterior.readout
            && solves_readout
        {
            let features = posterior.features.features(model);
            let clamped = readout.clamp_count();
            readout.predict(test, features, mean, variance);
            self.record.clamped = readout.clamp_count() - clamped;
            let to = &mut self.record.log_likelihood;
            self.log_likelihood.given_others(readout, features, to);
        } else {
            mean.copy_from_slice(&self.record.outputs);
            let (features, scales) = (posterior.features.features(model), &posterior.scales);
            let to = &mut self.record.log_likelihood;
            self.log_likelihood
                .given_weights(model, features, readout_weights, scales, to);
        }
        let DrawRecord {
            weights,
            projections,
            mean_squares,
            ..
        } = &mut self.record;
        self.projection
            .project(weights, stream, projections, mean_squares);
        posterior.scaled.put_back(weights_below);
        Ok(&self.record)
    }
}
