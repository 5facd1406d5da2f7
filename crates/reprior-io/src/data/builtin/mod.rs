//! Data sets that need no file: fixed functions of a constant seed, the same on every machine.
//!
//! | name | records | inputs | target | default split |
//! |---|---|---|---|---|
//! | `friedman` | 1,500 | 10 columns | 1 real output | 1,200 / 300 |
//! | `two-moons` | 1,000 | 2 columns | 2 classes | 800 / 200 |
//! | `strokes` | 4,000 | grey images of 16 × 16, 0 to 255 | 10 classes | 2,000 / 1,000 |

mod friedman;
mod shapes;
mod strokes;
mod two_moons;

use reprior::model::dataset::{Dataset, InputKind, Split, Targets};

use super::{DataError, Request, Task, split};

/// Names of the built-in data sets.
pub const BUILT_INS: [&str; 3] = ["friedman", "two-moons", "strokes"];

/// Draws and splits a built-in data set.
pub(super) fn load(request: &Request) -> Result<Split, DataError> {
    let name = request.source.as_str();
    let (table, train, test) = match name {
        "friedman" => (friedman::draw(), 1200, 300),
        "two-moons" => (two_moons::draw(), 800, 200),
        _ => (strokes::draw(), 2000, 1000),
    };
    let mismatch = match (&table.targets, request.task) {
        (Targets::Real { .. }, Task::Classification) => {
            Some("its target is real; ask for regression")
        }
        (Targets::Classes { .. }, Task::Regression) => {
            Some("its targets are classes; ask for classification")
        }
        _ => None,
    };
    if let Some(problem) = mismatch {
        return Err(DataError::unsuitable(name, problem));
    }
    let mut request = request.clone();
    match (request.train, request.test) {
        (None, None) => (request.train, request.test) = (Some(train), Some(test)),
        (Some(asked), None) => {
            request.test = table.rows.checked_sub(asked).map(|left| left.min(test))
        }
        (None, Some(asked)) if asked <= table.rows - train => request.train = Some(train),
        _ => {}
    }
    split::split_table(&table, &request, train)
}

/// A table of named columns.
fn table(inputs: Vec<f64>, column_names: Vec<String>, targets: Targets) -> Dataset {
    let columns = column_names.len();
    Dataset {
        rows: inputs.len() / columns,
        inputs: inputs.into(),
        columns,
        column_names,
        kind: InputKind::Table,
        targets,
    }
}
