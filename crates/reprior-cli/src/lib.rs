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

use arguments::Command;
pub use help::{setting_names, settings};
use reprior_run::Failure;

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

fn command(command: Command) -> Result<(), Failure> {
    match command {
        Command::Sample(arguments) => sample::sample(&arguments),
        Command::Resume(arguments) => sample::resume(&arguments),
        Command::Merge(arguments) => sample::merge(&arguments),
        Command::Export(arguments) => export::command(&arguments),
        Command::Summary(arguments) => summary::command(&arguments),
        Command::Predict(arguments) => predict::command(&arguments),
        Command::Report(arguments) => summary::report(&arguments),
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
