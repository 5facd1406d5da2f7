//! Records from files, or from a data set that is built in, split into training and test sets.
//!
//! | source | what it is |
//! |---|---|
//! | `friedman`, `two-moons`, `strokes` | [built-in](BUILT_INS) data sets, the same on every machine |
//! | `*.csv` | a table with a header; the target is named, or the last column |
//! | `*.npz` | arrays `x_train`, `y_train` and optionally `x_test`, `y_test`; or `x` and `y`, one table |
//! | a folder of IDX files | MNIST and its relatives, compressed or not |
//! | a folder of CIFAR binary files | CIFAR-10 (`data_batch_1.bin` ... `test_batch.bin`) or CIFAR-100 with fine labels (`train.bin`, `test.bin`) |
//!
//! **Tables** (CSV, built-ins, `x` and `y`): the first rows train, the rows that follow test; by default 80 % and 20 %.
//! **Sources with two sets**: the first records of each; by default all. A missing test set is an empty one.
//! A [shuffle](Request::shuffle) permutes before anything is taken.
//!
//! **Images** are given as one plane after the other (channel, then row, then column), whatever the order in the file, with pixels in the file's own units:
//! 0 to 255 for IDX, CIFAR and `strokes`.
//!
//! **Classes** are the distinct labels of the whole source, training and test, sorted (as numbers if they are numbers), whatever part of it is taken; CIFAR has
//! always 10 or 100. Everything that is returned is finite. Columns without variance are allowed.

mod builtin;
mod cifar;
mod csv_cells;
mod csv_table;
mod error;
mod folder;
mod idx;
mod idx_stream;
mod inputs;
mod npy;
mod npz;
mod npz_archive;
mod part;
mod random;
mod split;
mod targets;

use std::path::Path;

use reprior::model::dataset::Split;

pub use builtin::BUILT_INS;
pub use error::DataError;
pub use inputs::{ExpectedInputs, ExpectedTargets, Inputs, load_inputs};
pub use targets::MAX_CLASSES;

/// What the target is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Task {
    /// Text and integer labels of images or `.npz` files are classes, numbers in a CSV file and real arrays are real.
    #[default]
    Auto,
    /// Real outputs.
    Regression,
    /// Classes.
    Classification,
}

/// Which records to load.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// Name of a [built-in](BUILT_INS), or a path. (`./strokes` is the file of that name.)
    pub source: String,
    /// Target columns of a CSV file; several give several real outputs. `None`: the last column. Must be `None` for other sources.
    pub target: Option<Vec<String>>,
    /// What the target is taken for.
    pub task: Task,
    /// Number of training records; see the [module](self) for the default.
    pub train: Option<usize>,
    /// Number of test records; see the [module](self) for the default.
    pub test: Option<usize>,
    /// Permute the records with this seed before taking the first ones, with the classes interleaved: equally many of each for sources with a test set of
    /// their own, in the table's proportions for single tables.
    pub shuffle: Option<u64>,
}

impl Request {
    /// All defaults for `source`.
    pub fn new(source: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            ..Self::default()
        }
    }
}

/// What a source turned out to be.
enum Format {
    BuiltIn,
    Csv,
    Npz,
    Folder,
}

/// Loads the records that `request` describes.
///
/// # Errors
/// Anything in [`DataError`]: a source that is not there or not understood, fewer records than asked for, a malformed file, values that are not finite numbers.
pub fn load(request: &Request) -> Result<Split, DataError> {
    let path = Path::new(&request.source);
    let format = format_of(&request.source)?;
    if request.target.is_some() && !matches!(format, Format::Csv) {
        return Err(DataError::unsuitable(
            &request.source,
            "a target column can be chosen only for a .csv file; leave the target out",
        ));
    }
    match format {
        Format::BuiltIn => builtin::load(request),
        Format::Csv => csv_table::load(path, request),
        Format::Npz => npz::load(path, request),
        Format::Folder => folder::load(path, request),
    }
}

/// The columns of a CSV file that [`load`] takes for targets; empty for other sources. Reads the header only.
///
/// # Errors
/// As [`load`], as far as the header goes.
pub fn target_columns(request: &Request) -> Result<Vec<String>, DataError> {
    match format_of(&request.source)? {
        Format::Csv => csv_table::target_columns(Path::new(&request.source), request),
        _ => Ok(Vec::new()),
    }
}

/// Recognises a source by its name and, if it is a path, by what is there.
fn format_of(source: &str) -> Result<Format, DataError> {
    if BUILT_INS.contains(&source) {
        return Ok(Format::BuiltIn);
    }
    let path = Path::new(source);
    let metadata = path
        .metadata()
        .map_err(|cause| DataError::from_io(path, cause))?;
    let extension = path
        .extension()
        .map(|extension| extension.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        _ if metadata.is_dir() => Ok(Format::Folder),
        Some("csv") => Ok(Format::Csv),
        Some("npz") => Ok(Format::Npz),
        Some(other) => Err(DataError::UnknownFormat {
            path: source.to_string(),
            found: format!("a .{} file", error::excerpt(other)),
        }),
        None => Err(DataError::UnknownFormat {
            path: source.to_string(),
            found: "a file without extension".to_string(),
        }),
    }
}
