//! The state from which a chain goes on: `RUN/checkpoint/chain-000.safetensors`, one file a chain.
//!
//! A [safetensors](https://github.com/huggingface/safetensors) file: named tensors of `f32`, `f64` or `u64`, and in its
//! metadata a JSON document of the caller's, the writer's cursor, a format version and a CRC-32 of all of it.
//! The file is replaced atomically, after the draws it counts are on disk
//! ([`DrawWriter::checkpoint`](super::DrawWriter::checkpoint)).
//!
//! JSON has no NaN and no infinities (serde_json turns them into `null`): store numbers that may be such as tensors.
//! All other numbers of the document come back bit for bit.

use super::values::{DataType, Values, decode};
use super::writer::Cursor;
use super::{Files, RunError};
use flate2::Crc;
use safetensors::tensor::{Dtype, Metadata, SafeTensors, TensorInfo};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// The name of the folder in a run folder.
pub(crate) const CHECKPOINT: &str = "checkpoint";
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

/// What a checkpoint held.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    /// What messages call the file.
    path: PathBuf,
    cursor: Cursor,
    document: Value,
    file: Arc<Vec<u8>>,
    tensors: BTreeMap<String, StoredTensor>,
}

#[derive(Debug, Clone)]
struct StoredTensor {
    data_type: DataType,
    shape: Vec<usize>,
    /// Its bytes in the file.
    place: Range<usize>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: u32,
    /// Over `body` and the tensors.
    crc32: u32,
    /// A [`Body`] as JSON text, exactly as it was when the sum was formed.
    body: String,
}

#[derive(Serialize, Deserialize)]
struct Body {
    chain: u64,
    cursor: Cursor,
    document: Value,
}

/// The name of a chain's checkpoint file, relative to the run.
pub fn name(chain: u64) -> String {
    format!("{CHECKPOINT}/chain-{chain:03}.safetensors")
}

pub(crate) fn save(
    files: &Files,
    chain: u64,
    cursor: &Cursor,
    document: &Value,
    tensors: &[Tensor<'_>],
) -> Result<(), RunError> {
    save_as(files, &name(chain), chain, cursor, document, tensors)
}

pub(super) fn save_as(
    files: &Files,
    name: &str,
    chain: u64,
    cursor: &Cursor,
    document: &Value,
    tensors: &[Tensor<'_>],
) -> Result<(), RunError> {
    let mut stored = BTreeMap::new();
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
        let is_first = stored.insert(tensor.name, (tensor, dtype)).is_none();
        if tensor.name == "__metadata__" || !is_first {
            return Err(RunError::request(format!(
                "a checkpoint cannot have a tensor {:?}, or not two of them",
                tensor.name
            )));
        }
    }
    let body = Body {
        chain,
        cursor: cursor.clone(),
        document: document.clone(),
    };
    let unwritable = |error: &dyn std::fmt::Display| {
        RunError::request(format!("cannot form a checkpoint: {error}"))
    };
    let body = serde_json::to_string(&body).map_err(|error| unwritable(&error))?;
    let mut crc = Crc::new();
    crc.update(body.as_bytes());
    for (name, (tensor, _)) in &stored {
        update_with_name(&mut crc, name, tensor.values.data_type(), tensor.shape);
        tensor.values.pieces(|bytes| crc.update(bytes));
    }
    let header = Header {
        format: FORMAT,
        crc32: crc.sum(),
        body,
    };
    let header = serde_json::to_string(&header).map_err(|error| unwritable(&error))?;
    // larger elements first, so that all are aligned
    let mut ordered: Vec<_> = stored.into_values().collect();
    ordered.sort_by_key(|&(tensor, dtype)| (Reverse(dtype), tensor.name));
    let mut end = 0;
    let information = ordered.iter().map(|(tensor, dtype)| {
        let start = end;
        end += tensor.values.len() * tensor.values.data_type().size();
        let information = TensorInfo {
            dtype: *dtype,
            shape: tensor.shape.to_vec(),
            data_offsets: (start, end),
        };
        (tensor.name.to_owned(), information)
    });
    let document = HashMap::from([(KEY.into(), header)]);
    let metadata =
        Metadata::new(Some(document), information.collect()).map_err(|error| unwritable(&error))?;
    let mut metadata = serde_json::to_vec(&metadata).map_err(|error| unwritable(&error))?;
    metadata.resize(metadata.len().next_multiple_of(8), b' ');
    files.write_with(name, |file| {
        file.write_all(&(metadata.len() as u64).to_le_bytes())?;
        file.write_all(&metadata)?;
        for (tensor, _) in &ordered {
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

/// Takes the tensors out of the checkpoint of a chain that has come to its end: nothing goes on from its state, which is most
/// of the file. Document and cursor stay; without a checkpoint nothing is done.
///
/// # Errors
/// As [`load`]; [`RunError::Io`] when the disk refuses.
pub fn finish(run: impl Into<Files>, chain: u64) -> Result<(), RunError> {
    let files = run.into();
    match load(&files, chain)? {
        Some(checkpoint) if !checkpoint.is_finished() => {
            save(&files, chain, &checkpoint.cursor, &checkpoint.document, &[])
        }
        _ => Ok(()),
    }
}

/// Reads the checkpoint of a chain of a run, of a folder by its path or of [`Files`]; `None` where the chain has none yet.
///
/// Memory: the file.
///
/// # Errors
/// [`RunError::Damaged`] when the file is truncated, is not a checkpoint, has another version, belongs to another chain
/// or fails its checksum; [`RunError::Io`] when it cannot be read.
pub fn load(run: impl Into<Files>, chain: u64) -> Result<Option<Checkpoint>, RunError> {
    load_from(&run.into(), &name(chain), chain)
}

pub(super) fn load_from(
    files: &Files,
    name: &str,
    chain: u64,
) -> Result<Option<Checkpoint>, RunError> {
    let Some(bytes) = files.read(name)? else {
        return Ok(None);
    };
    let path = files.place(name);
    let damaged = |reason: String| RunError::damaged(&path, reason);
    let unreadable = |error: &dyn std::fmt::Display| {
        damaged(format!("is not a whole safetensors file: {error}"))
    };
    let (metadata_length, metadata) =
        SafeTensors::read_metadata(&bytes).map_err(|error| unreadable(&error))?;
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
    SafeTensors::deserialize(&bytes).map_err(|error| unreadable(&error))?;
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
    if body.chain != chain {
        return Err(damaged(format!("belongs to chain {}", body.chain)));
    }
    Ok(Some(Checkpoint {
        path,
        cursor: body.cursor,
        document: body.document,
        file: bytes,
        tensors,
    }))
}

impl Checkpoint {
    /// The draws that were on disk.
    pub fn cursor(&self) -> &Cursor {
        &self.cursor
    }

    /// Whether there are no tensors, as after [`finish`].
    pub fn is_finished(&self) -> bool {
        self.tensors.is_empty()
    }

    /// The caller's document.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// Names and shapes of the tensors, sorted by name.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, &[usize])> {
        self.tensors
            .iter()
            .map(|(name, tensor)| (name.as_str(), tensor.shape.as_slice()))
    }

    /// The elements of the tensor `name`, of type `f32` and shape `shape`.
    ///
    /// # Errors
    /// [`RunError::Damaged`] when there is no such tensor or it has another type or shape.
    pub fn f32(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, RunError> {
        self.read(name, shape, DataType::F32, f32::from_le_bytes)
    }

    /// As [`f32`](Self::f32), of type `f64`.
    ///
    /// # Errors
    /// As [`f32`](Self::f32).
    pub fn f64(&self, name: &str, shape: &[usize]) -> Result<Vec<f64>, RunError> {
        self.read(name, shape, DataType::F64, f64::from_le_bytes)
    }

    /// As [`f32`](Self::f32), of type `u64`.
    ///
    /// # Errors
    /// As [`f32`](Self::f32).
    pub fn u64(&self, name: &str, shape: &[usize]) -> Result<Vec<u64>, RunError> {
        self.read(name, shape, DataType::U64, u64::from_le_bytes)
    }

    fn read<T, const SIZE: usize>(
        &self,
        name: &str,
        shape: &[usize],
        data_type: DataType,
        from_bytes: impl Fn([u8; SIZE]) -> T,
    ) -> Result<Vec<T>, RunError> {
        let wanted = data_type.name();
        let tensor = self
            .tensors
            .get(name)
            .ok_or_else(|| RunError::damaged(&self.path, format!("has no tensor {name:?}")))?;
        if tensor.data_type != data_type || tensor.shape != shape {
            return Err(RunError::damaged(
                &self.path,
                format!(
                    "its tensor {name:?} has type {} and shape {:?}, but the chain needs {wanted} and {shape:?}",
                    tensor.data_type.name(),
                    tensor.shape
                ),
            ));
        }
        let bytes = &self.file[tensor.place.clone()];
        let mut values = Vec::with_capacity(bytes.len() / SIZE);
        decode(bytes, &mut values, from_bytes);
        Ok(values)
    }
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
