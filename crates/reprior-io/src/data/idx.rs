//! Folders of IDX files, the format of MNIST (LeCun, Cortes and Burges 1998) and its relatives, compressed by gzip or not.
//!
//! Images: big-endian magic number 0x0803, counts of images, rows and columns, then a byte per pixel. Labels: 0x0801, count, then a byte per label.
//! Labels are read in full, since they decide which classes there are; of the images only those that are wanted.

use std::path::{Path, PathBuf};

use super::DataError;
use super::error::show;
use super::idx_stream::{IMAGES, IdxStream, LABELS};
use super::part::{Images, Part, find};
use super::targets;

/// A folder of IDX files with its headers and labels read.
pub(super) struct Idx {
    /// The folder.
    pub folder: PathBuf,
    /// The labels of all parts, as digits, sorted.
    pub names: Vec<String>,
    train: Option<Set>,
    test: Option<Set>,
}

/// One file of images with its labels.
struct Set {
    path: PathBuf,
    height: usize,
    width: usize,
    labels: Vec<u32>,
}

impl Idx {
    /// Opens the folder, `None` if it has no IDX files of the usual names.
    pub(super) fn open(folder: &Path) -> Result<Option<Self>, DataError> {
        let mut train = Set::open(folder, Part::Train)?;
        let mut test = Set::open(folder, Part::Test)?;
        if train.is_none() && test.is_none() {
            return Ok(None);
        }
        let sets = train.iter().chain(&test);
        let all: Vec<u8> = sets.flat_map(|(_, labels)| labels.clone()).collect();
        // At most 256 values: never too many.
        let (mut labels, names) =
            targets::classes_of_integers(all.iter().copied()).unwrap_or_default();
        for (set, bytes) in [&mut train, &mut test].into_iter().flatten() {
            let rest = labels.split_off(bytes.len().min(labels.len()));
            set.labels = std::mem::replace(&mut labels, rest);
        }
        let [train, test] = [train, test].map(|set| set.map(|(set, _)| set));
        Ok(Some(Self {
            folder: folder.to_path_buf(),
            names,
            train,
            test,
        }))
    }

    fn set(&self, part: Part) -> Option<&Set> {
        match part {
            Part::Train => self.train.as_ref(),
            Part::Test => self.test.as_ref(),
        }
    }

    /// Number of records of a part.
    pub(super) fn count(&self, part: Part) -> Option<usize> {
        self.set(part).map(|set| set.labels.len())
    }

    /// Height, width and channels of the images of a part.
    pub(super) fn shape(&self, part: Part) -> (usize, usize, usize) {
        self.set(part)
            .map_or((0, 0, 1), |set| (set.height, set.width, 1))
    }

    /// Files that would make up a part.
    pub(super) fn looked_for(part: Part) -> String {
        format!(
            "{} and {}, each with or without .gz",
            names(part, "images", 3)[0],
            names(part, "labels", 1)[0]
        )
    }

    /// The first `rows` records of a part.
    pub(super) fn read(&self, part: Part, rows: usize) -> Result<Images, DataError> {
        let set = self.set(part).ok_or_else(|| DataError::MissingFiles {
            path: show(&self.folder),
            what: part.images(),
            looked_for: Self::looked_for(part),
        })?;
        let mut stream = IdxStream::open(&set.path)?;
        stream.header(IMAGES, 3)?;
        let pixels = stream.bytes((rows * set.height * set.width) as u64)?;
        if rows == set.labels.len() {
            stream.end()?;
        }
        Ok(Images {
            pixels,
            labels: set.labels[..rows].to_vec(),
        })
    }
}

impl Set {
    /// Reads the header of the images and all labels.
    fn open(folder: &Path, part: Part) -> Result<Option<(Self, Vec<u8>)>, DataError> {
        let images = find(folder, &names(part, "images", 3));
        let labels = find(folder, &names(part, "labels", 1));
        let (path, labels_path) = match (images, labels) {
            (None, None) => return Ok(None),
            (Some(images), Some(labels)) => (images, labels),
            (images, _) => {
                let (missing, looked_for) = match images {
                    Some(_) => ("labels for its images", names(part, "labels", 1)),
                    None => ("images for its labels", names(part, "images", 3)),
                };
                return Err(DataError::MissingFiles {
                    path: show(folder),
                    what: missing,
                    looked_for: looked_for.join(", "),
                });
            }
        };
        let header = IdxStream::open(&path)?.header(IMAGES, 3)?;
        let mut stream = IdxStream::open(&labels_path)?;
        let count = stream.header(LABELS, 1)?[0];
        let bytes = stream.bytes(count as u64)?;
        stream.end()?;
        if header[0] != count {
            let problem = format!(
                "{} images, but `{}` has {count} labels; use files of one data set",
                header[0],
                show(&labels_path)
            );
            return Err(DataError::malformed(&path, problem));
        }
        Ok(Some((
            Self {
                path,
                height: header[1],
                width: header[2],
                labels: Vec::new(),
            },
            bytes,
        )))
    }
}

/// Usual names of a file, the commonest first.
fn names(part: Part, what: &str, dimensions: usize) -> Vec<String> {
    let stem = if part == Part::Train { "train" } else { "t10k" };
    ["-", "."]
        .iter()
        .flat_map(|dot| {
            ["", ".gz"].map(|gz| format!("{stem}-{what}{dot}idx{dimensions}-ubyte{gz}"))
        })
        .collect()
}
