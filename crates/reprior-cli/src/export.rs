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
    if is_within(&arguments.to, run) {
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

/// Whether a place, which need not be there yet, is in a folder.
fn is_within(place: &str, folder: &Path) -> bool {
    let path = Path::new(place.strip_prefix("file://").unwrap_or(place));
    let Ok(path) = std::path::absolute(path) else {
        return false;
    };
    let mut there = path.ancestors().filter_map(|one| one.canonicalize().ok());
    let (there, folder) = (there.next(), folder.canonicalize());
    there.is_some_and(|there| folder.is_ok_and(|folder| there.starts_with(folder)))
}
