//! The program `reprior`: samples the posterior of Bayesian neural networks from the terminal.
//!
//! It holds flags, words and progress bars; whatever it decides, [`reprior_run`] decides.

mod arguments;
mod bench;
mod help;
mod plan;
mod predict;
mod progress;
mod reproduce;
mod sample;
mod stop;
mod summary;
mod table;

use std::process::ExitCode;

use arguments::Command;
use reprior_run::Failure;

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
            // who stopped it has been told
            let code = match &failure {
                Failure::Request(_) => 2,
                Failure::Run(_) => 1,
                Failure::Stopped => 130,
            };
            if code != 130 {
                table::to_stderr(&format!("error: {failure}"));
            }
            ExitCode::from(code)
        }
    }
}

fn command(command: Command) -> Result<(), Failure> {
    match command {
        Command::Sample(arguments) => sample::sample(&arguments),
        Command::Resume(arguments) => sample::resume(&arguments),
        Command::Summary(arguments) => summary::command(&arguments),
        Command::Predict(arguments) => predict::command(&arguments),
        Command::Report(arguments) => summary::report(&arguments),
        Command::Plan(arguments) => plan::command(&arguments),
        Command::Bench(arguments) => bench::command(&arguments),
        Command::Reproduce(arguments) => reproduce::command(&arguments),
    }
}
