//! The file of a checkpoint: named tensors in a [safetensors](https://github.com/huggingface/safetensors) file, and in its
//! metadata a [`Body`] as JSON, a format version and a CRC-32 of all of it.

use super::cursor::Cursor;
use super::values::{DataType, Values};
use super::{Files, RunError};
use flate2::Crc;
use safetensors::tensor::{Dtype, Metadata, SafeTensors, TensorInfo};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;

const FORMAT: u32 = 1;
/// The one key of the metadata: a map of several would be written in random order.
const KEY: &str = "reprior";

/// A named tensor to be stored.
#[derive(Debug, Clone, Copy)]
pub struct Tensor<'a> {
    /// Name, not `__metadata__`.
    pub name: &'a str,
    /// Length of each dimension; empty for a scalar.
    pub shape: &'a [usize],
    /// The elements in C order: `f32`, `f64` or `u64`.
    pub values: Values<'a>,
}

/// A tensor of a file that was read.
#[derive(Debug, Clone)]
pub(crate) struct StoredTensor {
    pub(crate) data_type: DataType,
    pub(crate) shape: Vec<usize>,
    /// Its bytes in the file.
    pub(crate) place: Range<usize>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: u32,
    /// Over `body` and the tensors.
    crc32: u32,
    /// A [`Body`] as JSON text, exactly as it was when the sum was formed.
    body: String,
}

/// What a file has beside the tensors.
#[derive(Serialize, Deserialize)]
pub(crate) struct Body {
    pub(crate) chain: u64,
    pub(crate) cursor: Cursor,
    pub(crate) document: Value,
}

/// Writes a file, whole or not at all.
pub(crate) fn write(
    files: &Files,
    name: &str,
    body: &Body,
    tensors: &[Tensor<'_>],
) -> Result<(), RunError> {
    let tensors = checked(tensors)?;
    let metadata = metadata(body, &tensors)
        .map_err(|error| RunError::request(format!("cannot form a checkpoint: {error}")))?;
    files.write_with(name, |file| {
        file.write_all(&(metadata.len() as u64).to_le_bytes())?;
        file.write_all(&metadata)?;
        for (_, tensor) in in_file_order(&tensors) {
            let mut written = Ok(());
            tensor.values.pieces(|bytes| {
                if written.is_ok() {
                    written = file.write_all(bytes);
                }
            });
            written?;
        }
        Ok(())
    })
}

/// Tensors by their names, with the file's types.
type Checked<'a> = BTreeMap<&'a str, (Dtype, &'a Tensor<'a>)>;

fn checked<'a>(tensors: &'a [Tensor<'a>]) -> Result<Checked<'a>, RunError> {
    let mut checked = BTreeMap::new();
    for tensor in tensors {
        let data_type = tensor.values.data_type();
        let elements = tensor.shape.iter().copied().try_fold(1, usize::checked_mul);
        let dtype = dtype(data_type).filter(|_| elements == Some(tensor.values.len()));
        let dtype = dtype.ok_or_else(|| {
            RunError::request(format!(
                "the tensor {:?} of a checkpoint cannot have the shape {:?}, {} values and the type {}",
                tensor.name,
                tensor.shape,
                tensor.values.len(),
                data_type.name()
            ))
        })?;
        let is_first = checked.insert(tensor.name, (dtype, tensor)).is_none();
        if tensor.name == "__metadata__" || !is_first {
            return Err(RunError::request(format!(
                "a checkpoint cannot have a tensor {:?}, or not two of them",
                tensor.name
            )));
        }
    }
    Ok(checked)
}

/// Larger elements first, so that all are aligned.
fn in_file_order<'a>(tensors: &Checked<'a>) -> Vec<(Dtype, &'a Tensor<'a>)> {
    let mut ordered: Vec<_> = tensors.values().copied().collect();
    ordered.sort_by_key(|&(dtype, tensor)| (Reverse(dtype), tensor.name));
    ordered
}

/// What a file begins with, after its length.
fn metadata(body: &Body, tensors: &Checked<'_>) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let body = serde_json::to_string(body)?;
    let mut crc = Crc::new();
    crc.update(body.as_bytes());
    for (name, (_, tensor)) in tensors {
        update_with_name(&mut crc, name, tensor.values.data_type(), tensor.shape);
        tensor.values.pieces(|bytes| crc.update(bytes));
    }
    let header = serde_json::to_string(&Header {
        format: FORMAT,
        crc32: crc.sum(),
        body,
    })?;
    let mut end = 0;
    let information = in_file_order(tensors).into_iter().map(|(dtype, tensor)| {
        let start = end;
        end += tensor.values.len() * tensor.values.data_type().size();
        let information = TensorInfo {
            dtype,
            shape: tensor.shape.to_vec(),
            data_offsets: (start, end),
        };
        (tensor.name.to_owned(), information)
    });
    let information = information.collect();
    let metadata = Metadata::new(Some(HashMap::from([(KEY.into(), header)])), information)?;
    let mut metadata = serde_json::to_vec(&metadata)?;
    metadata.resize(metadata.len().next_multiple_of(8), b' ');
    Ok(metadata)
}

/// Reads the bytes of a file, which messages call `path`: what it has beside the tensors, and where these are.
pub(crate) fn read(
    path: &Path,
    bytes: &[u8],
) -> Result<(Body, BTreeMap<String, StoredTensor>), RunError> {
    let damaged = |reason: String| RunError::damaged(path, reason);
    let unreadable = |error: &dyn std::fmt::Display| {
        damaged(format!("is not a whole safetensors file: {error}"))
    };
    let (metadata_length, metadata) =
        SafeTensors::read_metadata(bytes).map_err(|error| unreadable(&error))?;
    let header = metadata
        .metadata()
        .as_ref()
        .and_then(|metadata| metadata.get(KEY))
        .ok_or_else(|| damaged("is not a checkpoint of reprior".into()))?;
    let header: Header = serde_json::from_str(header)
        .map_err(|error| damaged(format!("has an unreadable header: {error}")))?;
    if header.format != FORMAT {
        return Err(damaged(format!(
            "has format version {}, but this program reads version {FORMAT}",
            header.format
        )));
    }
    SafeTensors::deserialize(bytes).map_err(|error| unreadable(&error))?;
    // a length of eight bytes, the metadata, then what offsets are counted from
    let first = 8 + metadata_length;
    let mut tensors = BTreeMap::new();
    for (name, information) in metadata.tensors() {
        let data_type = match information.dtype {
            Dtype::F32 => DataType::F32,
            Dtype::F64 => DataType::F64,
            Dtype::U64 => DataType::U64,
            other => {
                return Err(damaged(format!(
                    "has a tensor {name:?} of the type {other:?}"
                )));
            }
        };
        let tensor = StoredTensor {
            data_type,
            shape: information.shape.clone(),
            place: first + information.data_offsets.0..first + information.data_offsets.1,
        };
        tensors.insert(name, tensor);
    }
    let mut crc = Crc::new();
    crc.update(header.body.as_bytes());
    for (name, tensor) in &tensors {
        update_with_name(&mut crc, name, tensor.data_type, &tensor.shape);
        crc.update(&bytes[tensor.place.clone()]);
    }
    if crc.sum() != header.crc32 {
        return Err(damaged("fails its checksum: the file is damaged".into()));
    }
    let body: Body = serde_json::from_str(&header.body)
        .map_err(|error| damaged(format!("has an unreadable document: {error}")))?;
    Ok((body, tensors))
}

fn dtype(data_type: DataType) -> Option<Dtype> {
    match data_type {
        DataType::F32 => Some(Dtype::F32),
        DataType::F64 => Some(Dtype::F64),
        DataType::U64 => Some(Dtype::U64),
        DataType::I64 | DataType::U32 | DataType::Bool => None,
    }
}

/// What comes before a tensor's bytes in the checksum.
fn update_with_name(crc: &mut Crc, name: &str, data_type: DataType, shape: &[usize]) {
    crc.update(name.as_bytes());
    crc.update(format!("{}{shape:?}", data_type.name()).as_bytes());
}
