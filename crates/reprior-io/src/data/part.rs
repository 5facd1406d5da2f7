//! What folders of images have: files of training and of test images, found by their names.

use std::path::{Path, PathBuf};

/// Training or test files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Training images.
    Train,
    /// Test images.
    Test,
}

impl Part {
    /// What its records are called in messages.
    pub(super) fn records(self) -> &'static str {
        match self {
            Self::Train => "training records",
            Self::Test => "test records",
        }
    }

    /// What its files are called in messages.
    pub(super) fn images(self) -> &'static str {
        match self {
            Self::Train => "training images",
            Self::Test => "test images",
        }
    }
}

/// The first records of a part.
pub(super) struct Images {
    /// Pixels, record by record, planes first.
    pub pixels: Vec<u8>,
    /// Classes.
    pub labels: Vec<u32>,
}

/// The first of `names` that is a file in `folder`.
pub(super) fn find(folder: &Path, names: &[String]) -> Option<PathBuf> {
    names
        .iter()
        .map(|name| folder.join(name))
        .find(|path| path.is_file())
}
