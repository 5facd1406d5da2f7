//! The bytes of a table: of a file, compressed by gzip or not, or of standard input; of columns in Parquet and Arrow files their text.
//!
//! What a compressed file unfolds to must fit into half of the memory that is left: a small file may claim any size.

use std::io::{self, ErrorKind, IsTerminal, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::{DataError, Request};
use crate::{memory, regular};

/// The source that is standard input.
pub const STDIN: &str = "-";
/// How standard input is called in messages and records.
const STDIN_NAME: &str = "stdin";

/// The first bytes of a file that gzip has compressed.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The path of a source as messages give it.
pub(super) fn shown(source: &str) -> &Path {
    Path::new(match source {
        STDIN => STDIN_NAME,
        path => path,
    })
}

/// Everything that standard input has.
///
/// # Errors
/// A terminal, which nobody pipes a table into; more than fits into memory.
pub fn read_stdin() -> Result<Vec<u8>, DataError> {
    let path = shown(STDIN);
    let stdin = io::stdin();
    if stdin.is_terminal() {
        let problem = "standard input is a terminal; pipe a table into it, as in `cat table.csv | reprior sample --data -`, or give a file";
        return Err(DataError::malformed(path, problem));
    }
    let limit = memory::left() / 2;
    let mut bytes = Vec::new();
    let read = stdin
        .lock()
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes);
    read.map_err(|cause| DataError::from_io(path, cause))?;
    match bytes.len() as u64 > limit {
        true => Err(too_large(path)),
        false => Ok(bytes),
    }
}

/// The text of a table.
#[derive(Debug, PartialEq)]
pub(super) struct TableText {
    /// As bytes, decompressed.
    pub bytes: Vec<u8>,
    /// Whether it was made of columns: then commas separate its cells, its first line is a header, and no row is empty by mistake.
    pub is_columnar: bool,
    /// Columns that it says are categories, although their cells look like numbers.
    pub categories: Vec<String>,
}

/// The text of a table.
///
/// # Errors
/// A file that cannot be read, or whose compressed data are damaged.
pub(super) fn text(request: &Request) -> Result<TableText, DataError> {
    let path = shown(&request.source);
    let bytes = match (&request.content, request.source.as_str()) {
        (Some(content), _) => Vec::clone(content),
        (None, STDIN) => read_stdin()?,
        (None, source) => regular::read(Path::new(source))
            .map_err(|cause| DataError::from_io(Path::new(source), cause))?,
    };
    let bytes = match bytes.starts_with(&GZIP) {
        true => decompressed(path, &bytes)?,
        false => bytes,
    };
    #[cfg(feature = "columnar")]
    if let Some(text) = super::columnar::as_text(path, &bytes)? {
        return Ok(text);
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        let problem = "it is UTF-16 text; save the file as UTF-8";
        return Err(DataError::malformed(path, problem));
    }
    Ok(TableText {
        bytes,
        is_columnar: false,
        categories: Vec::new(),
    })
}

fn decompressed(path: &Path, bytes: &[u8]) -> Result<Vec<u8>, DataError> {
    let limit = memory::left() / 2;
    let mut text = Vec::new();
    let mut reader = MultiGzDecoder::new(bytes).take(limit.saturating_add(1));
    match reader.read_to_end(&mut text) {
        Ok(_) if text.len() as u64 > limit => Err(too_large(path)),
        Ok(_) => Ok(text),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(DataError::malformed(
            path,
            "its compressed data are truncated; copy or download the file again",
        )),
        Err(error) if error.kind() == ErrorKind::OutOfMemory => Err(too_large(path)),
        Err(error) => Err(DataError::malformed(
            path,
            format!("its compressed data are damaged ({error}); copy or download the file again"),
        )),
    }
}

/// Of a table that would not fit into the memory that is free.
pub(super) fn too_large(path: &Path) -> DataError {
    DataError::malformed(
        path,
        "it is larger than the memory that is free; give fewer rows",
    )
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn given(content: Vec<u8>) -> Result<Vec<u8>, DataError> {
        let found = text(&Request {
            content: Some(Arc::new(content)),
            ..Request::new(STDIN)
        });
        found.map(|found| found.bytes)
    }

    #[test]
    fn compressed_tables_are_decompressed_or_refused() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(b"a,y\n1,2\n").unwrap();
        let whole = encoder.finish().unwrap();
        assert_eq!(given(whole.clone()).unwrap(), b"a,y\n1,2\n");
        let message = |bytes: &[u8]| given(bytes.to_vec()).unwrap_err().to_string();
        let cut = message(&whole[..whole.len() - 9]);
        assert!(
            cut.contains("`stdin`") && cut.contains("truncated"),
            "{cut}"
        );
        let mut damaged = whole.clone();
        damaged[12] ^= 0x5a;
        let damaged = message(&damaged);
        assert!(damaged.contains("compressed data are"), "{damaged}");
        let wide = message(&[0xff, 0xfe, b'a', 0]);
        assert!(wide.contains("UTF-16"), "{wide}");
    }
}
