//! What a run keeps of data besides draws: what standard input gave, which can be read but once, or a program, and the ranges of the training inputs.

use std::sync::Arc;

use reprior::model::dataset::{Dataset, InputKind, InputValues};
use reprior_io::data::{GIVEN, GIVEN_ARRAYS, STDIN, read_stdin};
use reprior_io::run::Files;

use super::DataDescription;
use crate::failure::{Failure, name_of};

/// The file of a run with the table that standard input gave.
const STDIN_TABLE: &str = "stdin.csv";

/// The file of a run with the table that a program gave.
const GIVEN_TABLE: &str = "table.csv";

/// The file of a run with the arrays that a program gave.
const GIVEN_ARCHIVE: &str = "arrays.npz";

/// The file of a run that keeps what a source gave which cannot be read again; none of other sources.
pub(crate) fn kept_as(source: &str) -> Option<&'static str> {
    match source {
        STDIN => Some(STDIN_TABLE),
        GIVEN => Some(GIVEN_TABLE),
        GIVEN_ARRAYS => Some(GIVEN_ARCHIVE),
        _ => None,
    }
}

/// What standard input has, or had when the run was made, or a program gave for it; nothing of other sources.
///
/// # Errors
/// A wrong request: nothing that can be read.
pub(crate) fn content(source: &str, run: Option<&Files>) -> Result<Option<Arc<Vec<u8>>>, Failure> {
    let Some(name) = kept_as(source) else {
        return Ok(None);
    };
    let Some(files) = run else {
        if source != STDIN {
            return Err(Failure::request(format!(
                "`{source}` are data that a program gave for a run, which keeps them as `{name}`: give --data that file"
            )));
        }
        let bytes = read_stdin().map_err(Failure::request)?;
        return Ok(Some(Arc::new(bytes)));
    };
    match files.read(name).map_err(Failure::request)? {
        Some(bytes) => Ok(Some(bytes)),
        None => Err(Failure::request(format!(
            "`{}` was made from {}, and the copy `{name}` is gone: put it back under that name, or sample again",
            name_of(files),
            match source {
                STDIN => "standard input",
                _ => "data in memory",
            }
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
                if self.standardisation.constant_columns.contains(&column) {
                    // it is 0 whatever its value
                    continue;
                }
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
