//! Records as they came from a file: inputs and targets in their own units, before standardisation.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// What the input columns are, which decides how they are standardised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputKind {
    /// Columns of a table, each with a scale of its own.
    Table,
    /// Pixels of images: one scale for all of them.
    Image {
        /// Pixel rows.
        height: usize,
        /// Pixel columns.
        width: usize,
        /// Colour planes.
        channels: usize,
    },
}

/// What is to be predicted.
#[derive(Debug, Clone, PartialEq)]
pub enum Targets {
    /// Real outputs: `values` is row-major, rows × `names.len()`.
    Real {
        /// Row-major values, rows × outputs, in their own units.
        values: Vec<f64>,
        /// One name per output.
        names: Vec<String>,
    },
    /// Classes: one label per row, an index into `names`.
    Classes {
        /// Index of each row's class.
        labels: Vec<u32>,
        /// One name per class.
        names: Vec<String>,
    },
}

impl Targets {
    /// Number of outputs of a network for these targets.
    pub fn outputs(&self) -> usize {
        match self {
            Self::Real { names, .. } | Self::Classes { names, .. } => names.len(),
        }
    }

    /// One name per output or class.
    pub fn names(&self) -> &[String] {
        match self {
            Self::Real { names, .. } | Self::Classes { names, .. } => names,
        }
    }
}

/// Inputs and targets of a set of records.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// Row-major inputs, `rows` × `columns`, all finite.
    pub inputs: Vec<f64>,
    /// Number of records.
    pub rows: usize,
    /// Number of input columns (pixels times channels for images, in the file's own order).
    pub columns: usize,
    /// Names of the input columns; empty for images.
    pub column_names: Vec<String>,
    /// Table or image.
    pub kind: InputKind,
    /// What is to be predicted; as many as `rows`.
    pub targets: Targets,
}

impl Dataset {
    /// The records `range`, copied. Panics if the range ends beyond `rows`.
    pub fn slice(&self, range: Range<usize>) -> Self {
        self.select(&range.collect::<Vec<_>>())
    }

    /// The records with the given row numbers, in that order, copied. Panics on a row beyond `rows`.
    pub fn select(&self, rows: &[usize]) -> Self {
        let pick = |values: &[f64], width: usize| {
            let mut picked = Vec::with_capacity(rows.len() * width);
            for &row in rows {
                picked.extend_from_slice(&values[row * width..(row + 1) * width]);
            }
            picked
        };
        Self {
            inputs: pick(&self.inputs, self.columns),
            rows: rows.len(),
            columns: self.columns,
            column_names: self.column_names.clone(),
            kind: self.kind,
            targets: match &self.targets {
                Targets::Real { values, names } => Targets::Real {
                    values: pick(values, names.len()),
                    names: names.clone(),
                },
                Targets::Classes { labels, names } => Targets::Classes {
                    labels: rows.iter().map(|&row| labels[row]).collect(),
                    names: names.clone(),
                },
            },
        }
    }
}

/// Training and test records of one source. The test set may be empty (zero rows).
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// What the posterior conditions on.
    pub train: Dataset,
    /// What predictions are recorded for and compared with.
    pub test: Dataset,
}
