//! Chains of a minibatch method into a run.

use std::sync::Arc;
use std::time::Instant;

use reprior::chain::minibatch::{Collection, MinibatchChain};
use reprior::chain::moments::WeightMoments;
use reprior::compute::{Purpose, Stream};
use reprior::network::Composition;
use reprior::network::parameters::ParameterLayout;
use reprior::stochastic::StochasticGradientSettings;
use reprior::stochastic::average::PosteriorMean;
use reprior::stochastic::data::MinibatchData;
use reprior::stochastic::ensemble::Ensemble;
use reprior::stochastic::objective::Objective;
use reprior::stochastic::update::StochasticGradient;
use reprior::stochastic::validation::Validation;
use reprior_io::run::{Checkpoint, DrawStore, DrawWriter, Values};

use super::record::{MinibatchRecorder, SharedByChains, read_document, restore};
use super::resolve::Resolved;
use super::schema::{OF_MEAN, tensors};
use super::score::TrainingRows;
use crate::failure::Failure;
use crate::method::Plan;
use crate::method::drive::{RunContext, write_moments};
use crate::problem::Problem;
use crate::record::{Keeping, PredictionRecord, log_unit, scored_rows, traces_of};
use crate::settings::Parametrisation;
use crate::stored::Stored;

/// Chains with what records them.
pub type RecordedChains<R> = Vec<(MinibatchChain<R>, MinibatchRecorder<R>)>;

/// What a chain is trained on and with.
pub struct TrainedChain<'a, R> {
    pub problem: &'a Problem,
    pub resolved: &'a Resolved,
    pub network: &'a Composition,
    pub layout: &'a ParameterLayout,
    pub data: &'a MinibatchData<R>,
    pub held_out: Option<&'a MinibatchData<R>>,
    /// The chain's number.
    pub chain: u64,
    pub threads: usize,
}

/// What becomes of chains that have been trained.
pub trait AfterTraining {
    /// Before a chain starts.
    ///
    /// # Errors
    /// A wrong request.
    fn prepare<R: Stored>(
        &self,
        chain: MinibatchChain<R>,
        _: TrainedChain<'_, R>,
    ) -> Result<MinibatchChain<R>, Failure> {
        Ok(chain)
    }

    /// After all have ended: what the run has besides draws and moments.
    ///
    /// # Errors
    /// A store that refuses; work that fails.
    fn finish<R: Stored>(
        &self,
        problem: &Problem,
        chains: &mut RecordedChains<R>,
        place: &RunContext<'_>,
        store: &DrawStore,
    ) -> Result<(), Failure>;
}

/// Predictions at the running means.
pub struct PredictOfMeans;

impl AfterTraining for PredictOfMeans {
    fn finish<R: Stored>(
        &self,
        problem: &Problem,
        chains: &mut RecordedChains<R>,
        _: &RunContext<'_>,
        store: &DrawStore,
    ) -> Result<(), Failure> {
        let mut of_means = Vec::new();
        for (chain, recorder) in chains.iter_mut() {
            let mean = std::mem::take(&mut recorder.mean.mean);
            let statistics = chain.statistics_of_mean(&mean);
            of_means.extend(recorder.predict(&mean, &statistics));
        }
        if of_means.is_empty() {
            return Ok(());
        }
        let variable = problem.kind().variable();
        store
            .write_static(OF_MEAN, variable, Values::F64(&of_means))
            .map_err(Failure::run)
    }
}

/// The network in the parametrisation that was asked for.
///
/// # Errors
/// A layer that does not fit.
pub fn network(problem: &Problem) -> Result<Composition, Failure> {
    let network = problem.architecture.clone();
    match problem.settings.minibatch.parametrisation() {
        Parametrisation::Ntk => Ok(network),
        Parametrisation::Standard => network
            .in_standard_parametrisation()
            .map_err(Failure::request),
    }
}

/// Runs the chains to their end, or until they are stopped.
///
/// # Errors
/// A failed run, whose draws are kept; a run that was stopped.
pub fn sample<R: Stored>(
    problem: &Problem,
    resolved: &Resolved,
    plan: &Plan,
    place: &RunContext<'_>,
    after: &impl AfterTraining,
) -> Result<(), Failure> {
    let store = place.open(problem, &plan.schema)?;
    let checkpoints = place.checkpoints(store.chains())?;
    if place.has_ended(&checkpoints)? {
        return Ok(());
    }
    let threads = place.options.threads();
    let at_once = threads.min(resolved.plan.schedule.chains);
    let chains = make_chains::<R>(
        problem,
        resolved,
        after,
        &checkpoints,
        &store,
        threads / at_once,
    )?;
    place.drive(chains, at_once, |mut chains| {
        after.finish(problem, &mut chains, place, &store)?;
        let moments = chains.into_iter().map(|(_, recorder)| recorder.moments);
        write_moments(&moments.collect::<Vec<_>>(), &store)
    })
}

/// Training rows, and those that are held out.
fn data<R: Stored>(
    problem: &Problem,
    resolved: &Resolved,
) -> Result<(MinibatchData<R>, Option<MinibatchData<R>>), Failure> {
    let (rows, held_out) = (problem.description.train_rows, resolved.validation);
    let (columns, outputs) = (problem.architecture.inputs(), problem.architecture.outputs);
    let mut inputs: Vec<R> = problem.arranged(&problem.train.inputs);
    let by_row = |row: usize| (0..outputs).map(move |output| problem.targets[output * rows + row]);
    let mut targets: Vec<f64> = (0..rows).flat_map(by_row).collect();
    let last_inputs = inputs.split_off((rows - held_out) * columns);
    let last_targets = targets.split_off((rows - held_out) * outputs);
    let scales = problem.settings.model.noise().typical(outputs);
    let likelihood = problem.likelihood()?;
    let make = |inputs: Vec<R>, targets: Vec<f64>| MinibatchData {
        inputs: inputs.into(),
        targets: targets.into(),
        likelihood: Arc::clone(&likelihood),
        scales: scales.clone(),
    };
    let held_out = (held_out > 0).then(|| make(last_inputs, last_targets));
    Ok((make(inputs, targets), held_out))
}

/// Every chain, from its checkpoint where there is one.
fn make_chains<R: Stored>(
    problem: &Problem,
    resolved: &Resolved,
    after: &impl AfterTraining,
    checkpoints: &[Option<Checkpoint>],
    store: &DrawStore,
    threads: usize,
) -> Result<RecordedChains<R>, Failure> {
    let network = network(problem)?;
    let (data, held_out) = data::<R>(problem, resolved)?;
    let test: Arc<Vec<R>> = problem.arranged(&problem.test.inputs).into();
    let layout = ParameterLayout::new(&network);
    let common = Arc::new(common(problem, resolved, &layout, checkpoints)?);
    let mut chains = Vec::with_capacity(checkpoints.len());
    let numbers = problem.settings.chain_numbers();
    for ((index, number), checkpoint) in numbers.into_iter().enumerate().zip(checkpoints) {
        let mut objective =
            Objective::new(&network, data.clone(), threads).map_err(Failure::request)?;
        if resolved.trains_statistics() {
            objective = objective.with_batch_statistics(&network);
        }
        if let Some(prior) = problem.settings.model.noise_prior() {
            objective = objective.with_learned_noise(prior);
        }
        let validation = held_out
            .clone()
            .map(|data| Validation::new(&network, data, threads));
        let validation = validation.transpose().map_err(Failure::request)?;
        let own = OneChain {
            problem,
            resolved,
            store,
            index: index as u64,
            number: number as u64,
            objective,
            validation,
        };
        let begun = match checkpoint {
            None => own.start()?,
            Some(checkpoint) => own.resume(checkpoint)?,
        };
        let trained = TrainedChain {
            problem,
            resolved,
            network: &network,
            layout: &layout,
            data: &data,
            held_out: held_out.as_ref(),
            chain: number as u64,
            threads,
        };
        let chain = after.prepare(begun.chain, trained)?;
        let test = (!test.is_empty()).then(|| {
            let likelihood = Arc::clone(&data.likelihood);
            Ensemble::new(&network, likelihood, Arc::clone(&test), threads)
        });
        let recorder = MinibatchRecorder::new(
            Arc::clone(&common),
            begun.writer,
            test.transpose().map_err(Failure::request)?,
            problem.settings.record.projections,
            begun.moments,
            begun.mean,
        );
        let rows = scored_rows(&problem.settings, &problem.description);
        let unit = log_unit(&problem.output_maps());
        let scored = TrainingRows::new(&network, &data, rows, unit, threads)?;
        chains.push((chain, recorder.with_scored_rows(scored)));
    }
    Ok(chains)
}

/// What is the same for every chain.
fn common(
    problem: &Problem,
    resolved: &Resolved,
    layout: &ParameterLayout,
    checkpoints: &[Option<Checkpoint>],
) -> Result<SharedByChains, Failure> {
    let mut seconds: f64 = 0.0;
    for checkpoint in checkpoints.iter().flatten() {
        seconds = seconds.max(read_document(checkpoint).map_err(Failure::run)?.seconds);
    }
    let settings = &problem.settings;
    Ok(SharedByChains {
        seed: settings.run.seed,
        predictions: PredictionRecord {
            kind: problem.kind(),
            keeping: Keeping::new(settings),
            traces: traces_of(problem),
        },
        layout: layout.clone(),
        tensors: tensors(problem, layout),
        outputs: problem.output_maps(),
        likelihood: problem.likelihood()?,
        learns_noise: settings.model.learns_noise(),
        is_linearised: settings.laplace.is_linearised(resolved.method),
        clock: (Instant::now(), seconds),
    })
}

/// What one chain is made of.
struct OneChain<'a, R> {
    problem: &'a Problem,
    resolved: &'a Resolved,
    store: &'a DrawStore,
    /// Its place in the run, and its number.
    index: u64,
    number: u64,
    objective: Objective<R>,
    validation: Option<Validation<R>>,
}

/// A chain, where its draws go, and the running means of them.
struct Begun<R> {
    chain: MinibatchChain<R>,
    writer: DrawWriter,
    moments: WeightMoments,
    mean: PosteriorMean<R>,
}

impl<R: Stored> OneChain<'_, R> {
    fn settings(&self) -> StochasticGradientSettings {
        StochasticGradientSettings {
            chain: self.number,
            ..self.resolved.settings.clone()
        }
    }

    /// From given weights, or a draw of the prior.
    fn start(self) -> Result<Begun<R>, Failure> {
        let (own, settings) = (&self.problem.settings.minibatch, self.settings());
        let layout = ParameterLayout::new(&self.problem.architecture);
        let start = self.problem.given_start(&layout).unwrap_or_else(|| {
            let mut stream = Stream::new(settings.seed, self.number, Purpose::Initial, 0);
            let mut start = layout.draw_standard_normal(&mut stream);
            if own.parametrisation() == Parametrisation::Standard {
                layout.scale_by_factors(&mut start);
            }
            if self.resolved.trains_statistics() {
                layout.start_normalisation(&mut start);
            }
            start
        });
        let parameters = layout.len();
        let preconditioner = own.make_preconditioner::<R>();
        let updates = StochasticGradient::new(self.objective, preconditioner, settings, start)
            .map_err(Failure::request)?;
        Ok(Begun {
            chain: MinibatchChain::start(self.resolved.plan, updates, self.validation),
            writer: self.store.writer(self.index).map_err(Failure::run)?,
            moments: WeightMoments::new(parameters),
            mean: PosteriorMean::new(own.averaging(), parameters),
        })
    }

    fn resume(self, checkpoint: &Checkpoint) -> Result<Begun<R>, Failure> {
        let (own, settings) = (&self.problem.settings.minibatch, self.settings());
        let plan = self.resolved.plan;
        let rank = match plan.collection {
            Collection::Swag { rank, .. } => Some(rank),
            _ => None,
        };
        let parameters = ParameterLayout::new(&self.problem.architecture).len();
        let kept = restore(checkpoint, parameters, own.averaging(), rank).map_err(Failure::run)?;
        let preconditioner = own.make_preconditioner::<R>();
        let updates =
            StochasticGradient::resume(self.objective, preconditioner, settings, kept.updates)
                .map_err(Failure::run)?;
        let (swag, counters) = (kept.swag, kept.counters);
        let writer = self.store.writer_at(self.index, checkpoint.cursor());
        Ok(Begun {
            chain: MinibatchChain::resume(plan, updates, self.validation, swag, counters),
            writer: writer.map_err(Failure::run)?,
            moments: kept.moments,
            mean: kept.mean,
        })
    }
}

impl Problem {
    /// New inputs, standardised and arranged, for predictions at any weights.
    ///
    /// # Errors
    /// A layer that does not fit.
    pub(crate) fn ensemble<R: Stored>(&self, inputs: &[f64]) -> Result<Ensemble<R>, Failure> {
        let inputs: Vec<R> = inputs.iter().map(|&x| R::from_f64(x)).collect();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ensemble::new(&network(self)?, self.likelihood()?, inputs.into(), cores)
            .map_err(Failure::request)
    }
}
