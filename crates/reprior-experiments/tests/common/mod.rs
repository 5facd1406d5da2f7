//! Performs the quick size of an experiment.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests"
)]

use std::sync::atomic::AtomicBool;

use reprior_experiments::{Bench, DataFolder, Outcome, Size, find, perform};

pub mod claims;

/// Performs the quick size of `name` on built-in data and writes what comes of it.
pub fn measured(name: &str, as_published: bool) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let experiment = find(name).unwrap();
    let stop = AtomicBool::new(false);
    let data = DataFolder::default();
    let bench = Bench {
        size: Size::Quick,
        data: &data,
        threads: 2,
        stop: &stop,
        progress: &|_| {},
    };
    let cells = experiment.cells(Size::Quick, as_published);
    let outcome = perform(experiment, &cells, &bench, folder.path(), &mut |_| {}).unwrap();
    println!("{}", outcome.text());
    let written = outcome.write(folder.path()).unwrap();
    assert!(
        written.iter().any(|name| name.ends_with(".svg")),
        "{written:?}"
    );
    assert!(!outcome.findings.is_empty());
    outcome
}
