//! A run folder of `reprior` as one self-contained HTML page: what was run, whether it can be believed, what it predicts, and
//! charts that show why, each with a line that says how to read it and its numbers as a table.
//!
//! [`RunPage::of`] gathers what there is to say of a run folder; [`page`] makes a page of one or several.
//!
//! Rooms, each using only those below it: `html` (the page), `sections` (its parts), `chart` (charts as SVG).
//!
//! Memory: the predictions, and some ten thousand draws of a few variables at most, however long the run.

pub mod chart;
mod gather;
mod html;
mod read;
mod run;
mod sections;

pub use html::page;
pub use run::{Images, Others, Predictions, RunPage};

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The run folder cannot be read.
    #[error(transparent)]
    RunPage(#[from] reprior_io::run::RunError),
}
