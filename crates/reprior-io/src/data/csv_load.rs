//! A table from its text to training and test rows: targets read, rows chosen, columns encoded by the training rows.

use std::collections::BTreeSet;
use std::path::Path;

use reprior::model::dataset::{Dataset, InputKind, Split, Targets};

use super::csv_table::{Columns, Rows, TextTable};
use super::csv_targets::TargetColumns;
use super::encoding::{self, Becomes, Kind, Missing, TableEncoding};
use super::error::{excerpt, list, show};
use super::numbers::{self, NumberForm, missing as missing_cell};
use super::targets::is_missing;
use super::{DataError, Loaded, Request, csv_source, split};

/// Loads, encodes and splits a table.
pub(super) fn load(request: &Request) -> Result<Loaded, DataError> {
    let path = csv_source::shown(&request.source);
    let table = TextTable::of(request, Rows::Learning)?;
    let columns = table.choose(path, request)?;
    let mut notes = Vec::new();
    if columns.nameless > 0 {
        notes.push(format!(
            "{} column(s) without a name in the header are left out",
            columns.nameless
        ));
    }
    let rows = with_targets(path, &table, &columns, request, &mut notes)?;
    let kinds = kinds(path, &table, &columns, &rows, request)?;
    let rows = with_inputs(path, &table, &kinds, rows, request.missing, &mut notes)?;
    let target_columns = TargetColumns {
        path,
        table: &table,
        rows: &rows,
        columns: &columns.targets,
    };
    let targets = target_columns.read(request.task)?;
    let labels = match &targets {
        Targets::Classes { labels, .. } => Some(labels.as_slice()),
        Targets::Real { .. } => None,
    };
    let order = match request.watch {
        Some(count) => split::watched(&request.source, rows.len(), count)?,
        None => split::split_rows(rows.len(), labels, request, rows.len() * 4 / 5)?,
    };
    let train: Vec<usize> = order[0].iter().map(|&at| rows[at]).collect();
    let mut encoding = TableEncoding {
        missing: request.missing,
        columns: Vec::new(),
    };
    for (column, kind, is_categorical) in &kinds {
        let (kind, of) = ((kind, *is_categorical), [rows.as_slice(), &train]);
        let fitted = encoding::fit(path, &table, *column, kind, of, request.missing)?;
        encoding.columns.push(fitted);
    }
    let names = encoding.input_names();
    if names.is_empty() {
        let why: Vec<String> = encoding.notes();
        let problem = format!("no input is left: {}", why.join("; "));
        return Err(DataError::malformed(path, problem));
    }
    let encoded = encoding::encode(path, &table, &rows, &encoding)?;
    notes.extend(encoding.notes());
    notes.extend(decimal_commas(&table, &rows, &kinds));
    notes.extend(rounded(&table, &rows, &kinds));
    notes.extend(filled(&encoded.filled, request.missing));
    for (column, count, example) in unseen(&encoding, &encoded.unknown) {
        notes.push(format!(
            "`{column}`: {count} test row(s) have a level that no training row has, such as `{example}`"
        ));
    }
    let data = Dataset {
        rows: rows.len(),
        columns: names.len(),
        column_names: names,
        inputs: encoded.values.into(),
        kind: InputKind::Table,
        targets,
    };
    Ok(Loaded {
        split: Split {
            train: data.select(&order[0]),
            test: data.select(&order[1]),
        },
        target_columns: target_columns.names(),
        encoding: Some(encoding),
        notes,
    })
}

/// The rows that have their targets.
fn with_targets(
    path: &Path,
    table: &TextTable,
    columns: &Columns,
    request: &Request,
    notes: &mut Vec<String>,
) -> Result<Vec<usize>, DataError> {
    let all: Vec<usize> = (0..table.rows()).collect();
    if request.missing == Missing::Error {
        return Ok(all);
    }
    let targets = TargetColumns {
        path,
        table,
        rows: &all,
        columns: &columns.targets,
    };
    let without: BTreeSet<usize> = targets.without().collect();
    if without.is_empty() {
        return Ok(all);
    }
    let names = list(&targets.names());
    if without.len() == all.len() {
        let problem = format!("no row has a value of the target {names}; choose another --target");
        return Err(DataError::malformed(path, problem));
    }
    notes.push(format!(
        "{} of {} rows have no value of the target {names} and are left out",
        without.len(),
        all.len()
    ));
    Ok(all
        .into_iter()
        .filter(|row| !without.contains(row))
        .collect())
}

/// The kinds of all input columns; whether they are said to be text.
fn kinds(
    path: &Path,
    table: &TextTable,
    columns: &Columns,
    rows: &[usize],
    request: &Request,
) -> Result<Vec<(usize, Kind, bool)>, DataError> {
    let kind = |&column: &usize| {
        let is_categorical =
            table.is_category(column) || request.categorical.contains(&table.header[column]);
        let kind = encoding::kind_of(path, table, rows, column, is_categorical)?;
        Ok((column, kind, is_categorical))
    };
    columns.inputs.iter().map(kind).collect()
}

/// The rows that have all their inputs, where that is asked for; where it is demanded, all have. Columns that are left out lack nothing.
fn with_inputs(
    path: &Path,
    table: &TextTable,
    kinds: &[(usize, Kind, bool)],
    rows: Vec<usize>,
    missing: Missing,
    notes: &mut Vec<String>,
) -> Result<Vec<usize>, DataError> {
    if matches!(missing, Missing::Median | Missing::Mean) {
        return Ok(rows);
    }
    let mut columns = Vec::new();
    for (column, kind, is_categorical) in kinds {
        // by all rows: which ones train is not known before
        let (kind, of) = ((kind, *is_categorical), [rows.as_slice(); 2]);
        let fitted = encoding::fit(path, table, *column, kind, of, missing)?;
        if !matches!(fitted.becomes, Becomes::LeftOut { .. }) {
            columns.push(*column);
        }
    }
    let before = rows.len();
    let lacks = |row: usize, column: usize| is_missing(table.cell(row, column));
    if missing == Missing::Error {
        let cells = rows
            .iter()
            .flat_map(|&row| columns.iter().map(move |&column| (row, column)));
        let mut without = cells.filter(|&(row, column)| lacks(row, column));
        return match without.next() {
            None => Ok(rows),
            Some((row, column)) => {
                let (line, cell) = (table.lines[row], table.cell(row, column));
                Err(missing_cell(path, line, &table.header[column], cell))
            }
        };
    }
    let is_whole = |row: &usize| columns.iter().all(|&column| !lacks(*row, column));
    let whole: Vec<usize> = rows.iter().copied().filter(is_whole).collect();
    if whole.len() == before {
        return Ok(whole);
    }
    if whole.len() < 2 {
        let count = |column: usize| rows.iter().filter(|&&row| lacks(row, column)).count();
        let counts = columns.iter().map(|&column| (count(column), column));
        let (count, column) = counts.max().unwrap_or_default();
        let problem = format!(
            "{} of {before} rows have all inputs (`{1}` is missing in {count}); fill them in by --missing median, or leave columns out (--ignore {1})",
            whole.len(),
            excerpt(&table.header[column])
        );
        return Err(DataError::unsuitable(&show(path), problem));
    }
    notes.push(format!(
        "{} of {before} rows lack an input and are left out (--missing drop)",
        before - whole.len()
    ));
    Ok(whole)
}

/// What to know of numbers with decimal commas.
fn decimal_commas(
    table: &TextTable,
    rows: &[usize],
    kinds: &[(usize, Kind, bool)],
) -> Option<String> {
    let is_comma = |column: usize| NumberForm::of(table, rows, column) == NumberForm::Comma;
    let numbers = kinds.iter().filter(|(_, kind, _)| *kind == Kind::Number);
    let names: Vec<String> = numbers
        .filter(|(column, ..)| is_comma(*column))
        .map(|(column, ..)| table.header[*column].clone())
        .collect();
    (!names.is_empty()).then(|| format!("decimal commas are read as such in {}", list(&names)))
}

/// What to know of numbers of more digits than are read, such as those of accounts.
fn rounded(table: &TextTable, rows: &[usize], kinds: &[(usize, Kind, bool)]) -> Option<String> {
    let has_rounded = |column: usize| {
        let mut values = table.values(rows, column);
        values.any(|(_, cell)| numbers::is_rounded(cell))
    };
    let numbers = kinds.iter().filter(|(_, kind, _)| *kind == Kind::Number);
    let names: Vec<String> = numbers
        .filter(|(column, ..)| has_rounded(*column))
        .map(|(column, ..)| table.header[*column].clone())
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "whole numbers beyond 2^53 are rounded, so that neighbours may become the same, in {}; leave out what identifies rows (--ignore), and take codes as levels (--categorical)",
            list(&names)
        )
    })
}

/// What to know of missing cells that were filled.
fn filled(filled: &[(String, usize)], missing: Missing) -> Option<String> {
    let counts = filled.iter().take(12);
    let counts: Vec<String> = counts
        .map(|(column, count)| format!("`{}` {count}", excerpt(column)))
        .collect();
    let more = match filled.len() > 12 {
        true => format!(" and {} more columns", filled.len() - 12),
        false => String::new(),
    };
    (!filled.is_empty()).then(|| {
        format!(
            "missing cells are filled with the {} of the training rows: {}{more}",
            missing.name(),
            counts.join(", ")
        )
    })
}

/// Levels of test rows that the training rows do not have, of columns without an input for other levels.
fn unseen<'a>(
    encoding: &'a TableEncoding,
    unknown: &'a [(String, usize, String)],
) -> impl Iterator<Item = &'a (String, usize, String)> {
    let has_other = |name: &String| {
        let mut same = encoding.columns.iter().filter(|own| own.column == *name);
        same.any(|own| {
            matches!(
                own.becomes,
                Becomes::Levels {
                    has_other: true,
                    ..
                }
            )
        })
    };
    unknown
        .iter()
        .filter(move |(column, ..)| !has_other(column))
}
