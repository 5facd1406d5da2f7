//! What shells and `man` know of the program, made from its flags: scripts that complete them, and pages.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;
use reprior_run::Failure;

use crate::{help, table};

#[derive(Debug, Args)]
pub struct CompletionsArguments {
    /// The shell
    pub shell: Shell,
}

#[derive(Debug, Args)]
pub struct ManArguments {
    /// The folder to write the pages to; made if there is none
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

/// Prints the script of a shell.
pub fn completions(arguments: &CompletionsArguments) {
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut help::command(),
        "reprior",
        &mut script,
    );
    table::bytes_to_stdout(&script);
}

/// Writes a page for the program and one for each of its commands.
///
/// # Errors
/// A folder that cannot be written to.
pub fn man(arguments: &ManArguments) -> Result<(), Failure> {
    let out = &arguments.out;
    std::fs::create_dir_all(out)
        .and_then(|()| clap_mangen::generate_to(help::command(), out))
        .map_err(|error| {
            Failure::request(format!(
                "{} cannot be written to: {error}. Give another folder by --out",
                out.display()
            ))
        })?;
    table::to_stdout(&format!(
        "manual pages are in {0}: `man {0}/reprior.1`",
        out.display()
    ));
    Ok(())
}
