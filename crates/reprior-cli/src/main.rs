//! The program `reprior`: see the library of this crate, which is all of it.

use std::process::ExitCode;

fn main() -> ExitCode {
    reprior_cli::run(std::env::args_os()).into()
}
