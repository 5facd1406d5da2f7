//! `reprior sample` and `reprior resume`: chains into a run folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use reprior::chain::{Chain, Control, Moments, Outcome, Progress, Walk, run};
use reprior::model::{Model, whole_weights};
use reprior::posterior::{Posterior, Projection, Recorder};
use reprior_io::regular;
use reprior_io::run::{
    Checkpoint, DrawStore, RunFolder, Schema, Values, WEIGHTS, atomic, checkpoint,
};

use crate::arguments::{DrivingArguments, ResumeArguments, SampleArguments};
use crate::chain_state::{read_document, restore};
use crate::closed_form::{self, ClosedForm};
use crate::disk::Destination;
use crate::error::Failure;
use crate::keeping::Keeping;
use crate::minibatch::{self, GivenWeights};
use crate::names::Precision;
use crate::plan::Plan;
use crate::predictive::Kind;
use crate::problem::{DataDescription, Problem};
use crate::progress::Display;
use crate::record::{Recipe, Recording};
use crate::schema::{MOMENTS, traces_of};
use crate::settings::Settings;
use crate::stored::Stored;
use crate::summary;
use crate::table::to_stderr;

const COMPLETE: &str = "This run is complete; there is nothing to go on with.";

/// Set by Ctrl-C.
static STOP: AtomicBool = AtomicBool::new(false);

/// Runs `reprior sample`.
///
/// # Errors
/// A wrong request before anything is written; a failed run, whose draws are kept; a run that was stopped.
pub fn sample(arguments: &SampleArguments) -> Result<(), Failure> {
    let settings = Settings::from_arguments(&arguments.settings)?;
    check_driving(&arguments.driving)?;
    let out = arguments
        .out
        .clone()
        .unwrap_or_else(|| default_folder(&settings.data.source));
    if !arguments.overwrite && out.join("config.toml").exists() {
        return Err(Failure::request(format!(
            "`{0}` holds a run already: go on with it by `reprior resume {0}`, replace it with --overwrite, or choose another --out",
            out.display()
        )));
    }
    let problem = Problem::load(settings)?;
    let place = Destination::New {
        out: &out,
        overwrite: arguments.overwrite,
    };
    if let Some(covariance) = problem.settings.sampler.method.covariance() {
        closed_form::check_disk(&problem, place)?;
        let posterior = ClosedForm::new(&problem, covariance)?;
        let folder = create(&problem, &out, arguments.overwrite)?;
        return closed_form::run(&posterior, &folder, &arguments.driving);
    }
    if let Some(resolved) = &problem.minibatch {
        let plan = minibatch::Plan::new(&problem, resolved)?;
        plan.check(place)?;
        let folder = create(&problem, &out, arguments.overwrite)?;
        return minibatch::run(&problem, &plan, &folder, &arguments.driving);
    }
    let plan = Plan::new(&problem)?;
    plan.check(&problem.settings, place)?;
    let folder = create(&problem, &out, arguments.overwrite)?;
    drive(&problem, &plan, &folder, &arguments.driving)
}

/// A new run folder with its settings.
fn create(problem: &Problem, out: &Path, overwrite: bool) -> Result<RunFolder, Failure> {
    let config = problem.settings.to_toml()?;
    let weights = problem.weights.as_ref().map(GivenWeights::bytes);
    let weights = weights.transpose()?;
    let folder = RunFolder::create(out, overwrite).map_err(Failure::request)?;
    if let Some(weights) = weights {
        atomic::write(&folder.path().join(WEIGHTS), &weights).map_err(Failure::run)?;
    }
    folder
        .write_text("config.toml", &config)
        .map_err(Failure::run)?;
    Ok(folder)
}

/// Runs `reprior resume`.
///
/// # Errors
/// A wrong request: not a run, or its data have changed. Otherwise as [`sample`].
pub fn resume(arguments: &ResumeArguments) -> Result<(), Failure> {
    check_driving(&arguments.driving)?;
    let folder = RunFolder::open(&arguments.run).map_err(Failure::request)?;
    let settings = Settings::from_file(&folder.path().join("config.toml"))?;
    settings.check()?;
    let problem = Problem::load(settings)?;
    if let Some(before) = read_description(folder.path())?
        && before.fingerprint != problem.description.fingerprint
    {
        return Err(Failure::request(format!(
            "the data at `{}` are not those that `{}` was started with: put them back, or start a new run",
            problem.settings.data.source,
            folder.path().display()
        )));
    }
    let place = Destination::Resumed(folder.path());
    if let Some(covariance) = problem.settings.sampler.method.covariance() {
        closed_form::check_disk(&problem, place)?;
        let posterior = ClosedForm::new(&problem, covariance)?;
        return closed_form::run(&posterior, &folder, &arguments.driving);
    }
    if let Some(resolved) = &problem.minibatch {
        let plan = minibatch::Plan::new(&problem, resolved)?;
        plan.check(place)?;
        return minibatch::run(&problem, &plan, &folder, &arguments.driving);
    }
    let plan = Plan::new(&problem)?;
    plan.check(&problem.settings, place)?;
    drive(&problem, &plan, &folder, &arguments.driving)
}

/// The description of the data in a run folder, if it has been written.
///
/// # Errors
/// A damaged file.
pub fn read_description(run: &Path) -> Result<Option<DataDescription>, Failure> {
    let path = run.join("data.json");
    if !path.exists() {
        return Ok(None);
    }
    let text = regular::read_text(&path).map_err(|error| {
        Failure::request(format!("`{}` cannot be read: {error}", path.display()))
    })?;
    serde_json::from_str(&text)
        .map(Some)
        .map_err(|error| Failure::request(format!("`{}` is damaged: {error}", path.display())))
}

fn default_folder(source: &str) -> PathBuf {
    let name = Path::new(source)
        .file_stem()
        .map_or_else(|| "run".into(), |stem| stem.to_os_string());
    Path::new("runs").join(name)
}

fn check_driving(driving: &DrivingArguments) -> Result<(), Failure> {
    if driving.threads == Some(0) {
        return Err(Failure::request("--threads is 0: it must be at least 1"));
    }
    let seconds = driving.checkpoint_seconds;
    if !(seconds.is_finite() && (0.0..=1e9).contains(&seconds)) {
        let message = format!("--checkpoint-seconds is {seconds}: it must be zero or positive");
        return Err(Failure::Request(message));
    }
    Ok(())
}

fn drive(
    problem: &Problem,
    plan: &Plan,
    folder: &RunFolder,
    driving: &DrivingArguments,
) -> Result<(), Failure> {
    match problem.settings.sampler.precision {
        Precision::Auto | Precision::F32 => drive_in::<f32>(problem, plan, folder, driving),
        Precision::F64 => drive_in::<f64>(problem, plan, folder, driving),
    }
}

/// Opens the store, or makes it where the run has not come that far.
///
/// # Errors
/// A wrong request: draws of other settings. A disk that refuses.
pub fn open_store(
    problem: &Problem,
    schema: &Schema,
    folder: &RunFolder,
) -> Result<DrawStore, Failure> {
    if folder.path().join("draws.zarr").join("zarr.json").exists() {
        let store = DrawStore::open(folder).map_err(Failure::run)?;
        if !store.matches(schema).map_err(Failure::run)? {
            return Err(Failure::request(format!(
                "the draws in `{}` were recorded with other settings than its config.toml says",
                folder.path().display()
            )));
        }
        return Ok(store);
    }
    DrawStore::create(folder, schema).map_err(Failure::run)?;
    DrawStore::open(folder).map_err(Failure::run).inspect(|_| {
        for note in problem.notes() {
            to_stderr(&format!("note: {note}"));
        }
    })
}

fn drive_in<R: Stored>(
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
    let model = Arc::new(problem.model::<R>(&problem.arranged(&problem.test.inputs))?);
    let chains = make_chains(problem, &model, folder, &store)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = driving.threads.unwrap_or(cores);
    drive_walks(chains, threads, folder, driving, |chains| {
        let moments = chains.into_iter().map(|(_, recording)| recording.moments);
        write_moments(&moments.collect::<Vec<_>>(), &store)?;
        end(folder, store.chains(), driving)
    })
}

/// Whether the run had come to its end before; says so.
///
/// # Errors
/// A damaged checkpoint.
pub fn has_ended(
    folder: &RunFolder,
    chains: u64,
    driving: &DrivingArguments,
) -> Result<bool, Failure> {
    let mut has_ended = false;
    for chain in 0..chains {
        let checkpoint = checkpoint::load(folder.path(), chain).map_err(Failure::run)?;
        has_ended |= checkpoint.is_some_and(|checkpoint| checkpoint.is_finished());
    }
    if has_ended && !driving.quiet {
        to_stderr(COMPLETE);
    }
    Ok(has_ended)
}

/// Ends a run whose draws are all there, and everything that is made of the chains: from here on their states are of no use.
///
/// # Errors
/// A disk that refuses.
pub fn end(folder: &RunFolder, chains: u64, driving: &DrivingArguments) -> Result<(), Failure> {
    for chain in 0..chains {
        checkpoint::finish(folder.path(), chain).map_err(Failure::run)?;
    }
    summary::write_summary(folder, driving.json)
}

/// What Ctrl-C sets from now on; a second one ends at once: files are whole at any moment.
///
/// # Errors
/// A system that does not let it be caught.
pub fn catch_ctrl_c() -> Result<&'static AtomicBool, Failure> {
    let handler = || {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    };
    ctrlc::set_handler(handler)
        .map_err(|error| Failure::run(format!("Ctrl-C cannot be caught: {error}")))?;
    Ok(&STOP)
}

/// Runs `walks` on so many threads to their end, and then `finish`, or until they are stopped or fail.
///
/// # Errors
/// A failed run, whose draws are kept; a run that was stopped.
pub fn drive_walks<W: Walk>(
    walks: Vec<W>,
    threads: usize,
    folder: &RunFolder,
    driving: &DrivingArguments,
    finish: impl FnOnce(Vec<W>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let progress: Vec<Progress> = walks.iter().map(Walk::progress).collect();
    if progress.iter().all(Progress::is_done) {
        if !driving.quiet {
            to_stderr(COMPLETE);
        }
        return finish(walks);
    }
    let stop = catch_ctrl_c()?;
    let control = Control {
        threads,
        checkpoint_every: Duration::from_secs_f64(driving.checkpoint_seconds),
        stop,
    };
    let made: Vec<u64> = progress
        .iter()
        .map(|progress| progress.transition)
        .collect();
    let total = progress.first().map_or(0, |progress| progress.total);
    let display = Display::new(driving.quiet, &made, total);
    let (walks, outcome) = run(walks, control, &|progress| display.update(progress));
    display.finish();
    match outcome {
        Ok(Outcome::Complete) => finish(walks),
        Ok(Outcome::Stopped) => {
            to_stderr(&format!(
                "Stopped; everything drawn so far is kept. Go on with: reprior resume {}",
                folder.path().display()
            ));
            Err(Failure::Stopped)
        }
        Err(error) => Err(Failure::run(format!(
            "{error}. What was drawn before is kept in `{}`",
            folder.path().display()
        ))),
    }
}

type Chains<R> = Vec<(Chain<Posterior<R>>, Recording<R>)>;

/// Every chain, from its checkpoint where there is one.
fn make_chains<R: Stored>(
    problem: &Problem,
    model: &Arc<Model<R>>,
    folder: &RunFolder,
    store: &DrawStore,
) -> Result<Chains<R>, Failure> {
    let settings = &problem.settings;
    let schedule = settings.schedule();
    let load = |chain: usize| checkpoint::load(folder.path(), chain as u64).map_err(Failure::run);
    let checkpoints: Vec<Option<Checkpoint>> =
        (0..schedule.chains).map(load).collect::<Result<_, _>>()?;
    let mut seconds: f64 = 0.0;
    for checkpoint in checkpoints.iter().flatten() {
        seconds = seconds.max(read_document(checkpoint).map_err(Failure::run)?.seconds);
    }
    let keeping = Keeping::new(settings);
    let whole = keeping.weights_every.and_then(|_| {
        let inputs = problem.arranged(&problem.train.inputs);
        whole_weights(&model.architecture, &model.design, &inputs).map(Arc::new)
    });
    let recipe = Recipe {
        schedule,
        keeping,
        traces: traces_of(problem),
        architecture: model.architecture.clone(),
        outputs: problem.output_maps(),
        is_classification: problem.description.is_classification,
        kind: Kind::new(&settings.model, problem.description.is_classification),
        likelihood: Arc::clone(&model.likelihood),
        learns_noise: settings.model.learns_noise(),
        noise_coordinates: model.noise_coordinates(),
        whole,
        clock: (Instant::now(), seconds),
    };
    let dimension = Posterior::dimension(model, settings.coordinates());
    let parameters = model.inner_parameters() + model.architecture.readout_parameters();
    let sampler = settings.sampler_settings();
    let mut chains = Vec::with_capacity(schedule.chains);
    for (index, checkpoint) in checkpoints.iter().enumerate() {
        let target =
            Posterior::new(Arc::clone(model), settings.posterior()).map_err(Failure::request)?;
        let projection = Projection::new(model, settings.record.projections, schedule.seed);
        let recorder = Recorder::new(Arc::clone(model), projection);
        let (chain, writer, moments) = match checkpoint {
            None => {
                let chain =
                    Chain::start(index, schedule, &sampler, target).map_err(Failure::run)?;
                let writer = store.writer(index as u64).map_err(Failure::run)?;
                (chain, writer, Moments::new(parameters))
            }
            Some(checkpoint) => {
                let (snapshot, moments) =
                    restore(checkpoint, dimension, parameters).map_err(Failure::run)?;
                let chain = Chain::resume(index, schedule, &sampler, target, snapshot)
                    .map_err(Failure::run)?;
                let writer = store
                    .writer_at(index as u64, checkpoint.cursor())
                    .map_err(Failure::run)?;
                (chain, writer, moments)
            }
        };
        chains.push((
            chain,
            Recording::new(index, recipe.clone(), writer, recorder, moments),
        ));
    }
    Ok(chains)
}

/// Running moments of all chains, once they are complete.
///
/// # Errors
/// A disk that refuses.
pub fn write_moments(moments: &[Moments], store: &DrawStore) -> Result<(), Failure> {
    let write = |name, values: &[f32]| {
        store
            .write_static(MOMENTS, name, Values::F32(values))
            .map_err(Failure::run)
    };
    let means = moments.iter().flat_map(|moments| &moments.mean);
    write("mean", &means.map(|&x| x as f32).collect::<Vec<_>>())?;
    let variances = moments.iter().flat_map(Moments::variance);
    write("variance", &variances.map(|x| x as f32).collect::<Vec<_>>())
}
