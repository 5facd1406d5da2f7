//! An open `.npz` archive and the inputs in it.
//!
//! Layouts are as [`super::npz`] describes them; images come out as planes.

use std::io::{BufReader, Cursor, Read, Seek};
use std::path::Path;

use reprior::model::dataset::InputKind;
use zip::ZipArchive;

use super::DataError;
use super::error::{excerpt, open};
use super::npy::{self, NpyArray};

/// The largest factor by which deflate can compress; a greater claim is a lie.
const MAX_RATIO: u64 = 1040;

/// Bytes of an archive, in a file or in memory.
trait Bytes: Read + Seek {}
impl<T: Read + Seek> Bytes for T {}

/// An open archive.
pub(super) struct Archive<'a> {
    /// The file.
    pub path: &'a Path,
    archive: ZipArchive<Box<dyn Bytes + 'a>>,
    length: u64,
}

impl<'a> Archive<'a> {
    /// Opens the archive at `path`, or with this content in memory.
    pub(super) fn open(path: &'a Path, content: Option<&'a [u8]>) -> Result<Self, DataError> {
        let (bytes, length): (Box<dyn Bytes + 'a>, u64) = match content {
            Some(content) => (Box::new(Cursor::new(content)), content.len() as u64),
            None => {
                let (file, length) = open(path)?;
                (Box::new(BufReader::new(file)), length)
            }
        };
        let archive = ZipArchive::new(bytes).map_err(|cause| {
            let cause = excerpt(&cause.to_string());
            DataError::malformed(
                path,
                format!("not a readable .npz archive ({cause}); write it again with numpy.savez"),
            )
        })?;
        Ok(Self {
            path,
            archive,
            length,
        })
    }

    /// Names of the arrays: files of the archive without their ending `.npy`.
    fn names(&self) -> impl Iterator<Item = String> {
        let files = self.archive.file_names().flatten();
        files.filter_map(|file| Some(file.strip_suffix(".npy")?.to_owned()))
    }

    /// Whether there is an array of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names().any(|array| array == name)
    }

    /// Reads an array, or its first `rows` records if its layout allows.
    pub(super) fn array(&mut self, name: &str, rows: Option<usize>) -> Result<NpyArray, DataError> {
        if !self.has(name) {
            let names: Vec<String> = self.names().map(|name| excerpt(&name)).collect();
            let problem = format!(
                "no array `{name}`; it holds {}; save x_train, y_train and, if there are any, x_test and y_test (to predict for: x)",
                super::error::list(&names)
            );
            return Err(DataError::malformed(self.path, problem));
        }
        let (path, length) = (self.path, self.length);
        let broken = |problem: String| {
            DataError::malformed(path, format!("array `{name}`: {}", excerpt_long(&problem)))
        };
        let mut entry = self
            .archive
            .by_name(&format!("{name}.npy"))
            .map_err(|cause| broken(cause.to_string()))?;
        let size = entry.size();
        if size / MAX_RATIO > length {
            return Err(broken(format!(
                "it claims {size} bytes in a file of {length}; the file is damaged"
            )));
        }
        npy::read(&mut entry.by_ref(), size, rows).map_err(broken)
    }

    /// The inputs of a set, their kind and their number per record.
    pub(super) fn inputs(&mut self, name: &str, rows: Option<usize>) -> Result<Records, DataError> {
        let NpyArray {
            shape,
            values,
            records,
            ..
        } = self.array(name, rows)?;
        let path = self.path;
        let columns: usize = shape[1..].iter().product();
        if shape.len() == 1 || columns == 0 {
            let shape = [&[records], &shape[1..]].concat();
            let problem = format!(
                "array `{name}` has shape {shape:?}; inputs need records × columns, or records × rows × columns[ × channels]"
            );
            return Err(DataError::malformed(self.path, problem));
        }
        let image = |height, width, channels| InputKind::Image {
            height,
            width,
            channels,
        };
        let (kind, values) = match *shape.as_slice() {
            [_, height, width] => (image(height, width, 1), values),
            [_, channels, height, width] if channels <= 4 && width > 4 => {
                (image(height, width, channels), values)
            }
            [_, height, width, channels] => {
                let planes = planes(&values, height * width, channels).map_err(|problem| {
                    DataError::malformed(path, format!("array `{name}`: {problem}"))
                })?;
                (image(height, width, channels), planes)
            }
            _ => (InputKind::Table, values),
        };
        Ok(Records {
            values,
            rows: shape[0],
            records,
            columns,
            kind,
        })
    }
}

/// Inputs of a set as they are in an archive.
pub(super) struct Records {
    /// Row-major values of the records that were read.
    pub values: Vec<f64>,
    /// Number of records that were read.
    pub rows: usize,
    /// Number of records in the archive.
    pub records: usize,
    /// Values per record.
    pub columns: usize,
    /// Table or image.
    pub kind: InputKind,
}

/// A message of another library on one line, in full.
fn excerpt_long(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// Reorders records × pixels × channels into records × channels × pixels.
fn planes(values: &[f64], pixels: usize, channels: usize) -> Result<Vec<f64>, String> {
    let mut reordered = Vec::new();
    npy::reserve(&mut reordered, values.len(), values.len())?;
    for image in values.chunks_exact(pixels * channels) {
        for channel in 0..channels {
            reordered.extend(image.iter().skip(channel).step_by(channels));
        }
    }
    Ok(reordered)
}
