//! What is printed: text to stdout and stderr, aligned tables; sizes and times in words, as in reports.

use std::io::Write;

pub use reprior_report::words::{bytes, duration, number};

/// Writes a line to stdout; a closed pipe is not an error.
pub fn to_stdout(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// Writes a line to stderr.
pub fn to_stderr(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
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
    fn columns_are_aligned() {
        let rows = [
            vec!["a".to_owned(), "1".to_owned()],
            vec!["bcd".to_owned(), "22".to_owned()],
        ];
        assert_eq!(align(&rows), "  a     1\n  bcd  22");
    }
}
