//! Chains over a network's posterior: what is run, and what is kept of the draws.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reprior::chain::snapshot::Snapshot;
use reprior::chain::{Chain, Collect, Control, Observer, RunOutcome, Schedule, Statistics, run};
use reprior::compute::kernels::norm_squared;
use reprior::compute::{Purpose, Real, Stream};
use reprior::model::Model;
use reprior::posterior::{
    Coordinates, DrawRecord, EvaluationError, Posterior, PosteriorSettings, Recorder, Target,
};
use reprior::sampler::{SamplerSettings, State};

use crate::directions::Directions;
use crate::findings::mean;
use crate::sampled::{Sampled, Series};
use crate::{Bench, Failure};

/// Chains that have run, each with its observer.
pub type Observed<T, O> = Vec<(Chain<T>, O)>;

/// What chains are run on and recorded of: a posterior, or something else in the coordinates of one.
pub trait Recorded: Target {
    /// The posterior that says what a position is: weights, outputs.
    fn posterior(&mut self) -> &mut Posterior<Self::Real>;
}

impl<R: Real> Recorded for Posterior<R> {
    fn posterior(&mut self) -> &mut Posterior<R> {
        self
    }
}

/// What to run.
#[derive(Debug, Clone)]
pub struct ChainPlan {
    /// The sampler.
    pub settings: SamplerSettings,
    /// The coordinates.
    pub posterior: PosteriorSettings,
    /// How long.
    pub schedule: Schedule,
}

impl ChainPlan {
    /// A sampler in coordinates, of which λ is matched.
    pub fn new(settings: SamplerSettings, coordinates: Coordinates, schedule: Schedule) -> Self {
        Self {
            settings,
            posterior: PosteriorSettings {
                seed: schedule.seed,
                ..coordinates.into()
            },
            schedule,
        }
    }

    /// `hmc-infinite` in marginal coordinates: nearly independent draws of the inner weights.
    pub fn marginal(schedule: Schedule) -> Self {
        Self::new(SamplerSettings::default(), Coordinates::Marginal, schedule)
    }

    /// The posterior of `model`.
    ///
    /// # Errors
    /// Settings that do not fit.
    fn target<R: Real>(&self, model: &Arc<Model<R>>) -> Result<Posterior<R>, Failure> {
        Ok(Posterior::new(Arc::clone(model), self.posterior)?)
    }

    /// Runs the chains on the posterior of `model`, each with an observer of its own.
    ///
    /// # Errors
    /// Chains that could not start or go on; a request to stop.
    pub fn run<R: Real, O: Observer<Posterior<R>>>(
        &self,
        model: &Arc<Model<R>>,
        bench: &Bench<'_>,
        observer: impl Fn(usize) -> O,
    ) -> Result<Observed<Posterior<R>, O>, Failure> {
        self.run_on(|| self.target(model), bench, observer)
    }

    /// The same on targets of any kind, one a chain.
    fn run_on<T: Target, O: Observer<T>>(
        &self,
        target: impl Fn() -> Result<T, Failure>,
        bench: &Bench<'_>,
        observer: impl Fn(usize) -> O,
    ) -> Result<Observed<T, O>, Failure> {
        let start = |index| {
            let chain = Chain::start(index, self.schedule, &self.settings, target()?)?;
            Ok((chain, observer(index)))
        };
        let chains = (0..self.schedule.chains)
            .map(start)
            .collect::<Result<Vec<_>, Failure>>()?;
        let control = Control {
            threads: bench.threads,
            checkpoint_every: Duration::from_secs(3600),
            stop: bench.stop,
        };
        let total = self.schedule.transitions().max(1) as f64;
        let (chains, outcome) = run(chains, control, &|progress| {
            (bench.progress)(progress.transition as f64 / total);
        });
        if outcome.map_err(Failure::failed)? == RunOutcome::Stopped {
            return Err(Failure::Stopped);
        }
        Ok(chains)
    }

    /// Runs the chains; the positions of all draws, chain after chain.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn positions<R: Real>(
        &self,
        model: &Arc<Model<R>>,
        bench: &Bench<'_>,
    ) -> Result<Vec<Vec<R>>, Failure> {
        let chains = self.run(model, bench, |_| Collect::default())?;
        let collected = chains.into_iter().map(|(_, collected)| collected);
        Ok(collected.flat_map(|draws| draws.positions).collect())
    }

    /// Runs the chains on the posterior of `model`, each with what keeps something of the records of its draws.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn record<R: Real, K: KeepDraws<R>>(
        &self,
        model: &Arc<Model<R>>,
        bench: &Bench<'_>,
        keep: impl Fn() -> K,
    ) -> Result<Observed<Posterior<R>, Recording<R, K>>, Failure> {
        self.record_on(|| self.target(model), model, bench, keep)
    }

    /// The same on a target in the coordinates of a posterior of `model`.
    fn record_on<R: Real, T: Recorded<Real = R>, K: KeepDraws<R>>(
        &self,
        target: impl Fn() -> Result<T, Failure>,
        model: &Arc<Model<R>>,
        bench: &Bench<'_>,
        keep: impl Fn() -> K,
    ) -> Result<Observed<T, Recording<R, K>>, Failure> {
        self.run_on(target, bench, |chain| Recording {
            recorder: Recorder::new(Arc::clone(model)),
            key: [self.schedule.seed, chain as u64],
            kept: keep(),
            sampling: [Instant::now(); 2],
        })
    }

    /// Runs the chains on the posterior of `model` and watches their weights and predictions in some directions.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn sample<R: Real>(
        &self,
        model: &Arc<Model<R>>,
        bench: &Bench<'_>,
    ) -> Result<Sampled, Failure> {
        self.sample_on(|| self.target(model), model, bench)
    }

    /// The same on a target in the coordinates of a posterior of `model`.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn sample_on<R: Real, T: Recorded<Real = R>>(
        &self,
        target: impl Fn() -> Result<T, Failure>,
        model: &Arc<Model<R>>,
        bench: &Bench<'_>,
    ) -> Result<Sampled, Failure> {
        let directions = Directions::new(model);
        let chains = self.record_on(target, model, bench, || Watch {
            directions: &directions,
            seen: Default::default(),
        })?;
        let mut seen: [Series; 5] = Default::default();
        let (mut statistics, mut step_sizes) = (Statistics::default(), Vec::new());
        let mut acceptances = Vec::new();
        let mut seconds = 0.0_f64;
        for (chain, recording) in chains {
            let snapshot = chain.snapshot();
            statistics.merge(&snapshot.sampling);
            acceptances.push(snapshot.sampling.acceptance_rate());
            step_sizes.extend(snapshot.step_size);
            let [start, end] = recording.sampling;
            seconds = seconds.max((end - start).as_secs_f64());
            for (all, own) in seen.iter_mut().zip(recording.kept.seen) {
                all.resize(own.len(), Vec::new());
                all.iter_mut()
                    .zip(own)
                    .for_each(|(all, own)| all.extend(own));
            }
        }
        let [weights, readout, predictions, means, norms] = seen;
        Ok(Sampled {
            chains: self.schedule.chains,
            acceptance: statistics.acceptance_rate(),
            acceptances,
            step_size: mean(&step_sizes),
            seconds,
            transitions: statistics.transitions,
            n_gradients: statistics.n_gradients,
            n_evaluations: statistics.n_evaluations,
            weights,
            norms,
            readout,
            predictions,
            means,
        })
    }
}

/// Keeps something of what is recorded of draws.
pub trait KeepDraws<R>: Send {
    /// Takes the record of one more draw.
    fn keep(&mut self, record: &DrawRecord<R>);
}

/// Records the draws of a chain.
pub struct Recording<R, K> {
    recorder: Recorder<R>,
    /// Seed and chain.
    key: [u64; 2],
    /// What is kept of the records.
    pub kept: K,
    /// When the last warm-up and the last draw were done.
    sampling: [Instant; 2],
}

impl<T: Recorded, K: KeepDraws<T::Real>> Observer<T> for Recording<T::Real, K> {
    type Error = EvaluationError;

    fn warmup(&mut self, _: &Statistics, _: [f64; 2]) -> Result<(), EvaluationError> {
        self.sampling = [Instant::now(); 2];
        Ok(())
    }

    fn draw(
        &mut self,
        target: &mut T,
        state: &State<T::Real>,
        _: &Statistics,
        _: [f64; 2],
        transition: u64,
    ) -> Result<(), EvaluationError> {
        let [seed, chain] = self.key;
        let mut stream = Stream::new(seed, chain, Purpose::Recording, transition);
        let posterior = target.posterior();
        let record = self
            .recorder
            .record(posterior, &state.position, &mut stream)?;
        self.kept.keep(record);
        self.sampling[1] = Instant::now();
        Ok(())
    }

    fn checkpoint(&mut self, _: &Snapshot<T::Real>) -> Result<(), EvaluationError> {
        Ok(())
    }
}

/// Watches draws in some directions: all weights, the readout's, outputs, their means; and the squared norm of all weights.
struct Watch<'a> {
    directions: &'a Directions,
    seen: [Series; 5],
}

impl<R: Real> KeepDraws<R> for Watch<'_> {
    fn keep(&mut self, record: &DrawRecord<R>) {
        let [all, readout] = self.directions.of_weights(&record.weights);
        let [outputs, means] =
            [&record.outputs, &record.mean].map(|values| self.directions.of_outputs(values));
        let norm = vec![norm_squared(&record.weights)];
        let all = [all, readout, outputs, means, norm];
        for (series, values) in self.seen.iter_mut().zip(all) {
            series.resize(values.len(), Vec::new());
            for (series, value) in series.iter_mut().zip(values) {
                series.push(value);
            }
        }
    }
}
