//! One writing process per run folder.

use super::RunError;
use super::disk::{self, Writing};
use crate::regular;
use std::fs::{File, TryLockError};
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// The name of the lock file. The file stays; the lock on it ends with the process that holds it.
pub(crate) const LOCK: &str = ".lock";
/// What stands in the lock file of a folder that a run has begun to fill.
const MARK: &[u8] = b"reprior\n";

/// How long a lock that is held is waited for. A child that this or the earlier process is just starting holds a copy of
/// the open file until it runs its own program, and a killed process needs a moment to be gone.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);

/// An exclusive lock on a run folder, released when dropped, also by a process that is killed.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Lock {
    /// Locks the run folder `run`, which must exist; waits for a second at most.
    ///
    /// # Errors
    /// [`RunError::Locked`] when another process has it, [`RunError::Io`] when the folder cannot be written
    /// or its file system knows no locks.
    pub(crate) fn acquire(run: &Path) -> Result<Self, RunError> {
        let path = run.join(LOCK);
        let file = disk::open_or_create(&path).map_err(RunError::io("write", &path))?;
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { file }),
                Err(TryLockError::WouldBlock) if start.elapsed() < PATIENCE => {
                    std::thread::sleep(PAUSE);
                }
                Err(TryLockError::WouldBlock) => return Err(RunError::Locked(run.to_path_buf())),
                Err(TryLockError::Error(error)) => return Err(RunError::io("lock", &path)(error)),
            }
        }
    }

    /// Notes in the lock file of `run` that the folder is a run's, for whoever finds it before its settings are written.
    ///
    /// # Errors
    /// [`RunError::Io`] when the disk refuses.
    pub(crate) fn mark(&self, run: &Path) -> Result<(), RunError> {
        let path = run.join(LOCK);
        let mut writing = Writing::new(&self.file, &path);
        let mut mark = || {
            // a process that was killed while it wrote the mark left a part of it
            if self.file.metadata()?.len() < MARK.len() as u64 {
                writing.write_all(MARK)?;
            }
            writing.sync()
        };
        mark().map_err(RunError::io("write", &path))
    }
}

/// Whether a process is writing to the run folder `run` at this moment.
pub fn is_being_written(run: &Path) -> bool {
    regular::open(&run.join(LOCK))
        .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Whether a run has begun to fill the folder `run`.
pub(crate) fn is_marked(run: &Path) -> bool {
    let mut text = Vec::new();
    let most = MARK.len() as u64 + 1;
    regular::open(&run.join(LOCK))
        .is_ok_and(|file| file.take(most).read_to_end(&mut text).is_ok() && text == MARK)
}
