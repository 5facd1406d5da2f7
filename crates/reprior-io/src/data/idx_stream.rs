//! One IDX file, compressed by gzip or not, read from its beginning with nothing taken on trust.
//!
//! Memory grows with the bytes that arrive, never with what a header claims.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::DataError;
use super::error::open;

/// Magic number of a file of images.
pub(super) const IMAGES: u32 = 0x0803;
/// Magic number of a file of labels.
pub(super) const LABELS: u32 = 0x0801;

/// A file being read from its beginning.
pub(super) struct IdxStream<'a> {
    path: &'a Path,
    reader: Box<dyn Read>,
    length: u64,
    is_compressed: bool,
}

impl<'a> IdxStream<'a> {
    /// Opens a file and decompresses it if it begins as gzip does.
    pub(super) fn open(path: &'a Path) -> Result<Self, DataError> {
        let (file, length) = open(path)?;
        let mut reader = BufReader::with_capacity(1 << 16, file);
        let start = reader.fill_buf();
        let start = start.map_err(|cause| DataError::from_io(path, cause))?;
        let is_compressed = start.starts_with(&[0x1f, 0x8b]);
        let reader: Box<dyn Read> = if is_compressed {
            Box::new(MultiGzDecoder::new(reader))
        } else {
            Box::new(reader)
        };
        Ok(Self {
            path,
            reader,
            length,
            is_compressed,
        })
    }

    /// Reads the header and checks the sizes that it claims against the file's.
    pub(super) fn header(
        &mut self,
        magic: u32,
        dimensions: usize,
    ) -> Result<Vec<usize>, DataError> {
        let word = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0, |sum, &byte| sum << 8 | u32::from(byte))
        };
        let first = word(&self.bytes(4)?);
        if first != magic {
            let names = BTreeMap::from([
                (IMAGES, "images (0x00000803)"),
                (LABELS, "labels (0x00000801)"),
            ]);
            let found = names
                .get(&first)
                .map_or_else(|| format!("0x{first:08x}"), |name| (*name).to_string());
            let wanted = names[&magic];
            let problem = format!(
                "it begins with the magic number of {found} where that of {wanted} is due; check that the file is what its name says"
            );
            return Err(DataError::malformed(self.path, problem));
        }
        let bytes = self.bytes(4 * dimensions as u64)?;
        let sizes: Vec<u32> = bytes.chunks_exact(4).map(word).collect();
        if let [_, height, width] = sizes.as_slice()
            && (*height == 0 || *width == 0)
        {
            return Err(DataError::malformed(
                self.path,
                format!(
                    "its header claims images of {height} x {width} pixels; the file is damaged"
                ),
            ));
        }
        let claimed = sizes.iter().fold(1_u128, |product, &size| {
            product.saturating_mul(u128::from(size))
        }) + (4 + bytes.len()) as u128;
        let length = u128::from(self.length);
        let most = if self.is_compressed {
            length * 1040
        } else {
            length
        };
        if claimed > most {
            let problem = format!(
                "its header claims {claimed} bytes but the file has {length}; it is truncated: fetch it again"
            );
            return Err(DataError::malformed(self.path, problem));
        }
        if !self.is_compressed && claimed < length {
            return Err(self.trailing());
        }
        Ok(sizes.iter().map(|&size| size as usize).collect())
    }

    /// The next `count` bytes.
    pub(super) fn bytes(&mut self, count: u64) -> Result<Vec<u8>, DataError> {
        let mut bytes = Vec::new();
        self.reader
            .by_ref()
            .take(count)
            .read_to_end(&mut bytes)
            .map_err(|cause| {
                DataError::malformed(
                    self.path,
                    format!("it cannot be decompressed or read ({cause}); fetch it again"),
                )
            })?;
        if (bytes.len() as u64) < count {
            let problem = format!(
                "it ends {} bytes early; it is truncated: fetch it again",
                count - bytes.len() as u64
            );
            return Err(DataError::malformed(self.path, problem));
        }
        Ok(bytes)
    }

    /// Checks that nothing follows.
    pub(super) fn end(&mut self) -> Result<(), DataError> {
        match self.reader.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(self.trailing()),
            Err(cause) => Err(DataError::malformed(
                self.path,
                format!("its end cannot be read ({cause}); fetch it again"),
            )),
        }
    }

    fn trailing(&self) -> DataError {
        DataError::malformed(
            self.path,
            "bytes follow the last record that its header claims; the header or the file is damaged: fetch it again",
        )
    }
}
