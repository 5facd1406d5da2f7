//! `reprior export`.

use std::path::Path;

use reprior_io::run::export::Target;
use reprior_run::words::bytes;
use reprior_run::{Failure, Recorded};

use crate::arguments::ExportArguments;
use crate::table::to_stdout;

/// Runs `reprior export`.
///
/// # Errors
/// A wrong request: not a run, a place that is none. A store that refuses.
pub fn command(arguments: &ExportArguments) -> Result<(), Failure> {
    let run = &arguments.run;
    let recorded = Recorded::of(run)?;
    if Path::new(&arguments.to)
        .canonicalize()
        .is_ok_and(|to| run.canonicalize().is_ok_and(|run| to.starts_with(run)))
    {
        return Err(Failure::request(format!(
            "--to {} is in the run itself: choose another place",
            arguments.to
        )));
    }
    let target = Target::new(&arguments.to).map_err(Failure::request)?;
    let written = target.write(&recorded.files, arguments.overwrite);
    let written = written.map_err(|error| match error {
        reprior_io::run::RunError::Request(text) => Failure::Request(text),
        error => Failure::run(error),
    })?;
    to_stdout(&format!(
        "{} objects, {}, in {}",
        written.objects,
        bytes(written.bytes as f64),
        arguments.to
    ));
    Ok(())
}
