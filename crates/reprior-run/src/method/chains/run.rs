//! Chains on all data into a run.

use std::sync::Arc;
use std::time::Instant;

use reprior::chain::Chain;
use reprior::chain::moments::WeightMoments;
use reprior::model::Model;
use reprior::model::design::whole_weights;
use reprior::posterior::projection::Projection;
use reprior::posterior::{Posterior, Recorder};
use reprior::sampler::Method;
use reprior_io::run::{Checkpoint, DrawStore, DrawWriter};

use super::checkpoint::{read_document, restore};
use super::record::{ChainRecorder, Common};
use super::sampler_settings;
use super::start::GivenStart;
use super::timed::Timed;
use crate::failure::Failure;
use crate::method::Plan;
use crate::method::drive::{RunContext, write_moments};
use crate::problem::Problem;
use crate::record::{Keeping, PredictionRecord, log_unit, scored_rows, traces_of};
use crate::stored::Stored;

/// Runs the chains to their end, or until they are stopped.
///
/// # Errors
/// A failed run, whose draws are kept; a run that was stopped.
pub fn sample<R: Stored>(
    problem: &mut Problem,
    method: Method,
    plan: &Plan,
    place: &RunContext<'_>,
) -> Result<(), Failure> {
    let store = place.open(problem, &plan.schema)?;
    let checkpoints = place.checkpoints(store.chains())?;
    if place.has_ended(&checkpoints)? {
        return Ok(());
    }
    let model = Arc::new(problem.sampled_model::<R>(&problem.arranged(&problem.test.inputs))?);
    if let Some(timed) = Timed::new(problem, method, &model, place)? {
        return timed.sample(store);
    }
    let chains = make_chains(problem, method, &model, &checkpoints, &store)?;
    place.drive(chains, place.options.threads(), |chains| {
        write_moments_of(chains, &store)
    })
}

/// Writes the running moments of chains that are complete.
///
/// # Errors
/// A disk that refuses.
pub fn write_moments_of<R: Stored>(
    chains: RecordedChains<R>,
    store: &DrawStore,
) -> Result<(), Failure> {
    let moments = chains.into_iter().map(|(_, recorder)| recorder.moments);
    write_moments(&moments.collect::<Vec<_>>(), store)
}

/// Chains, each with what records it.
pub type RecordedChains<R> = Vec<(Chain<Posterior<R>>, ChainRecorder<R>)>;

/// Every chain, from its checkpoint where there is one.
///
/// # Errors
/// A wrong request; a damaged checkpoint.
pub fn make_chains<R: Stored>(
    problem: &Problem,
    method: Method,
    model: &Arc<Model<R>>,
    checkpoints: &[Option<Checkpoint>],
    store: &DrawStore,
) -> Result<RecordedChains<R>, Failure> {
    let settings = &problem.settings;
    let schedule = settings.schedule();
    let mut recorder = recorders(problem, model, checkpoints)?;
    let dimension = Posterior::dimension(model, settings.coordinates());
    let parameters = model.inner_parameters() + model.architecture.readout_parameters();
    let sampler = sampler_settings(settings, method);
    let start = match checkpoints.iter().any(Option::is_none) {
        true => GivenStart::of(problem)?,
        false => None,
    };
    let numbers = settings.chain_numbers();
    let starts = start.map(|start| start.positions(problem, model, dimension, &numbers));
    let mut starts = starts.transpose()?.unwrap_or_default();
    let mut chains = Vec::with_capacity(schedule.chains);
    for ((index, number), checkpoint) in numbers.into_iter().enumerate().zip(checkpoints) {
        let target =
            Posterior::new(Arc::clone(model), settings.posterior()).map_err(Failure::request)?;
        let (chain, writer, moments) = match checkpoint {
            None => {
                let chain = match starts.get_mut(index).map(std::mem::take) {
                    None => Chain::start(number, schedule, &sampler, target),
                    Some(position) => Chain::start_at(number, schedule, &sampler, target, position),
                };
                let chain = chain.map_err(Failure::run)?;
                let writer = store.writer(index as u64).map_err(Failure::run)?;
                (chain, writer, WeightMoments::new(parameters))
            }
            Some(checkpoint) => {
                let (snapshot, moments) =
                    restore(checkpoint, dimension, parameters).map_err(Failure::run)?;
                let chain = Chain::resume(number, schedule, &sampler, target, snapshot)
                    .map_err(Failure::run)?;
                let writer = store
                    .writer_at(index as u64, checkpoint.cursor())
                    .map_err(Failure::run)?;
                (chain, writer, moments)
            }
        };
        chains.push((chain, recorder(number, writer, moments)));
    }
    Ok(chains)
}

/// What makes the recorder of a chain, from its writer and its moments so far.
///
/// # Errors
/// A damaged checkpoint.
pub fn recorders<'a, R: Stored>(
    problem: &'a Problem,
    model: &'a Arc<Model<R>>,
    checkpoints: &[Option<Checkpoint>],
) -> Result<impl FnMut(usize, DrawWriter, WeightMoments) -> ChainRecorder<R> + use<'a, R>, Failure>
{
    let settings = &problem.settings;
    let schedule = settings.schedule();
    let mut seconds: f64 = 0.0;
    for checkpoint in checkpoints.iter().flatten() {
        seconds = seconds.max(read_document(checkpoint).map_err(Failure::run)?.seconds);
    }
    let keeping = Keeping::new(settings);
    let whole = keeping.weights_every.and_then(|_| {
        let inputs = problem.arranged(&problem.train.inputs);
        whole_weights(&model.architecture, &model.design, &inputs).map(Arc::new)
    });
    let common = Common {
        schedule,
        predictions: PredictionRecord {
            kind: problem.kind(),
            keeping,
            traces: traces_of(problem),
        },
        architecture: model.architecture.clone(),
        outputs: problem.output_maps(),
        log_unit: log_unit(&problem.output_maps()),
        left_out: model.likelihood.left_out(model.targets.len()),
        likelihood: Arc::clone(&model.likelihood),
        learns_noise: settings.model.learns_noise(),
        noise_coordinates: model.noise_coordinates(),
        whole,
        clock: (Instant::now(), seconds),
    };
    Ok(move |index, writer, moments| {
        let projection = Projection::new(model, settings.record.projections, schedule.seed);
        let recorder = Recorder::new(Arc::clone(model))
            .with_projection(projection)
            .with_log_likelihood(scored_rows(settings, &problem.description));
        ChainRecorder::new(index, common.clone(), writer, recorder, moments)
    })
}
