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
mod effective;
mod error;
mod evidence;
mod flags;
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
mod report;
mod reproduce;
mod schema;
mod session;
mod settings;
mod stored;
mod summary;
mod table;
mod tangent;
mod target;
mod trace;
mod verdict;
mod warnings;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Sample(arguments) => session::sample(&arguments),
        Command::Resume(arguments) => session::resume(&arguments),
        Command::Summary(arguments) => summary::command(&arguments),
        Command::Predict(arguments) => predict::command(&arguments),
        Command::Report(arguments) => report::command(&arguments),
        Command::Plan(arguments) => plan::command(&arguments),
        Command::Bench(arguments) => bench::command(&arguments),
        Command::Reproduce(arguments) => reproduce::command(&arguments),
    };
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
