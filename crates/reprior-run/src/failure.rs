//! Why there is no run, no summary, no prediction.

use std::fmt::Display;
use std::path::Path;

use reprior_io::run::Files;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The request was wrong; nothing was done. The program's exit code is 2.
    #[error("{0}")]
    Request(String),
    /// The work failed; what was done is kept. The program's exit code is 1.
    #[error("{0}")]
    Run(String),
    /// Stopped by the user; what was drawn is kept. The program's exit code is 130, as shells have it.
    #[error("stopped; everything drawn so far is kept")]
    Stopped,
}

impl Failure {
    /// A wrong request.
    pub fn request(message: impl Display) -> Self {
        Self::Request(message.to_string())
    }

    /// Failed work.
    pub fn run(message: impl Display) -> Self {
        Self::Run(message.to_string())
    }
}

/// What messages call a run.
pub(crate) fn name_of(files: &Files) -> impl Display {
    files.folder().unwrap_or(Path::new("in memory")).display()
}
