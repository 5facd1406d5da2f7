//! The Laplace approximation of a chain, which predictions for new inputs are made with:
//! `RUN/laplace/chain-000.safetensors`, one file a chain, in the format of a [`checkpoint`](super::checkpoint).

use super::checkpoint::{load_at, save_at};
use super::writer::Cursor;
use super::{Checkpoint, RunError, RunFolder, Tensor, atomic};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The name of the folder in a run folder.
pub(crate) const LAPLACE: &str = "laplace";

/// The file of a chain in the run folder `run`.
pub fn path(run: &Path, chain: u64) -> PathBuf {
    run.join(LAPLACE)
        .join(format!("chain-{chain:03}.safetensors"))
}

/// Writes the approximation of a chain, whole or not at all.
///
/// # Errors
/// [`RunError::Request`] when a tensor's shape is not that of its values; [`RunError::Io`] when the disk refuses.
pub fn save(
    folder: &RunFolder,
    chain: u64,
    document: &Value,
    tensors: &[Tensor<'_>],
) -> Result<(), RunError> {
    atomic::create_folder(&folder.path().join(LAPLACE))?;
    let path = path(folder.path(), chain);
    save_at(&path, chain, &Cursor::default(), document, tensors)
}

/// Reads the approximation of a chain; `None` where there is no file.
///
/// Memory: the file.
///
/// # Errors
/// As [`checkpoint::load`](super::checkpoint::load).
pub fn load(run: &Path, chain: u64) -> Result<Option<Checkpoint>, RunError> {
    load_at(path(run, chain), chain)
}
