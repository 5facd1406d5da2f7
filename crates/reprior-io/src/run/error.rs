//! What can go wrong with a run folder, each in one line that names the path and the way out.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

/// An error of the run folder. `Display` is one line.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The operating system refused to read or write.
    #[error("cannot {action} {}: {}", .path.display(), cause(.source))]
    Io {
        /// What was attempted: `write`, `read`, `create`, `remove`, `lock`.
        action: &'static str,
        /// The file or folder concerned; `NAME in memory` of a run in memory.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The folder for a new run holds something already.
    #[error(
        "{} exists already: choose another folder, resume it, or ask to overwrite it",
        .0.display()
    )]
    Exists(PathBuf),
    /// The folder is not one that a run wrote.
    #[error("{} is not a run folder: it has neither config.toml nor draws.zarr", .0.display())]
    NotARun(PathBuf),
    /// A run was killed before its settings were written.
    #[error(
        "{} was stopped before its settings were written, so there is nothing to go on with: start the run again, it can take this folder",
        .0.display()
    )]
    NotBegun(PathBuf),
    /// Another process holds the run folder's lock.
    #[error("{} is being written by another process: wait for it or stop it", .0.display())]
    Locked(PathBuf),
    /// An object store refused.
    #[error("cannot write {place}: {reason}")]
    Store {
        /// The object, and its store.
        place: String,
        /// What the store said.
        reason: String,
    },
    /// A file is truncated, damaged, of another version, or missing among its kind.
    #[error("{}: {reason}", .path.display())]
    Damaged {
        /// The file concerned; `NAME in memory` of a run in memory.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A request that contradicts the schema: an unknown name, a wrong length or type, a draw too many.
    #[error("{0}")]
    Request(String),
}

impl RunError {
    /// Attaches what was attempted, and on what, to an operating system's error.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }

    pub(crate) fn damaged(path: &Path, reason: impl Display) -> Self {
        Self::Damaged {
            path: path.to_path_buf(),
            reason: one_line(reason),
        }
    }

    pub(crate) fn request(reason: impl Display) -> Self {
        Self::Request(one_line(reason))
    }
}

fn one_line(text: impl Display) -> String {
    text.to_string().replace(['\n', '\r'], " ")
}

fn cause(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "no space is left on the disk".into(),
        io::ErrorKind::QuotaExceeded => "the disk quota is used up".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".into(),
        io::ErrorKind::NotADirectory => "a part of the path is a file, not a folder".into(),
        io::ErrorKind::IsADirectory => "it is a folder, not a file".into(),
        io::ErrorKind::NotFound => "there is no such file or folder".into(),
        _ => one_line(error),
    }
}
