//! What kind of values a column has: numbers, yes and no, dates or text.
//!
//! A column half of whose cells or more are numbers (dates) is one of numbers (dates), and a text in it an error: a misspelt number must not make a column text.

use std::path::Path;

use super::super::DataError;
use super::super::csv_table::TextTable;
use super::super::dates::{self, DateForm};
use super::super::error::excerpt;
use super::super::numbers::{self, NumberForm};

/// What a column holds.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) enum Kind {
    Number,
    Boolean,
    Date(DateForm),
    Text,
    /// Nothing that can be used.
    Unusable(String),
}

/// Whether a cell says yes.
pub(super) fn boolean(cell: &str) -> Option<bool> {
    let is = |word: &str| cell.eq_ignore_ascii_case(word);
    match () {
        () if is("true") || is("yes") => Some(true),
        () if is("false") || is("no") => Some(false),
        () => None,
    }
}

/// The kind of an input column by the given rows.
///
/// # Errors
/// A column without any value; a cell that does not go with the others.
pub(in super::super) fn kind_of(
    path: &Path,
    table: &TextTable,
    rows: &[usize],
    column: usize,
    is_categorical: bool,
) -> Result<Kind, DataError> {
    let name = &table.header[column];
    let values = table.values(rows, column);
    let count = values.clone().count();
    if count == 0 {
        return Err(DataError::malformed(
            path,
            format!(
                "input column `{0}` has no value in any row; leave it out (--ignore {0}) or fill it in",
                excerpt(name)
            ),
        ));
    }
    if is_categorical {
        return Ok(Kind::Text);
    }
    let form = NumberForm::of(table, rows, column);
    let other = NumberForm::beside(table.separator);
    let is_numeric = |cell: &str| {
        let parse = |form| numbers::parse(cell, form).is_some();
        parse(NumberForm::Point) || parse(other)
    };
    let numeric = values.clone().filter(|(_, cell)| is_numeric(cell)).count();
    if 2 * numeric >= count {
        let is_finite = |cell: &str| numbers::parse(cell, form).is_some_and(f64::is_finite);
        return match values.clone().find(|(_, cell)| !is_finite(cell)) {
            None => Ok(Kind::Number),
            Some((row, cell)) if numbers::parse(cell, form).is_none() && is_numeric(cell) => {
                let problem = format!(
                    "`{}` has a decimal comma, but not all numbers of the column; write them in one way",
                    excerpt(cell)
                );
                Err(DataError::cell(path, table.lines[row], name, problem))
            }
            Some((row, cell)) => {
                let advice = format!(
                    "{numeric} of the column's {count} values are: correct or empty the cell, leave the column out (--ignore {0}) or take it as text (--categorical {0})",
                    excerpt(name)
                );
                let line = table.lines[row];
                let found = numbers::number(path, line, name, cell, form, &advice);
                found.map(|_| Kind::Number)
            }
        };
    }
    if values.clone().all(|(_, cell)| boolean(cell).is_some()) {
        return Ok(Kind::Boolean);
    }
    if let Some(kind) = of_dates(path, table, rows, column, count)? {
        return Ok(kind);
    }
    numbers::refuse_thousands(path, table, rows, column)?;
    Ok(Kind::Text)
}

/// Dates, if half of the cells or more are.
fn of_dates(
    path: &Path,
    table: &TextTable,
    rows: &[usize],
    column: usize,
    count: usize,
) -> Result<Option<Kind>, DataError> {
    let name = &table.header[column];
    let values = table.values(rows, column);
    let counts = DateForm::ALL.map(|form| {
        let dates = values
            .clone()
            .filter(|(_, cell)| dates::parse(cell, form).is_some());
        (dates.count(), form)
    });
    let most = counts.iter().map(|(dates, _)| *dates).max().unwrap_or(0);
    if 2 * most < count {
        return Ok(None);
    }
    let mut best = counts.iter().filter(|(dates, _)| *dates == most);
    let (Some((_, form)), second) = (best.next(), best.next()) else {
        return Ok(None);
    };
    if most == count && second.is_some() {
        let why = "dates that may be both day/month and month/day: write them as 2024-01-31";
        return Ok(Some(Kind::Unusable(why.to_owned())));
    }
    match values
        .clone()
        .find(|(_, cell)| dates::parse(cell, *form).is_none())
    {
        None => Ok(Some(Kind::Date(*form))),
        Some((row, cell)) => {
            let problem = format!(
                "`{}` is not a date as {}, which {most} of the column's {count} values are: correct or empty the cell, leave the column out (--ignore {2}) or take it as text (--categorical {2})",
                excerpt(cell),
                form.example(),
                excerpt(name)
            );
            Err(DataError::cell(path, table.lines[row], name, problem))
        }
    }
}
