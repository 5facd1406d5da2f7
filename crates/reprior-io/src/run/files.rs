//! Where the files of a run are: in a folder of the disk, or in memory.
//!
//! A file's name is relative to the run, with `/` between folder and file, such as `draws.zarr/zarr.json`. Both kinds keep
//! [`super`]'s promise: a file appears whole or not at all. On disk that is [`atomic`]'s doing, and what is read must be a
//! [`regular`] file; in memory a file is replaced under a lock, and who reads it goes on with the bytes that it had.

use super::in_memory::{InMemory, read_at};
use super::layout::DRAWS;
use super::{RunError, atomic, disk};
use crate::regular;
use std::fmt::{self, Debug, Formatter};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files of a run: a folder of the disk, or memory. A clone has the same files.
#[derive(Clone)]
pub struct Files(FilesPlace);

#[derive(Clone)]
enum FilesPlace {
    Folder(PathBuf),
    Memory(Arc<InMemory>),
}

/// A file that is read in pieces.
pub(crate) enum OpenFile {
    Disk(File),
    Memory(Arc<Vec<u8>>),
}

impl Files {
    /// No files, in memory.
    pub fn in_memory() -> Self {
        Self(FilesPlace::Memory(Arc::default()))
    }

    /// The folder on disk; `None` in memory.
    pub fn folder(&self) -> Option<&Path> {
        match &self.0 {
            FilesPlace::Folder(folder) => Some(folder),
            FilesPlace::Memory(_) => None,
        }
    }

    /// The bytes of a file, `None` where there is none. Memory: the file; of a run in memory no
    /// more than it takes already.
    ///
    /// # Errors
    /// [`RunError::Io`] when it cannot be read, or is a pipe, a device or a folder.
    pub fn read(&self, name: &str) -> Result<Option<Arc<Vec<u8>>>, RunError> {
        match &self.0 {
            FilesPlace::Folder(folder) => {
                let bytes = regular::read(&folder.join(name)).map(Arc::new);
                self.present(name, bytes)
            }
            FilesPlace::Memory(files) => Ok(files.get(name)),
        }
    }

    /// As [`read`](Self::read), of a file that must be there.
    pub(crate) fn read_present(&self, name: &str) -> Result<Arc<Vec<u8>>, RunError> {
        let missing = || self.error("read", name, ErrorKind::NotFound.into());
        self.read(name)?.ok_or_else(missing)
    }

    /// The text of a file of at most 64 MiB, such as `config.toml`, `data.json`; `None` where there is none.
    ///
    /// # Errors
    /// [`RunError::Io`] as of [`read`](Self::read), and for what is longer or not UTF-8.
    pub fn read_text(&self, name: &str) -> Result<Option<String>, RunError> {
        let text = match &self.0 {
            FilesPlace::Folder(folder) => regular::read_text(&folder.join(name)),
            FilesPlace::Memory(_) => match self.read(name)? {
                Some(bytes) => regular::text(bytes.as_slice()),
                None => return Ok(None),
            },
        };
        self.present(name, text)
    }

    /// The bytes that a file has, `None` where there is none.
    ///
    /// # Errors
    /// [`RunError::Io`] when it cannot be looked at, or is a pipe, a device or a folder.
    pub fn size(&self, name: &str) -> Result<Option<u64>, RunError> {
        match &self.0 {
            FilesPlace::Folder(folder) => self.present(name, regular::size(&folder.join(name))),
            FilesPlace::Memory(files) => Ok(files.get(name).map(|bytes| bytes.len() as u64)),
        }
    }

    /// Whether there is such a file.
    pub fn contains(&self, name: &str) -> bool {
        self.size(name).is_ok_and(|size| size.is_some())
    }

    /// The names of all files, sorted, but for those that begin with a dot, which are the lock and what a kill left half written.
    ///
    /// # Errors
    /// [`RunError::Io`] when a folder cannot be listed.
    pub fn names(&self) -> Result<Vec<String>, RunError> {
        match &self.0 {
            FilesPlace::Folder(folder) => {
                let mut names = Vec::new();
                list(folder, "", &mut names)?;
                names.sort();
                Ok(names)
            }
            FilesPlace::Memory(files) => Ok(files.names()),
        }
    }

    /// Writes a file, or replaces it, whole or not at all. On disk its folder must exist.
    ///
    /// # Errors
    /// [`RunError::Io`]; the file then still has what it had before.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), RunError> {
        match &self.0 {
            FilesPlace::Folder(folder) => atomic::write(&folder.join(name), bytes),
            FilesPlace::Memory(files) => files
                .put_copy(name, bytes)
                .map_err(|error| self.error("write", name, error)),
        }
    }

    /// As [`write`](Self::write) for a file that nothing relies on yet: it is safe from a loss of power after [`settle`](Self::settle).
    pub(crate) fn write_unsettled(&self, name: &str, bytes: &[u8]) -> Result<(), RunError> {
        match &self.0 {
            FilesPlace::Folder(folder) => atomic::write_unsettled(&folder.join(name), bytes),
            FilesPlace::Memory(_) => self.write(name, bytes),
        }
    }

    /// The same where the file has other bytes.
    pub(crate) fn write_changed_unsettled(&self, name: &str, bytes: &[u8]) -> Result<(), RunError> {
        match &self.0 {
            FilesPlace::Folder(folder) => {
                atomic::write_changed_unsettled(&folder.join(name), bytes)
            }
            FilesPlace::Memory(_) => self.write(name, bytes),
        }
    }

    /// All that was [written unsettled](Self::write_unsettled) is safe from a loss of power when this returns.
    pub(crate) fn settle(&self) -> Result<(), RunError> {
        match &self.0 {
            FilesPlace::Folder(folder) => {
                let settle = |place: &Path| {
                    atomic::settle(place).map_err(|error| self.error("write", "", error))
                };
                // a user may have put the draws onto another disk
                let draws = folder.join(DRAWS);
                if draws.is_symlink() {
                    settle(&draws)?;
                }
                settle(folder)
            }
            FilesPlace::Memory(_) => Ok(()),
        }
    }

    /// As [`write`](Self::write), but nothing is written where the file has these bytes already: a file that is complete needs
    /// no space to be written again.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_changed(&self, name: &str, bytes: &[u8]) -> Result<(), RunError> {
        match &self.0 {
            FilesPlace::Folder(folder) => atomic::write_changed(&folder.join(name), bytes),
            FilesPlace::Memory(_) => self.write(name, bytes),
        }
    }

    /// As [`write`](Self::write), with what `contents` writes: a large file need not be in memory twice.
    pub(crate) fn write_with(
        &self,
        name: &str,
        contents: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), RunError> {
        match &self.0 {
            FilesPlace::Folder(folder) => atomic::write_with(&folder.join(name), contents),
            FilesPlace::Memory(files) => {
                let mut bytes = Vec::new();
                contents(&mut bytes).map_err(|error| self.error("write", name, error))?;
                bytes.shrink_to_fit();
                files.put(name, bytes);
                Ok(())
            }
        }
    }

    /// Gives the file `source` of `from` a second name here, where the disk can, and copies it otherwise: for what is never changed in place,
    /// as nothing in a run is. It is safe from a crash after [`sync`](Self::sync).
    pub(crate) fn share_file(&self, name: &str, from: &Self, source: &str) -> Result<(), RunError> {
        if let (FilesPlace::Folder(to), FilesPlace::Folder(folder)) = (&self.0, &from.0)
            && disk::link(&folder.join(source), &to.join(name)).is_ok()
        {
            return Ok(());
        }
        self.copy_file(name, from, source)
    }

    /// Copies the file `source` of `from`, of which nothing need fit into memory on disk. It is safe from a crash after
    /// [`sync`](Self::sync).
    pub(crate) fn copy_file(&self, name: &str, from: &Self, source: &str) -> Result<(), RunError> {
        match (&self.0, &from.0) {
            (FilesPlace::Folder(to), FilesPlace::Folder(folder)) => {
                disk::copy(&folder.join(source), &to.join(name))
                    .map_err(|error| self.error("copy to", name, error))
            }
            _ => self.write(name, &from.read_present(source)?),
        }
    }

    /// What was copied into the folder `name` is on the disk when this returns.
    pub(crate) fn sync(&self, name: &str) -> Result<(), RunError> {
        match &self.0 {
            FilesPlace::Folder(folder) => atomic::sync_below(&folder.join(name))
                .map_err(|error| self.error("write", name, error)),
            FilesPlace::Memory(_) => Ok(()),
        }
    }

    /// The files of a folder of these: on disk one that need not exist; in memory files of their own, none at first.
    pub(crate) fn within(&self, name: &str) -> Self {
        match &self.0 {
            FilesPlace::Folder(folder) => Self(FilesPlace::Folder(folder.join(name))),
            FilesPlace::Memory(_) => Self::in_memory(),
        }
    }

    /// Moves the folder `name` of `from`, which is the folder `within` of these files, to the same name here, where there is nothing; what
    /// is left in `within` is removed.
    pub(crate) fn take_from(&self, from: &Self, within: &str, name: &str) -> Result<(), RunError> {
        match (&self.0, &from.0) {
            (FilesPlace::Folder(folder), FilesPlace::Folder(source)) => {
                atomic::move_folder(&source.join(name), &folder.join(name))?;
                self.remove(within)
            }
            _ => from.copy_to(self),
        }
    }

    /// Makes a folder, in which files can then be written.
    pub(crate) fn create_folder(&self, name: &str) -> Result<(), RunError> {
        match &self.0 {
            FilesPlace::Folder(folder) => atomic::create_folder(&folder.join(name)),
            FilesPlace::Memory(_) => Ok(()),
        }
    }

    /// The same, safe from a loss of power after [`settle`](Self::settle).
    pub(crate) fn create_folder_unsettled(&self, name: &str) -> Result<(), RunError> {
        match &self.0 {
            FilesPlace::Folder(folder) => atomic::create_folder_unsettled(&folder.join(name)),
            FilesPlace::Memory(_) => Ok(()),
        }
    }

    /// Removes a file, or a folder with all that is in it, if there is one.
    pub(crate) fn remove(&self, name: &str) -> Result<(), RunError> {
        let removed = match &self.0 {
            FilesPlace::Folder(folder) => {
                let path = folder.join(name);
                match fs::symlink_metadata(&path) {
                    Ok(metadata) if metadata.is_dir() => disk::remove_all(&path),
                    Ok(_) => disk::remove_file(&path),
                    Err(error) => Err(error),
                }
            }
            FilesPlace::Memory(files) => {
                files.remove(name);
                Ok(())
            }
        };
        match removed {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(self.error("remove", name, error))
            }
            _ => Ok(()),
        }
    }

    /// Opens a file, of which [`size`](Self::size) has been asked, to read pieces of it.
    pub(crate) fn open(&self, name: &str) -> Result<OpenFile, RunError> {
        let file = match &self.0 {
            FilesPlace::Folder(folder) => File::open(folder.join(name)).map(OpenFile::Disk),
            FilesPlace::Memory(files) => files
                .get(name)
                .map(OpenFile::Memory)
                .ok_or_else(|| ErrorKind::NotFound.into()),
        };
        file.map_err(|error| self.error("read", name, error))
    }

    /// Writes every file to `to` as well; those in memory as they are at one moment, whoever writes meanwhile.
    pub(crate) fn copy_to(&self, to: &Self) -> Result<(), RunError> {
        let source = match &self.0 {
            FilesPlace::Folder(_) => self.clone(),
            FilesPlace::Memory(files) => Self(FilesPlace::Memory(Arc::new(files.at_this_moment()))),
        };
        let mut made = String::new();
        for name in source.names()? {
            if let Some((folder, _)) = name.rsplit_once('/')
                && folder != made
            {
                to.create_folder(folder)?;
                folder.clone_into(&mut made);
            }
            to.write(&name, &source.read_present(&name)?)?;
        }
        Ok(())
    }

    /// What a message calls the file `name`: its path, or `NAME in memory`.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        match &self.0 {
            FilesPlace::Folder(folder) => folder.join(name),
            FilesPlace::Memory(_) => format!("{name} in memory").into(),
        }
    }

    /// The error that `action` on the file `name` failed.
    pub(crate) fn error(&self, action: &'static str, name: &str, source: io::Error) -> RunError {
        RunError::io(action, &self.place(name))(source)
    }

    fn present<T>(&self, name: &str, found: io::Result<T>) -> Result<Option<T>, RunError> {
        match found {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.error("read", name, error)),
        }
    }
}

impl From<&Path> for Files {
    fn from(folder: &Path) -> Self {
        Self(FilesPlace::Folder(folder.to_path_buf()))
    }
}

impl From<&PathBuf> for Files {
    fn from(folder: &PathBuf) -> Self {
        folder.as_path().into()
    }
}

impl From<&Self> for Files {
    fn from(files: &Self) -> Self {
        files.clone()
    }
}

/// The folder, or the names: of the bytes there may be many.
impl Debug for Files {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match &self.0 {
            FilesPlace::Folder(folder) => formatter.debug_tuple("Folder").field(folder).finish(),
            FilesPlace::Memory(files) => formatter
                .debug_tuple("Memory")
                .field(&files.names())
                .finish(),
        }
    }
}

impl OpenFile {
    /// Fills `bytes` with those of the file from `start` on.
    pub(crate) fn read_at(&mut self, start: u64, bytes: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Disk(file) => {
                file.seek(SeekFrom::Start(start))?;
                file.read_exact(bytes)
            }
            Self::Memory(file) => read_at(file, start, bytes),
        }
    }
}

/// The files below `folder`, whose names begin with `start`.
fn list(folder: &Path, start: &str, names: &mut Vec<String>) -> Result<(), RunError> {
    for entry in fs::read_dir(folder).map_err(RunError::io("read", folder))? {
        let entry = entry.map_err(RunError::io("read", folder))?;
        let path = entry.path();
        let name = entry.file_name();
        let name = name
            .to_str()
            .ok_or_else(|| RunError::damaged(&path, "its name is not UTF-8"))?;
        if name.starts_with('.') {
            continue;
        }
        let name = format!("{start}{name}");
        // links are followed: a user may have put the draws onto another disk
        if fs::metadata(&path)
            .map_err(RunError::io("read", &path))?
            .is_dir()
        {
            list(&path, &format!("{name}/"), names)?;
        } else {
            names.push(name);
        }
    }
    Ok(())
}
