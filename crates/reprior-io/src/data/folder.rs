//! Folders of images, recognised by the names of the files in them.
//!
//! Pixels stay bytes: 60,000 images of 28 × 28 are 47 MB as bytes and 376 MB as reals.

use std::path::Path;

use reprior::model::dataset::{Dataset, InputKind, InputValues, Split, Targets};

use super::cifar::Cifar;
use super::error::show;
use super::idx::Idx;
use super::part::{Images, Part};
use super::split;
use super::{DataError, Request, Task};

/// A folder of images.
pub(super) enum Folder {
    Idx(Idx),
    Cifar(Cifar),
}

impl Folder {
    /// Recognises the folder at `path` and reads what is common to its parts.
    pub(super) fn open(path: &Path) -> Result<Self, DataError> {
        if let Some(idx) = Idx::open(path)? {
            Ok(Self::Idx(idx))
        } else if let Some(cifar) = Cifar::open(path)? {
            Ok(Self::Cifar(cifar))
        } else {
            let found = "a folder without files of a known name".to_string();
            Err(DataError::UnknownFormat {
                path: show(path),
                found,
            })
        }
    }

    /// Number of records of a part, `None` if its files are not there.
    pub(super) fn count(&self, part: Part) -> Result<Option<usize>, DataError> {
        match self {
            Self::Idx(idx) => Ok(idx.count(part)),
            Self::Cifar(cifar) => cifar.count(part),
        }
    }

    /// The first `rows` records of a part, which has as many.
    pub(super) fn read(&self, part: Part, rows: usize) -> Result<Images, DataError> {
        match self {
            Self::Idx(idx) => idx.read(part, rows),
            Self::Cifar(cifar) => cifar.read(part, rows),
        }
    }

    /// Shape of the images of a part.
    pub(super) fn kind(&self, part: Part) -> InputKind {
        let (height, width, channels) = match self {
            Self::Idx(idx) => idx.shape(part),
            Self::Cifar(_) => (32, 32, 3),
        };
        InputKind::Image {
            height,
            width,
            channels,
        }
    }

    /// Names of the classes.
    pub(super) fn names(&self) -> &[String] {
        match self {
            Self::Idx(idx) => &idx.names,
            Self::Cifar(cifar) => &cifar.names,
        }
    }

    /// The error for a part whose files are not there.
    pub(super) fn missing(&self, part: Part) -> DataError {
        let (path, looked_for) = match self {
            Self::Idx(idx) => (&idx.folder, Idx::looked_for(part)),
            Self::Cifar(cifar) => (&cifar.folder, cifar.looked_for(part)),
        };
        DataError::MissingFiles {
            path: show(path),
            what: part.images(),
            looked_for,
        }
    }

    /// The first `rows` records of a part, shuffled before if asked for.
    pub(super) fn dataset(
        &self,
        part: Part,
        rows: usize,
        available: usize,
        shuffle: Option<u64>,
    ) -> Result<Dataset, DataError> {
        let kind = self.kind(part);
        let columns = columns(kind);
        let images = self.read(part, if shuffle.is_some() { available } else { rows })?;
        let all = Dataset {
            inputs: InputValues::Bytes(images.pixels),
            rows: images.labels.len(),
            columns,
            column_names: Vec::new(),
            kind,
            targets: Targets::Classes {
                labels: images.labels,
                names: self.names().to_vec(),
            },
        };
        let stream = match part {
            Part::Train => split::TRAIN_STREAM,
            Part::Test => split::TEST_STREAM,
        };
        Ok(split::first(all, rows, shuffle, stream))
    }
}

/// Number of values per record.
pub(super) fn columns(kind: InputKind) -> usize {
    match kind {
        InputKind::Image {
            height,
            width,
            channels,
        } => height * width * channels,
        InputKind::Table => 0,
    }
}

/// Loads the training and test sets of a folder.
pub(super) fn load(path: &Path, request: &Request) -> Result<Split, DataError> {
    if request.task == Task::Regression {
        return Err(DataError::unsuitable(
            &request.source,
            "images with labels have classes, not real targets; ask for classification",
        ));
    }
    let folder = Folder::open(path)?;
    let available = folder
        .count(Part::Train)?
        .ok_or_else(|| folder.missing(Part::Train))?;
    let rows = split::wanted(
        &request.source,
        Part::Train.records(),
        available,
        request.train,
    )?;
    split::at_least_two(&request.source, rows)?;
    let tests = folder.count(Part::Test)?;
    if tests.is_some() && folder.kind(Part::Train) != folder.kind(Part::Test) {
        return Err(DataError::malformed(
            path,
            "the test images are not of the training images' size; use files of one data set",
        ));
    }
    let test_rows = match (tests, request.test) {
        (None, Some(asked)) if asked > 0 => return Err(folder.missing(Part::Test)),
        (tests, asked) => split::wanted(
            &request.source,
            Part::Test.records(),
            tests.unwrap_or(0),
            asked,
        )?,
    };
    let train = folder.dataset(Part::Train, rows, available, request.shuffle)?;
    let test = match tests {
        Some(tests) => folder.dataset(Part::Test, test_rows, tests, request.shuffle)?,
        None => train.slice(0..0),
    };
    Ok(Split { train, test })
}
