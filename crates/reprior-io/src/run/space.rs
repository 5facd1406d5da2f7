//! Space on disk: what is free, what a run has still to write, what is freed by overwriting it.

use super::folder::CONTENTS;
use super::layout::{METADATA_BYTES, ROOT, StoreLayout};
use super::schema::Schema;
use super::{Files, RunError, checkpoint};
use std::fs;
use std::io;
use std::path::Path;

impl Schema {
    /// Bytes that `draws.zarr` will take at the end, metadata included (the latter roughly).
    ///
    /// # Errors
    /// [`RunError::Request`] when the schema contradicts itself or the size exceeds 2⁶⁴ bytes.
    pub fn bytes_on_disk(&self) -> Result<u64, RunError> {
        StoreLayout::from_schema(self)?.bytes_on_disk()
    }

    /// Bytes of memory that the [`DrawWriter`](super::DrawWriter) of one chain holds: one chunk of each variable.
    ///
    /// # Errors
    /// As [`bytes_on_disk`](Self::bytes_on_disk).
    pub fn bytes_in_memory(&self) -> Result<u64, RunError> {
        StoreLayout::from_schema(self)?.bytes_in_memory()
    }

    /// Bytes that the run in the folder or the [`Files`] `run` has still to write: of draws those whose files are missing, and for each chain
    /// without a checkpoint `checkpoint` bytes. All of them where nothing is there yet, none where the run is complete.
    ///
    /// A file that is replaced stands beside its successor for a moment: that one file is left out of the count.
    ///
    /// Cost: looks for each file once.
    ///
    /// # Errors
    /// [`RunError::Request`] when the schema contradicts itself or the size exceeds 2⁶⁴ bytes.
    pub fn bytes_to_write(&self, run: impl Into<Files>, checkpoint: u64) -> Result<u64, RunError> {
        let files = run.into();
        let layout = StoreLayout::from_schema(self)?;
        let missing = (0..layout.chains)
            .filter(|&chain| !files.contains(&checkpoint::name(chain)))
            .count() as u64;
        let checkpoints = missing.saturating_mul(checkpoint);
        // without this file the store is made afresh
        if !files.contains(ROOT) {
            return Ok(layout.bytes_on_disk()?.saturating_add(checkpoints));
        }
        let mut bytes = checkpoints;
        for group in &layout.groups {
            for array in group.variables.iter().chain(&group.coordinates) {
                if !files.contains(&array.document(&group.name)) {
                    bytes = bytes.saturating_add(METADATA_BYTES);
                }
                let chunks =
                    |axis: usize| match (array.shape.get(axis), array.chunk_shape.get(axis)) {
                        (Some(&length), Some(&chunk)) if chunk > 0 => length.div_ceil(chunk),
                        _ => 1,
                    };
                let axis = |name: &str| array.dims.iter().position(|dim| dim == name);
                // the coordinates of chains and draws are one chunk
                let chains = axis("chain").map_or(1, chunks);
                let draws = axis("draw").map_or(1, chunks);
                let of_each = array.chunk_bytes().unwrap_or(u64::MAX);
                for chain in 0..chains {
                    let is_missing =
                        |&chunk: &u64| !files.contains(&array.chunk(&group.name, chain, chunk));
                    let missing = (0..draws).filter(is_missing).count() as u64;
                    bytes = bytes.saturating_add(missing.saturating_mul(of_each));
                }
            }
        }
        Ok(bytes)
    }
}

/// Bytes of the files that overwriting the run in the folder `run` removes, before the new run writes anything.
///
/// # Errors
/// [`RunError::Io`] when a folder cannot be listed.
pub fn overwritten_bytes(run: &Path) -> Result<u64, RunError> {
    CONTENTS.iter().try_fold(0_u64, |sum, name| {
        let path = run.join(name);
        let bytes = bytes_below(&path).map_err(RunError::io("read", &path))?;
        Ok(sum.saturating_add(bytes))
    })
}

/// Bytes of the file at `path`, or of all files below it; links are not followed. None where there is nothing.
///
/// # Errors
/// What the system says of a folder that cannot be listed.
pub fn bytes_below(path: &Path) -> io::Result<u64> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    if !metadata.is_dir() {
        return Ok(if metadata.is_file() {
            metadata.len()
        } else {
            0
        });
    }
    fs::read_dir(path)?.try_fold(0_u64, |sum, entry| {
        Ok(sum.saturating_add(bytes_below(&entry?.path())?))
    })
}

/// Bytes free to this user on the disk of `path`, or of the nearest folder above it that exists.
/// `None` on systems where this is not known.
///
/// # Errors
/// [`RunError::Io`] when the system does not tell.
pub fn free_bytes(path: &Path) -> Result<Option<u64>, RunError> {
    let present = path
        .ancestors()
        .find(|folder| folder.exists())
        .unwrap_or(Path::new("."));
    free(present).map_err(RunError::io("read", present))
}

#[cfg(unix)]
fn free(path: &Path) -> io::Result<Option<u64>> {
    let disk = rustix::fs::statvfs(path)?;
    Ok(Some(disk.f_bavail.saturating_mul(disk.f_frsize)))
}

#[cfg(not(unix))]
fn free(_: &Path) -> io::Result<Option<u64>> {
    Ok(None)
}
