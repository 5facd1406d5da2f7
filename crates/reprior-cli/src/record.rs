//! The observer that writes a chain's draws.

use std::sync::Arc;
use std::time::Instant;

use reprior::chain::{Moments, Observer, Schedule, Snapshot, Statistics};
use reprior::compute::{Purpose, Stream, matrix, matrix_mut};
use reprior::model::likelihood::Likelihood;
use reprior::model::{Affine, TestDesign};
use reprior::network::Composition;
use reprior::posterior::Recorder;
use reprior::sampler::State;
use reprior_io::run::{DrawWriter, RunError, Values};
use thiserror::Error;

use crate::chain_state::save;
use crate::keeping::{Keeping, Traces};
use crate::predictive::Kind;
use crate::schema::{POSITIONS, PREDICTIONS, TRACES, WEIGHTS, tensors};
use crate::stored::Stored;
use crate::target::ChainTarget;

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
pub struct Recipe<R> {
    pub schedule: Schedule,
    pub keeping: Keeping,
    /// Predictions that are recorded at every draw, where not all are.
    pub traces: Option<Traces>,
    pub architecture: Composition,
    /// Maps of the outputs back to their own units; for classes, identities.
    pub outputs: Vec<Affine>,
    pub is_classification: bool,
    /// What draws predict, and under which likelihood.
    pub kind: Kind,
    pub likelihood: Arc<dyn Likelihood>,
    pub learns_noise: bool,
    pub noise_coordinates: usize,
    /// How to complete the first layer's weights, where inputs are reduced and whole weights are kept.
    pub whole: Option<Arc<TestDesign<R>>>,
    /// When this process began, and the seconds that earlier ones took.
    pub clock: (Instant, f64),
}

/// Writes the draws of one chain.
pub struct Recording<R> {
    chain: u64,
    recipe: Recipe<R>,
    writer: DrawWriter,
    recorder: Recorder<R>,
    pub moments: Moments,
    mean: Vec<f64>,
    sd: Vec<f64>,
    noise: Vec<f64>,
    position: Vec<R>,
}

impl<R: Stored> Recording<R> {
    /// For a chain that starts, or goes on with the moments of a checkpoint.
    pub fn new(
        chain: usize,
        recipe: Recipe<R>,
        writer: DrawWriter,
        recorder: Recorder<R>,
        moments: Moments,
    ) -> Self {
        Self {
            chain: chain as u64,
            recipe,
            writer,
            recorder,
            moments,
            mean: Vec::new(),
            sd: Vec::new(),
            noise: Vec::new(),
            position: Vec::new(),
        }
    }

    fn push_whole_weights(&mut self, weights: &[R], transition: u64) -> Result<(), RunError> {
        // a stream of its own, so that keeping weights does not change what else is recorded
        let index = transition | 1 << 63;
        let mut stream = Stream::new(
            self.recipe.schedule.seed,
            self.chain,
            Purpose::Recording,
            index,
        );
        let architecture = &self.recipe.architecture;
        let mut rest = weights;
        let mut parts: Vec<Vec<R>> = Vec::new();
        for (index, layer) in tensors(architecture).into_iter().enumerate() {
            let (fan_out, fan_in) = (layer.fan_out, layer.fan_in);
            let rows = fan_in + usize::from(layer.has_bias);
            let first_rows = match (&self.recipe.whole, index) {
                (Some(whole), 0) => whole.known().ncols(),
                _ => rows,
            };
            let (own, above) = rest.split_at(first_rows * fan_out);
            rest = above;
            let mut full = own.to_vec();
            if let (Some(whole), 0) = (&self.recipe.whole, index) {
                let mut noise = vec![R::ZERO; whole.residual_columns() * fan_out];
                stream.fill_normal(&mut noise);
                full.resize(rows * fan_out, R::ZERO);
                whole.forward(
                    matrix_mut(&mut full, rows, fan_out),
                    matrix(own, first_rows, fan_out),
                    matrix(&noise, whole.residual_columns(), fan_out),
                );
            }
            let units = full.chunks_exact(rows);
            parts.push(
                units
                    .clone()
                    .flat_map(|unit| &unit[..fan_in])
                    .copied()
                    .collect(),
            );
            if layer.has_bias {
                parts.push(units.map(|unit| unit[fan_in]).collect());
            }
        }
        let values: Vec<Values<'_>> = parts.iter().map(|part| R::values(part)).collect();
        self.writer.push(WEIGHTS, &values)
    }
}

/// The values of the `sample_stats` variables, in the schema's order.
struct StatisticsValues {
    reals: [f64; 5],
    diverging: bool,
    counts: [i64; 5],
}

impl StatisticsValues {
    fn new(statistics: &Statistics, [log_ratio, lp]: [f64; 2]) -> Self {
        let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        Self {
            reals: [
                lp,
                log_ratio,
                statistics.acceptance_rate(),
                statistics.energy_error.unwrap_or(f64::NAN),
                statistics.step_size.unwrap_or(f64::NAN),
            ],
            diverging: statistics.divergences > 0,
            counts: [
                signed(statistics.accepted),
                signed(statistics.n_steps),
                signed(statistics.n_evaluations),
                signed(statistics.n_gradients),
                signed(statistics.n_jitter),
            ],
        }
    }

    fn values(&self) -> Vec<Values<'_>> {
        let mut values: Vec<Values<'_>> = self.reals.chunks(1).map(Values::F64).collect();
        values.push(Values::Bool(std::slice::from_ref(&self.diverging)));
        values.extend(self.counts.chunks(1).map(Values::I64));
        values
    }
}

impl<R: Stored> Observer<ChainTarget<R>> for Recording<R> {
    type Error = RecordError;

    fn warmup(
        &mut self,
        statistics: &Statistics,
        log_density: [f64; 2],
    ) -> Result<(), RecordError> {
        let values = StatisticsValues::new(statistics, log_density);
        Ok(self.writer.push("warmup_sample_stats", &values.values())?)
    }

    fn draw(
        &mut self,
        target: &mut ChainTarget<R>,
        state: &State<R>,
        statistics: &Statistics,
        log_density: [f64; 2],
        transition: u64,
    ) -> Result<(), RecordError> {
        let schedule = &self.recipe.schedule;
        let draw = (transition - schedule.warmup) / schedule.thin - 1;
        let mut stream = Stream::new(schedule.seed, self.chain, Purpose::Recording, transition);
        let record = target.record(&mut self.recorder, &state.position, &mut stream)?;
        let mut posterior = vec![Values::F64(&record.mean_squares)];
        if !record.projections.is_empty() {
            posterior.push(Values::F64(&record.projections));
        }
        if self.recipe.learns_noise {
            let own = record.noise.iter().zip(&self.recipe.outputs);
            self.noise.clear();
            self.noise.extend(own.map(|(noise, map)| noise * map.scale));
            posterior.push(Values::F64(&self.noise));
        }
        self.writer.push("posterior", &posterior)?;
        let values = StatisticsValues::new(statistics, log_density);
        let clamped = [i64::try_from(record.clamped).unwrap_or(i64::MAX)];
        let mut values = values.values();
        values.push(Values::I64(&clamped));
        self.writer.push("sample_stats", &values)?;
        let outputs = self.recipe.outputs.len();
        let rows = record.mean.len() / outputs;
        if rows > 0 {
            self.mean.clear();
            self.sd.clear();
            let (kind, maps) = (self.recipe.kind, &self.recipe.outputs);
            for row in 0..rows {
                let own = |values: &[f64], output: usize| values[output * rows + row];
                let of_row = (0..outputs).map(|output| own(&record.mean, output));
                kind.push_mean(&*self.recipe.likelihood, maps, of_row, &mut self.mean);
                if kind == Kind::Codes {
                    self.sd.push(own(&record.variance, 0).sqrt());
                } else if kind.has_function_variance() {
                    let sd = |(output, map): (usize, &Affine)| {
                        map.scale * own(&record.variance, output).sqrt()
                    };
                    self.sd.extend(maps.iter().enumerate().map(sd));
                }
            }
            let narrow = |values: &[f64]| values.iter().map(|&x| x as f32).collect::<Vec<_>>();
            if let Some(traces) = self.recipe.traces {
                let traced: Vec<f64> = traces.positions().map(|at| self.mean[at]).collect();
                let own = narrow(&traced);
                let values = match self.recipe.is_classification {
                    true => Values::F32(&own),
                    false => Values::F64(&traced),
                };
                self.writer.push(TRACES, &[values])?;
            }
            let (mean, sd) = (narrow(&self.mean), narrow(&self.sd));
            let mut values = if self.recipe.is_classification {
                vec![Values::F32(&mean), Values::F32(&sd)]
            } else {
                vec![Values::F64(&self.mean), Values::F64(&self.sd)]
            };
            if !kind.has_function_variance() {
                values.pop();
            }
            if draw.is_multiple_of(self.recipe.keeping.predictions_every) {
                self.writer.push(PREDICTIONS, &values)?;
            }
        }
        self.moments.add(&record.weights);
        let keeping = self.recipe.keeping;
        if draw.is_multiple_of(keeping.positions_every) {
            let readout = record.weights.len() - self.recipe.architecture.readout_parameters();
            let (inner, readout) = record.weights.split_at(readout);
            let noise = &state.position[inner.len()..inner.len() + self.recipe.noise_coordinates];
            self.position.clear();
            self.position.extend_from_slice(inner);
            self.position.extend_from_slice(noise);
            if !self.recipe.likelihood.is_gaussian() {
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
        let (start, before) = self.recipe.clock;
        let seconds = before + start.elapsed().as_secs_f64();
        Ok(save(&mut self.writer, snapshot, &self.moments, seconds)?)
    }
}
