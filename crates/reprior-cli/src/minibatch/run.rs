//! Chains of a minibatch method into a run folder.

use std::sync::Arc;
use std::time::Instant;

use reprior::chain::{Collection, MinibatchChain, Moments};
use reprior::compute::{Purpose, Stream};
use reprior::laplace::LaplaceFit;
use reprior::model::Noise;
use reprior::network::Composition;
use reprior::stochastic::{
    Ensemble, Langevin, Layout, MinibatchData, Objective, PosteriorMean, Validation,
};
use reprior_io::run::{DrawStore, RunFolder, Values, checkpoint};

use super::mode;
use super::plan::Plan;
use super::record::{Recipe, Recording, read_document, restore};
use super::resolve::Resolved;
use super::schema::OF_MEAN;
use crate::arguments::DrivingArguments;
use crate::error::Failure;
use crate::method::MinibatchMethod;
use crate::names::{Parametrisation, Precision};
use crate::predictive::Kind;
use crate::problem::Problem;
use crate::schema::traces_of;
use crate::session::{drive_walks, end, has_ended, open_store, write_moments};
use crate::stored::Stored;

/// The least and the most gradients of all rows between the end of training and the mode of a Laplace approximation.
const EVALUATIONS: [usize; 2] = [5, 300];

/// The network in the parametrisation that was asked for.
///
/// # Errors
/// A layer that does not fit.
pub fn network(problem: &Problem) -> Result<Composition, Failure> {
    let network = problem.architecture.to_composition();
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
pub fn run(
    problem: &Problem,
    plan: &Plan,
    folder: &RunFolder,
    driving: &DrivingArguments,
) -> Result<(), Failure> {
    match problem.settings.sampler.precision {
        Precision::Auto | Precision::F32 => run_in::<f32>(problem, plan, folder, driving),
        Precision::F64 => run_in::<f64>(problem, plan, folder, driving),
    }
}

fn run_in<R: Stored>(
    problem: &Problem,
    plan: &Plan,
    folder: &RunFolder,
    driving: &DrivingArguments,
) -> Result<(), Failure> {
    let description = serde_json::to_string_pretty(&problem.description).map_err(Failure::run)?;
    folder
        .write_text("data.json", &description)
        .map_err(Failure::run)?;
    let store = open_store(problem, &plan.schema, folder)?;
    problem.write_targets(&store)?;
    if has_ended(folder, store.chains(), driving)? {
        return end(folder, store.chains(), driving);
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = driving.threads.unwrap_or(cores);
    let at_once = threads.min(plan.resolved.plan.schedule.chains);
    let chains = make_chains::<R>(problem, plan, folder, &store, threads / at_once)?;
    drive_walks(chains, at_once, folder, driving, |mut chains| {
        if plan.resolved.method.is_around_mode() {
            mode::finish(problem, &mut chains, folder, &store)?;
        }
        finish(chains, plan.resolved.method, &store)?;
        end(folder, store.chains(), driving)
    })
}

/// Chains with what records them.
pub type Chains<R> = Vec<(MinibatchChain<R>, Recording<R>)>;

/// Training rows, and those that are held out.
fn data<R: Stored>(
    problem: &Problem,
    resolved: &Resolved,
) -> Result<(MinibatchData<R>, Option<MinibatchData<R>>), Failure> {
    let (rows, held_out) = (problem.description.train_rows, resolved.validation);
    let (columns, outputs) = (problem.architecture.inputs, problem.architecture.outputs);
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
    plan: &Plan,
    folder: &RunFolder,
    store: &DrawStore,
    threads: usize,
) -> Result<Chains<R>, Failure> {
    let (settings, resolved) = (&problem.settings, &plan.resolved);
    let network = network(problem)?;
    let (data, held_out) = data::<R>(problem, resolved)?;
    let test: Arc<Vec<R>> = problem.arranged(&problem.test.inputs).into();
    let lengths = resolved.plan.schedule;
    let load = |chain: usize| checkpoint::load(folder.path(), chain as u64).map_err(Failure::run);
    let checkpoints = (0..lengths.chains).map(load);
    let checkpoints: Vec<_> = checkpoints.collect::<Result<_, _>>()?;
    let mut seconds: f64 = 0.0;
    for checkpoint in checkpoints.iter().flatten() {
        seconds = seconds.max(read_document(checkpoint).map_err(Failure::run)?.seconds);
    }
    let layout = Layout::new(&network);
    let ntk = Layout::new(&problem.architecture.to_composition());
    let averaging = settings.minibatch.averaging();
    let recipe = Arc::new(Recipe {
        seed: lengths.seed,
        keeping: plan.keeping,
        traces: traces_of(problem),
        layout: layout.clone(),
        outputs: problem.output_maps(),
        kind: Kind::new(&settings.model, problem.description.is_classification),
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
                let langevin = Langevin::new(objective, preconditioner, own, start)
                    .map_err(Failure::request)?;
                let writer = store.writer(index as u64).map_err(Failure::run)?;
                (
                    MinibatchChain::start(plan, langevin, validation),
                    writer,
                    Moments::new(parameters),
                    PosteriorMean::new(averaging, parameters),
                )
            }
            Some(checkpoint) => {
                let kept =
                    restore(checkpoint, parameters, averaging, rank).map_err(Failure::run)?;
                let langevin = Langevin::resume(objective, preconditioner, own, kept.langevin)
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
        let chain = if plan.collection == Collection::Laplace {
            let priors = &resolved.settings.priors;
            let draws = settings.laplace.draws(resolved.method, &layout, priors)?;
            let rows = settings.laplace.curvature_rows.unwrap_or(usize::MAX);
            let key = [lengths.seed, index as u64];
            let (data, held_out) = (data.clone(), held_out.clone());
            let around = LaplaceFit::new(draws, &network, data, held_out, rows, key, threads);
            let around = around.map_err(Failure::request)?;
            chain.with_laplace(match resolved.updates {
                // weights that were given stay where they are
                0 => around,
                _ => around.with_training(priors.clone(), evaluations(resolved.epochs)),
            })
        } else {
            chain
        };
        let test = (!test.is_empty()).then(|| {
            let likelihood = Arc::clone(&data.likelihood);
            Ensemble::new(&network, likelihood, Arc::clone(&test), threads)
        });
        let test = test.transpose().map_err(Failure::request)?;
        let projections = settings.record.projections;
        let recording = Recording::new(
            Arc::clone(&recipe),
            writer,
            test,
            projections,
            moments,
            mean,
        );
        chains.push((chain, recording));
    }
    Ok(chains)
}

/// Gradients of all rows that the way from the end of a training of so many epochs to the mode may take: a quarter of the
/// training's work.
fn evaluations(epochs: u64) -> usize {
    let [least, most] = EVALUATIONS;
    usize::try_from(epochs / 4).map_or(most, |count| count.clamp(least, most))
}

/// Moments, and predictions at the running means.
fn finish<R: Stored>(
    mut chains: Chains<R>,
    method: MinibatchMethod,
    store: &DrawStore,
) -> Result<(), Failure> {
    let mut of_means = Vec::new();
    let of_chains = chains.iter_mut().filter(|_| !method.is_around_mode());
    for (_, recording) in of_chains {
        let mean = std::mem::take(&mut recording.mean.mean);
        of_means.extend(recording.predict(&mean));
    }
    if let Some((_, recording)) = chains.first().filter(|_| !of_means.is_empty()) {
        store
            .write_static(OF_MEAN, recording.variable(), Values::F64(&of_means))
            .map_err(Failure::run)?;
    }
    let moments = chains.into_iter().map(|(_, recording)| recording.moments);
    write_moments(&moments.collect::<Vec<_>>(), store)
}

impl Problem {
    /// New inputs, standardised and arranged, for predictions at any weights.
    ///
    /// # Errors
    /// A layer that does not fit.
    pub fn ensemble<R: Stored>(&self, inputs: &[f64]) -> Result<Ensemble<R>, Failure> {
        let inputs: Vec<R> = inputs.iter().map(|&x| R::from_f64(x)).collect();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ensemble::new(&network(self)?, self.likelihood()?, inputs.into(), cores)
            .map_err(Failure::request)
    }
}
