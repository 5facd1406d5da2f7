//! Chains of a minibatch method into a run.

use std::sync::Arc;
use std::time::Instant;

use reprior::chain::minibatch::{Collection, MinibatchChain};
use reprior::chain::moments::WeightMoments;
use reprior::compute::{Purpose, Stream};
use reprior::model::Noise;
use reprior::network::Composition;
use reprior::network::parameters::ParameterLayout;
use reprior::stochastic::average::PosteriorMean;
use reprior::stochastic::data::MinibatchData;
use reprior::stochastic::ensemble::Ensemble;
use reprior::stochastic::objective::Objective;
use reprior::stochastic::update::StochasticGradient;
use reprior::stochastic::validation::Validation;
use reprior_io::run::{Checkpoint, DrawStore, Values};

use super::record::{Common, MinibatchRecorder, read_document, restore};
use super::resolve::Resolved;
use super::schema::{OF_MEAN, tensors};
use crate::failure::Failure;
use crate::method::Plan;
use crate::method::drive::{RunContext, write_moments};
use crate::problem::Problem;
use crate::record::{Keeping, PredictionRecord, traces_of};
use crate::settings::Parametrisation;
use crate::stored::Stored;

/// Chains with what records them.
pub type Chains<R> = Vec<(MinibatchChain<R>, MinibatchRecorder<R>)>;

/// What a chain is trained on and with.
pub struct Trained<'a, R> {
    pub problem: &'a Problem,
    pub resolved: &'a Resolved,
    pub network: &'a Composition,
    pub layout: &'a ParameterLayout,
    pub data: &'a MinibatchData<R>,
    pub held_out: Option<&'a MinibatchData<R>>,
    /// Which chain.
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
        _: Trained<'_, R>,
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
        chains: &mut Chains<R>,
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
        chains: &mut Chains<R>,
        _: &RunContext<'_>,
        store: &DrawStore,
    ) -> Result<(), Failure> {
        let mut of_means = Vec::new();
        for (_, recorder) in chains.iter_mut() {
            let mean = std::mem::take(&mut recorder.mean.mean);
            of_means.extend(recorder.predict(&mean));
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
    if place.has_ended(&checkpoints) {
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
    let scales = match problem.settings.model.noise() {
        noise @ Noise::Known(_) => noise.typical(outputs),
        Noise::Learned(_) => return Err(Failure::request("--noise learn is of chains")),
    };
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
) -> Result<Chains<R>, Failure> {
    let settings = &problem.settings;
    let network = network(problem)?;
    let (data, held_out) = data::<R>(problem, resolved)?;
    let test: Arc<Vec<R>> = problem.arranged(&problem.test.inputs).into();
    let lengths = resolved.plan.schedule;
    let mut seconds: f64 = 0.0;
    for checkpoint in checkpoints.iter().flatten() {
        seconds = seconds.max(read_document(checkpoint).map_err(Failure::run)?.seconds);
    }
    let layout = ParameterLayout::new(&network);
    let ntk = ParameterLayout::new(&problem.architecture);
    let averaging = settings.minibatch.averaging();
    let common = Arc::new(Common {
        seed: lengths.seed,
        predictions: PredictionRecord {
            kind: problem.kind(),
            keeping: Keeping::new(settings),
            traces: traces_of(problem),
        },
        layout: layout.clone(),
        tensors: tensors(problem, &layout),
        outputs: problem.output_maps(),
        likelihood: Arc::clone(&data.likelihood),
        is_linearised: settings.laplace.is_linearised(resolved.method),
        clock: (Instant::now(), seconds),
    });
    let rank = match resolved.plan.collection {
        Collection::Swag { rank, .. } => Some(rank),
        _ => None,
    };
    let parameters = layout.len();
    let mut chains = Vec::with_capacity(lengths.chains);
    for (index, checkpoint) in checkpoints.iter().enumerate() {
        let mut own = resolved.settings.clone();
        own.chain = index as u64;
        let objective =
            Objective::new(&network, data.clone(), threads).map_err(Failure::request)?;
        let validation = held_out
            .clone()
            .map(|data| Validation::new(&network, data, threads));
        let validation = validation.transpose().map_err(Failure::request)?;
        let preconditioner = settings.minibatch.make_preconditioner::<R>();
        let plan = resolved.plan;
        let (chain, writer, moments, mean) = match checkpoint {
            None => {
                let start = problem.given_start(&ntk).unwrap_or_else(|| {
                    let mut stream = Stream::new(lengths.seed, index as u64, Purpose::Initial, 0);
                    let mut start = layout.draw_standard_normal(&mut stream);
                    if settings.minibatch.parametrisation() == Parametrisation::Standard {
                        ntk.scale_by_factors(&mut start);
                    }
                    start
                });
                let langevin = StochasticGradient::new(objective, preconditioner, own, start)
                    .map_err(Failure::request)?;
                let writer = store.writer(index as u64).map_err(Failure::run)?;
                (
                    MinibatchChain::start(plan, langevin, validation),
                    writer,
                    WeightMoments::new(parameters),
                    PosteriorMean::new(averaging, parameters),
                )
            }
            Some(checkpoint) => {
                let kept =
                    restore(checkpoint, parameters, averaging, rank).map_err(Failure::run)?;
                let langevin =
                    StochasticGradient::resume(objective, preconditioner, own, kept.langevin)
                        .map_err(Failure::run)?;
                let cursor = checkpoint.cursor();
                let writer = store
                    .writer_at(index as u64, cursor)
                    .map_err(Failure::run)?;
                let (swag, counters) = (kept.swag, kept.counters);
                (
                    MinibatchChain::resume(plan, langevin, validation, swag, counters),
                    writer,
                    kept.moments,
                    kept.mean,
                )
            }
        };
        let trained = Trained {
            problem,
            resolved,
            network: &network,
            layout: &layout,
            data: &data,
            held_out: held_out.as_ref(),
            chain: index as u64,
            threads,
        };
        let chain = after.prepare(chain, trained)?;
        let test = (!test.is_empty()).then(|| {
            let likelihood = Arc::clone(&data.likelihood);
            Ensemble::new(&network, likelihood, Arc::clone(&test), threads)
        });
        let test = test.transpose().map_err(Failure::request)?;
        let projections = settings.record.projections;
        let recorder = MinibatchRecorder::new(
            Arc::clone(&common),
            writer,
            test,
            projections,
            moments,
            mean,
        );
        chains.push((chain, recorder));
    }
    Ok(chains)
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
