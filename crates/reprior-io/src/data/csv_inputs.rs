//! Inputs to predict for from a table, with their true targets where the table has them.

use std::path::Path;

use reprior::model::dataset::Targets;

use super::csv_table::{Rows, TextTable};
use super::csv_targets::TargetColumns;
use super::encoding::{self, Missing, TableEncoding};
use super::error::excerpt;
use super::inputs::{rename, unknown_class};
use super::targets::is_missing;
use super::{DataError, ExpectedInputs, ExpectedTargets, Inputs, Request, csv_source};

/// Inputs from a table, encoded as the training rows were, and the truth where the table has it.
///
/// # Errors
/// A table that lacks columns, or whose cells are not what the encoding takes.
pub(super) fn from_csv(
    source: &str,
    expected: &ExpectedInputs,
    encoding: Option<&TableEncoding>,
) -> Result<Inputs, DataError> {
    from_table(&Request::new(source), expected, encoding)
}

/// The same from the table that a request names or gives.
///
/// # Errors
/// As [`from_csv`].
pub(super) fn from_table(
    request: &Request,
    expected: &ExpectedInputs,
    encoding: Option<&TableEncoding>,
) -> Result<Inputs, DataError> {
    let path = csv_source::shown(&request.source);
    if expected.column_names.is_empty() {
        let problem = "the model takes images, which a .csv file does not hold; give an .npz file or a folder";
        return Err(DataError::malformed(path, problem));
    }
    let table = TextTable::of(request, Rows::New)?;
    let rows: Vec<usize> = (0..table.rows()).collect();
    let numbers = TableEncoding::of_numbers(&expected.column_names);
    let encoding = encoding.unwrap_or(&numbers);
    let encoded = encoding::encode(path, &table, &rows, encoding)?;
    let mut notes = Vec::new();
    for (column, count) in &encoded.filled {
        notes.push(format!(
            "`{}`: {count} missing cell(s) filled as in the training rows",
            excerpt(column)
        ));
    }
    for (column, count, example) in &encoded.unknown {
        notes.push(format!(
            "`{}`: {count} row(s) have a level that has no input of its own, such as `{example}`",
            excerpt(column)
        ));
    }
    let truth = match &expected.targets {
        Some(expected) => {
            let skips_incomplete = encoding.missing != Missing::Error;
            truth_of(path, &table, &rows, expected, skips_incomplete, &mut notes)?
        }
        None => None,
    };
    Ok(Inputs {
        values: encoded.values.into(),
        rows: rows.len(),
        truth,
        notes,
    })
}

/// The true targets, if every target column is there and has values.
fn truth_of(
    path: &Path,
    table: &TextTable,
    rows: &[usize],
    expected: &ExpectedTargets,
    skips_incomplete: bool,
    notes: &mut Vec<String>,
) -> Result<Option<Targets>, DataError> {
    let wanted: Vec<&String> = match expected {
        ExpectedTargets::Real { names } => names.iter().collect(),
        ExpectedTargets::Classes { column, .. } => column.iter().collect(),
    };
    let columns = wanted.into_iter().map(|name| table.find(name));
    let Some(columns) = columns.collect::<Option<Vec<usize>>>() else {
        return Ok(None);
    };
    let is_empty = |&column: &usize| rows.iter().all(|&row| is_missing(table.cell(row, column)));
    if columns.iter().all(is_empty) {
        return Ok(None);
    }
    let targets = TargetColumns {
        path,
        table,
        rows,
        columns: &columns,
    };
    let without = targets.without().count();
    if skips_incomplete && without > 0 {
        notes.push(format!(
            "{without} of {} rows have no target, so that predictions are not compared with the others either",
            rows.len()
        ));
        return Ok(None);
    }
    let truth = match expected {
        ExpectedTargets::Real { .. } => targets.real()?,
        ExpectedTargets::Classes { .. } => targets.classes()?,
    };
    let truth = rename(truth, expected).map_err(|name| unknown_class(path, &name))?;
    Ok(Some(truth))
}
