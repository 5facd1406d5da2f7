//! Headers, cells and line numbers of CSV files.

use std::path::Path;

use csv::{ReaderBuilder, StringRecord, Trim};

use super::error::excerpt;
use super::{DataError, targets};

/// A reader that leaves the header and the number of cells to be checked here.
pub(super) fn reader(bytes: &[u8]) -> csv::Reader<&[u8]> {
    ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(Trim::All)
        .from_reader(bytes)
}

/// Reads and checks the header.
pub(super) fn read_header(
    path: &Path,
    reader: &mut csv::Reader<&[u8]>,
) -> Result<Vec<String>, DataError> {
    let mut record = StringRecord::new();
    match reader.read_record(&mut record) {
        Ok(true) => {}
        Ok(false) => {
            return Err(DataError::empty(path, "header"));
        }
        Err(_) => {
            return Err(DataError::malformed(
                path,
                "line 1 is not UTF-8 text; save the file as UTF-8",
            ));
        }
    }
    let header: Vec<String> = record.iter().map(String::from).collect();
    if header.iter().all(|name| name.parse::<f64>().is_ok()) {
        return Err(DataError::malformed(
            path,
            "line 1 holds numbers only; put a header with the columns' names above it",
        ));
    }
    if let Some(column) = header.iter().position(String::is_empty) {
        let problem = format!(
            "column {} has no name in the header; name it or delete it",
            column + 1
        );
        return Err(DataError::malformed(path, problem));
    }
    let mut sorted: Vec<&String> = header.iter().collect();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        let problem = format!("two columns are named `{}`; rename one", excerpt(pair[0]));
        return Err(DataError::malformed(path, problem));
    }
    Ok(header)
}

/// The finite number in a cell.
pub(super) fn number(
    path: &Path,
    line: usize,
    column: &str,
    cell: &str,
    advice: &str,
) -> Result<f64, DataError> {
    if targets::is_missing(cell) {
        return Err(missing(path, line, column, cell));
    }
    let problem = match cell.parse::<f64>() {
        Ok(number) if number.is_finite() => return Ok(number),
        Ok(_) => format!(
            "`{}` is not finite; correct the cell or delete the row",
            excerpt(cell)
        ),
        Err(_) => format!("`{}` is not a number; {advice}", excerpt(cell)),
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

/// Turns ascending positions in a file into line numbers.
pub(super) struct Lines<'a> {
    bytes: &'a [u8],
    offset: usize,
    line: usize,
}

impl<'a> Lines<'a> {
    /// Starts at line 1.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            offset: 0,
            line: 1,
        }
    }

    /// The line of the first byte from `offset` on that does not end a line.
    pub(super) fn at(&mut self, offset: usize) -> usize {
        let start = offset.min(self.bytes.len());
        let blank = self.bytes[start..]
            .iter()
            .take_while(|&&byte| byte == b'\n' || byte == b'\r')
            .count();
        let end = start + blank;
        self.line += self.bytes[self.offset..end]
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count();
        self.offset = end;
        self.line
    }
}
