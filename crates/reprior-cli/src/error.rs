//! How a command ends when it does not succeed: what is said, and the exit code.

use std::fmt::Display;

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The request was wrong; nothing was done. Exit code 2.
    Request(String),
    /// The work failed; what was done is kept. Exit code 1.
    Run(String),
    /// Stopped by the user, who has been told. Exit code 130, as shells have it.
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

    /// What to say.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Request(message) | Self::Run(message) => Some(message),
            Self::Stopped => None,
        }
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Request(_) => 2,
            Self::Run(_) => 1,
            Self::Stopped => 130,
        }
    }
}
