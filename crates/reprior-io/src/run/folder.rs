//! The run folder: made, opened, locked; its text files.
//!
//! ```text
//! RUN/.lock          held by the process that writes
//! RUN/config.toml    resolved settings
//! RUN/draws.zarr/    draws (DrawStore, DrawReader)
//! RUN/checkpoint/    states of the chains (checkpoint)
//! RUN/weights.safetensors   weights that chains began at, where they were given
//! RUN/data.json      what the data were, how they were standardised
//! RUN/summary.json, RUN/report.html
//! ```

use super::checkpoint::CHECKPOINT;
use super::lock::{LOCK, Lock};
use super::store::DRAWS;
use super::{RunError, atomic};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

const CONFIG: &str = "config.toml";
/// The file of a run folder that holds the weights which its chains began at.
pub const WEIGHTS: &str = "weights.safetensors";
/// What a run writes, and overwriting removes. What tells a run folder comes last, so that a removal that was
/// interrupted can be repeated.
const CONTENTS: [&str; 7] = [
    "report.html",
    "summary.json",
    CHECKPOINT,
    DRAWS,
    "data.json",
    WEIGHTS,
    CONFIG,
];

/// A run folder, locked against other writing processes for as long as this lives.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    _lock: Lock,
}

impl RunFolder {
    /// Makes the folder of a new run, and what is missing above it; an empty folder will do.
    ///
    /// With `overwrite`, an earlier run there is removed: the files that a run writes, no others.
    /// This writes to the folder, so that missing permissions show before any work starts.
    ///
    /// # Errors
    /// [`RunError::Exists`] when the folder has contents and `overwrite` is off; [`RunError::NotARun`] when it is on
    /// and the contents are not a run's; [`RunError::Locked`]; [`RunError::Io`] naming the path and cause.
    pub fn create(path: &Path, overwrite: bool) -> Result<Self, RunError> {
        let occupied = match fs::read_dir(path) {
            Ok(entries) => has_contents(entries).map_err(RunError::io("read", path))?,
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(RunError::io("create", path)(error)),
        };
        if occupied && !overwrite {
            return Err(RunError::Exists(path.to_path_buf()));
        }
        if occupied && !is_run(path) {
            return Err(RunError::NotARun(path.to_path_buf()));
        }
        atomic::create_folder(path)?;
        let folder = Self::lock(path)?;
        if occupied {
            folder.clear()?;
        }
        atomic::create_folder(&path.join(CHECKPOINT))?;
        Ok(folder)
    }

    /// Opens the folder of an interrupted run to go on with it, and removes what a killed process left half written.
    ///
    /// # Errors
    /// [`RunError::NotARun`] when there is no run; [`RunError::Locked`]; [`RunError::Io`].
    pub fn open(path: &Path) -> Result<Self, RunError> {
        fs::read_dir(path).map_err(RunError::io("read", path))?;
        if !is_run(path) {
            return Err(RunError::NotARun(path.to_path_buf()));
        }
        let folder = Self::lock(path)?;
        atomic::remove_leftovers(path)?;
        atomic::create_folder(&path.join(CHECKPOINT))?;
        Ok(folder)
    }

    fn lock(path: &Path) -> Result<Self, RunError> {
        Ok(Self {
            path: path.to_path_buf(),
            _lock: Lock::acquire(path)?,
        })
    }

    fn clear(&self) -> Result<(), RunError> {
        atomic::remove_leftovers(&self.path)?;
        for name in CONTENTS {
            let path = self.path.join(name);
            let removed = match fs::symlink_metadata(&path) {
                Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(&path),
                Ok(_) => fs::remove_file(&path),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                Err(error) => Err(error),
            };
            removed.map_err(RunError::io("remove", &path))?;
        }
        Ok(())
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the text file `name`, such as `config.toml` or `summary.json`, whole or not at all.
    ///
    /// # Errors
    /// [`RunError::Request`] when `name` is a path, [`RunError::Io`] when the disk refuses.
    pub fn write_text(&self, name: &str, text: &str) -> Result<(), RunError> {
        let mut components = Path::new(name).components();
        if !matches!(
            (components.next(), components.next()),
            (Some(Component::Normal(_)), None)
        ) {
            return Err(RunError::request(format!(
                "{name:?} is not the plain name of a file"
            )));
        }
        atomic::write(&self.path.join(name), text.as_bytes())
    }
}

fn has_contents(entries: fs::ReadDir) -> io::Result<bool> {
    for entry in entries {
        if entry?.file_name() != LOCK {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether `path` looks like a run folder.
fn is_run(path: &Path) -> bool {
    path.join(CONFIG).is_file() || path.join(DRAWS).is_dir()
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
