//! What a run keeps of a table besides its rows: standard input, which can be read but once, and the ranges of the training inputs.

use std::sync::Arc;

use reprior::model::dataset::{Dataset, InputKind, InputValues};
use reprior_io::data::{STDIN, read_stdin};
use reprior_io::run::Files;

use super::DataDescription;
use crate::failure::{Failure, name_of};

/// The file of a run with the table that standard input gave.
pub(crate) const STDIN_TABLE: &str = "stdin.csv";

/// What standard input has, or had when the run was made; nothing of other sources.
///
/// # Errors
/// A wrong request: nothing that can be read.
pub(super) fn content(source: &str, run: Option<&Files>) -> Result<Option<Arc<Vec<u8>>>, Failure> {
    if source != STDIN {
        return Ok(None);
    }
    let Some(files) = run else {
        let bytes = read_stdin().map_err(Failure::request)?;
        return Ok(Some(Arc::new(bytes)));
    };
    match files.read(STDIN_TABLE).map_err(Failure::request)? {
        Some(bytes) => Ok(Some(bytes)),
        None => Err(Failure::request(format!(
            "`{}` was made from standard input, and its copy `{STDIN_TABLE}` is gone: put the table back under that name, or sample again",
            name_of(files)
        ))),
    }
}

/// The least and the greatest value of every input column over the training rows; none of images.
pub(super) fn ranges(train: &Dataset) -> Vec<[f64; 2]> {
    if train.kind != InputKind::Table {
        return Vec::new();
    }
    let mut ranges = vec![[f64::INFINITY, f64::NEG_INFINITY]; train.columns];
    for (at, value) in train.inputs.iter().enumerate() {
        let range = &mut ranges[at % train.columns];
        *range = [range[0].min(value), range[1].max(value)];
    }
    ranges
}

impl DataDescription {
    /// What to know of inputs that are far from the training rows': how many rows lie outside the range of some column by more than
    /// that range, and the column that most of them leave.
    pub fn extrapolation(&self, inputs: &InputValues) -> Option<String> {
        let columns = self.input_ranges.len();
        if columns == 0 || columns != self.columns {
            return None;
        }
        let rows = inputs.len() / columns;
        let mut of_columns = vec![0_usize; columns];
        let mut count = 0;
        for row in 0..rows {
            let mut is_outside = false;
            for (column, &[low, high]) in self.input_ranges.iter().enumerate() {
                let value = inputs.get(row * columns + column);
                let range = high - low;
                if value > high + range || value < low - range {
                    of_columns[column] += 1;
                    is_outside = true;
                }
            }
            count += usize::from(is_outside);
        }
        let most = (0..columns).max_by_key(|&column| (of_columns[column], columns - column))?;
        let name = self.column_names.get(most);
        let name = name.map_or_else(|| format!("input {}", most + 1), |name| format!("`{name}`"));
        (count > 0).then(|| {
            format!(
                "{count} of {rows} rows are far outside the training rows, beyond the range of some input by more than that range (most often of {name}): their predictions are extrapolations"
            )
        })
    }
}
