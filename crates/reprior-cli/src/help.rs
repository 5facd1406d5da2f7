//! The command line as it is read and explained: `-h` shows the flags that a newcomer needs, `--help` all of them; what is
//! wrong with a number is said in plain words.

use std::error::Error;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Args, CommandFactory, FromArgMatches};

use reprior_run::{Failure, Flags, Settings};

use crate::arguments::Arguments;

/// Commands whose flags are too many for one screen.
const LONG: [&str; 3] = ["sample", "plan", "bench"];

/// What `-h` of these says of a flag; the others are left to `--help`.
const FIRST: [(&str, &str); 19] = [
    (
        "config",
        "Read settings from this TOML file; flags override it",
    ),
    (
        "data",
        "friedman, two-moons or strokes (built in), a .csv, .parquet or .npz file, - (stdin), or a folder of images",
    ),
    (
        "target",
        "Target column of a CSV file [default: the last column]",
    ),
    ("ignore", "Columns of a CSV file to leave out"),
    (
        "train",
        "Train on the first N rows [default: four fifths of a table]",
    ),
    (
        "test",
        "Test on the N rows after them [default: the rest of a table]",
    ),
    (
        "network",
        "fcn:WIDTH[,WIDTH...], linear, lenet, resnet-small, ... or a TOML file [default: by the data]",
    ),
    (
        "likelihood",
        "gaussian, gaussian-heteroscedastic, student-t, student-t-heteroscedastic, categorical, bernoulli or poisson [default: by the targets]",
    ),
    (
        "noise",
        "Noise in units of the standardised target: a number, auto or learn [default: learn]",
    ),
    (
        "method",
        "How to sample: hmc-infinite, nuts, sgld, ensemble, laplace, nngp, ... [default: hmc-infinite]",
    ),
    ("chains", "Independent chains [default: 4]"),
    (
        "draws",
        "Draws of each chain [default: as many as a minute has time for]",
    ),
    ("seed", "Seed of every random number [default: 0]"),
    (
        "keep_mb",
        "Megabytes that the run folder may take [default: 20]",
    ),
    (
        "out",
        "The run folder to make [default: runs/ and the name of the data]",
    ),
    ("overwrite", "Replace an earlier run in that folder"),
    ("threads", "Threads [default: one per core]"),
    ("json", "Print JSON"),
    ("seconds", "Seconds for the timing of each part"),
];

fn first_screen(argument: Arg) -> Arg {
    let short = FIRST
        .iter()
        .find(|(name, _)| *name == argument.get_id().as_str());
    match (short, argument.get_help().cloned()) {
        (Some((_, short)), Some(long)) => argument.help(*short).long_help(long),
        _ => argument.hide_short_help(true),
    }
}

/// What `sample -h` ends with.
const EXAMPLE: &str = "\
Example:
  reprior sample --data energy.csv --target heating_load --out runs/energy";

/// A number may begin with a minus sign: that it is out of range is said later, in words.
fn with_negative_numbers(argument: Arg) -> Arg {
    let has_values = argument
        .get_num_args()
        .is_none_or(|count| count.takes_values());
    let takes_values = has_values && argument.get_action().takes_values();
    argument.allow_negative_numbers(takes_values)
}

/// The whole command line.
pub fn command() -> clap::Command {
    let command =
        Arguments::command().mut_subcommands(|command| command.mut_args(with_negative_numbers));
    LONG.iter().fold(command, |command, name| {
        command.mut_subcommand(name, |command| {
            let command = command.mut_args(first_screen);
            match (name, command.get_after_help().cloned()) {
                (&"sample", Some(long)) => command.after_help(EXAMPLE).after_long_help(long),
                _ => command,
            }
        })
    })
}

/// Reads the command line.
///
/// # Errors
/// What is wrong with it, in plain words; help and version where they were asked for.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Arguments, clap::Error> {
    let mut command = command();
    let found = command
        .try_get_matches_from_mut(arguments)
        .and_then(|matches| Arguments::from_arg_matches(&matches));
    found.map_err(|error| match in_plain_words(&error) {
        Some(message) => command.error(ErrorKind::ValueValidation, message),
        None => error.format(&mut command),
    })
}

/// The settings that flags of `sample` say, without its other flags.
///
/// # Errors
/// A wrong request, in the words of the command line.
pub fn settings(flags: &[String]) -> Result<Settings, Failure> {
    let command = clap::Command::new("reprior").no_binary_name(true);
    let mut command = Flags::augment_args(command).mut_args(with_negative_numbers);
    let matches = command.try_get_matches_from_mut(flags);
    let matches = matches.map_err(|error| {
        let text = error.to_string();
        // then come usage and tips
        let first = text.split("\n\n").next().unwrap_or_default();
        let first = first.trim_start_matches("error: ").trim().to_owned();
        Failure::Request(in_plain_words(&error).unwrap_or(first))
    })?;
    let flags = Flags::from_arg_matches(&matches).map_err(Failure::request)?;
    flags.settings()
}

/// The names of all settings, as flags without their dashes.
pub fn setting_names() -> Vec<String> {
    let command = Flags::augment_args(clap::Command::new("reprior"));
    let names = command.get_arguments().filter_map(Arg::get_long);
    names.map(str::to_owned).collect()
}

/// What a number should have been, where the parser says only that it was none.
fn in_plain_words(error: &clap::Error) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let flag = text(ContextKind::InvalidArg)?.split_whitespace().next()?;
    let value = text(ContextKind::InvalidValue)?;
    let cause = error.source()?;
    if cause.is::<ParseFloatError>() {
        return Some(format!(
            "{flag} takes a number, such as 0.5 or 1e-3, not `{value}`"
        ));
    }
    let cause = cause.downcast_ref::<ParseIntError>()?;
    if *cause.kind() == IntErrorKind::PosOverflow {
        return Some(format!(
            "{flag} takes a whole number, and {value} is too large for one"
        ));
    }
    let is_share = value
        .parse()
        .is_ok_and(|share: f64| share > 0.0 && share < 1.0);
    Some(match flag {
        "--train" | "--test" if is_share => format!(
            "{flag} takes a number of rows, not the share {value}: give the count, or leave it out (by default a table trains on four fifths and tests on the rest)"
        ),
        _ => format!("{flag} takes a whole number, 0 or more, not `{value}`"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent_and_every_first_flag_exists() {
        let mut command = command();
        command.build();
        for name in LONG {
            assert!(command.find_subcommand(name).is_some(), "{name}");
        }
        let all: Vec<&str> = LONG
            .iter()
            .filter_map(|name| command.find_subcommand(name))
            .flat_map(clap::Command::get_arguments)
            .map(|argument| argument.get_id().as_str())
            .collect();
        for (name, _) in FIRST {
            assert!(all.contains(&name), "{name}");
        }
    }
}
