//! Which columns the predictions for the test rows rest on: permutation importance.
//!
//! For a column g the test rows i = 1..n are predicted again with the column's inputs taken from other test rows, all of them together:
//!
//! I_g = (1/(R·n)) Σ_r Σ_i [ −log p(y_i | x_i with g from row π_r(i)) + log p(y_i | x_i) ]
//!
//! in nats a row, p the predictive density with all draws and the noise in it. It holds for any network, likelihood and kind of target, and is 0 for a column
//! that the predictions ignore; below 0 only by chance, or where the column does harm. π_r are shifts by different lengths of one random order, so that no row
//! is its own donor: over all n − 1 shifts I_g is the mean over all pairs of different rows, the U-statistic of Fisher, Rudin & Dominici (2019, e_switch), of
//! which R shifts are an unbiased sample. Gaussian predictions with mean b·x and variance σ² have I_g = b_g² s_g² / σ², s² the sample variance.
//!
//! The standard error is that of a mean over rows, each with its mean over r. The rise of the root mean squared error has that of its
//! linearisation, the mean over rows of e'²_i/(2·RMSE') − e²_i/(2·RMSE); the fall of the accuracy that of a mean.
//!
//! Columns that say the same share their importance: either can be permuted without much harm while the other stays, and permuted rows may be unlike any real one.
//!
//! Cost: n·(1 + R·columns) predictions by every draw.

use reprior::diagnostics::RowSum;
use serde::Serialize;

use super::columns::TableColumn;
use crate::failure::Failure;

/// A number with the standard error that test rows leave.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rise {
    /// How much worse the predictions become.
    pub value: f64,
    /// Over test rows.
    pub standard_error: f64,
}

/// What the predictions lose with one column.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ColumnImportance {
    /// Its name.
    pub column: String,
    /// Rise of the negative log-likelihood of a test row, in nats.
    pub nll: Rise,
    /// Rise of the root mean squared error; of real targets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rmse: Option<Rise>,
    /// Fall of the share that is predicted right; of classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Rise>,
}

/// How a test row was predicted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Score {
    /// −log of the predictive density.
    pub nll: f64,
    /// Squared error over all targets; of classes 1 for a mistake.
    pub miss: f64,
}

/// Test rows that take part.
pub(crate) struct Rows<'a> {
    /// Row-major.
    pub inputs: &'a [f64],
    pub width: usize,
    /// A random order of the rows.
    pub order: &'a [usize],
    /// Lengths by which it is shifted, from 1 to one less than there are rows.
    pub shifts: &'a [usize],
    pub is_classes: bool,
    /// Rows that are predicted together, at most, unless one column's are more.
    pub together: usize,
}

/// Of every column, the most important first. `score` gives the scores of altered rows, which are those of test rows 0, 1, …, again and again.
///
/// # Errors
/// What `score` says.
pub(crate) fn importance(
    rows: &Rows<'_>,
    columns: &[TableColumn],
    mut score: impl FnMut(&[f64]) -> Result<Vec<Score>, Failure>,
) -> Result<Vec<ColumnImportance>, Failure> {
    let count = rows.order.len();
    let own = score(rows.inputs)?;
    let of_column = count * rows.shifts.len();
    let at_once = (rows.together / of_column.max(1)).max(1);
    let mut found = Vec::new();
    for some in columns.chunks(at_once) {
        let mut altered = Vec::with_capacity(some.len() * of_column * rows.width);
        for column in some {
            rows.alter(column, &mut altered);
        }
        let scores = score(&altered)?;
        for (column, scores) in some.iter().zip(scores.chunks(of_column.max(1))) {
            found.push(compare(&column.name, &own, scores, rows.is_classes));
        }
    }
    // what is not a number comes last
    found.sort_by(|a, b| {
        let key = |one: &ColumnImportance| match one.nll.value {
            value if value.is_nan() => f64::NEG_INFINITY,
            value => value,
        };
        key(b).total_cmp(&key(a))
    });
    Ok(found)
}

impl Rows<'_> {
    /// Appends all rows with the inputs of a column from other rows, once for each shift.
    fn alter(&self, column: &TableColumn, to: &mut Vec<f64>) {
        let count = self.order.len();
        let mut donors = vec![0; count];
        for shift in self.shifts {
            for (place, &row) in self.order.iter().enumerate() {
                donors[row] = self.order[(place + shift) % count];
            }
            for (row, &donor) in donors.iter().enumerate() {
                let start = to.len();
                to.extend(&self.inputs[row * self.width..(row + 1) * self.width]);
                for input in column.inputs.clone() {
                    to[start + input] = self.inputs[donor * self.width + input];
                }
            }
        }
    }
}

/// Scores of the rows as they are and altered, shift after shift.
fn compare(name: &str, own: &[Score], altered: &[Score], is_classes: bool) -> ColumnImportance {
    let count = own.len();
    let shifts = (altered.len() / count.max(1)) as f64;
    // differences first: a column that is not used loses exactly nothing
    let mut rises = vec![[0.0; 2]; count];
    for (index, score) in altered.iter().enumerate() {
        let (rise, own) = (&mut rises[index % count], own[index % count]);
        rise[0] += (score.nll - own.nll) / shifts;
        rise[1] += (score.miss - own.miss) / shifts;
    }
    let nll = Rise::of(rises.iter().map(|rise| rise[0]).collect());
    let (rmse, accuracy) = match is_classes {
        true => {
            let misses = rises.iter().map(|rise| rise[1]);
            (None, Some(Rise::of(misses.collect())))
        }
        false => {
            let root = |sum: f64| (sum / count as f64).sqrt();
            let rows = || rises.iter().zip(own);
            let before = root(own.iter().map(|own| own.miss).sum());
            let after = root(rows().map(|(rise, own)| own.miss + rise[1]).sum());
            let part = |square: f64, root: f64| match root > 0.0 {
                true => square / (2.0 * root),
                false => 0.0,
            };
            let linear =
                rows().map(|(rise, own)| part(own.miss + rise[1], after) - part(own.miss, before));
            let rise = Rise {
                value: after - before,
                ..Rise::of(linear.collect())
            };
            (Some(rise), None)
        }
    };
    ColumnImportance {
        column: name.to_owned(),
        nll,
        rmse,
        accuracy,
    }
}

impl Rise {
    /// Mean and standard error of numbers of which each row has one.
    fn of(values: Vec<f64>) -> Self {
        let count = values.len() as f64;
        let sum = RowSum::of(values.into_iter());
        Self {
            value: sum.total / count,
            standard_error: sum.standard_error / count,
        }
    }
}
