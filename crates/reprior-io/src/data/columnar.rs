//! Parquet and Arrow (Feather) files, as the text of a table.
//!
//! They become the CSV text that the rest of the reader knows, so that what a column means is decided in one place: shortest forms of numbers that read back the
//! same, dates and times by ISO 8601 (those with a time zone by the clock of UTC), levels of categories, and empty cells for nulls. Columns that pandas stores an
//! index in lose their names, and are left out like the index of a CSV file.

use std::fmt;
use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_ipc::reader::FileReader;
use arrow_schema::{DataType, Schema};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::DataError;
use super::columnar_cell::{Cell, NoText};
use super::columnar_check::{check_arrow, check_parquet};
use super::csv_source::{TableText, too_large};
use crate::memory;

/// How a Parquet file begins and ends, and how an Arrow file does.
const MAGIC: [&[u8]; 2] = [b"PAR1", b"ARROW1"];
/// How their names end.
const NAMES: [&str; 3] = ["parquet", "arrow", "feather"];
/// What pandas calls an index without a name.
const PANDAS_INDEX: &str = "__index_level_";
/// How many times as long as its file a table's text may be, as deflate, which compresses text as such, can at most.
const MOST_RATIO: u64 = 1040;
/// Bytes of text that any file may become.
const SMALL: u64 = 8 << 20;

/// The text of a table, if the bytes are one of these files.
///
/// # Errors
/// A file that is damaged, or whose table does not fit into half of the memory that is left.
pub(super) fn as_text(path: &Path, bytes: &[u8]) -> Result<Option<TableText>, DataError> {
    let is_named = path.extension().is_some_and(|extension| {
        NAMES
            .iter()
            .any(|name| extension.eq_ignore_ascii_case(name))
    });
    // a header may begin with the same letters
    let is_of = |magic: &&[u8]| bytes.starts_with(magic) && (is_named || bytes.ends_with(magic));
    let Some(kind) = MAGIC.iter().position(is_of) else {
        return match is_named {
            true => Err(DataError::malformed(
                path,
                "it is neither a Parquet nor an Arrow file, whatever its name says; write the table again",
            )),
            false => Ok(None),
        };
    };
    let text = Text {
        path,
        limit: most_text(bytes.len()),
        writer: csv::Writer::from_writer(Vec::new()),
        cell: Cell::default(),
        index: Vec::new(),
        categories: Vec::new(),
        has_header: false,
    };
    // lengths that lie are found first; readers assume what else a file says
    let read = catch_unwind(AssertUnwindSafe(|| match kind {
        0 => of_parquet(text, bytes),
        _ => of_arrow(text, bytes),
    }));
    match read {
        Ok(found) => found.map(Some),
        Err(_) => Err(damaged(path, &"it contradicts itself")),
    }
}

fn of_parquet(mut text: Text<'_>, bytes: &[u8]) -> Result<TableText, DataError> {
    let path = text.path;
    let bytes = Bytes::copy_from_slice(bytes);
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes.clone());
    let builder = builder.map_err(|error| damaged(path, &error))?;
    check_parquet(builder.metadata(), &bytes, text.limit)
        .map_err(|problem| damaged(path, &problem))?;
    // batches have lost what pandas says
    text.index = pandas_index(builder.schema());
    for batch in builder.build().map_err(|error| damaged(path, &error))? {
        text.push(&batch.map_err(|error| damaged(path, &error))?)?;
    }
    text.finish()
}

fn of_arrow(mut text: Text<'_>, bytes: &[u8]) -> Result<TableText, DataError> {
    let path = text.path;
    check_arrow(bytes, text.limit).map_err(|problem| damaged(path, &problem))?;
    let reader = FileReader::try_new(Cursor::new(bytes), None);
    let reader = reader.map_err(|error| damaged(path, &error))?;
    text.index = pandas_index(&reader.schema());
    for batch in reader {
        text.push(&batch.map_err(|error| damaged(path, &error))?)?;
    }
    text.finish()
}

/// A table that becomes text.
struct Text<'a> {
    path: &'a Path,
    limit: u64,
    writer: csv::Writer<Vec<u8>>,
    cell: Cell,
    /// Columns that are the index of pandas.
    index: Vec<String>,
    /// Columns of categories that are numbers.
    categories: Vec<String>,
    has_header: bool,
}

impl Text<'_> {
    fn push(&mut self, batch: &RecordBatch) -> Result<(), DataError> {
        if !self.has_header {
            let schema = batch.schema();
            let index = std::mem::take(&mut self.index);
            let names = schema.fields().iter().map(|field| match field.name() {
                name if name.starts_with(PANDAS_INDEX) || index.contains(name) => "",
                name => name,
            });
            self.write(names)?;
            self.categories = categories_of_numbers(&schema);
            self.has_header = true;
        }
        for row in 0..batch.num_rows() {
            for (column, field) in batch.columns().iter().zip(batch.schema_ref().fields()) {
                self.cell.most = self.limit;
                self.cell
                    .set(column.as_ref(), row)
                    .map_err(|none| self.no_text(field.name(), none))?;
                let written = self.writer.write_field(&self.cell.text);
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
            true => Err(self.too_much()),
            false => Ok(()),
        }
    }

    fn no_text(&self, column: &str, none: NoText) -> DataError {
        match none {
            NoText::TooLong => self.too_much(),
            NoText::Type(name) => DataError::malformed(
                self.path,
                format!(
                    "column `{column}` is of type {name}, which is neither numbers nor words; write the table without it"
                ),
            ),
            NoText::Value(value) => damaged(self.path, &format!("column `{column}`: {value}")),
        }
    }

    fn too_much(&self) -> DataError {
        match self.limit < memory::left() / 2 {
            true => DataError::malformed(
                self.path,
                format!(
                    "its columns unfold to more than {MOST_RATIO} times the file, which tables do not; write it as .csv"
                ),
            ),
            false => too_large(self.path),
        }
    }

    fn finish(self) -> Result<TableText, DataError> {
        if !self.has_header {
            return Err(DataError::empty(self.path, "rows"));
        }
        let bytes = self.writer.into_inner();
        Ok(TableText {
            bytes: bytes.map_err(|_| too_large(self.path))?,
            is_columnar: true,
            categories: self.categories,
        })
    }
}

/// Bytes of the text that a file of `length` bytes may become. A few bytes can stand for any number of rows: without a limit a small file would
/// take the memory of a large one.
fn most_text(length: usize) -> u64 {
    let most = (length as u64).saturating_mul(MOST_RATIO).max(SMALL);
    most.min(memory::left() / 2)
}

/// The columns whose numbers are categories, of which only the type says so. Texts may have dictionaries to be short, and look like what they are.
fn categories_of_numbers(schema: &Schema) -> Vec<String> {
    let are_numbers =
        |kind: &DataType| matches!(kind, DataType::Dictionary(_, values) if values.is_numeric());
    let fields = schema.fields().iter();
    let fields = fields.filter(|field| are_numbers(field.data_type()));
    fields.map(|field| field.name().clone()).collect()
}

/// The columns that pandas says are an index; those of no name have one of their own.
fn pandas_index(schema: &Schema) -> Vec<String> {
    let said = schema.metadata().get("pandas");
    let said = said.and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
    let columns = said
        .as_ref()
        .and_then(|said| said.get("index_columns")?.as_array());
    let names = columns.into_iter().flatten();
    // a range is no column
    names
        .filter_map(|name| Some(name.as_str()?.to_owned()))
        .collect()
}

/// On one line, whatever the libraries say.
fn damaged(path: &Path, error: &dyn fmt::Display) -> DataError {
    let error = error.to_string();
    let error = error.split_whitespace().collect::<Vec<_>>().join(" ");
    DataError::malformed(
        path,
        format!("its columns cannot be read ({error}); copy or write the file again"),
    )
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use arrow_array::builder::{Int64Builder, MapBuilder, StringBuilder};
    use arrow_array::types::Int32Type;
    use arrow_array::{
        ArrayRef, BooleanArray, DictionaryArray, DurationMillisecondArray, Float32Array,
        Float64Array, Int32Array, Int64Array, StringArray, TimestampMicrosecondArray,
    };
    use arrow_ipc::CompressionType;
    use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
    use parquet::arrow::ArrowWriter;

    use super::*;
    use crate::data::{Request, Task, load_with_notes};
    use reprior::model::dataset::Targets;

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

    fn parquet(batch: &RecordBatch) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
        writer.write(batch).unwrap();
        writer.close().unwrap();
        bytes
    }

    fn arrow(batch: &RecordBatch, compression: Option<CompressionType>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let options = IpcWriteOptions::default();
        let options = options.try_with_compression(compression).unwrap();
        let mut writer =
            FileWriter::try_new_with_options(&mut bytes, &batch.schema(), options).unwrap();
        writer.write(batch).unwrap();
        writer.finish().unwrap();
        drop(writer);
        bytes
    }

    fn files() -> [Vec<u8>; 3] {
        let batch = batch();
        [
            parquet(&batch),
            arrow(&batch, None),
            arrow(&batch, Some(CompressionType::LZ4_FRAME)),
        ]
    }

    fn text_of(path: &str, bytes: &[u8]) -> String {
        let text = as_text(Path::new(path), bytes).unwrap().unwrap();
        String::from_utf8(text.bytes).unwrap()
    }

    #[test]
    fn columns_become_the_text_of_a_table() {
        for file in files() {
            assert_eq!(text_of("a.parquet", &file), TEXT);
            // of standard input there is no name
            assert_eq!(text_of("stdin", &file), TEXT);
        }
        for text in ["a,b\n", "PAR1,PAR2,y\n1,2,3\n"] {
            assert!(
                as_text(Path::new("a.csv"), text.as_bytes())
                    .unwrap()
                    .is_none()
            );
        }
    }

    #[test]
    fn categories_are_levels_even_where_they_are_numbers() {
        let numbers = Int64Array::from(vec![10, 2]);
        let keys = Int32Array::from(vec![Some(0), Some(1), Some(0), None]);
        let numbers = DictionaryArray::new(keys, Arc::new(numbers));
        let words: DictionaryArray<Int32Type> = ["5", "6", "5", "7"].into_iter().collect();
        let kinds = DictionaryArray::new(
            Int32Array::from(vec![1, 0, 0, 1]),
            Arc::new(Float64Array::from(vec![1.0, 2.0])),
        );
        let columns: [(&str, ArrayRef); 3] = [
            ("district", Arc::new(numbers)),
            ("rooms", Arc::new(words)),
            ("kind", Arc::new(kinds)),
        ];
        let columns = columns.map(|(name, column)| (name, column, true));
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let folder = tempfile::tempdir().unwrap();
        for (name, file) in [
            ("a.parquet", parquet(&batch)),
            ("a.arrow", arrow(&batch, None)),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, file).unwrap();
            let request = Request {
                test: Some(0),
                ..Request::new(path.to_string_lossy())
            };
            let train = load_with_notes(&request).unwrap().split.train;
            let names = ["district: 10", "district: 2", "district missing", "rooms"];
            assert_eq!(train.column_names, names, "{name}");
            let Targets::Classes { labels, names } = train.targets else {
                panic!("classes are due")
            };
            assert_eq!(
                (labels, names),
                (vec![1, 0, 0, 1], vec!["1.0".to_owned(), "2.0".to_owned()])
            );
            let asked = Request {
                task: Task::Regression,
                categorical: vec!["rooms".to_owned()],
                ..request
            };
            let train = load_with_notes(&asked).unwrap().split.train;
            assert_eq!(
                train.column_names[3..],
                ["rooms: 5", "rooms: 6", "rooms: 7"]
            );
            assert!(matches!(train.targets, Targets::Real { .. }));
        }
    }

    #[test]
    fn an_index_of_pandas_loses_its_name_wherever_it_is() {
        let columns: [(&str, ArrayRef); 2] = [
            ("x", Arc::new(Int64Array::from(vec![5, 6]))),
            ("id", Arc::new(Int64Array::from(vec![1, 2]))),
        ];
        let said = r#"{"index_columns": ["id", {"kind": "range"}], "columns": []}"#;
        let metadata = HashMap::from([("pandas".to_owned(), said.to_owned())]);
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let schema = batch.schema().as_ref().clone().with_metadata(metadata);
        let batch = batch.with_schema(Arc::new(schema)).unwrap();
        for file in [parquet(&batch), arrow(&batch, None)] {
            assert_eq!(text_of("a.parquet", &file), "x,\n5,1\n6,2\n");
        }
    }

    #[test]
    fn instants_are_on_the_clock_of_utc() {
        for zone in ["UTC", "Europe/Berlin", "+01:00"] {
            let times = TimestampMicrosecondArray::from(vec![Some(1_582_977_600_000_000), None]);
            let times: ArrayRef = Arc::new(times.with_timezone(zone));
            let batch = RecordBatch::try_from_iter_with_nullable([("sold", times, true)]).unwrap();
            for file in [parquet(&batch), arrow(&batch, None)] {
                let expected = "sold\n2020-02-29T12:00:00\n\"\"\n";
                assert_eq!(text_of("a.arrow", &file), expected, "{zone}");
            }
        }
    }

    #[test]
    fn spans_of_time_are_seconds_and_maps_are_refused_by_name() {
        let spans: ArrayRef = Arc::new(DurationMillisecondArray::from(vec![Some(1_500), None]));
        let mut maps = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
        maps.append(true).unwrap();
        maps.append(true).unwrap();
        let maps: ArrayRef = Arc::new(maps.finish());
        let columns = [("span", spans.clone()), ("y", spans.clone())];
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.map(|(name, column)| (name, column, true)),
        )
        .unwrap();
        for file in [parquet(&batch), arrow(&batch, None)] {
            assert_eq!(text_of("a.parquet", &file), "span,y\n1.5,1.5\n,\n");
        }
        let batch = RecordBatch::try_from_iter([("span", spans), ("tags", maps)]).unwrap();
        for file in [parquet(&batch), arrow(&batch, None)] {
            let error = as_text(Path::new("a.parquet"), &file).unwrap_err();
            let error = error.to_string();
            let said = "column `tags` is of type Map(";
            assert!(
                error.contains(said) && error.contains("neither numbers nor words"),
                "{error}"
            );
        }
    }

    #[test]
    fn damaged_files_are_refused() {
        let other = as_text(Path::new("a.parquet"), b"x");
        let other = other.unwrap_err().to_string();
        assert!(
            other.contains("neither a Parquet nor an Arrow file"),
            "{other}"
        );
        for file in files() {
            for length in 8..file.len() {
                let error = as_text(Path::new("cut.parquet"), &file[..length]);
                let error = error.unwrap_err().to_string();
                assert!(error.contains("`cut.parquet`"), "{error}");
            }
        }
    }

    #[test]
    fn a_bit_that_is_flipped_gives_a_table_or_an_error() {
        for mut file in files() {
            for place in 0..file.len() {
                for bit in [0x01, 0x80] {
                    file[place] ^= bit;
                    if let Err(error) = as_text(Path::new("flipped.arrow"), &file) {
                        assert!(error.to_string().contains("`flipped.arrow`"), "{error}");
                    }
                    file[place] ^= bit;
                }
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
        let [parquet, arrow, compressed] = files();
        assert_eq!(loaded("a.parquet", &parquet), expected);
        assert_eq!(loaded("a.arrow", &arrow), expected);
        assert_eq!(loaded("a.feather", &compressed), expected);
    }
}
