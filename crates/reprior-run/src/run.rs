//! A run from its settings to its summary: made, gone on with, read back.

use std::path::Path;

use reprior_io::run::{RunFolder, WEIGHTS, atomic, checkpoint};

use crate::failure::Failure;
use crate::method::{Benchmark, Family, Options, Place, Plan, bench, family};
use crate::problem::{DataDescription, GivenWeights, Problem};
use crate::read::Recorded;
use crate::record::Destination;
use crate::settings::Settings;
use crate::summary::Summary;

/// Checks settings, loads the data and writes every default out.
///
/// # Errors
/// A wrong request, refused before any work where that can be told without the data.
pub fn prepare(mut settings: Settings) -> Result<Problem, Failure> {
    let family = checked(&mut settings)?;
    let mut problem = Problem::load(settings)?;
    family.complete(&mut problem)?;
    Ok(problem)
}

/// The family of settings that have been checked, with the defaults that need no data.
fn checked(settings: &mut Settings) -> Result<Box<dyn Family>, Failure> {
    let family = family(settings.sampler.method);
    settings.check_source()?;
    family.check(settings)?;
    settings.model.check()?;
    family.write_defaults(settings);
    Ok(family)
}

/// What a run takes: memory, disk, operations.
///
/// # Errors
/// A wrong request: a run so large that its size cannot be counted.
pub fn plan(problem: &Problem) -> Result<Plan, Failure> {
    family(problem.settings.sampler.method).plan(problem)
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
    if !overwrite && out.join("config.toml").exists() {
        return Err(Failure::request(format!(
            "`{0}` holds a run already: go on with it by `reprior resume {0}`, replace it with --overwrite, or choose another --out",
            out.display()
        )));
    }
    let problem = prepare(settings)?;
    let plan = plan(&problem)?;
    plan.check(Destination::New { out, overwrite })?;
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
    drive(&problem, &plan, &folder, options)
}

/// Goes on with the run in the folder `run`, to the same end as if it had not been interrupted.
///
/// # Errors
/// A wrong request: not a run, or its data have changed. Otherwise as [`sample`].
pub fn resume(run: &Path, options: &Options<'_>) -> Result<Summary, Failure> {
    let folder = RunFolder::open(run).map_err(Failure::request)?;
    let problem = prepare(Settings::from_file(&run.join("config.toml"))?)?;
    let before = DataDescription::read(run)?;
    if before.is_some_and(|before| before.fingerprint != problem.description.fingerprint) {
        return Err(Failure::request(format!(
            "the data at `{}` are not those that `{}` was started with: put them back, or start a new run",
            problem.settings.data.source,
            run.display()
        )));
    }
    let plan = plan(&problem)?;
    plan.check(Destination::Resumed(run))?;
    drive(&problem, &plan, &folder, options)
}

/// Runs to the end, and makes everything that is made of the draws: from then on the chains' states are of no use.
fn drive(
    problem: &Problem,
    plan: &Plan,
    folder: &RunFolder,
    options: &Options<'_>,
) -> Result<Summary, Failure> {
    let place = Place { folder, options };
    family(problem.settings.sampler.method).sample(problem, plan, &place)?;
    for chain in 0..plan.schema.chains {
        checkpoint::finish(folder.path(), chain).map_err(Failure::run)?;
    }
    let summary = summarise(folder.path())?;
    let text = serde_json::to_string_pretty(&summary).map_err(Failure::run)?;
    folder
        .write_text("summary.json", &text)
        .map_err(Failure::run)?;
    Ok(summary)
}

/// Diagnostics and metrics of the run in a folder: finished, stopped or still going.
///
/// # Errors
/// A wrong request: not a run folder, or one that cannot be read.
pub fn summarise(run: &Path) -> Result<Summary, Failure> {
    let recorded = Recorded::of(run)?;
    recorded.summarise()
}

impl Recorded {
    /// The run in a folder.
    ///
    /// # Errors
    /// A wrong request: not a run folder, or one that cannot be read.
    pub fn of(run: &Path) -> Result<Self, Failure> {
        let config = run.join("config.toml");
        if !config.exists() {
            return Err(Failure::request(format!(
                "`{}` is not a run folder: it has no config.toml",
                run.display()
            )));
        }
        let mut settings = Settings::from_file(&config)?;
        let description = DataDescription::read(run)?.ok_or_else(|| {
            Failure::request(format!(
                "`{0}` was stopped before it began: go on with `reprior resume {0}`",
                run.display()
            ))
        })?;
        description.check(run)?;
        let written = settings.clone();
        let family = checked(&mut settings)?;
        let problem = Problem::without_records(settings, description.clone())?;
        let schema = family.plan(&problem)?.schema;
        Self::open(run, written, description, &schema)
    }

    /// Diagnostics and metrics, and whether they can be believed.
    ///
    /// # Errors
    /// A run that cannot be read.
    pub fn summarise(&self) -> Result<Summary, Failure> {
        let family = family(self.settings.sampler.method);
        let (mut summary, warnings) = family.summarise(self)?;
        summary.conclude(&self.settings, warnings);
        summary.warnings.extend(self.lacks_positions());
        Ok(summary)
    }
}
