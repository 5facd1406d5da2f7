//! A run folder of `reprior` as one self-contained HTML page: what was run, whether it can be believed, what it predicts, and
//! charts that show why, each with a line that says how to read it and its numbers as a table.
//!
//! [`page`] takes [`Run`]s: what `summary --json` says of them, their predictions for the test rows, and their folders, of which
//! the draws that are plotted are read. [`chart`] draws.
//!
//! Memory: the predictions, and some ten thousand draws of a few variables at most, however long the run.

pub mod chart;
mod html;
mod read;
mod run;
mod sections;
mod summary;
mod verdict;
pub mod words;

pub use html::page;
pub use run::{Images, Nature, Others, Predictions, Run};
pub use summary::{EnergyErrors, Ess, Minibatch, Noise, Stationarity, Summary};
pub use verdict::{Check, Level, Verdict};

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The run folder cannot be read.
    #[error(transparent)]
    Run(#[from] reprior_io::run::RunError),
}
