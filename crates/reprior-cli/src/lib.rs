//! The program `reprior`: samples the posterior of Bayesian neural networks from the terminal.
//!
//! It holds flags, words and progress bars; whatever it decides, [`reprior_run`] decides. [`run`] is all of it, for the binary and for
//! whoever else brings the command, such as the Python package.

mod arguments;
mod bench;
mod export;
mod help;
mod plan;
mod predict;
mod progress;
mod reproduce;
mod sample;
mod shell;
mod stop;
mod summary;
mod table;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arguments::Command;
pub use help::{setting_names, settings};
use reprior_io::run::is_being_written;
use reprior_run::Failure;

/// How often a run is read that another process writes to, at most, and the time between.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);

/// Runs the program with these arguments, of which the first is its name, and gives its exit code: 0; 1 for a run that failed; 2 for a wrong
/// request; 130 for a run that was stopped.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let result = match help::parse(arguments) {
        Ok(arguments) => command(arguments.command),
        Err(text) => {
            table::note(text.print());
            if text.use_stderr() {
                return u8::try_from(text.exit_code()).unwrap_or(2);
            }
            // --help and --version
            Ok(())
        }
    };
    let result = result.and_then(|()| {
        table::finish_stdout().map_err(|error| {
            Failure::run(format!(
                "standard output could not be written, so what was printed is not complete: {error}"
            ))
        })
    });
    match result {
        Ok(()) => 0,
        Err(failure) => {
            // who stopped it has been told
            let code = match &failure {
                Failure::Request(_) => 2,
                Failure::Run(_) => 1,
                Failure::Stopped => 130,
            };
            if code != 130 {
                table::to_stderr(&format!("error: {failure}"));
            }
            code
        }
    }
}

/// Reads runs, and again for a second where another process is in the middle of writing to one of them.
fn patiently(runs: &[&Path], read: impl Fn() -> Result<(), Failure>) -> Result<(), Failure> {
    let are_written = || runs.iter().any(|run| is_being_written(run));
    let mut attempt = 1;
    loop {
        // who writes may be done by the time that reading has failed
        let was_written = are_written();
        let failure = match read() {
            Err(failure @ (Failure::Request(_) | Failure::Run(_)))
                if was_written || are_written() =>
            {
                failure
            }
            other => return other,
        };
        if attempt == ATTEMPTS {
            return Err(Failure::run(format!(
                "{failure} (another process is writing to the run meanwhile: ask again)"
            )));
        }
        attempt += 1;
        std::thread::sleep(PAUSE);
    }
}

fn command(command: Command) -> Result<(), Failure> {
    match command {
        Command::Sample(arguments) => sample::sample(&arguments),
        Command::Resume(arguments) => sample::resume(&arguments),
        Command::Merge(arguments) => sample::merge(&arguments),
        Command::Export(arguments) => export::command(&arguments),
        Command::Summary(arguments) => {
            patiently(&[&arguments.run], || summary::command(&arguments))
        }
        Command::Predict(arguments) => {
            patiently(&[&arguments.run], || predict::command(&arguments))
        }
        Command::Report(arguments) => {
            let runs: Vec<_> = arguments.runs.iter().map(PathBuf::as_path).collect();
            patiently(&runs, || summary::report(&arguments))
        }
        Command::Plan(arguments) => plan::command(&arguments),
        Command::Bench(arguments) => bench::command(&arguments),
        Command::Reproduce(arguments) => reproduce::command(&arguments),
        Command::Completions(arguments) => {
            shell::completions(&arguments);
            Ok(())
        }
        Command::Man(arguments) => shell::man(&arguments),
    }
}
