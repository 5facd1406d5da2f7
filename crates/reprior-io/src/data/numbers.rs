//! Numbers in cells, with a decimal point or a decimal comma.

use std::path::Path;

use super::DataError;
use super::csv_table::TextTable;
use super::error::excerpt;
use super::targets::is_missing;

/// How the numbers of a column are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberForm {
    /// With a decimal point.
    Point,
    /// With a decimal comma, and no point anywhere.
    Comma,
}

impl NumberForm {
    /// The other form that numbers may have where this stands between cells.
    pub(super) fn beside(separator: u8) -> Self {
        match separator {
            b',' => Self::Point,
            _ => Self::Comma,
        }
    }

    /// Of a column: with commas where every number has one or is whole, and commas do not separate.
    pub(super) fn of(table: &TextTable, rows: &[usize], column: usize) -> Self {
        let mut cells = rows
            .iter()
            .map(|&row| table.cell(row, column))
            .filter(|cell| !is_missing(cell));
        let other = Self::beside(table.separator);
        if cells.clone().any(|cell| cell.contains(','))
            && cells.all(|cell| parse(cell, other).is_some())
        {
            other
        } else {
            Self::Point
        }
    }
}

/// The number in a cell, which may be infinite; none in a text.
pub(super) fn parse(cell: &str, form: NumberForm) -> Option<f64> {
    match form {
        NumberForm::Point => cell.parse().ok(),
        NumberForm::Comma => {
            let is_part = |c: char| c.is_ascii_digit() || matches!(c, ',' | '+' | '-' | 'e' | 'E');
            match cell.chars().all(is_part) {
                true => cell.replacen(',', ".", 1).parse().ok(),
                false => None,
            }
        }
    }
}

/// Refuses a column all of whose values would be numbers with a decimal comma, but which do not parse as they stand: where commas separate cells,
/// `1,234` may be both 1234 and 1.234.
///
/// # Errors
/// Such a column, by its first value.
pub(super) fn refuse_thousands(
    path: &Path,
    table: &TextTable,
    rows: &[usize],
    column: usize,
) -> Result<(), DataError> {
    let mut values = table.values(rows, column);
    let with_comma = |cell: &str| parse(cell, NumberForm::Comma).is_some();
    match values.clone().next() {
        Some((row, cell)) if values.all(|(_, cell)| with_comma(cell)) => {
            let problem = format!(
                "`{}` may be a number with thousands or with decimals behind its comma; write the column's numbers with a point and without thousands, or separate the columns by semicolons",
                excerpt(cell)
            );
            let (line, name) = (table.lines[row], &table.header[column]);
            Err(DataError::cell(path, line, name, problem))
        }
        _ => Ok(()),
    }
}

/// Whether two names are one number written in two ways.
pub(super) fn same_number(a: &str, b: &str) -> bool {
    let is_same = matches!((a.parse::<f64>(), b.parse::<f64>()), (Ok(a), Ok(b)) if a == b);
    is_same && !is_rounded(a) && !is_rounded(b)
}

/// Whether a cell is a whole number of more digits than a number has: its neighbours become the same.
pub(super) fn is_rounded(cell: &str) -> bool {
    let pair = (cell.parse::<i128>(), cell.parse::<f64>());
    matches!(pair, (Ok(whole), Ok(number)) if number as i128 != whole)
}

/// The finite number in a cell that has a value.
///
/// # Errors
/// What is wrong with the cell, with `advice` for a text.
pub(super) fn number(
    path: &Path,
    line: usize,
    column: &str,
    cell: &str,
    form: NumberForm,
    advice: &str,
) -> Result<f64, DataError> {
    if is_missing(cell) {
        return Err(missing(path, line, column, cell));
    }
    let problem = match parse(cell, form) {
        Some(number) if number.is_finite() => return Ok(number),
        Some(_) => format!(
            "`{}` is not finite; correct the cell or delete the row",
            excerpt(cell)
        ),
        None => format!("`{}` is not a number; {advice}", excerpt(cell)),
    };
    Err(DataError::cell(path, line, column, problem))
}

/// The error for a cell without a value.
pub(super) fn missing(path: &Path, line: usize, column: &str, cell: &str) -> DataError {
    let found = if cell.is_empty() {
        "the cell is empty".to_string()
    } else {
        format!("`{cell}` is a missing value")
    };
    let problem = format!("{found}; fill it in or delete the row");
    DataError::cell(path, line, column, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_commas_are_numbers_of_their_own_form() {
        for (cell, value) in [
            ("1,5", Some(1.5)),
            ("-0,25", Some(-0.25)),
            ("+3", Some(3.0)),
            ("1,5e3", Some(1500.0)),
            ("1.5", None),
            ("1,5,2", None),
            ("inf", None),
            (",", None),
            ("e", None),
            ("", None),
        ] {
            assert_eq!(parse(cell, NumberForm::Comma), value, "{cell}");
        }
        assert_eq!(parse("1,5", NumberForm::Point), None);
        assert_eq!(parse("1e999", NumberForm::Point), Some(f64::INFINITY));
    }
}
