//! One writing process per run folder.

use super::RunError;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

/// The name of the lock file. The file stays; the lock on it ends with the process that holds it.
pub(crate) const LOCK: &str = ".lock";

/// An exclusive lock on a run folder, released when dropped, also by a process that is killed.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Locks the run folder `run`, which must exist, without waiting.
    ///
    /// # Errors
    /// [`RunError::Locked`] when another process has it, [`RunError::Io`] when the folder cannot be written
    /// or its file system knows no locks.
    pub(crate) fn acquire(run: &Path) -> Result<Self, RunError> {
        let path = run.join(LOCK);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(RunError::io("write", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(RunError::Locked(run.to_path_buf())),
            Err(TryLockError::Error(error)) => Err(RunError::io("lock", &path)(error)),
        }
    }
}
