//! A cell of a Parquet or Arrow column, as the text that a CSV file would have.
//!
//! `arrow-cast` has this too, at the price of every conversion between columns: with what only it needs, a fifteenth of the work of compiling the whole
//! program. Tests have it as the oracle.

use std::fmt::{self, Write};

use arrow_array::cast::AsArray;
use arrow_array::temporal_conversions::{as_datetime, as_time};
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    Float16Type, Float32Type, Float64Type, Time32MillisecondType, Time32SecondType,
    Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, StructArray, downcast_integer_array};
use arrow_schema::{DataType, TimeUnit};

/// Lists in lists, and records in them, that a cell may have.
const MOST_NESTED: usize = 16;

/// The text of a cell, which a list of nothings can make as long as it likes.
#[derive(Default)]
pub(super) struct Cell {
    pub text: String,
    pub most: u64,
}

/// Why a cell has no text.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum NoText {
    /// It would be longer than allowed.
    TooLong,
    /// Columns of this type mean nothing in a table of numbers and words.
    Type(String),
    /// A value that its own type does not have.
    Value(String),
}

impl Write for Cell {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text.push_str(text);
        match self.text.len() as u64 > self.most {
            true => Err(fmt::Error),
            false => Ok(()),
        }
    }
}

impl From<fmt::Error> for NoText {
    fn from(_: fmt::Error) -> Self {
        Self::TooLong
    }
}

impl Cell {
    /// Begins anew with this row of a column: shortest numbers that read back the same, dates and times by ISO 8601 (with a time zone by the clock of UTC),
    /// spans of time in seconds, bytes as the text that they are or else in hexadecimal; nothing for a null.
    ///
    /// # Errors
    /// See [`NoText`].
    pub fn set(&mut self, column: &dyn Array, row: usize) -> Result<(), NoText> {
        self.text.clear();
        self.write(column, row, MOST_NESTED)
    }

    fn write(&mut self, column: &dyn Array, row: usize, nested: usize) -> Result<(), NoText> {
        if column.is_null(row) {
            return Ok(());
        }
        let unknown = || NoText::Type(column.data_type().to_string());
        let nested = nested.checked_sub(1).ok_or_else(unknown)?;
        // an instant, a date or a time that is there
        macro_rules! shown {
            ($type:ty, $of:expr) => {{
                let value = column.as_primitive::<$type>().value(row);
                match $of(value.into()) {
                    Some(shown) => write!(self, "{shown:?}")?,
                    None => {
                        return Err(NoText::Value(format!(
                            "{value} is no {}",
                            column.data_type()
                        )));
                    }
                }
            }};
        }
        macro_rules! seconds {
            ($type:ty, $parts:expr) => {{
                let value = column.as_primitive::<$type>().value(row);
                write!(self, "{:?}", value as f64 / $parts)?;
            }};
        }
        macro_rules! decimal {
            ($type:ty) => {
                self.write_str(&column.as_primitive::<$type>().value_as_string(row))?
            };
        }
        // Hive, Impala and Python's bytes: text of which nothing says that it is
        macro_rules! text {
            ($column:expr) => {
                match str::from_utf8($column.value(row)) {
                    Ok(text) => self.write_str(text)?,
                    // 0x, so that it is no number
                    Err(_) => {
                        self.write_str("0x")?;
                        for byte in $column.value(row) {
                            write!(self, "{byte:02x}")?;
                        }
                    }
                }
            };
        }
        downcast_integer_array! {
            column => write!(self, "{}", column.value(row))?,
            DataType::Null => {}
            DataType::Boolean => write!(self, "{}", column.as_boolean().value(row))?,
            DataType::Float16 => write!(self, "{:?}", column.as_primitive::<Float16Type>().value(row).to_f32())?,
            DataType::Float32 => write!(self, "{:?}", column.as_primitive::<Float32Type>().value(row))?,
            DataType::Float64 => write!(self, "{:?}", column.as_primitive::<Float64Type>().value(row))?,
            DataType::Utf8 => self.write_str(column.as_string::<i32>().value(row))?,
            DataType::LargeUtf8 => self.write_str(column.as_string::<i64>().value(row))?,
            DataType::Utf8View => self.write_str(column.as_string_view().value(row))?,
            DataType::Binary => text!(column.as_binary::<i32>()),
            DataType::LargeBinary => text!(column.as_binary::<i64>()),
            DataType::BinaryView => text!(column.as_binary_view()),
            DataType::FixedSizeBinary(_) => text!(column.as_fixed_size_binary()),
            DataType::Date32 => shown!(Date32Type, |days| as_datetime::<Date32Type>(days).map(|at| at.date())),
            DataType::Date64 => shown!(Date64Type, as_datetime::<Date64Type>),
            DataType::Timestamp(unit, _) => match unit {
                TimeUnit::Second => shown!(TimestampSecondType, as_datetime::<TimestampSecondType>),
                TimeUnit::Millisecond => shown!(TimestampMillisecondType, as_datetime::<TimestampMillisecondType>),
                TimeUnit::Microsecond => shown!(TimestampMicrosecondType, as_datetime::<TimestampMicrosecondType>),
                TimeUnit::Nanosecond => shown!(TimestampNanosecondType, as_datetime::<TimestampNanosecondType>),
            },
            DataType::Time32(TimeUnit::Second) => shown!(Time32SecondType, as_time::<Time32SecondType>),
            DataType::Time32(_) => shown!(Time32MillisecondType, as_time::<Time32MillisecondType>),
            DataType::Time64(TimeUnit::Microsecond) => shown!(Time64MicrosecondType, as_time::<Time64MicrosecondType>),
            DataType::Time64(_) => shown!(Time64NanosecondType, as_time::<Time64NanosecondType>),
            DataType::Duration(unit) => match unit {
                TimeUnit::Second => seconds!(DurationSecondType, 1.0),
                TimeUnit::Millisecond => seconds!(DurationMillisecondType, 1e3),
                TimeUnit::Microsecond => seconds!(DurationMicrosecondType, 1e6),
                TimeUnit::Nanosecond => seconds!(DurationNanosecondType, 1e9),
            },
            DataType::Decimal32(..) => decimal!(Decimal32Type),
            DataType::Decimal64(..) => decimal!(Decimal64Type),
            DataType::Decimal128(..) => decimal!(Decimal128Type),
            DataType::Decimal256(..) => decimal!(Decimal256Type),
            DataType::Dictionary(..) => {
                let dictionary = column.as_any_dictionary();
                let values = dictionary.values().as_ref();
                let key = key(dictionary.keys(), row);
                match key.filter(|&key| key < values.len()) {
                    Some(key) => self.write(values, key, nested)?,
                    None => return Err(NoText::Value("a level that is not there".to_owned())),
                }
            }
            DataType::List(_) => self.write_list(column.as_list::<i32>().value(row).as_ref(), nested)?,
            DataType::LargeList(_) => self.write_list(column.as_list::<i64>().value(row).as_ref(), nested)?,
            DataType::FixedSizeList(..) => self.write_list(column.as_fixed_size_list().value(row).as_ref(), nested)?,
            DataType::Struct(_) => self.write_record(column.as_struct(), row, nested)?,
            _ => return Err(unknown()),
        }
        Ok(())
    }

    fn write_list(&mut self, values: &dyn Array, nested: usize) -> Result<(), NoText> {
        for row in 0..values.len() {
            self.write_str(if row == 0 { "[" } else { ", " })?;
            self.write(values, row, nested)?;
        }
        Ok(self.write_str(if values.is_empty() { "[]" } else { "]" })?)
    }

    fn write_record(
        &mut self,
        record: &StructArray,
        row: usize,
        nested: usize,
    ) -> Result<(), NoText> {
        self.write_str("{")?;
        for (place, (name, column)) in record
            .column_names()
            .iter()
            .zip(record.columns())
            .enumerate()
        {
            let between = if place == 0 { "" } else { ", " };
            write!(self, "{between}{name}: ")?;
            self.write(column.as_ref(), row, nested)?;
        }
        Ok(self.write_str("}")?)
    }
}

/// A level's place among a dictionary's values.
fn key(keys: &dyn Array, row: usize) -> Option<usize> {
    downcast_integer_array! {
        keys => usize::try_from(i128::from(keys.value(row))).ok(),
        _ => None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::{
        FixedSizeListBuilder, Float64Builder, ListBuilder, MapBuilder, StringBuilder,
    };
    use arrow_array::types::{Int8Type, UInt32Type};
    use arrow_array::*;
    use arrow_cast::display::{ArrayFormatter, FormatOptions};
    use arrow_schema::Field;

    use super::*;

    fn texts(column: &dyn Array) -> Vec<Result<String, NoText>> {
        let mut cell = Cell {
            most: 1000,
            ..Cell::default()
        };
        let mut text = |row| cell.set(column, row).map(|()| cell.text.clone());
        (0..column.len()).map(&mut text).collect()
    }

    fn text(column: &dyn Array) -> Vec<String> {
        texts(column).into_iter().map(Result::unwrap).collect()
    }

    fn columns() -> Vec<ArrayRef> {
        let words = [Some("a, b"), None, Some("")];
        let levels: DictionaryArray<Int8Type> = words.into_iter().collect();
        let others: DictionaryArray<UInt32Type> = words.into_iter().collect();
        let mut lists = ListBuilder::new(StringBuilder::new());
        lists.append_value(words);
        lists.append_value::<[Option<&str>; 0], _>([]);
        lists.append(false);
        let mut pairs = FixedSizeListBuilder::new(Float64Builder::new(), 2);
        pairs.values().append_slice(&[0.5, -2.0]);
        pairs.append(true);
        let records = StructArray::from(vec![
            (
                Arc::new(Field::new("x", DataType::Float64, true)),
                Arc::new(Float64Array::from(vec![Some(0.1), None])) as ArrayRef,
            ),
            (
                Arc::new(Field::new("word", DataType::Utf8, true)),
                Arc::new(StringArray::from(vec!["a", "b"])) as ArrayRef,
            ),
        ]);
        let decimals = Decimal128Array::from(vec![Some(12_345), Some(-5), None]);
        vec![
            Arc::new(NullArray::new(2)),
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
            Arc::new(Int8Array::from(vec![Some(i8::MIN), None])),
            Arc::new(Int16Array::from(vec![i16::MIN, 7])),
            Arc::new(Int32Array::from(vec![i32::MIN, 7])),
            Arc::new(Int64Array::from(vec![i64::MIN, i64::MAX])),
            Arc::new(UInt8Array::from(vec![255])),
            Arc::new(UInt16Array::from(vec![u16::MAX])),
            Arc::new(UInt32Array::from(vec![u32::MAX])),
            Arc::new(UInt64Array::from(vec![u64::MAX])),
            Arc::new(StringArray::from(words.to_vec())),
            Arc::new(LargeStringArray::from(words.to_vec())),
            Arc::new(StringViewArray::from(words.to_vec())),
            Arc::new(Date32Array::from(vec![
                Some(0),
                None,
                Some(-1),
                Some(20_000),
            ])),
            Arc::new(Date64Array::from(vec![0, 1_582_977_600_123])),
            Arc::new(TimestampSecondArray::from(vec![0, -1, 1_582_977_600])),
            Arc::new(TimestampMillisecondArray::from(vec![1_582_977_600_123])),
            Arc::new(TimestampMicrosecondArray::from(vec![1_582_977_600_000_001])),
            Arc::new(TimestampNanosecondArray::from(vec![i64::MAX, 5])),
            Arc::new(Time32SecondArray::from(vec![0, 86_399])),
            Arc::new(Time32MillisecondArray::from(vec![1, 86_399_999])),
            Arc::new(Time64MicrosecondArray::from(vec![1, 3_600_000_000])),
            Arc::new(Time64NanosecondArray::from(vec![1, 3_600_000_000_000])),
            Arc::new(decimals.clone().with_precision_and_scale(10, 2).unwrap()),
            Arc::new(decimals.with_precision_and_scale(10, -2).unwrap()),
            Arc::new(
                Decimal32Array::from(vec![1])
                    .with_precision_and_scale(5, 3)
                    .unwrap(),
            ),
            Arc::new(
                Decimal64Array::from(vec![-1_000])
                    .with_precision_and_scale(5, 3)
                    .unwrap(),
            ),
            Arc::new(Decimal256Array::from(vec![
                Some(<Decimal256Type as ArrowPrimitiveType>::Native::from_i128(7)),
                None,
            ])),
            Arc::new(levels),
            Arc::new(others),
            Arc::new(lists.finish()),
            Arc::new(pairs.finish()),
            Arc::new(records),
        ]
    }

    #[test]
    fn cells_are_what_arrow_shows() {
        let options = FormatOptions::default();
        for column in columns() {
            let shown = ArrayFormatter::try_new(column.as_ref(), &options).unwrap();
            let expected: Vec<_> = (0..column.len())
                .map(|row| shown.value(row).to_string())
                .collect();
            assert_eq!(text(column.as_ref()), expected, "{}", column.data_type());
        }
    }

    #[test]
    fn bytes_are_text_or_hexadecimal() {
        let of = |values: [&[u8]; 2]| -> [ArrayRef; 4] {
            let values = values.map(Some).to_vec();
            let fixed = values.iter().flatten();
            [
                Arc::new(BinaryArray::from(values.clone())),
                Arc::new(LargeBinaryArray::from(values.clone())),
                Arc::new(BinaryViewArray::from(values.clone())),
                Arc::new(FixedSizeBinaryArray::try_from_iter(fixed).unwrap()),
            ]
        };
        for column in of([b"1.5", b"abc"]) {
            assert_eq!(text(column.as_ref()), ["1.5", "abc"]);
        }
        for column in of([b"12", &[0, 255]]) {
            assert_eq!(text(column.as_ref()), ["12", "0x00ff"]);
        }
    }

    #[test]
    fn numbers_read_back_the_same() {
        let values = [
            0.1,
            1e300,
            -3.0,
            5e-324,
            1e16,
            123_456_789.0,
            1e-7,
            f64::MAX,
        ];
        for (text, value) in text(&Float64Array::from(values.to_vec()))
            .iter()
            .zip(values)
        {
            assert_eq!(text.parse::<f64>().unwrap(), value);
        }
        let single = Float32Array::from(vec![0.1, 1e-30]);
        assert_eq!(text(&single), ["0.1", "1e-30"]);
        let odd = Float64Array::from(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
        assert_eq!(text(&odd), ["NaN", "inf", "-inf"]);
    }

    #[test]
    fn spans_of_time_are_seconds() {
        assert_eq!(
            text(&DurationSecondArray::from(vec![Some(90), None])),
            ["90.0", ""]
        );
        assert_eq!(text(&DurationMillisecondArray::from(vec![1_500])), ["1.5"]);
        assert_eq!(text(&DurationMicrosecondArray::from(vec![-1])), ["-1e-6"]);
        assert_eq!(
            text(&DurationNanosecondArray::from(vec![86_400_000_000_000])),
            ["86400.0"]
        );
    }

    #[test]
    fn what_has_no_text_is_said() {
        let [day] = &texts(&Date64Array::from(vec![i64::MAX]))[..] else {
            panic!("one row")
        };
        assert_eq!(
            *day,
            Err(NoText::Value(format!("{} is no Date64", i64::MAX)))
        );
        let mut maps = MapBuilder::new(None, StringBuilder::new(), Float64Builder::new());
        maps.append(true).unwrap();
        assert!(
            matches!(&texts(&maps.finish())[..], [Err(NoText::Type(name))] if name.starts_with("Map"))
        );
        let long = texts(&StringArray::from(vec!["a".repeat(1001)]));
        assert_eq!(long, [Err(NoText::TooLong)]);
        // lists in lists, deeper than anybody's
        let mut deep: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        for _ in 0..MOST_NESTED {
            let field = Arc::new(Field::new("item", deep.data_type().clone(), true));
            deep = Arc::new(FixedSizeListArray::new(field, 1, deep, None));
        }
        assert!(matches!(&texts(&deep)[..], [Err(NoText::Type(_))]));
    }
}
