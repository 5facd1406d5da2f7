//! The program `reprior`: samples the posterior of Bayesian neural networks from the terminal.
//!
//! It holds no mathematics: [`settings`] are what was asked for, a [`problem`] is data and network made of them, a
//! [`session`] drives chains into a run folder, [`summary`], [`predict`] and [`report`] read it.

mod arguments;
mod bench;
mod budget;
mod chain_state;
mod closed_form;
mod detection;
mod disk;
mod effective;
mod error;
mod evidence;
mod fit;
mod flags;
mod help;
mod judgement;
mod keeping;
mod method;
mod minibatch;
mod model_settings;
mod names;
mod network;
mod plan;
mod precision;
mod predict;
mod predictive;
mod problem;
mod progress;
mod record;
mod recorded;
mod report;
mod reproduce;
mod schema;
mod session;
mod settings;
mod stored;
mod summary;
mod table;
mod tangent;
mod trace;
mod verdict;
mod warnings;

use std::process::ExitCode;

use arguments::Command;
use error::Failure;

fn main() -> ExitCode {
    let result = match help::parse() {
        Ok(arguments) => command(arguments.command),
        // on stderr, with the parser's own exit code
        Err(error) if error.use_stderr() => error.exit(),
        // --help and --version
        Err(text) => {
            table::note(text.print());
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
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                table::to_stderr(&format!("error: {message}"));
            }
            ExitCode::from(failure.code())
        }
    }
}

fn command(command: Command) -> Result<(), Failure> {
    match command {
        Command::Sample(arguments) => session::sample(&arguments),
        Command::Resume(arguments) => session::resume(&arguments),
        Command::Summary(arguments) => summary::command(&arguments),
        Command::Predict(arguments) => predict::command(&arguments),
        Command::Report(arguments) => report::command(&arguments),
        Command::Plan(arguments) => plan::command(&arguments),
        Command::Bench(arguments) => bench::command(&arguments),
        Command::Reproduce(arguments) => reproduce::command(&arguments),
    }
}
