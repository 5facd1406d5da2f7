//! Hostile but legal problems over methods, coordinates and likelihoods: what gets past validation ends with finite predictions or with a clear
//! error, never with NaN in what is called a success, and never with a panic.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on may as well stop here, and says which problems it made"
)]

mod chance;
mod problem;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::{Args, FromArgMatches};
use problem::Hostile;
use reprior_run::{
    Failure, Flags, NewRun, Options, PredictedRows, Recorded, Settings, Summary, Watcher, prepare,
};

/// Problems that each test asks to get past validation.
const QUICK: usize = 100;
/// The same at night.
const LONG: usize = 2000;
/// Seconds of one problem, most of which take milliseconds; by the longest trajectories in the dearest coordinates, at night, minutes.
const SECONDS: u64 = 60;
const SECONDS_AT_NIGHT: u64 = 600;

/// Ends what does not end.
struct Patience<'a> {
    until: Instant,
    stop: &'a AtomicBool,
}

impl Watcher for Patience<'_> {
    fn update(&self, _: reprior::chain::Progress) {
        if Instant::now() > self.until {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// How a problem ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Refused,
    Failed,
    Finished,
}

fn settings(flags: &[String]) -> Result<Settings, String> {
    let command = Flags::augment_args(clap::Command::new("test"));
    let words = std::iter::once("test").chain(flags.iter().map(String::as_str));
    let matches = command.try_get_matches_from(words).unwrap();
    let flags = Flags::from_arg_matches(&matches).unwrap();
    flags.settings().map_err(|error| error.to_string())
}

/// Errors say something, and none is a fault of ours.
fn check_message(message: &str) -> Result<(), String> {
    match message.len() < 15 || message.contains("should not have") {
        true => Err(format!("says `{message}`")),
        false => Ok(()),
    }
}

fn check_rows(rows: &PredictedRows, is_classification: bool) -> Result<(), String> {
    let values = match is_classification {
        true => rows.probabilities(),
        false => {
            let (means, deviations) = rows.all_moments().map_err(|error| error.to_string())?;
            if let Some(wrong) = deviations.iter().find(|sd| sd.is_nan() || **sd < 0.0) {
                return Err(format!("a standard deviation of {wrong}"));
            }
            means
        }
    };
    match values.iter().find(|value| !value.is_finite()) {
        Some(wrong) => Err(format!("predicts {wrong}")),
        None => Ok(()),
    }
}

fn check_summary(summary: &Summary) -> Result<(), String> {
    if summary.verdict.sentence.is_empty() {
        return Err("has no verdict".to_owned());
    }
    // infinite may be the NLL of a row that has no probability, and the RMSE of errors above 1e154
    let metrics = summary.metrics.as_ref();
    let named = metrics.map(reprior_run::Metrics::named).unwrap_or_default();
    match named.iter().find(|(_, value)| value.is_nan()) {
        Some((name, _)) => Err(format!("has a {name} that is NaN")),
        None => Ok(()),
    }
}

fn run(hostile: &Hostile, seconds: u64) -> Result<End, String> {
    let refused = |message: String| check_message(&message).map(|()| End::Refused);
    let settings = match settings(&hostile.flags) {
        Ok(settings) => settings,
        Err(message) => return refused(message),
    };
    let new = prepare(settings).and_then(|problem| NewRun::new(problem, None));
    let new = match new {
        Ok(new) => new,
        Err(failure) => return refused(failure.to_string()),
    };
    let stop = AtomicBool::new(false);
    let patience = Patience {
        until: Instant::now() + Duration::from_secs(seconds),
        stop: &stop,
    };
    let options = Options {
        threads: Some(1),
        checkpoint_every: Duration::from_secs(3600),
        stop: &stop,
        watcher: &patience,
        more: None,
        is_part: false,
    };
    let (folder, made) = new.sample(&options);
    match made {
        Ok(summary) => {
            check_summary(&summary)?;
            let run = Recorded::of(folder.files()).map_err(|error| error.to_string())?;
            let is_classification = run.description.is_classification;
            run.for_each_prediction(|_, rows| {
                check_rows(rows, is_classification).map_err(Failure::run)
            })
            .map_err(|failure| failure.to_string())?;
            Ok(End::Finished)
        }
        Err(Failure::Stopped) => Err("does not end".to_owned()),
        Err(failure) => check_message(&failure.to_string()).map(|()| End::Failed),
    }
}

/// So many problems that get past validation, from a seed on; what is wrong with them.
fn attack(seed: u64, wanted: usize, patience: u64) {
    let place = tempfile::tempdir().unwrap();
    let (mut passed, mut finished, mut number) = (0, 0, seed);
    let mut wrong = Vec::new();
    while passed < wanted {
        let hostile = Hostile::new(number, place.path());
        let began = Instant::now();
        let end = catch_unwind(AssertUnwindSafe(|| run(&hostile, patience)))
            .unwrap_or_else(|_| Err("panics".to_owned()));
        let seconds = began.elapsed().as_secs_f64();
        if seconds > 5.0 {
            println!("{number} took {seconds:.1} s: {}", hostile.said());
        }
        match end {
            Ok(End::Refused) => {}
            Ok(end) => {
                passed += 1;
                finished += usize::from(end == End::Finished);
            }
            Err(what) => {
                passed += 1;
                println!("{number} {what}: {}", hostile.said());
                wrong.push(number);
            }
        }
        number += 1;
    }
    println!(
        "{passed} of {} problems got past validation, {finished} came to their end",
        number - seed
    );
    assert!(wrong.is_empty(), "wrong: {wrong:?}");
    // a generator whose problems all fail would show nothing
    assert!(
        finished * 2 > passed,
        "{finished} of {passed} came to their end"
    );
}

#[test]
fn hostile_problems_end_well_or_say_why() {
    attack(0, QUICK, SECONDS);
}

#[test]
fn other_hostile_problems_end_well_or_say_why() {
    attack(10_000, QUICK, SECONDS);
}

#[test]
#[ignore = "minutes; others by REPRIOR_ADVERSITY=SEED[,COUNT]"]
fn two_thousand_hostile_problems_end_well_or_say_why() {
    let asked = std::env::var("REPRIOR_ADVERSITY").unwrap_or_default();
    let mut asked = asked.split(',').map_while(|word| word.parse().ok());
    let seed: u64 = asked.next().unwrap_or(1_000_000);
    let wanted = asked.next().map_or(LONG, |count| count as usize);
    attack(seed, wanted, SECONDS_AT_NIGHT);
}
