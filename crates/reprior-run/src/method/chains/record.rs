//! The observer that writes a chain's draws.

use std::sync::Arc;
use std::time::Instant;

use reprior::chain::moments::WeightMoments;
use reprior::chain::snapshot::Snapshot;
use reprior::chain::{Observer, Schedule, Statistics};
use reprior::compute::kernels::matrix_mut;
use reprior::compute::{Purpose, Stream, matrix};
use reprior::model::design::TestDesign;
use reprior::model::likelihood::Likelihood;
use reprior::model::standardisation::Affine;
use reprior::network::Composition;
use reprior::posterior::{Posterior, Recorder};
use reprior::sampler::State;
use reprior_io::run::{DrawWriter, RunError, Values};
use thiserror::Error;

use super::checkpoint::{Annealed, save};
use super::schema::{OfDraw, Transitions, WARMUP, tensors};
use crate::predictive::PredictionKind;
use crate::record::{LOG_LIKELIHOOD, POSITIONS, PredictionRecord, WEIGHTS, count, split_layer};
use crate::stored::Stored;

/// Why a draw could not be recorded.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The run folder.
    #[error(transparent)]
    Store(#[from] RunError),
    /// The draw itself.
    #[error("{0}")]
    Evaluation(#[from] reprior::posterior::EvaluationError),
}

/// What is the same for every chain.
#[derive(Clone)]
pub struct Common<R> {
    pub schedule: Schedule,
    pub predictions: PredictionRecord,
    pub architecture: Composition,
    /// Maps of the outputs back to their own units; for classes, identities.
    pub outputs: Vec<Affine>,
    /// What log-likelihoods are lowered by, to be those of targets in their own units.
    pub log_unit: f64,
    /// What ℓ leaves out of the log-likelihood of all training rows.
    pub left_out: f64,
    pub likelihood: Arc<dyn Likelihood>,
    pub learns_noise: bool,
    pub noise_coordinates: usize,
    /// How to complete the first layer's weights, where inputs are reduced and whole weights are kept.
    pub whole: Option<Arc<TestDesign<R>>>,
    /// When this process began, and the seconds that earlier ones took.
    pub clock: (Instant, f64),
}

/// Writes the draws of one chain.
pub struct ChainRecorder<R> {
    chain: u64,
    common: Common<R>,
    writer: DrawWriter,
    recorder: Recorder<R>,
    pub moments: WeightMoments,
    mean: Vec<f64>,
    sd: Vec<f64>,
    noise: Vec<f64>,
    /// Outputs of one row.
    row: Vec<f64>,
    log_likelihood: Vec<f64>,
    position: Vec<R>,
    /// Of particles, once they are where they should be.
    pub annealed: Option<Annealed>,
}

impl<R: Stored> ChainRecorder<R> {
    /// For a chain that starts, or goes on with the moments of a checkpoint.
    pub fn new(
        chain: usize,
        common: Common<R>,
        writer: DrawWriter,
        recorder: Recorder<R>,
        moments: WeightMoments,
    ) -> Self {
        Self {
            chain: chain as u64,
            common,
            writer,
            recorder,
            moments,
            mean: Vec::new(),
            sd: Vec::new(),
            noise: Vec::new(),
            row: Vec::new(),
            log_likelihood: Vec::new(),
            position: Vec::new(),
            annealed: None,
        }
    }

    /// What ℓ leaves out of the log-likelihood.
    pub fn left_out(&self) -> f64 {
        self.common.left_out
    }

    fn push_whole_weights(&mut self, weights: &[R], transition: u64) -> Result<(), RunError> {
        // a stream of its own, so that keeping weights does not change what else is recorded
        let index = transition | 1 << 63;
        let mut stream = Stream::new(
            self.common.schedule.seed,
            self.chain,
            Purpose::Recording,
            index,
        );
        let architecture = &self.common.architecture;
        let mut rest = weights;
        let mut parts: Vec<Vec<R>> = Vec::new();
        for (index, layer) in tensors(architecture).into_iter().enumerate() {
            let (fan_out, fan_in) = (layer.fan_out, layer.fan_in);
            let rows = fan_in + usize::from(layer.has_bias);
            let first_rows = match (&self.common.whole, index) {
                (Some(whole), 0) => whole.known().ncols(),
                _ => rows,
            };
            let (own, above) = rest.split_at(first_rows * fan_out);
            rest = above;
            let mut full = own.to_vec();
            if let (Some(whole), 0) = (&self.common.whole, index) {
                let mut noise = vec![R::ZERO; whole.residual_columns() * fan_out];
                stream.fill_normal(&mut noise);
                full.resize(rows * fan_out, R::ZERO);
                whole.forward(
                    matrix_mut(&mut full, rows, fan_out),
                    matrix(own, first_rows, fan_out),
                    matrix(&noise, whole.residual_columns(), fan_out),
                );
            }
            split_layer(&layer, &full, &mut parts);
        }
        let values: Vec<Values<'_>> = parts.iter().map(|part| R::values(part)).collect();
        self.writer.push(WEIGHTS, &values)
    }
}

impl Transitions {
    fn new(statistics: &Statistics, [log_ratio, lp]: [f64; 2]) -> Self {
        Self {
            lp,
            log_ratio,
            acceptance_rate: statistics.acceptance_rate(),
            energy_error: statistics.energy_error.unwrap_or(f64::NAN),
            step_size: statistics.step_size.unwrap_or(f64::NAN),
            diverging: statistics.divergences > 0,
            n_accepted: count(statistics.accepted),
            n_steps: count(statistics.n_steps),
            n_evaluations: count(statistics.n_evaluations),
            n_gradients: count(statistics.n_gradients),
            n_jitter: count(statistics.n_jitter),
        }
    }
}

impl<R: Stored> Observer<Posterior<R>> for ChainRecorder<R> {
    type Error = RecordError;

    fn warmup(
        &mut self,
        statistics: &Statistics,
        log_density: [f64; 2],
    ) -> Result<(), RecordError> {
        let values = Transitions::new(statistics, log_density);
        Ok(self.writer.push(WARMUP, &values.values())?)
    }

    fn draw(
        &mut self,
        target: &mut Posterior<R>,
        state: &State<R>,
        statistics: &Statistics,
        log_density: [f64; 2],
        transition: u64,
    ) -> Result<(), RecordError> {
        let schedule = &self.common.schedule;
        let draw = (transition - schedule.warmup) / schedule.thin - 1;
        let mut stream = Stream::new(schedule.seed, self.chain, Purpose::Recording, transition);
        let record = self.recorder.record(target, &state.position, &mut stream)?;
        let mut posterior = vec![Values::F64(&record.mean_squares)];
        if !record.projections.is_empty() {
            posterior.push(Values::F64(&record.projections));
        }
        if self.common.learns_noise {
            let own = record.noise.iter().zip(&self.common.outputs);
            self.noise.clear();
            self.noise.extend(own.map(|(noise, map)| noise * map.scale));
            posterior.push(Values::F64(&self.noise));
        }
        if !record.weight_scales.is_empty() {
            posterior.push(Values::F64(&record.weight_scales));
        }
        self.writer.push("posterior", &posterior)?;
        let transitions = Transitions::new(statistics, log_density);
        let of_draw = OfDraw {
            n_clamped: count(record.clamped),
        };
        let values = [transitions.values(), of_draw.values()].concat();
        self.writer.push("sample_stats", &values)?;
        if !record.log_likelihood.is_empty() {
            let own = record.log_likelihood.iter();
            self.log_likelihood.clear();
            self.log_likelihood
                .extend(own.map(|density| density - self.common.log_unit));
            let values = [Values::F64(&self.log_likelihood)];
            self.writer.push(LOG_LIKELIHOOD, &values)?;
        }
        let outputs = self.common.architecture.outputs;
        let rows = record.mean.len() / outputs;
        if rows > 0 {
            self.mean.clear();
            self.sd.clear();
            let (kind, maps) = (self.common.predictions.kind, &self.common.outputs);
            for row in 0..rows {
                let own = |values: &[f64], output: usize| values[output * rows + row];
                let of_row = (0..outputs).map(|output| own(&record.mean, output));
                kind.push_mean(&*self.common.likelihood, maps, of_row, &mut self.mean);
                let (likelihood, scales) = (&*self.common.likelihood, &record.noise[..]);
                self.row.clear();
                self.row
                    .extend((0..outputs).map(|output| own(&record.mean, output)));
                let of_row = [&self.row[..], scales];
                if PredictionKind::push_row_noise(likelihood, maps, of_row, &mut self.sd) {
                    continue;
                }
                if kind == PredictionKind::Codes {
                    self.sd.push(own(&record.variance, 0).sqrt());
                } else if kind.has_variance() {
                    let sd = |(output, map): (usize, &Affine)| {
                        map.scale * own(&record.variance, output).sqrt()
                    };
                    self.sd.extend(maps.iter().enumerate().map(sd));
                }
            }
            let predictions = self.common.predictions;
            predictions.push(&mut self.writer, draw, &self.mean, &self.sd)?;
        }
        self.moments.add(&record.weights);
        let keeping = self.common.predictions.keeping;
        if draw.is_multiple_of(keeping.positions_every) {
            let readout = record.weights.len() - self.common.architecture.readout_parameters();
            let (inner, readout) = record.weights.split_at(readout);
            let noise = &state.position[inner.len()..inner.len() + self.common.noise_coordinates];
            self.position.clear();
            self.position.extend_from_slice(inner);
            self.position.extend_from_slice(noise);
            if !self.common.likelihood.is_gaussian() {
                self.position.extend_from_slice(readout);
            }
            if !self.position.is_empty() {
                self.writer.push(POSITIONS, &[R::values(&self.position)])?;
            }
        }
        if keeping
            .weights_every
            .is_some_and(|every| draw.is_multiple_of(every))
        {
            let weights = record.weights.clone();
            self.push_whole_weights(&weights, transition)?;
        }
        Ok(())
    }

    fn checkpoint(&mut self, snapshot: &Snapshot<R>) -> Result<(), RecordError> {
        let (start, before) = self.common.clock;
        let seconds = before + start.elapsed().as_secs_f64();
        let annealed = self.annealed.as_ref();
        Ok(save(
            &mut self.writer,
            snapshot,
            &self.moments,
            annealed,
            [seconds, self.common.left_out],
        )?)
    }
}
