//! `reprior sample`, `reprior resume` and `reprior merge`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use reprior_io::data::STDIN;
use reprior_run::{Failure, MergeOptions, More, Options, Summary};

use crate::arguments::{DrivingArguments, MergeArguments, ResumeArguments, SampleArguments};
use crate::progress::RunDisplay;
use crate::stop::STOP;
use crate::summary::print_after_run;

/// Runs `reprior sample`.
///
/// # Errors
/// A wrong request before anything is written; a failed run, whose draws are kept; a run that was stopped.
pub fn sample(arguments: &SampleArguments) -> Result<(), Failure> {
    let settings = arguments.settings.settings()?;
    let out = arguments
        .out
        .clone()
        .unwrap_or_else(|| default_folder(&settings.data.source));
    drive(&out, &arguments.driving, None, |options| {
        match arguments.or_resume {
            true => reprior_run::sample_or_resume(settings, &out, options),
            false => reprior_run::sample(settings, &out, arguments.overwrite, options),
        }
    })
}

/// Runs `reprior resume`.
///
/// # Errors
/// A wrong request: not a run, or its data have changed. Otherwise as [`sample`].
pub fn resume(arguments: &ResumeArguments) -> Result<(), Failure> {
    let (minutes, until) = (arguments.minutes, arguments.until);
    let more = (minutes.is_some() || until.is_some()).then_some(More { minutes, until });
    drive(&arguments.run, &arguments.driving, more, |options| {
        reprior_run::resume(&arguments.run, options)
    })
}

/// Runs `reprior merge`.
///
/// # Errors
/// A wrong request: runs that do not go together. A disk that refuses.
pub fn merge(arguments: &MergeArguments) -> Result<(), Failure> {
    let options = MergeOptions {
        overwrite: arguments.overwrite,
        allow_gaps: arguments.allow_gaps,
        allow_overlaps: arguments.allow_overlaps,
        shares_files: false,
    };
    let summary = reprior_run::merge(&arguments.runs, &arguments.out, options)?;
    print_after_run(&arguments.out, &summary, arguments.json)
}

fn drive(
    run: &Path,
    driving: &DrivingArguments,
    more: Option<More>,
    make: impl FnOnce(&Options<'_>) -> Result<Summary, Failure>,
) -> Result<(), Failure> {
    check_driving(driving)?;
    let options = Options {
        threads: driving.threads,
        checkpoint_every: Duration::from_secs_f64(driving.checkpoint_seconds),
        stop: &STOP,
        watcher: &RunDisplay::new(driving.quiet),
        more,
        is_part: false,
    };
    let summary = make(&options)?;
    print_after_run(run, &summary, driving.json)
}

fn default_folder(source: &str) -> PathBuf {
    let name = match source {
        STDIN => "stdin".into(),
        source => Path::new(source)
            .file_stem()
            // of a compressed table both extensions
            .map(|stem| match source.ends_with(".gz") {
                true => Path::new(stem).file_stem().unwrap_or(stem),
                false => stem,
            })
            .map_or_else(|| "run".into(), |stem| stem.to_os_string()),
    };
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
