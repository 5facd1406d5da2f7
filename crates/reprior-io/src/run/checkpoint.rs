//! The state from which a chain goes on: `RUN/checkpoint/chain-000.safetensors`, one file a chain.
//!
//! Named tensors of `f32`, `f64` or `u64`, a JSON document of the caller's and the writer's cursor, in a safetensors file.
//! The file is replaced atomically, after the draws it counts are on disk
//! ([`DrawWriter::checkpoint`](super::DrawWriter::checkpoint)).
//!
//! JSON has no NaN and no infinities (serde_json turns them into `null`): store numbers that may be such as tensors.
//! All other numbers of the document come back bit for bit.

use super::cursor::Cursor;
use super::tensor_file::{self, Body, StoredTensor, Tensor};
use super::values::{DataType, Values, decode};
use super::{Files, RunError};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The name of the folder in a run folder.
pub(crate) const CHECKPOINT: &str = "checkpoint";
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
    let body = Body {
        chain,
        cursor: cursor.clone(),
        document: document.clone(),
    };
    tensor_file::write(files, &name(chain), &body, tensors)
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
    let (body, tensors) = tensor_file::read(&path, &bytes)?;
    if body.chain != chain {
        return Err(RunError::damaged(
            &path,
            format!("belongs to chain {}", body.chain),
        ));
    }
    Ok(Some(Checkpoint {
        path,
        cursor: body.cursor,
        document: body.document,
        file: bytes,
        tensors,
    }))
}

/// Counts are far below: their sums and small multiples fit into 64 bits.
const MOST_COUNTED: u64 = 1 << 53;

/// A count in a document that is above [`MOST_COUNTED`].
fn huge(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().filter(|&count| count > MOST_COUNTED),
        Value::Array(all) => all.iter().find_map(huge),
        Value::Object(all) => all.values().find_map(huge),
        _ => None,
    }
}

/// The numbers of a tensor.
enum Owned {
    F32(Vec<f32>),
    F64(Vec<f64>),
    U64(Vec<u64>),
}

impl Owned {
    fn values(&self) -> Values<'_> {
        match self {
            Self::F32(values) => Values::F32(values),
            Self::F64(values) => Values::F64(values),
            Self::U64(values) => Values::U64(values),
        }
    }
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

    /// Writes the same under another name, as another chain's.
    pub(super) fn write_as(&self, files: &Files, name: &str, chain: u64) -> Result<(), RunError> {
        let body = Body {
            chain,
            cursor: self.cursor.clone(),
            document: self.document.clone(),
        };
        let mut all = Vec::new();
        for (name, tensor) in &self.tensors {
            let shape = tensor.shape.as_slice();
            let owned = match tensor.data_type {
                DataType::F32 => Owned::F32(self.f32(name, shape)?),
                DataType::U64 => Owned::U64(self.u64(name, shape)?),
                _ => Owned::F64(self.f64(name, shape)?),
            };
            all.push((name, shape, owned));
        }
        let tensors = all.iter().map(|(name, shape, owned)| Tensor {
            name,
            shape,
            values: owned.values(),
        });
        tensor_file::write(files, name, &body, &tensors.collect::<Vec<_>>())
    }

    /// The caller's document.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// The caller's document as what it was made of.
    ///
    /// # Errors
    /// A damaged file: another document, or a count that nothing comes to.
    pub fn document_as<T: DeserializeOwned>(&self) -> Result<T, RunError> {
        if let Some(count) = huge(&self.document) {
            let what = format!("{count} of anything has never been counted");
            return Err(RunError::damaged(&self.path, what));
        }
        T::deserialize(&self.document).map_err(|error| RunError::damaged(&self.path, error))
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
