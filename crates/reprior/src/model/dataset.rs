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

/// Row-major inputs in their own units. Pixels stay the bytes that files have: an eighth of the memory of reals.
#[derive(Debug, Clone, PartialEq)]
pub enum InputValues {
    /// Any finite numbers.
    Reals(Vec<f64>),
    /// From 0 to 255.
    Bytes(Vec<u8>),
}

impl InputValues {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Self::Reals(values) => values.len(),
            Self::Bytes(values) => values.len(),
        }
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Reals(values) => 8 * values.len(),
            Self::Bytes(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Each of them. Panics beyond the last.
    pub fn get(&self, index: usize) -> f64 {
        match self {
            Self::Reals(values) => values[index],
            Self::Bytes(values) => f64::from(values[index]),
        }
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        (0..self.len()).map(|index| self.get(index))
    }

    /// All of them as reals.
    pub fn to_reals(&self) -> Vec<f64> {
        self.iter().collect()
    }

    /// Those of the given rows of `width` values, copied.
    fn select(&self, rows: &[usize], width: usize) -> Self {
        match self {
            Self::Reals(values) => Self::Reals(pick(values, rows, width)),
            Self::Bytes(values) => Self::Bytes(pick(values, rows, width)),
        }
    }
}

impl From<Vec<f64>> for InputValues {
    fn from(values: Vec<f64>) -> Self {
        Self::Reals(values)
    }
}

fn pick<T: Copy>(values: &[T], rows: &[usize], width: usize) -> Vec<T> {
    let mut picked = Vec::with_capacity(rows.len() * width);
    for &row in rows {
        picked.extend_from_slice(&values[row * width..(row + 1) * width]);
    }
    picked
}

/// Inputs and targets of a set of records.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// Row-major inputs, `rows` × `columns`, all finite.
    pub inputs: InputValues,
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
        Self {
            inputs: self.inputs.select(rows, self.columns),
            rows: rows.len(),
            columns: self.columns,
            column_names: self.column_names.clone(),
            kind: self.kind,
            targets: match &self.targets {
                Targets::Real { values, names } => Targets::Real {
                    values: pick(values, rows, names.len()),
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
