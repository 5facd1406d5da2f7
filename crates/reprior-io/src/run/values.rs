//! Numbers on their way to and from disk: little endian, C order.

use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The type of an array's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DataType {
    /// 32-bit floating point.
    #[serde(rename = "float32")]
    F32,
    /// 64-bit floating point.
    #[serde(rename = "float64")]
    F64,
    /// Signed 64-bit integer.
    #[serde(rename = "int64")]
    I64,
    /// Unsigned 32-bit integer.
    #[serde(rename = "uint32")]
    U32,
    /// Unsigned 64-bit integer.
    #[serde(rename = "uint64")]
    U64,
    /// Truth value, one byte.
    #[serde(rename = "bool")]
    Bool,
}

impl DataType {
    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            Self::F32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 => 8,
            Self::Bool => 1,
        }
    }

    /// Zarr's name of the type.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::I64 => "int64",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::Bool => "bool",
        }
    }

    /// Overwrites `bytes` with the fill value: NaN for floating point, zero otherwise.
    pub(crate) fn fill(self, bytes: &mut [u8]) {
        match self {
            Self::F32 => fill_with(bytes, f32::NAN.to_le_bytes()),
            Self::F64 => fill_with(bytes, f64::NAN.to_le_bytes()),
            Self::I64 | Self::U32 | Self::U64 | Self::Bool => bytes.fill(0),
        }
    }
}

fn fill_with<const SIZE: usize>(bytes: &mut [u8], value: [u8; SIZE]) {
    for element in bytes.chunks_exact_mut(SIZE) {
        element.copy_from_slice(&value);
    }
}

/// The type of what an array holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum StoredType {
    Number(DataType),
    Text(TextType),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TextType {
    #[serde(rename = "string")]
    String,
}

/// Borrowed numbers of one variable: one draw of it, or a whole array without draws.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Values<'a> {
    /// 32-bit floating point.
    F32(&'a [f32]),
    /// 64-bit floating point.
    F64(&'a [f64]),
    /// Signed 64-bit integers.
    I64(&'a [i64]),
    /// Unsigned 32-bit integers.
    U32(&'a [u32]),
    /// Unsigned 64-bit integers.
    U64(&'a [u64]),
    /// Truth values.
    Bool(&'a [bool]),
}

impl Values<'_> {
    /// The type of the elements.
    pub fn data_type(&self) -> DataType {
        match self {
            Self::F32(_) => DataType::F32,
            Self::F64(_) => DataType::F64,
            Self::I64(_) => DataType::I64,
            Self::U32(_) => DataType::U32,
            Self::U64(_) => DataType::U64,
            Self::Bool(_) => DataType::Bool,
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::I64(values) => values.len(),
            Self::U32(values) => values.len(),
            Self::U64(values) => values.len(),
            Self::Bool(values) => values.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the elements to `bytes`, which must have exactly their size.
    pub(crate) fn encode(&self, bytes: &mut [u8]) {
        debug_assert_eq!(bytes.len(), self.len() * self.data_type().size());
        match self {
            Self::F32(values) => encode(bytes, values, |value| value.to_le_bytes()),
            Self::F64(values) => encode(bytes, values, |value| value.to_le_bytes()),
            Self::I64(values) => encode(bytes, values, |value| value.to_le_bytes()),
            Self::U32(values) => encode(bytes, values, |value| value.to_le_bytes()),
            Self::U64(values) => encode(bytes, values, |value| value.to_le_bytes()),
            Self::Bool(values) => encode(bytes, values, |value| [u8::from(value)]),
        }
    }

    /// Gives the elements as bytes, piece by piece in order: memory does not grow with their number.
    pub(crate) fn pieces(&self, mut take: impl FnMut(&[u8])) {
        const ELEMENTS: usize = 1 << 13;
        let mut bytes = vec![0; ELEMENTS.min(self.len()) * self.data_type().size()];
        for start in (0..self.len()).step_by(ELEMENTS) {
            let piece = self.range(start..self.len().min(start + ELEMENTS));
            let bytes = &mut bytes[..piece.len() * piece.data_type().size()];
            piece.encode(bytes);
            take(bytes);
        }
    }

    fn range(&self, range: Range<usize>) -> Self {
        match self {
            Self::F32(values) => Self::F32(&values[range]),
            Self::F64(values) => Self::F64(&values[range]),
            Self::I64(values) => Self::I64(&values[range]),
            Self::U32(values) => Self::U32(&values[range]),
            Self::U64(values) => Self::U64(&values[range]),
            Self::Bool(values) => Self::Bool(&values[range]),
        }
    }

    /// The elements as bytes.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = vec![0; self.len() * self.data_type().size()];
        self.encode(&mut bytes);
        bytes
    }
}

fn encode<T: Copy, const SIZE: usize>(
    bytes: &mut [u8],
    values: &[T],
    to_bytes: impl Fn(T) -> [u8; SIZE],
) {
    for (element, &value) in bytes.chunks_exact_mut(SIZE).zip(values) {
        element.copy_from_slice(&to_bytes(value));
    }
}

/// Appends the elements in `bytes`, each converted by `from_bytes`, to `values`.
pub(crate) fn decode<T, const SIZE: usize>(
    bytes: &[u8],
    values: &mut Vec<T>,
    from_bytes: impl Fn([u8; SIZE]) -> T,
) {
    let (elements, _) = bytes.as_chunks::<SIZE>();
    values.extend(elements.iter().map(|&element| from_bytes(element)));
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// A type that stored numbers can be read as: `f32` or `f64`.
///
/// Integers are converted to the nearest representable number, truth values to 0 and 1.
pub trait Number: sealed::Sealed + Copy {
    #[doc(hidden)]
    fn decode(data_type: DataType, bytes: &[u8], values: &mut Vec<Self>);
}

macro_rules! number {
    ($number:ty) => {
        impl Number for $number {
            fn decode(data_type: DataType, bytes: &[u8], values: &mut Vec<Self>) {
                match data_type {
                    DataType::F32 => decode(bytes, values, |b| f32::from_le_bytes(b) as $number),
                    DataType::F64 => decode(bytes, values, |b| f64::from_le_bytes(b) as $number),
                    DataType::I64 => decode(bytes, values, |b| i64::from_le_bytes(b) as $number),
                    DataType::U32 => decode(bytes, values, |b| u32::from_le_bytes(b) as $number),
                    DataType::U64 => decode(bytes, values, |b| u64::from_le_bytes(b) as $number),
                    DataType::Bool => decode(bytes, values, |[b]: [u8; 1]| <$number>::from(b != 0)),
                }
            }
        }
    };
}

number!(f32);
number!(f64);
