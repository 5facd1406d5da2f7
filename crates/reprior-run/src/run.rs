//! A run from its settings to its summary: made, gone on with, read back.

use std::path::Path;

use reprior_io::data::Given;
use reprior_io::run::{Files, RunFolder, WEIGHTS, checkpoint};

use crate::check::{check, check_more, checked};
use crate::difference::{Ignored, difference};
use crate::failure::{Failure, name_of};
use crate::instructions;
use crate::method::{Benchmark, Options, Plan, RunContext, bench, defaults, family};
use crate::problem::{DataDescription, GivenWeights, Problem, Records, kept_as};
use crate::read::Recorded;
use crate::record::Destination;
use crate::settings::{Auto, CONFIG, Settings, StartName};
use crate::summary::Summary;

/// What a run's summary is kept as.
pub(crate) const SUMMARY: &str = "summary.json";
/// What is there in its place of a run that will be merged.
const PART_IS_COMPLETE: &str = "{\"status\": \"complete\"}\n";

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
    // the default is not written out
    settings.run.first_chain = settings.run.first_chain.filter(|&first| first > 0);
    check(&settings)?;
    let note = match run {
        None => {
            settings.laplace.check_new(settings.model.likelihood())?;
            instructions::choose(&mut settings)
        }
        Some(_) => None,
    };
    let records = Records::load(&mut settings, run, given)?;
    let choices = defaults::choose(&mut settings, &records)?;
    let asked = settings.record.clone();
    let family = checked(&mut settings)?;
    let mut problem = Problem::new(settings, records, choices)?;
    problem.asked = Some(asked);
    problem.description.notes.extend(note);
    family.complete(&mut problem)?;
    Ok(problem)
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

/// Makes a run in the folder `out`, or goes on with the one that is there if it has the same settings; of one that has come to its end nothing is left to
/// do. So that what is tried again is the same request.
///
/// # Errors
/// A wrong request: a run of other settings there. Otherwise as [`sample`] and [`resume`].
pub fn sample_or_resume(
    settings: Settings,
    out: &Path,
    options: &Options<'_>,
) -> Result<Summary, Failure> {
    let problem = prepare(settings)?;
    match earlier_run(&problem, out)? {
        Some(folder) => resume_in(&folder, options),
        None => NewRun::new(problem, Some((out, false)))?.sample(options).1,
    }
}

/// The run in the folder `out`, to be gone on with in place of making the problem's; none where there is no run.
///
/// # Errors
/// A wrong request: a run of other settings.
pub fn earlier_run(problem: &Problem, out: &Path) -> Result<Option<RunFolder>, Failure> {
    if !out.join(CONFIG).exists() {
        return Ok(None);
    }
    let asked = &problem.settings;
    let made = Settings::of_run(&Files::from(out))?;
    // against the clock, lengths and what is kept of them are settled on the way
    let ignored = match asked.run.minutes {
        Some(_) => Ignored::Lengths,
        None => Ignored::Nothing,
    };
    if let Some(difference) = difference(&made, asked, ignored)? {
        return Err(Failure::request(format!(
            "`{}` holds another run: its {difference}. Choose another --out, or replace it with --overwrite instead of --or-resume",
            out.display()
        )));
    }
    let folder = RunFolder::open(out).map_err(Failure::request)?;
    refuse_other_data(problem, folder.files())?;
    Ok(Some(folder))
}

/// Refuses to go on with a run, if it has come so far as to have them, with other data than it was started with; says what those were.
fn refuse_other_data(problem: &Problem, files: &Files) -> Result<Option<DataDescription>, Failure> {
    let before = DataDescription::read(files)?;
    let own = &problem.description.fingerprint;
    match before
        .as_ref()
        .is_some_and(|before| before.fingerprint != *own)
    {
        true => Err(Failure::request(format!(
            "the data at `{}` are not those that `{}` was started with: put them back, or start a new run",
            problem.settings.data.source,
            name_of(files)
        ))),
        false => Ok(before),
    }
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

/// Refuses to replace the run whose folder holds the table that is to be read: what standard input or a program gave is nowhere else.
fn refuse_data_in(settings: &Settings, out: &Path) -> Result<(), Failure> {
    let source = &settings.data.source;
    match is_within(Path::new(source), out) {
        true => Err(Failure::request(format!(
            "--data {source} is in the run that --overwrite would replace: choose another --out, or move the file first"
        ))),
        false => Ok(()),
    }
}

/// Whether a path that exists is a folder, or in it.
pub(crate) fn is_within(path: &Path, folder: &Path) -> bool {
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

pub(crate) fn refuse_run_in(out: &Path, overwrite: bool) -> Result<(), Failure> {
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
                if overwrite {
                    refuse_data_in(&problem.settings, out)?;
                }
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

/// A new run: its weights, its data, its settings, its draws.
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
    problem.description.write(folder)?;
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
    let settings = Settings::of_run(files)?;
    if let Some(note) = instructions::keep(&settings) {
        options.watcher.note(&format!("note: {note}"));
    }
    let mut problem = prepare_from(settings, Some(files))?;
    if let Some(more) = options.more {
        let method = problem.settings.sampler.method();
        check_more(method, more.minutes, more.until)?;
    }
    if let Some(before) = refuse_other_data(&problem, files)? {
        // some were of the flags that the run was started with
        problem.description.notes = before.notes;
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
    if options.is_part {
        folder
            .write_text(SUMMARY, PART_IS_COMPLETE)
            .map_err(Failure::run)?;
        let draws = problem.settings.schedule().draws;
        return Ok(Summary::new(&problem.settings, draws));
    }
    write_summary(folder)
}

/// Summarises a run that has come to its end, and keeps what it says.
///
/// # Errors
/// A run that cannot be read; a disk that refuses.
pub(crate) fn write_summary(folder: &RunFolder) -> Result<Summary, Failure> {
    let summary = summarise(folder.files())?;
    let text = serde_json::to_string_pretty(&summary).map_err(Failure::run)?;
    folder.write_text(SUMMARY, &text).map_err(Failure::run)?;
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
        let description = DataDescription::read(&files)?;
        let has_begun =
            files.contains("draws.zarr/zarr.json") || files.contains(&checkpoint::name(0));
        let description = description.filter(|_| has_begun).ok_or_else(|| {
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
        if self.tests_nothing() {
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
