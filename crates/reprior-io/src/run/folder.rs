//! The run folder: made, opened, locked, saved; its text files.
//!
//! ```text
//! RUN/.lock          held by the process that writes; says that the folder is a run's
//! RUN/config.toml    resolved settings
//! RUN/draws.zarr/    draws (DrawStore, DrawReader)
//! RUN/next/          draws that are laid out anew or merged, until their settings are written (NextLayout)
//! RUN/checkpoint/    states of the chains (checkpoint)
//! RUN/laplace/       Laplace approximations of the chains (laplace)
//! RUN/weights.safetensors   weights that chains began at, where they were given
//! RUN/stdin.csv, RUN/table.csv, RUN/arrays.npz   the table or the arrays that standard input or a program gave
//! RUN/data.json      what the data were, how they were standardised
//! RUN/summary.json, RUN/laplace.json, RUN/leave-one-out.json, RUN/report.html
//! ```
//!
//! A process that is killed before `config.toml` is there leaves a folder in which nothing can go on, but which the next run
//! can take: what it holds by then is a run's, and no `draws.zarr` is among it.

use super::checkpoint::CHECKPOINT;
use super::laplace::LAPLACE;
use super::layout::{DRAWS, ROOT};
use super::lock::{LOCK, Lock, is_marked};
use super::relay::NEXT;
use super::{Files, RunError, atomic, disk};
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path};

const CONFIG: &str = "config.toml";
/// The file of a run folder that holds the weights which its chains began at.
pub const WEIGHTS: &str = "weights.safetensors";
/// The files with data that cannot be read again: what standard input or a program gave.
const TABLES: [&str; 3] = ["stdin.csv", "table.csv", "arrays.npz"];
/// What a run writes, and overwriting removes. What tells a run folder comes last, so that a removal that was
/// interrupted can be repeated.
pub(crate) const CONTENTS: [&str; 14] = [
    "report.html",
    "summary.json",
    "laplace.json",
    "leave-one-out.json",
    CHECKPOINT,
    LAPLACE,
    NEXT,
    DRAWS,
    "data.json",
    WEIGHTS,
    TABLES[0],
    TABLES[1],
    TABLES[2],
    CONFIG,
];

/// What is written before the settings, by runs and by merges.
const BEFORE_SETTINGS: [&str; 9] = [
    CHECKPOINT,
    LAPLACE,
    NEXT,
    "laplace.json",
    "data.json",
    WEIGHTS,
    TABLES[0],
    TABLES[1],
    TABLES[2],
];

/// A run folder, locked against other writing processes for as long as this lives; or a run in memory, which nobody else has.
#[derive(Debug)]
pub struct RunFolder {
    files: Files,
    /// Held for a folder on disk.
    _lock: Option<Lock>,
}

/// What a folder holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contents {
    /// Nothing, or there is no folder.
    Nothing,
    /// What a run leaves that was killed before its settings were written.
    Begun,
    /// The same, beside what is not a run's.
    BegunAmongOthers,
    /// A run.
    Run,
    /// Anything else.
    Others,
}

impl RunFolder {
    /// Makes the folder of a new run, and what is missing above it; an empty folder will do, and one in which a run was killed
    /// before its settings were written.
    ///
    /// With `overwrite`, an earlier run there is removed: the files that a run writes, no others.
    /// This writes to the folder, so that missing permissions show before any work starts.
    ///
    /// # Errors
    /// [`RunError::Exists`] when the folder has contents and `overwrite` is off; [`RunError::NotARun`] when it is on
    /// and the contents are not a run's; [`RunError::Locked`]; [`RunError::Io`] naming the path and cause.
    pub fn create(path: &Path, overwrite: bool) -> Result<Self, RunError> {
        check_free(path, overwrite)?;
        atomic::create_folder(path)?;
        let lock = Lock::acquire(path)?;
        // another process may have begun or ended a run here while the lock was waited for
        check_free(path, overwrite)?;
        lock.mark(path)?;
        let files = Files::from(path);
        atomic::remove_leftovers(path)?;
        for name in CONTENTS {
            // what says that there are draws goes first; behind a link they stay
            if name == DRAWS && !path.join(DRAWS).is_symlink() {
                files.remove(ROOT)?;
            }
            files.remove(name)?;
        }
        Self::locked(files, lock)
    }

    /// Makes a new run in memory: the same files with the same bytes, of which nothing is on disk until
    /// [`save_to`](Self::save_to).
    pub fn in_memory() -> Self {
        Self {
            files: Files::in_memory(),
            _lock: None,
        }
    }

    /// Opens the folder of an interrupted run to go on with it, and removes what a killed process left half written.
    ///
    /// # Errors
    /// [`RunError::NotARun`] when there is no run; [`RunError::NotBegun`] when it was killed before its settings were written;
    /// [`RunError::Locked`]; [`RunError::Io`].
    pub fn open(path: &Path) -> Result<Self, RunError> {
        fs::read_dir(path).map_err(RunError::io("read", path))?;
        match Contents::of(path)? {
            Contents::Run => {}
            Contents::Begun | Contents::BegunAmongOthers => {
                // one that is about to write its settings holds the lock
                Lock::acquire(path)?;
                return Err(RunError::NotBegun(path.to_path_buf()));
            }
            Contents::Nothing | Contents::Others => {
                return Err(RunError::NotARun(path.to_path_buf()));
            }
        }
        let lock = Lock::acquire(path)?;
        atomic::remove_leftovers(path)?;
        Self::locked(path.into(), lock)
    }

    fn locked(files: Files, lock: Lock) -> Result<Self, RunError> {
        files.create_folder(CHECKPOINT)?;
        let _lock = Some(lock);
        Ok(Self { files, _lock })
    }

    /// The run's files.
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// Writes all files of the run, those whose names begin with a dot aside, to the folder `path`: whole or not at all, with
    /// the bytes that they would have if the run had been made there. What is missing above it is made; an empty folder will do.
    ///
    /// Of a run in memory the files are those of one moment, from which the copy can go on. A run in a folder must not be
    /// written meanwhile. A process that is killed leaves a folder `.NAME.PROCESS-COUNT.tmp` beside `path`.
    ///
    /// # Errors
    /// [`RunError::Exists`] when `path` has contents; [`RunError::Io`] naming the path and cause.
    pub fn save_to(&self, path: &Path) -> Result<(), RunError> {
        check_free(path, false)?;
        let temporary = atomic::temporary(path).map_err(RunError::io("write", path))?;
        let copied =
            Self::create(&temporary, false).and_then(|copy| self.files.copy_to(&copy.files));
        let saved = copied.and_then(|()| atomic::move_folder(&temporary, path));
        if saved.is_err() {
            // The first error is the one to report.
            let _ = disk::remove_all(&temporary);
        }
        saved
    }

    /// A copy of the run in memory, as [`save_to`](Self::save_to) makes one on disk.
    ///
    /// # Errors
    /// [`RunError::Io`] when a file cannot be read or does not fit into memory.
    pub fn to_memory(&self) -> Result<Self, RunError> {
        let copy = Self::in_memory();
        self.files.copy_to(&copy.files)?;
        Ok(copy)
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
        self.files.write_changed(name, text.as_bytes())
    }
}

/// Refuses a folder that a new run may not take.
fn check_free(path: &Path, overwrite: bool) -> Result<(), RunError> {
    match Contents::of(path)? {
        Contents::Nothing | Contents::Begun => Ok(()),
        Contents::Run | Contents::BegunAmongOthers if overwrite => Ok(()),
        Contents::Others if overwrite => Err(RunError::NotARun(path.to_path_buf())),
        _ => Err(RunError::Exists(path.to_path_buf())),
    }
}

impl Contents {
    fn of(path: &Path) -> Result<Self, RunError> {
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::Nothing),
            Err(error) => return Err(RunError::io("create", path)(error)),
        };
        if is_run(path) {
            return Ok(Self::Run);
        }
        let is_marked = is_marked(path);
        let (mut is_empty, mut has_others) = (true, false);
        for entry in entries {
            let name = entry.map_err(RunError::io("read", path))?.file_name();
            if name == LOCK {
                continue;
            }
            is_empty = false;
            let is_own = is_beginning(path, &name) || (is_marked && is_before_settings(&name));
            has_others |= !is_own;
        }
        Ok(match (is_empty, has_others) {
            // a lock without a mark: a kill in the very first moment
            (true, _) => Self::Nothing,
            (false, false) => Self::Begun,
            (false, true) if is_marked => Self::BegunAmongOthers,
            (false, true) => Self::Others,
        })
    }
}

/// Whether this can only be what a run makes before it writes its settings: an empty folder for checkpoints, or a half
/// written file.
fn is_beginning(path: &Path, name: &OsStr) -> bool {
    if name == CHECKPOINT {
        return fs::read_dir(path.join(name)).is_ok_and(|mut entries| entries.next().is_none());
    }
    let of = |file: &str| {
        let start = format!(".{file}.");
        name.to_str().is_some_and(|name| name.starts_with(&start))
    };
    atomic::is_leftover(name) && (of(CONFIG) || of(WEIGHTS))
}

/// Whether this is what a run, or a merge, writes before its settings, whole or half: of a folder that is marked as a run's.
fn is_before_settings(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    BEFORE_SETTINGS.iter().any(|own| {
        let half = name
            .strip_prefix('.')
            .and_then(|rest| rest.strip_prefix(own));
        name == *own
            || half
                .is_some_and(|rest| rest.starts_with('.') && atomic::is_leftover(OsStr::new(name)))
    })
}

/// Whether `path` looks like a run folder.
fn is_run(path: &Path) -> bool {
    path.join(CONFIG).is_file() || path.join(DRAWS).is_dir()
}
