//! Folders of CIFAR-10 and CIFAR-100 binary batches (Krizhevsky 2009).
//!
//! A record is its label bytes (one for CIFAR-10; coarse and fine for CIFAR-100, of which the fine one is the class), then 3,072 pixels: planes R, G, B of
//! 32 × 32. The number of records follows from the file's size. The number of classes is always 10 or 100.

use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use super::DataError;
use super::part::{Images, Part, find};

const PIXELS: usize = 3 * 32 * 32;

/// A folder of CIFAR batches.
pub(super) struct Cifar {
    /// The folder.
    pub folder: PathBuf,
    /// Names of the classes: from the folder's list, or numbers.
    pub names: Vec<String>,
    /// Batches that are there, in order.
    train: Vec<PathBuf>,
    test: Vec<PathBuf>,
    /// Exclusive upper bounds of the label bytes; the last one is the class.
    bounds: &'static [u8],
}

impl Cifar {
    /// Opens the folder, `None` if it has no batches of the usual names.
    pub(super) fn open(folder: &Path) -> Result<Option<Self>, DataError> {
        let existing = |names: &[String]| -> Vec<PathBuf> {
            names
                .iter()
                .filter_map(|name| find(folder, std::slice::from_ref(name)))
                .collect()
        };
        let kinds: [(&'static [u8], &str); 2] = [
            (&[10], "batches.meta.txt"),
            (&[20, 100], "fine_label_names.txt"),
        ];
        for (bounds, list) in kinds {
            let [train, test] =
                [Part::Train, Part::Test].map(|part| existing(&files(bounds.len(), part)));
            if train.is_empty() && test.is_empty() {
                continue;
            }
            let classes = usize::from(bounds[bounds.len() - 1]);
            return Ok(Some(Self {
                folder: folder.to_path_buf(),
                names: class_names(&folder.join(list), classes)?,
                train,
                test,
                bounds,
            }));
        }
        Ok(None)
    }

    fn files(&self, part: Part) -> &[PathBuf] {
        match part {
            Part::Train => &self.train,
            Part::Test => &self.test,
        }
    }

    /// Files that would make up a part.
    pub(super) fn looked_for(&self, part: Part) -> String {
        files(self.bounds.len(), part).join(", ")
    }

    fn record_size(&self) -> usize {
        self.bounds.len() + PIXELS
    }

    /// Number of records of a part, `None` if there are no files.
    pub(super) fn count(&self, part: Part) -> Result<Option<usize>, DataError> {
        let mut count = 0;
        for path in self.files(part) {
            count += self.records_in(path)?;
        }
        Ok((!self.files(part).is_empty()).then_some(count))
    }

    fn records_in(&self, path: &Path) -> Result<usize, DataError> {
        let length = fs::metadata(path)
            .map_err(|cause| DataError::from_io(path, cause))?
            .len();
        let size = self.record_size() as u64;
        if length == 0 {
            return Err(DataError::empty(path, "records"));
        }
        if !length.is_multiple_of(size) {
            let (classes, other) = if size == 3073 { (10, 100) } else { (100, 10) };
            let problem = format!(
                "its {length} bytes are not a multiple of the {size} bytes of a CIFAR-{classes} record; it is truncated (fetch it again) or CIFAR-{other} under the wrong name"
            );
            return Err(DataError::malformed(path, problem));
        }
        usize::try_from(length / size)
            .map_err(|_| DataError::malformed(path, "it is too large for this machine"))
    }

    /// The first `rows` records of a part.
    pub(super) fn read(&self, part: Part, rows: usize) -> Result<Images, DataError> {
        let (mut pixels, mut labels) = (Vec::new(), Vec::new());
        let mut record = vec![0; self.record_size()];
        for path in self.files(part) {
            let io = |cause| DataError::from_io(path, cause);
            let count = self.records_in(path)?.min(rows - labels.len());
            let mut reader = BufReader::with_capacity(1 << 16, File::open(path).map_err(io)?);
            for number in 1..=count {
                reader.read_exact(&mut record).map_err(io)?;
                let (bytes, image) = record.split_at(self.bounds.len());
                for (&byte, &bound) in bytes.iter().zip(self.bounds) {
                    if byte >= bound {
                        let problem = format!(
                            "record {number} has label {byte}, but labels are below {bound}; the file is damaged or of another format"
                        );
                        return Err(DataError::malformed(path, problem));
                    }
                }
                labels.push(u32::from(bytes[bytes.len() - 1]));
                pixels.extend_from_slice(image);
            }
        }
        Ok(Images { pixels, labels })
    }
}

/// Usual names of the files of a part, whose records have so many label bytes.
fn files(labels: usize, part: Part) -> Vec<String> {
    match (part, labels) {
        (Part::Train, 1) => (1..=5).map(|n| format!("data_batch_{n}.bin")).collect(),
        (Part::Test, 1) => vec!["test_batch.bin".to_string()],
        (Part::Train, _) => vec!["train.bin".to_string()],
        (Part::Test, _) => vec!["test.bin".to_string()],
    }
}

/// Names from a list with one a line, or numbers where there is no list.
fn class_names(list: &Path, classes: usize) -> Result<Vec<String>, DataError> {
    if !list.is_file() {
        return Ok((0..classes).map(|class| class.to_string()).collect());
    }
    let bytes = fs::read(list).map_err(|cause| DataError::from_io(list, cause))?;
    let text = String::from_utf8_lossy(&bytes);
    let names: Vec<String> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(String::from)
        .collect();
    if names.len() != classes {
        let problem = format!(
            "{} class names where {classes} are due, one a line; correct the list or delete it",
            names.len()
        );
        return Err(DataError::malformed(list, problem));
    }
    Ok(names)
}
