//! A run from its settings to its summary: made, gone on with, read back.

use std::path::Path;

use reprior::model::InputReduction;
use reprior::posterior::Coordinates;
use reprior_io::data::Given;
use reprior_io::run::{Files, RunFolder, WEIGHTS, checkpoint};

use crate::failure::{Failure, name_of};
use crate::method::{Benchmark, MethodFamily, Options, Plan, RunContext, bench, defaults, family};
use crate::problem::{DataDescription, GivenWeights, Problem, Records, kept_as};
use crate::read::Recorded;
use crate::record::Destination;
use crate::settings::{Auto, CONFIG, MethodName, Settings, StartName, Until};
use crate::summary::Summary;

/// Ten years.
const MOST_MINUTES: f64 = 5_000_000.0;

/// Checks settings, loads the data and writes every default out.
///
/// # Errors
/// A wrong request, refused before any work where that can be told without the data.
pub fn prepare(settings: Settings) -> Result<Problem, Failure> {
    prepare_with(settings, None, None)
}

/// The same for data in memory, which the run then keeps.
///
/// # Errors
/// As [`prepare`].
pub fn prepare_given(mut settings: Settings, given: &Given) -> Result<Problem, Failure> {
    if !settings.data.source.is_empty() {
        return Err(Failure::request(format!(
            "there are data in memory and --data `{}`: give one of them",
            settings.data.source
        )));
    }
    given.source().clone_into(&mut settings.data.source);
    prepare_with(settings, None, Some(given))
}

/// The same of settings that a run was made with, if there is one.
pub(crate) fn prepare_from(settings: Settings, run: Option<&Files>) -> Result<Problem, Failure> {
    prepare_with(settings, run, None)
}

fn prepare_with(
    mut settings: Settings,
    run: Option<&Files>,
    given: Option<&Given>,
) -> Result<Problem, Failure> {
    settings.check_source()?;
    check(&settings)?;
    let records = Records::load(&mut settings, run, given)?;
    let choices = defaults::choose(&mut settings, &records)?;
    let asked = settings.record.clone();
    let family = checked(&mut settings)?;
    let mut problem = Problem::new(settings, records, choices)?;
    problem.asked = Some(asked);
    family.complete(&mut problem)?;
    Ok(problem)
}

fn check(settings: &Settings) -> Result<Box<dyn MethodFamily>, Failure> {
    let family = family(settings.sampler.method());
    check_time(settings)?;
    family.check(settings)?;
    settings.model.check()?;
    check_scales(settings)?;
    Ok(family)
}

/// Refuses learned scales of weights where they are not sampled.
fn check_scales(settings: &Settings) -> Result<(), Failure> {
    let (Some(scales), true) = (
        settings.model.scales,
        settings.model.scale_prior().is_some(),
    ) else {
        return Ok(());
    };
    let refuse = |text: String| Err(Failure::Request(text));
    let method = settings.sampler.method();
    if method.kernel().is_none() {
        return refuse(format!(
            "--scales {scales} is for chains on all data, not for {method}: choose one of them with --method, or leave it out"
        ));
    }
    if settings.coordinates() == Coordinates::Tangent {
        return refuse(format!(
            "--scales {scales} is for marginal, repriorised and standard coordinates, not for tangent ones: give another --coordinates, or leave it out"
        ));
    }
    if settings.sampler.input_reduction == InputReduction::On {
        return refuse(format!(
            "--scales {scales} needs every input by itself, and --input-reduction on mixes them: leave one of them out"
        ));
    }
    Ok(())
}

/// Refuses a limit of time that is none, or that the method does not keep to.
fn check_time(settings: &Settings) -> Result<(), Failure> {
    let run = &settings.run;
    check_more(settings.sampler.method(), run.minutes, run.until)
}

/// The same of time that a run is to have.
fn check_more(
    method: MethodName,
    minutes: Option<f64>,
    until: Option<Until>,
) -> Result<(), Failure> {
    if let Some(minutes) = minutes
        && !(minutes > 0.0 && minutes <= MOST_MINUTES)
    {
        return Err(Failure::request(format!(
            "--minutes {minutes} is out of range: it must be above 0 and at most {MOST_MINUTES}"
        )));
    }
    let flag = match (minutes, until) {
        (Some(_), _) => "--minutes",
        (None, Some(_)) => "--until",
        (None, None) => return Ok(()),
    };
    let way = match method {
        MethodName::Chain(_) => return Ok(()),
        MethodName::Annealed => {
            ", and give the particles by --draws, and transitions at each temperature by --thin"
        }
        MethodName::Minibatch(_) => ", and give the length by --epochs",
        MethodName::Infinite(_) => "",
    };
    Err(Failure::request(format!(
        "{flag} belongs to chains on all data, not to {method}: leave it out{way}"
    )))
}

/// The family of settings that have been checked, with the defaults that need no data.
fn checked(settings: &mut Settings) -> Result<Box<dyn MethodFamily>, Failure> {
    let family = check(settings)?;
    family.write_defaults(settings);
    Ok(family)
}

/// What a run takes: memory, disk, operations.
///
/// # Errors
/// A wrong request: a run so large that its size cannot be counted.
pub fn plan(problem: &Problem) -> Result<Plan, Failure> {
    family(problem.settings.sampler.method()).plan(problem)
}

/// The same with what time it takes on so many threads of this machine, measured for a moment, where the length of chains was given.
///
/// # Errors
/// As [`plan`]; a density that cannot be evaluated at a draw of the prior.
pub fn plan_with_time(problem: &Problem, threads: usize) -> Result<Plan, Failure> {
    let family = family(problem.settings.sampler.method());
    let mut plan = family.plan(problem)?;
    family.say_time(&mut plan, problem, threads)?;
    Ok(plan)
}

/// Measures where the time of a chain's step goes on this machine, for `seconds` a part.
///
/// # Errors
/// A wrong request: a method without such steps, a problem that does not fit into memory.
pub fn benchmark(settings: Settings, seconds: f64) -> Result<Benchmark, Failure> {
    let method = bench::check(&settings, seconds)?;
    let problem = prepare(settings)?;
    plan(&problem)?.check_memory()?;
    bench::measure(&problem, method, seconds)
}

/// Makes a run in the folder `out`, which may replace an earlier one with `overwrite`.
///
/// # Errors
/// A wrong request before anything is written; a failed run, whose draws are kept; a run that was stopped.
pub fn sample(
    settings: Settings,
    out: &Path,
    overwrite: bool,
    options: &Options<'_>,
) -> Result<Summary, Failure> {
    refuse_run_in(out, overwrite)?;
    let new = NewRun::new(prepare(settings)?, Some((out, overwrite)))?;
    new.sample(options).1
}

/// Refuses to replace the run that chains are to start at, or that holds the weights they are to start at.
fn refuse_start_in(settings: &Settings, out: &Path) -> Result<(), Failure> {
    match &settings.sampler.start {
        Auto::Chosen(StartName::Given(start)) if is_within(Path::new(start), out) => {
            Err(Failure::request(format!(
                "--start {start} is in the run that --overwrite would replace: choose another --out"
            )))
        }
        _ => Ok(()),
    }
}

/// Whether a path that exists is a folder, or in it.
fn is_within(path: &Path, folder: &Path) -> bool {
    match (path.canonicalize(), folder.canonicalize()) {
        (Ok(path), Ok(folder)) => path.starts_with(folder),
        _ => false,
    }
}

/// Makes a run in memory, with the same draws and the same bytes as in a folder ([`RunFolder::save_to`] writes them there).
///
/// # Errors
/// As [`sample`].
pub fn sample_in_memory(
    settings: Settings,
    options: &Options<'_>,
) -> Result<(RunFolder, Summary), Failure> {
    let (folder, summary) = NewRun::new(prepare(settings)?, None)?.sample(options);
    summary.map(|summary| (folder, summary))
}

fn refuse_run_in(out: &Path, overwrite: bool) -> Result<(), Failure> {
    match !overwrite && out.join(CONFIG).exists() {
        true => Err(Failure::request(format!(
            "`{0}` holds a run already: go on with it by `reprior resume {0}`, replace it with --overwrite, or choose another --out",
            out.display()
        ))),
        false => Ok(()),
    }
}

/// A run that has its place and has not begun.
pub struct NewRun {
    problem: Problem,
    plan: Plan,
    weights: Option<Vec<u8>>,
    folder: RunFolder,
}

impl NewRun {
    /// A place for the run of a problem: a folder, which may replace an earlier one with its `overwrite`, or memory.
    ///
    /// # Errors
    /// A wrong request: what does not fit into memory or onto the disk; a folder that is taken.
    pub fn new(problem: Problem, out: Option<(&Path, bool)>) -> Result<Self, Failure> {
        let plan = plan(&problem)?;
        match out {
            Some((out, overwrite)) => {
                refuse_run_in(out, overwrite)?;
                refuse_start_in(&problem.settings, out)?;
                plan.check(Destination::New { out, overwrite })?;
            }
            None => plan.check_memory()?,
        }
        // what is removed for the folder may hold the file
        let weights = problem.weights.as_ref().map(GivenWeights::bytes);
        let weights = weights.transpose()?;
        let folder = match out {
            Some((out, overwrite)) => {
                RunFolder::create(out, overwrite).map_err(Failure::request)?
            }
            None => RunFolder::in_memory(),
        };
        Ok(Self {
            problem,
            plan,
            weights,
            folder,
        })
    }

    /// Its files, which fill while it is made.
    pub fn files(&self) -> &Files {
        self.folder.files()
    }

    /// Makes it, and gives its place back, with the draws that there are.
    ///
    /// # Errors
    /// A failed run; a run that was stopped. The draws are kept.
    pub fn sample(self, options: &Options<'_>) -> (RunFolder, Result<Summary, Failure>) {
        let Self {
            mut problem,
            plan,
            weights,
            folder,
        } = self;
        let summary = begin(&mut problem, &plan, weights, &folder, options);
        (folder, summary)
    }
}

/// A new run: its weights, its settings, its draws.
fn begin(
    problem: &mut Problem,
    plan: &Plan,
    weights: Option<Vec<u8>>,
    folder: &RunFolder,
    options: &Options<'_>,
) -> Result<Summary, Failure> {
    let config = problem.settings.to_toml()?;
    if let Some(weights) = weights {
        let written = folder.files().write(WEIGHTS, &weights);
        written.map_err(Failure::run)?;
    }
    if let (Some(table), Some(name)) = (&problem.content, kept_as(&problem.settings.data.source)) {
        let written = folder.files().write(name, table);
        written.map_err(Failure::run)?;
    }
    folder.write_text(CONFIG, &config).map_err(Failure::run)?;
    drive(problem, plan, folder, options)
}

/// Goes on with the run in the folder `run`, to the same end as if it had not been interrupted.
///
/// # Errors
/// A wrong request: not a run, or its data have changed. Otherwise as [`sample`].
pub fn resume(run: &Path, options: &Options<'_>) -> Result<Summary, Failure> {
    let folder = RunFolder::open(run).map_err(Failure::request)?;
    resume_in(&folder, options)
}

/// Goes on with a run that is open, such as one in memory that was stopped.
///
/// # Errors
/// As [`resume`].
pub fn resume_in(folder: &RunFolder, options: &Options<'_>) -> Result<Summary, Failure> {
    let files = folder.files();
    let mut problem = prepare_from(Settings::of_run(files)?, Some(files))?;
    if let Some(more) = options.more {
        let method = problem.settings.sampler.method();
        check_more(method, more.minutes, more.until)?;
    }
    let before = DataDescription::read(files)?;
    if before.is_some_and(|before| before.fingerprint != problem.description.fingerprint) {
        return Err(Failure::request(format!(
            "the data at `{}` are not those that `{}` was started with: put them back, or start a new run",
            problem.settings.data.source,
            name_of(files)
        )));
    }
    let plan = plan(&problem)?;
    match files.folder() {
        Some(run) => plan.check(Destination::Resumed(run))?,
        None => plan.check_memory()?,
    }
    drive(&mut problem, &plan, folder, options)
}

/// Runs to the end, and makes everything that is made of the draws. Chains' states that are large do not stay.
fn drive(
    problem: &mut Problem,
    plan: &Plan,
    folder: &RunFolder,
    options: &Options<'_>,
) -> Result<Summary, Failure> {
    let place = RunContext { folder, options };
    family(problem.settings.sampler.method()).sample(problem, plan, &place)?;
    if !plan.keeps_states(&problem.settings) {
        for chain in 0..plan.schema.chains {
            checkpoint::finish(folder.files(), chain).map_err(Failure::run)?;
        }
    }
    let summary = summarise(folder.files())?;
    let text = serde_json::to_string_pretty(&summary).map_err(Failure::run)?;
    folder
        .write_text("summary.json", &text)
        .map_err(Failure::run)?;
    Ok(summary)
}

/// Diagnostics and metrics of a run, in a folder or in memory: finished, stopped or still going.
///
/// # Errors
/// A wrong request: not a run, or one that cannot be read.
pub fn summarise(run: impl Into<Files>) -> Result<Summary, Failure> {
    Recorded::of(run)?.summarise()
}

impl Recorded {
    /// The run in a folder or in memory.
    ///
    /// # Errors
    /// A wrong request: not a run, or one that cannot be read.
    pub fn of(run: impl Into<Files>) -> Result<Self, Failure> {
        let files = run.into();
        let mut settings = Settings::of_run(&files)?;
        let description = DataDescription::read(&files)?.ok_or_else(|| {
            Failure::request(format!(
                "`{0}` was stopped before it began: go on with `reprior resume {0}`",
                name_of(&files)
            ))
        })?;
        description.check(&files)?;
        let written = settings.clone();
        let family = checked(&mut settings)?;
        let problem = Problem::without_records(settings, description.clone())?;
        let schema = family.plan(&problem)?.schema;
        Self::open(&files, written, description, &schema)
    }

    /// Diagnostics and metrics, and whether they can be believed.
    ///
    /// # Errors
    /// A run that cannot be read.
    pub fn summarise(&self) -> Result<Summary, Failure> {
        let family = family(self.settings.sampler.method());
        let (mut summary, warnings) = family.summarise(self)?;
        if self.settings.data.watch.is_some() {
            // rows that train test nothing
            (summary.metrics, summary.fit) = (None, None);
            summary.metrics_by_target.clear();
        }
        let left_out = self.leave_one_out()?;
        summary.loo = left_out.ok().map(|found| found.summary);
        summary.conclude(&self.settings, warnings);
        summary.warnings.extend(self.lacks_positions());
        Ok(summary)
    }
}
