//! Parquet and Arrow (Feather) files, as the text of a table.
//!
//! They become the CSV text that the rest of the reader knows, so that what a column means is decided in one place: shortest forms of numbers that read back the
//! same, dates and times by ISO 8601, levels of categories, and empty cells for nulls. The index that pandas stores as a column loses its name, and
//! is left out like the index of a CSV file.

use std::io::Cursor;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_ipc::reader::FileReader;
use arrow_schema::ArrowError;
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::DataError;
use super::csv_source::too_large;
use crate::memory;

/// The first bytes of a Parquet file, and of an Arrow file.
const MAGIC: [&[u8]; 2] = [b"PAR1", b"ARROW1"];
/// How their names end.
const NAMES: [&str; 3] = ["parquet", "arrow", "feather"];
/// What pandas calls an index without a name.
const PANDAS_INDEX: &str = "__index_level_";

/// The text of a table, if the bytes are one of these files.
///
/// # Errors
/// A file that is damaged, or whose table does not fit into half of the memory that is left.
pub(super) fn as_text(path: &Path, bytes: Vec<u8>) -> Result<Vec<u8>, DataError> {
    let Some(kind) = MAGIC.iter().position(|magic| bytes.starts_with(magic)) else {
        let is_named = path.extension().is_some_and(|extension| {
            NAMES
                .iter()
                .any(|name| extension.eq_ignore_ascii_case(name))
        });
        return match is_named {
            true => Err(DataError::malformed(
                path,
                "it is neither a Parquet nor an Arrow file, whatever its name says; write the table again",
            )),
            false => Ok(bytes),
        };
    };
    let mut text = Text {
        path,
        limit: memory::left() / 2,
        writer: csv::Writer::from_writer(Vec::new()),
        cell: String::new(),
        has_header: false,
    };
    match kind {
        0 => {
            let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes));
            let reader = reader.and_then(ParquetRecordBatchReaderBuilder::build);
            for batch in reader.map_err(|error| damaged(path, &error))? {
                text.push(&batch.map_err(|error| damaged(path, &error))?)?;
            }
        }
        _ => {
            let reader = FileReader::try_new(Cursor::new(bytes), None);
            for batch in reader.map_err(|error| damaged(path, &error))? {
                text.push(&batch.map_err(|error| damaged(path, &error))?)?;
            }
        }
    }
    text.finish()
}

/// A table that becomes text.
struct Text<'a> {
    path: &'a Path,
    limit: u64,
    writer: csv::Writer<Vec<u8>>,
    cell: String,
    has_header: bool,
}

impl Text<'_> {
    fn push(&mut self, batch: &RecordBatch) -> Result<(), DataError> {
        if !self.has_header {
            let schema = batch.schema();
            let names = schema.fields().iter().map(|field| match field.name() {
                name if name.starts_with(PANDAS_INDEX) => "",
                name => name,
            });
            self.write(names)?;
            self.has_header = true;
        }
        let options = FormatOptions::default();
        let columns = batch.columns().iter();
        let columns = columns.map(|column| ArrayFormatter::try_new(column.as_ref(), &options));
        let columns = columns.collect::<Result<Vec<_>, ArrowError>>();
        let columns = columns.map_err(|error| damaged(self.path, &error))?;
        for row in 0..batch.num_rows() {
            for column in &columns {
                self.cell.clear();
                let written = column.value(row).write(&mut self.cell);
                written.map_err(|error| damaged(self.path, &error))?;
                let written = self.writer.write_field(&self.cell);
                written.map_err(|_| too_large(self.path))?;
            }
            self.end_row()?;
        }
        Ok(())
    }

    fn write<'a>(&mut self, cells: impl Iterator<Item = &'a str>) -> Result<(), DataError> {
        for cell in cells {
            let written = self.writer.write_field(cell);
            written.map_err(|_| too_large(self.path))?;
        }
        self.end_row()
    }

    fn end_row(&mut self) -> Result<(), DataError> {
        let none: [&str; 0] = [];
        let written = self.writer.write_record(none);
        match written.is_err() || self.writer.get_ref().len() as u64 > self.limit {
            true => Err(too_large(self.path)),
            false => Ok(()),
        }
    }

    fn finish(self) -> Result<Vec<u8>, DataError> {
        match self.has_header {
            true => self.writer.into_inner().map_err(|_| too_large(self.path)),
            false => Err(DataError::empty(self.path, "rows")),
        }
    }
}

fn damaged(path: &Path, error: &dyn std::fmt::Display) -> DataError {
    DataError::malformed(
        path,
        format!("its columns cannot be read ({error}); copy or write the file again"),
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int32Type;
    use arrow_array::{
        ArrayRef, BooleanArray, DictionaryArray, Float32Array, Float64Array, Int64Array,
        StringArray, TimestampMicrosecondArray,
    };
    use arrow_ipc::writer::FileWriter;
    use parquet::arrow::ArrowWriter;

    use super::*;
    use crate::data::{Request, load_with_notes};

    const TEXT: &str = "size,area,level,new,sold,,price\n\
        0.1,0.1,\"a, b\",true,2020-02-29T12:00:00,0,1\n\
        ,2.5,c,false,1970-01-01T00:00:00,1,2\n\
        1e300,-3.0,,true,,2,-3\n";

    fn batch() -> RecordBatch {
        let level: DictionaryArray<Int32Type> =
            [Some("a, b"), Some("c"), None].into_iter().collect();
        let columns: [(&str, ArrayRef); 7] = [
            (
                "size",
                Arc::new(Float64Array::from(vec![Some(0.1), None, Some(1e300)])),
            ),
            ("area", Arc::new(Float32Array::from(vec![0.1, 2.5, -3.0]))),
            ("level", Arc::new(level)),
            ("new", Arc::new(BooleanArray::from(vec![true, false, true]))),
            (
                "sold",
                Arc::new(TimestampMicrosecondArray::from(vec![
                    Some(1_582_977_600_000_000),
                    Some(0),
                    None,
                ])),
            ),
            (
                "__index_level_0__",
                Arc::new(Int64Array::from(vec![0, 1, 2])),
            ),
            ("price", Arc::new(StringArray::from(vec!["1", "2", "-3"]))),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))
            .unwrap()
    }

    fn files() -> [Vec<u8>; 2] {
        let batch = batch();
        let (mut parquet, mut arrow) = (Vec::new(), Vec::new());
        let mut writer = ArrowWriter::try_new(&mut parquet, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let mut writer = FileWriter::try_new(&mut arrow, &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        drop(writer);
        [parquet, arrow]
    }

    #[test]
    fn columns_become_the_text_of_a_table() {
        let path = Path::new("a.parquet");
        for file in files() {
            let text = as_text(path, file).unwrap();
            assert_eq!(String::from_utf8(text).unwrap(), TEXT);
        }
        let other = as_text(Path::new("a.csv"), b"a,b\n".to_vec());
        assert_eq!(other.unwrap(), b"a,b\n");
    }

    #[test]
    fn damaged_files_are_refused() {
        let other = as_text(Path::new("a.parquet"), b"x".to_vec());
        let other = other.unwrap_err().to_string();
        assert!(
            other.contains("neither a Parquet nor an Arrow file"),
            "{other}"
        );
        for file in files() {
            for length in 8..file.len() {
                let error = as_text(Path::new("cut.parquet"), file[..length].to_vec());
                let error = error.unwrap_err().to_string();
                assert!(error.contains("`cut.parquet`"), "{error}");
            }
        }
    }

    #[test]
    fn a_table_is_the_same_in_every_format() {
        let folder = tempfile::tempdir().unwrap();
        let loaded = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            load_with_notes(&Request::new(path.to_string_lossy())).unwrap()
        };
        let expected = loaded("a.csv", TEXT.as_bytes());
        let [parquet, arrow] = files();
        assert_eq!(loaded("a.parquet", &parquet), expected);
        assert_eq!(loaded("a.arrow", &arrow), expected);
        assert_eq!(loaded("a.feather", &arrow), expected);
    }
}
