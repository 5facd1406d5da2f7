//! Files that appear whole or not at all.
//!
//! [`write()`] puts the bytes into a temporary file of the same folder, syncs it, renames it over the
//! target and syncs the folder. A reader sees the old file or the new one, never a part; after
//! `write` returns the new one survives a loss of power. A process killed in between leaves a
//! `.NAME.PROCESS-COUNT.tmp` behind, which harms nobody and which [`remove_leftovers`] deletes.
//!
//! Small files that nothing relies on yet are written without (`write_unsettled`), and made durable together (`settle`).
//!
//! Cost: the bytes are written once; two syncs, each the latency of the disk (about 0.1-10 ms).

use super::RunError;
use super::disk::{self, Writing};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const SUFFIX: &str = ".tmp";

/// Distinguishes the temporary files of one process.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// Writes `bytes` to `path`, replacing any file there, whole or not at all.
///
/// The folder must exist.
///
/// # Errors
/// [`RunError::Io`] names `path` and the cause; `path` then still holds what it held before.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    write_with(path, |file| file.write_all(bytes))
}

/// As [`write()`] for a file that survives a loss of power only after [`settle`] on its folder or one above: until then the disk may have it,
/// in part or not at all. For many small files that nothing relies on before.
///
/// # Errors
/// As [`write()`].
pub(crate) fn write_unsettled(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    if !CAN_SETTLE {
        return write(path, bytes);
    }
    let write = |temporary: &Path| {
        let file = disk::create(temporary)?;
        Writing::new(&file, temporary).write_all(bytes)
    };
    replace_unsynced(path, write).map_err(RunError::io("write", path))
}

/// Whether [`settle`] makes durable what [`write_unsettled`] wrote, at one go; elsewhere that is durable at once.
const CAN_SETTLE: bool = cfg!(target_os = "linux");

/// What was [written unsettled](write_unsettled) below a folder survives a loss of power.
pub(crate) fn settle(folder: &Path) -> io::Result<()> {
    match CAN_SETTLE {
        true => sync_below(folder),
        false => Ok(()),
    }
}

/// As [`write()`], but nothing is written where `path` has these bytes already: a file that is complete needs no space to be
/// written again.
///
/// # Errors
/// As [`write()`].
pub fn write_changed(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    match has(path, bytes) {
        true => Ok(()),
        false => write(path, bytes),
    }
}

/// As [`write_unsettled`] where `path` has other bytes.
///
/// # Errors
/// As [`write()`].
pub(crate) fn write_changed_unsettled(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    match has(path, bytes) {
        true => Ok(()),
        false => write_unsettled(path, bytes),
    }
}

/// Whether `path` is a file of these bytes.
fn has(path: &Path, bytes: &[u8]) -> bool {
    let is_same_length = fs::symlink_metadata(path)
        .is_ok_and(|present| present.is_file() && present.len() == bytes.len() as u64);
    is_same_length && fs::read(path).is_ok_and(|present| present == bytes)
}

/// As [`write()`], with what `contents` writes: a large file need not be in memory as a whole.
///
/// # Errors
/// As [`write()`].
pub fn write_with(
    path: &Path,
    contents: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), RunError> {
    replace(path, contents).map_err(RunError::io("write", path))
}

fn replace(path: &Path, contents: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    replace_unsynced(path, |temporary| write_and_sync(temporary, contents))?;
    sync_folder(path)
}

/// Puts what `write` makes of a temporary file in the place of `path`.
fn replace_unsynced(path: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let temporary = temporary(path)?;
    let written = write(&temporary).and_then(|()| disk::rename(&temporary, path));
    if written.is_err() {
        // The first error is the one to report.
        let _ = disk::remove_file(&temporary);
    }
    written
}

/// Where to put what is to be renamed to `path`: beside it.
pub(crate) fn temporary(path: &Path) -> io::Result<PathBuf> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::from(io::ErrorKind::IsADirectory))?;
    let mut temporary = OsStr::new(".").to_os_string();
    temporary.push(name);
    temporary.push(format!(
        ".{}-{}{SUFFIX}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    ));
    Ok(path.with_file_name(temporary))
}

fn write_and_sync(
    path: &Path,
    contents: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let file = disk::create(path)?;
    let mut writing = Writing::new(&file, path);
    contents(&mut writing)?;
    writing.sync()
}

/// Makes a rename or a creation in the folder of `path` durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    // Other systems cannot open a folder as a file and order renames by themselves.
    if cfg!(unix) {
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        disk::sync_folder(folder)?;
    }
    Ok(())
}

/// Creates the folder `path` and what is missing above it, durably for its own entry.
///
/// # Errors
/// [`RunError::Io`] names `path` and the cause.
pub fn create_folder(path: &Path) -> Result<(), RunError> {
    disk::create_folder(path)
        .and_then(|()| sync_folder(path))
        .map_err(RunError::io("create", path))
}

/// The same, durable after [`settle`].
///
/// # Errors
/// As [`create_folder`].
pub(crate) fn create_folder_unsettled(path: &Path) -> Result<(), RunError> {
    match CAN_SETTLE {
        true => disk::create_folder(path).map_err(RunError::io("create", path)),
        false => create_folder(path),
    }
}

/// Everything below a folder is on the disk when this returns: at one go where the system can, file by file elsewhere.
pub(crate) fn sync_below(folder: &Path) -> io::Result<()> {
    if disk::sync_disk(folder)? {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => sync_below(&path)?,
            // what another chain is about to rename may be gone
            false => match disk::sync(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                synced => synced?,
            },
        }
    }
    sync_folder(&folder.join("."))
}

/// Renames the folder `from` to `to` beside it, where there is nothing or an empty folder.
pub(crate) fn move_folder(from: &Path, to: &Path) -> Result<(), RunError> {
    // Not all systems replace an empty folder; one with contents stays.
    let _ = disk::remove_folder(to);
    match disk::rename(from, to).and_then(|()| sync_folder(to)) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            Err(RunError::Exists(to.to_path_buf()))
        }
        moved => moved.map_err(RunError::io("write", to)),
    }
}

/// Deletes the temporary files that a killed process left in `folder` and below it.
///
/// Symbolic links are not followed. Cost: one listing of every folder.
///
/// # Errors
/// [`RunError::Io`] when a folder cannot be listed or a leftover cannot be removed.
pub fn remove_leftovers(folder: &Path) -> Result<(), RunError> {
    for entry in fs::read_dir(folder).map_err(RunError::io("read", folder))? {
        let entry = entry.map_err(RunError::io("read", folder))?;
        let path = entry.path();
        let kind = entry.file_type().map_err(RunError::io("read", &path))?;
        if kind.is_dir() {
            remove_leftovers(&path)?;
        } else if is_leftover(&entry.file_name()) {
            disk::remove_file(&path).map_err(RunError::io("remove", &path))?;
        }
    }
    Ok(())
}

pub(crate) fn is_leftover(name: &OsStr) -> bool {
    name.to_str()
        .is_some_and(|name| name.starts_with('.') && name.ends_with(SUFFIX))
}
