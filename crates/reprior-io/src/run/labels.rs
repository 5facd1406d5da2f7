//! Labels along dimensions, and the bytes of their chunks.

use super::values::{DataType, StoredType, Values, decode};

/// Labels along a dimension.
#[derive(Debug, Clone, PartialEq)]
pub enum Labels {
    /// Integers.
    Integers(Vec<i64>),
    /// Real numbers.
    Reals(Vec<f64>),
    /// Names.
    Text(Vec<String>),
}

impl Labels {
    /// Number of labels.
    pub fn len(&self) -> usize {
        match self {
            Self::Integers(labels) => labels.len(),
            Self::Reals(labels) => labels.len(),
            Self::Text(labels) => labels.len(),
        }
    }

    /// Whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keeps the first `length`.
    pub(crate) fn truncate(&mut self, length: usize) {
        match self {
            Self::Integers(labels) => labels.truncate(length),
            Self::Reals(labels) => labels.truncate(length),
            Self::Text(labels) => labels.truncate(length),
        }
    }

    /// As their chunk has them: text as Zarr's codec `vlen-utf8`, the number of labels, then each one's length and bytes.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Integers(labels) => Values::I64(labels).to_bytes(),
            Self::Reals(labels) => Values::F64(labels).to_bytes(),
            Self::Text(labels) => {
                let mut bytes = (labels.len() as u32).to_le_bytes().to_vec();
                for label in labels {
                    bytes.extend_from_slice(&(label.len() as u32).to_le_bytes());
                    bytes.extend_from_slice(label.as_bytes());
                }
                bytes
            }
        }
    }

    /// Those of a chunk; `None` if it has no whole list of them.
    pub(crate) fn from_bytes(stored: StoredType, bytes: &[u8]) -> Option<Self> {
        Some(match stored {
            StoredType::Text(_) => Self::Text(decode_text(bytes)?),
            StoredType::Number(DataType::F64) => {
                let mut labels = Vec::new();
                decode(bytes, &mut labels, f64::from_le_bytes);
                Self::Reals(labels)
            }
            StoredType::Number(_) => {
                let mut labels = Vec::new();
                decode(bytes, &mut labels, i64::from_le_bytes);
                Self::Integers(labels)
            }
        })
    }
}

fn decode_text(bytes: &[u8]) -> Option<Vec<String>> {
    let (count, mut rest) = bytes.split_first_chunk()?;
    let count = u32::from_le_bytes(*count);
    let mut labels = Vec::new();
    for _ in 0..count {
        let (length, tail) = rest.split_first_chunk()?;
        let (label, tail) = tail.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        labels.push(String::from_utf8(label.to_vec()).ok()?);
        rest = tail;
    }
    rest.is_empty().then_some(labels)
}
