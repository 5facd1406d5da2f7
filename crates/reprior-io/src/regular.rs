//! Files that end. A pipe or a device may be waited for, or read, without end: what is given to be read must be a regular file.
//!
//! A link to a regular file will do, and so will `/dev/stdin` where a shell has put a file there (`< FILE`).

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// The most bytes of a text of settings; a description of a network of a thousand layers has less than 1 MB.
const MOST_TEXT: u64 = 64 << 20;

/// Opens the file at `path` for reading.
///
/// # Errors
/// What the system says; [`ErrorKind::InvalidInput`] for a pipe, a socket or a device, before anything is waited for.
pub fn open(path: &Path) -> io::Result<File> {
    looked_at(path)?;
    File::open(path)
}

/// The bytes that the file at `path` has.
///
/// # Errors
/// As [`open`]; [`ErrorKind::IsADirectory`] for a folder.
pub(crate) fn size(path: &Path) -> io::Result<u64> {
    let kind = looked_at(path)?;
    match kind.is_file() {
        true => Ok(kind.len()),
        false => Err(ErrorKind::IsADirectory.into()),
    }
}

fn looked_at(path: &Path) -> io::Result<fs::Metadata> {
    let kind = fs::metadata(path)?;
    // of a folder the system itself says what is wrong with it
    if !kind.is_file() && !kind.is_dir() {
        return Err(io::Error::new(
            ErrorKind::InvalidInput,
            "it is a pipe or a device, not a regular file; save its content to a file first",
        ));
    }
    Ok(kind)
}

/// The bytes of the file at `path`. Memory: the file.
///
/// # Errors
/// As [`open`]; [`ErrorKind::OutOfMemory`] for a file that does not fit into memory.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX))?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text of the file at `path`, of at most 64 MiB.
///
/// # Errors
/// As [`open`]; [`ErrorKind::InvalidData`] for what is not UTF-8, [`ErrorKind::FileTooLarge`] for more.
pub fn read_text(path: &Path) -> io::Result<String> {
    text(open(path)?)
}

/// As [`read_text`], of what `bytes` gives.
pub(crate) fn text(bytes: impl Read) -> io::Result<String> {
    let mut text = String::new();
    bytes.take(MOST_TEXT + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MOST_TEXT {
        return Err(io::Error::new(
            ErrorKind::FileTooLarge,
            "it has more than 64 MiB of text",
        ));
    }
    Ok(text)
}
