//! Data that a program gives in memory: a table, column by column - numbers, true and false, or text, each with cells missing - or arrays, such as
//! those of images.
//!
//! Arrays are an archive as `.npz` files are. A table becomes the text of cells that the rest of the reader knows, as columns of Parquet files do, so that what a column means is decided in one
//! place. Numbers are written in their shortest forms that read back the same. A run keeps the table as a CSV file, in which cells stand as they are: nothing
//! is trimmed, no row is left out, and names of columns may be any text.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use csv::{ReaderBuilder, StringRecord};

use super::DataError;
use super::csv_source::too_large;
use super::csv_table::TextTable;
use super::error::excerpt;

/// The source that is a table in memory.
pub const GIVEN: &str = "(in memory)";

/// The source that is an archive of arrays in memory.
pub const GIVEN_ARRAYS: &str = "(arrays in memory)";

/// The values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum GivenValues {
    /// Numbers; NaN is a missing cell.
    Numbers(Vec<f64>),
    /// Yes and no.
    Booleans(Vec<Option<bool>>),
    /// Text: dates, levels, labels of classes.
    Texts(Vec<Option<String>>),
}

impl GivenValues {
    fn len(&self) -> usize {
        match self {
            Self::Numbers(values) => values.len(),
            Self::Booleans(values) => values.len(),
            Self::Texts(values) => values.len(),
        }
    }

    fn write(&self, row: usize, cell: &mut String) {
        cell.clear();
        // writing to a string does not fail
        let _ = match self {
            Self::Numbers(values) if values[row].is_nan() => Ok(()),
            Self::Numbers(values) => match values[row] {
                x if x != 0.0 && !(1e-5..1e16).contains(&x.abs()) => write!(cell, "{x:e}"),
                x => write!(cell, "{x}"),
            },
            Self::Booleans(values) => match values[row] {
                Some(is) => write!(cell, "{is}"),
                None => Ok(()),
            },
            Self::Texts(values) => {
                cell.push_str(values[row].as_deref().unwrap_or_default());
                Ok(())
            }
        };
    }
}

/// A named column.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenColumn {
    /// Its name, unlike those of the others.
    pub name: String,
    /// One for each row.
    pub values: GivenValues,
}

/// Data in memory, as the bytes that a run keeps.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    source: &'static str,
    bytes: Arc<Vec<u8>>,
}

impl Given {
    /// A table of columns.
    ///
    /// # Errors
    /// No columns or rows; columns of different lengths, of the same name or without one.
    pub fn table(columns: &[GivenColumn]) -> Result<Self, DataError> {
        let path = Path::new(GIVEN);
        let Some(first) = columns.first() else {
            return Err(DataError::empty(path, "columns"));
        };
        let rows = first.values.len();
        if rows == 0 {
            return Err(DataError::empty(path, "rows"));
        }
        if let Some(other) = columns.iter().find(|column| column.values.len() != rows) {
            let problem = format!(
                "column `{}` has {} rows and `{}` has {rows}; give columns of one length",
                excerpt(&other.name),
                other.values.len(),
                excerpt(&first.name)
            );
            return Err(DataError::malformed(path, problem));
        }
        let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        check_names(path, &names)?;
        let mut writer = csv::Writer::from_writer(Vec::new());
        let failed = |_| too_large(path);
        writer.write_record(&names).map_err(failed)?;
        let mut cell = String::new();
        let none: [&str; 0] = [];
        for row in 0..rows {
            for column in columns {
                column.values.write(row, &mut cell);
                writer.write_field(&cell).map_err(failed)?;
            }
            writer.write_record(none).map_err(failed)?;
        }
        let bytes = writer.into_inner().map_err(|_| too_large(path))?;
        Ok(Self {
            source: GIVEN,
            bytes: Arc::new(bytes),
        })
    }

    /// Arrays: the bytes of an `.npz` archive, which is looked at when it is loaded.
    pub fn arrays(archive: Vec<u8>) -> Self {
        Self {
            source: GIVEN_ARRAYS,
            bytes: Arc::new(archive),
        }
    }

    /// What it is called as a source: [`GIVEN`] or [`GIVEN_ARRAYS`].
    pub fn source(&self) -> &'static str {
        self.source
    }

    /// What a run keeps.
    pub fn bytes(&self) -> &Arc<Vec<u8>> {
        &self.bytes
    }
}

impl TextTable {
    /// The cells of a table in memory; rows are counted from 0.
    ///
    /// # Errors
    /// Bytes that are none of [`Given::table`].
    pub(super) fn given(path: &Path, bytes: &[u8]) -> Result<Self, DataError> {
        let damaged =
            |_| DataError::malformed(path, "its copy in the run is damaged; sample again");
        let mut reader = ReaderBuilder::new().has_headers(false).from_reader(bytes);
        let mut record = StringRecord::new();
        if !reader.read_record(&mut record).map_err(damaged)? {
            return Err(DataError::empty(path, "columns"));
        }
        let header: Vec<String> = record.iter().map(String::from).collect();
        check_names(path, &header)?;
        let mut table = Self::empty(header, b',');
        while reader.read_record(&mut record).map_err(damaged)? {
            table.push_row(table.rows(), record.iter().map(str::trim));
        }
        match table.rows() {
            0 => Err(DataError::empty(path, "rows")),
            _ => Ok(table),
        }
    }
}

fn check_names(path: &Path, names: &[String]) -> Result<(), DataError> {
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort_unstable();
    if sorted.first().is_some_and(|name| name.is_empty()) {
        let problem = "a column has no name; give every column one";
        return Err(DataError::malformed(path, problem));
    }
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        let problem = format!("two columns are named `{}`; rename one", excerpt(pair[0]));
        return Err(DataError::malformed(path, problem));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, values: GivenValues) -> GivenColumn {
        GivenColumn {
            name: name.to_owned(),
            values,
        }
    }

    #[test]
    fn cells_come_back_as_they_were_given() {
        let numbers = vec![0.1, -1e300, f64::NAN, 5e-324, 123_456_789.0];
        let texts = ["", "a, \"b\"", "1,5", "\n", "x"].map(|text| Some(text.to_owned()));
        let columns = [
            column("1", GivenValues::Numbers(numbers.clone())),
            column(" 2", GivenValues::Texts(texts.to_vec())),
        ];
        let table = Given::table(&columns).unwrap();
        let read = TextTable::given(Path::new(GIVEN), table.bytes()).unwrap();
        assert_eq!(read.header, ["1", " 2"]);
        assert_eq!(read.lines, [0, 1, 2, 3, 4]);
        for (row, number) in numbers.iter().enumerate() {
            match number.is_nan() {
                true => assert_eq!(read.cell(row, 0), ""),
                false => assert_eq!(read.cell(row, 0).parse::<f64>().unwrap(), *number),
            }
        }
        assert_eq!([read.cell(1, 1), read.cell(3, 1)], ["a, \"b\"", ""]);
    }

    #[test]
    fn a_single_column_of_missing_cells_keeps_its_rows() {
        let missing = GivenValues::Booleans(vec![None, Some(true), None]);
        let table = Given::table(&[column("a", missing)]).unwrap();
        let read = TextTable::given(Path::new(GIVEN), table.bytes()).unwrap();
        let cells = [0, 1, 2].map(|row| read.cell(row, 0));
        assert_eq!(cells, ["", "true", ""]);
    }

    #[test]
    fn tables_that_are_none_are_refused() {
        let numbers = |count| GivenValues::Numbers(vec![1.0; count]);
        for (columns, word) in [
            (vec![], "columns"),
            (vec![column("a", numbers(0))], "rows"),
            (
                vec![column("a", numbers(2)), column("b", numbers(1))],
                "one length",
            ),
            (
                vec![column("a", numbers(2)), column("a", numbers(2))],
                "rename one",
            ),
            (vec![column("", numbers(2))], "no name"),
        ] {
            let error = Given::table(&columns).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains(GIVEN), "{error}");
        }
    }
}
