//! Inputs to predict for, in the layout that a model was trained on.

use std::path::Path;

use reprior::model::dataset::{InputKind, InputValues, Targets};

use super::encoding::TableEncoding;
use super::error::excerpt;
use super::folder::Folder;
use super::given::{GIVEN_ARRAYS, Given};
use super::npz_archive::Archive;
use super::numbers::same_number;
use super::part::Part;
use super::{DataError, Format, Request, Task};
use super::{builtin, csv_inputs, format_of, npz};

/// The inputs that a model takes, and what it predicts.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpectedInputs {
    /// Table or image.
    pub kind: InputKind,
    /// Number of values per record.
    pub columns: usize,
    /// Names of the input columns; empty for images.
    pub column_names: Vec<String>,
    /// What is predicted, to find its true values; `None` if they are not wanted.
    pub targets: Option<ExpectedTargets>,
}

/// What a model predicts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpectedTargets {
    /// Real outputs.
    Real {
        /// One name per output.
        names: Vec<String>,
    },
    /// Classes.
    Classes {
        /// The column of a CSV file that holds them.
        column: Option<String>,
        /// One name per class.
        names: Vec<String>,
    },
}

/// Inputs to predict for.
#[derive(Debug, Clone, PartialEq)]
pub struct Inputs {
    /// Row-major inputs, `rows` × the expected columns, in the expected order, all finite.
    pub values: InputValues,
    /// Number of records, at least 1.
    pub rows: usize,
    /// The true targets, with the names that were expected, if the source has them.
    pub truth: Option<Targets>,
    /// What a user should know, one line each.
    pub notes: Vec<String>,
}

/// Loads inputs to predict for.
///
/// * CSV: the columns are found by their names, in any order; other columns are ignored. The truth is read if every target column is there and not empty.
/// * `.npz`: array `x`, else `x_test`; the truth is `y` or `y_test`, if it is there.
/// * Folders: the test files. The truth is left out where a class is not among those expected, as for a data set of another kind.
/// * Built-ins: their test records.
///
/// # Errors
/// As [`load`](super::load); also inputs of another shape than expected, no record at all, and in CSV and `.npz` files a truth that is not among the
/// classes expected.
pub fn load_inputs(source: &str, expected: &ExpectedInputs) -> Result<Inputs, DataError> {
    load_encoded_inputs(source, expected, None)
}

/// The same for a model that was trained on a table encoded in this way; without an encoding all columns are numbers.
///
/// # Errors
/// As [`load_inputs`].
pub fn load_encoded_inputs(
    source: &str,
    expected: &ExpectedInputs,
    encoding: Option<&TableEncoding>,
) -> Result<Inputs, DataError> {
    let path = Path::new(source);
    let inputs = match format_of(source)? {
        Format::Csv => csv_inputs::from_csv(source, expected, encoding)?,
        Format::Npz => from_npz(path, None, expected)?,
        Format::Folder => from_folder(path, expected)?,
        Format::BuiltIn => {
            let test = builtin::load(&Request::new(source))?.test;
            check(path, expected, test.kind, test.columns)?;
            let truth = expected
                .targets
                .as_ref()
                .and_then(|targets| rename(test.targets, targets).ok());
            Inputs {
                values: test.inputs,
                rows: test.rows,
                truth,
                notes: Vec::new(),
            }
        }
    };
    if inputs.rows == 0 {
        return Err(DataError::empty(path, "records to predict for"));
    }
    Ok(inputs)
}

/// The same of data in memory.
///
/// # Errors
/// As [`load_inputs`].
pub fn given_inputs(
    given: &Given,
    expected: &ExpectedInputs,
    encoding: Option<&TableEncoding>,
) -> Result<Inputs, DataError> {
    if given.source() != GIVEN_ARRAYS {
        return csv_inputs::from_table(&Request::given(given), expected, encoding);
    }
    let path = Path::new(GIVEN_ARRAYS);
    let inputs = from_npz(path, Some(given.bytes()), expected)?;
    match inputs.rows {
        0 => Err(DataError::empty(path, "records to predict for")),
        _ => Ok(inputs),
    }
}

/// Of a file, or of the content that stands for one.
fn from_npz(
    path: &Path,
    content: Option<&[u8]>,
    expected: &ExpectedInputs,
) -> Result<Inputs, DataError> {
    let mut archive = Archive::open(path, content)?;
    let (x, y) = if archive.has("x") || !archive.has("x_test") {
        ("x", "y")
    } else {
        ("x_test", "y_test")
    };
    let inputs = archive.inputs(x, None)?;
    check(path, expected, inputs.kind, inputs.columns)?;
    let truth = match &expected.targets {
        None => None,
        Some(expected) => {
            let task = match expected {
                ExpectedTargets::Real { .. } => Task::Regression,
                ExpectedTargets::Classes { .. } => Task::Classification,
            };
            match npz::truth(&mut archive, y, task)? {
                None => None,
                Some((_, rows)) if rows != inputs.rows => {
                    let problem = format!(
                        "array `{x}` has {} records but `{y}` has {rows}; save as many of each",
                        inputs.rows
                    );
                    return Err(DataError::malformed(path, problem));
                }
                Some((truth, _)) => {
                    Some(rename(truth, expected).map_err(|name| unknown_class(path, &name))?)
                }
            }
        }
    };
    Ok(Inputs {
        values: inputs.values.into(),
        rows: inputs.rows,
        truth,
        notes: Vec::new(),
    })
}

fn from_folder(path: &Path, expected: &ExpectedInputs) -> Result<Inputs, DataError> {
    let folder = Folder::open(path)?;
    let rows = folder
        .count(Part::Test)?
        .ok_or_else(|| folder.missing(Part::Test))?;
    let kind = folder.kind(Part::Test);
    check(path, expected, kind, super::folder::columns(kind))?;
    let data = folder.dataset(Part::Test, rows, rows, None)?;
    let truth = expected
        .targets
        .as_ref()
        .and_then(|targets| rename(data.targets, targets).ok());
    Ok(Inputs {
        values: data.inputs,
        rows,
        truth,
        notes: Vec::new(),
    })
}

/// Refuses inputs of another shape.
fn check(
    path: &Path,
    expected: &ExpectedInputs,
    kind: InputKind,
    columns: usize,
) -> Result<(), DataError> {
    if kind == expected.kind && columns == expected.columns {
        return Ok(());
    }
    let describe = |kind, columns| match kind {
        InputKind::Table => format!("a table of {columns} columns"),
        InputKind::Image {
            height,
            width,
            channels,
        } => format!("images of {height} x {width} pixels and {channels} channel(s)"),
    };
    let (found, needed) = (
        describe(kind, columns),
        describe(expected.kind, expected.columns),
    );
    Err(DataError::malformed(
        path,
        format!("it holds {found}, but the model takes {needed}; give inputs of that shape"),
    ))
}

/// The truth with the names that are expected, or the first name that is not among them.
pub(super) fn rename(truth: Targets, expected: &ExpectedTargets) -> Result<Targets, String> {
    match (truth, expected) {
        (
            Targets::Real {
                values,
                names: found,
            },
            ExpectedTargets::Real { names },
        ) if found.len() == names.len() => Ok(Targets::Real {
            values,
            names: names.clone(),
        }),
        (
            Targets::Classes {
                labels,
                names: found,
            },
            ExpectedTargets::Classes { names, .. },
        ) => {
            let number = |name: &String| {
                let position = names
                    .iter()
                    .position(|known| known == name || same_number(known, name));
                position
                    .and_then(|position| u32::try_from(position).ok())
                    .ok_or_else(|| name.clone())
            };
            let numbers = found.iter().map(number).collect::<Result<Vec<_>, _>>()?;
            let labels = labels
                .iter()
                .map(|&label| numbers[label as usize])
                .collect();
            Ok(Targets::Classes {
                labels,
                names: names.clone(),
            })
        }
        (truth, _) => Err(truth.names().join(", ")),
    }
}

/// The error for a class that the model does not know.
pub(super) fn unknown_class(path: &Path, name: &str) -> DataError {
    let problem = format!(
        "the true targets have `{}`, which the model does not predict; correct them or leave them out",
        excerpt(name)
    );
    DataError::malformed(path, problem)
}
