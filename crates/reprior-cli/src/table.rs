//! What is printed: text to stdout and stderr, aligned tables; sizes and times in words, as in reports.

use std::io::{self, ErrorKind, Write};
use std::sync::{Mutex, PoisonError};

pub use reprior_report::words::{bytes, duration, number};

/// The first failure to write to stdout.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

/// Takes note of the outcome of writing to stdout.
pub fn note(written: io::Result<()>) {
    if let Err(error) = written {
        let mut lost = LOST.lock().unwrap_or_else(PoisonError::into_inner);
        lost.get_or_insert(error);
    }
}

/// Writes a line to stdout. A failure is noted, and [`finish_stdout`] tells of it.
pub fn to_stdout(text: &str) {
    note(writeln!(io::stdout().lock(), "{text}"));
}

/// Writes bytes to stdout, as [`to_stdout`] does a line.
pub fn bytes_to_stdout(bytes: &[u8]) {
    note(io::stdout().lock().write_all(bytes));
}

/// Writes out what is still held back, and says why stdout has not got everything, if it has not. A closed pipe is no failure:
/// its reader has seen enough.
///
/// # Errors
/// What the system said when it refused the first time.
pub fn finish_stdout() -> io::Result<()> {
    note(io::stdout().lock().flush());
    let lost = LOST.lock().unwrap_or_else(PoisonError::into_inner).take();
    match lost {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Writes a line to stderr.
pub fn to_stderr(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// A number as it was given, without the hundreds of digits that very small and very large ones would have.
pub fn short(value: f64) -> String {
    match value.abs() {
        0.0 | 1e-4..1e9 => value.to_string(),
        _ if value.is_finite() => format!("{value:e}"),
        _ => value.to_string(),
    }
}

/// Rows of cells, the first column to the left, the others to the right.
pub fn align(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
    };
    let widths: Vec<usize> = (0..columns)
        .map(|column| width(column).unwrap_or(0))
        .collect();
    let line = |row: &Vec<String>| {
        let cells = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, &width))| {
                if column == 0 {
                    format!("  {cell:<width$}")
                } else {
                    format!("  {cell:>width$}")
                }
            });
        cells.collect::<String>().trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extreme_numbers_stay_short() {
        for (value, text) in [
            (0.1, "0.1"),
            (-250.0, "-250"),
            (0.0, "0"),
            (1e-300, "1e-300"),
            (-1e300, "-1e300"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [
            vec!["a".to_owned(), "1".to_owned()],
            vec!["bcd".to_owned(), "22".to_owned()],
        ];
        assert_eq!(align(&rows), "  a     1\n  bcd  22");
    }
}
