//! What a report is made of.

use std::path::PathBuf;

use reprior::model::dataset::InputValues;
use reprior_run::{InputEffects, LeftOutRows, MethodName, Nature, PitHistogram, Summary};

/// One run.
#[derive(Debug, Clone)]
pub struct RunPage {
    /// The run folder.
    pub folder: PathBuf,
    /// Whether it is in that folder for this page alone, which does not name it.
    pub is_in_memory: bool,
    /// What the method's draws are.
    pub nature: Nature,
    /// What `summary --json` prints.
    pub summary: Summary,
    /// The data in one line.
    pub data: String,
    /// What a user should know of the data.
    pub notes: Vec<String>,
    /// `config.toml`.
    pub configuration: String,
    /// Names of the outputs or classes.
    pub outputs: Vec<String>,
    /// For the test rows; or why there are none.
    pub predictions: Result<Predictions, String>,
    /// Of the test rows, one histogram a target; empty of classes, and with too few test rows.
    pub pit: Vec<PitHistogram>,
    /// What the columns of a table do to the predictions, or why that is not known; nothing of images.
    pub effects: Option<Result<InputEffects, String>>,
    /// The test images; or why there are none.
    pub images: Result<Images, String>,
    /// Predictions for other inputs than the test rows, to compare with.
    pub others: Vec<Others>,
    /// Leave-one-out cross-validation row by row; or why there is none.
    pub left_out: Result<LeftOutRows, String>,
    /// The training targets, one after another.
    pub training_targets: Vec<f64>,
}

impl RunPage {
    /// Whether the draws are particles of annealing, which have no order.
    pub(crate) fn has_particles(&self) -> bool {
        self.summary.method == MethodName::Annealed.to_string()
    }
}

/// Predictions for the test rows, all draws together, noise included.
#[derive(Debug, Clone, PartialEq)]
pub enum Predictions {
    /// Row-major, rows × outputs, in the targets' own units; of some of the rows, evenly spaced, if there are many.
    Regression {
        /// Test rows in all.
        rows: usize,
        /// Predictive means.
        mean: Vec<f64>,
        /// 5 % quantiles.
        lower: Vec<f64>,
        /// 95 % quantiles.
        upper: Vec<f64>,
        /// What was observed.
        truth: Vec<f64>,
    },
    /// Of classes.
    Classification {
        /// Row-major, rows × classes.
        probabilities: Vec<f64>,
        /// The true classes.
        labels: Vec<u32>,
    },
}

/// The most probable class; the first of several.
pub(crate) fn most_probable(row: &[f64]) -> usize {
    let better = |best: usize, class: usize| if row[class] > row[best] { class } else { best };
    (0..row.len()).reduce(better).unwrap_or(0)
}

/// Images, one after another, each plane by plane.
#[derive(Debug, Clone)]
pub struct Images {
    /// Pixel rows.
    pub height: usize,
    /// Pixel columns.
    pub width: usize,
    /// Colour planes: 1 is grey, 3 are red, green and blue.
    pub channels: usize,
    /// Row-major.
    pub values: InputValues,
}

/// Confidences of the predictions for other inputs.
#[derive(Debug, Clone, PartialEq)]
pub struct Others {
    /// In the legend.
    pub name: String,
    /// Probability of the most probable class of each input.
    pub confidences: Vec<f64>,
}
