//! The Laplace approximation of a chain, which predictions for new inputs are made with:
//! `RUN/laplace/chain-000.safetensors`, one file a chain, in the format of a [`checkpoint`](super::checkpoint).

use super::checkpoint::{Checkpoint, load_from};
use super::cursor::Cursor;
use super::tensor_file::{self, Body, Tensor};
use super::{Files, RunError};
use serde_json::Value;

/// The name of the folder in a run folder.
pub(crate) const LAPLACE: &str = "laplace";

/// The name of a chain's file, relative to the run.
pub fn name(chain: u64) -> String {
    format!("{LAPLACE}/chain-{chain:03}.safetensors")
}

/// Writes the approximation of a chain, whole or not at all.
///
/// # Errors
/// [`RunError::Request`] when a tensor's shape is not that of its values; [`RunError::Io`] when the disk refuses.
pub fn save(
    files: &Files,
    chain: u64,
    document: &Value,
    tensors: &[Tensor<'_>],
) -> Result<(), RunError> {
    files.create_folder(LAPLACE)?;
    let body = Body {
        chain,
        cursor: Cursor::default(),
        document: document.clone(),
    };
    tensor_file::write(files, &name(chain), &body, tensors)
}

/// Reads the approximation of a chain; `None` where there is no file.
///
/// Memory: the file.
///
/// # Errors
/// As [`checkpoint::load`](super::checkpoint::load).
pub fn load(files: &Files, chain: u64) -> Result<Option<Checkpoint>, RunError> {
    load_from(files, &name(chain), chain)
}
