//! Separators, headers and line numbers of CSV files.

use std::path::Path;

use csv::{ReaderBuilder, StringRecord, Trim};

use super::DataError;
use super::error::excerpt;
use super::numbers::{self, NumberForm};

/// What may stand between cells, the commonest first.
const SEPARATORS: [u8; 3] = [b',', b';', b'\t'];
/// Rows that a separator is told by.
const ROWS: usize = 50;

/// A reader that leaves the header and the number of cells to be checked here.
pub(super) fn reader(bytes: &[u8], separator: u8) -> csv::Reader<&[u8]> {
    ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(Trim::All)
        .delimiter(separator)
        .from_reader(bytes)
}

/// The separator of a table: the one that cuts the header and the first rows into equally many columns, at least two; of several the
/// one with the most columns, then with the most numbers. A comma where none does.
pub(super) fn separator(bytes: &[u8]) -> u8 {
    let score = |&separator: &u8| {
        let (columns, is_regular, numbers) = cut(bytes, separator);
        (is_regular && columns > 1, columns, numbers)
    };
    let mut best = SEPARATORS[0];
    for separator in &SEPARATORS[1..] {
        if score(separator) > score(&best) {
            best = *separator;
        }
    }
    best
}

/// Columns of the header, whether the first rows have as many, and how many of their cells are numbers.
fn cut(bytes: &[u8], separator: u8) -> (usize, bool, usize) {
    let form = NumberForm::beside(separator);
    let mut reader = reader(bytes, separator);
    let mut record = StringRecord::new();
    let (mut columns, mut is_regular, mut numbers) = (0, true, 0);
    for row in 0..ROWS {
        match reader.read_record(&mut record) {
            Ok(true) => {}
            _ => break,
        }
        if row == 0 {
            columns = record.len();
        } else if !record.iter().all(str::is_empty) {
            is_regular &= record.len() == columns;
            let is_number = |cell: &&str| {
                numbers::parse(cell, NumberForm::Point).is_some()
                    || numbers::parse(cell, form).is_some()
            };
            numbers += record.iter().filter(is_number).count();
        }
    }
    (columns, is_regular, numbers)
}

/// Reads and checks the header. A column without a name, such as an index of rows that other programs write, has the name "".
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
    let mut sorted: Vec<&String> = header.iter().filter(|name| !name.is_empty()).collect();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        let problem = format!("two columns are named `{}`; rename one", excerpt(pair[0]));
        return Err(DataError::malformed(path, problem));
    }
    Ok(header)
}

/// Refuses a first line that is a row of numbers.
pub(super) fn check_header(path: &Path, header: &[String]) -> Result<(), DataError> {
    let is_number = |name: &String| name.is_empty() || name.parse::<f64>().is_ok();
    match header.iter().all(is_number) {
        true => Err(DataError::malformed(
            path,
            "line 1 holds numbers only; put a header with the columns' names above it",
        )),
        false => Ok(()),
    }
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

    /// Blank lines from `offset`, where a row ends, to the next row: the reader passes over them.
    pub(super) fn blank(&self, offset: usize) -> usize {
        let start = offset.min(self.bytes.len());
        let ends = self.bytes[start..]
            .iter()
            .take_while(|&&byte| byte == b'\n' || byte == b'\r');
        let end = start + ends.count();
        // of the two bytes that end a line, the reader leaves the second
        let splits = |at: usize| self.bytes[at - 1] == b'\r' && self.bytes[at] == b'\n';
        let start = match 0 < start && start < end && splits(start) {
            true => start + 1,
            false => start,
        };
        (start..end)
            .filter(|&at| at + 1 == end || !splits(at + 1))
            .count()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_told_by_header_and_rows() {
        for (text, expected) in [
            ("a,b\n1,2\n", b','),
            ("a;b\n1,5;2,5\n", b';'),
            ("a\tb\n1,5\t2\n", b'\t'),
            ("\"a;b\",c\n1,2\n", b','),
            ("\"a,b\";c\n1;2\n", b';'),
            ("weight, kg;y\n1,5;3\n2,5;4\n", b';'),
            ("a, b;c\n1,x;y\n", b','),
            ("a\n5\n", b','),
            ("", b','),
            ("name;note\nAda;one, two\nBob;three\n", b';'),
            ("a,b,c\n1,2\n", b','),
        ] {
            assert_eq!(separator(text.as_bytes()), expected, "{text:?}");
        }
    }
}
