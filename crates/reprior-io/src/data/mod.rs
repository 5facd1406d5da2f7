//! Records from files, or from a data set that is built in, split into training and test sets.
//!
//! | source | what it is |
//! |---|---|
//! | `friedman`, `two-moons`, `strokes` | [built-in](BUILT_INS) data sets, the same on every machine |
//! | `*.csv`, `*.tsv`, the same with `.gz`, or `-` for standard input | a table with a header; the target is named, or the last column |
//! | [data in memory](Given) | the same, or the arrays of an `.npz` archive, given by a program |
//! | `*.parquet`, `*.arrow`, `*.feather` | the same in columns, with the feature `columnar` |
//! | `*.npz` | arrays `x_train`, `y_train` and optionally `x_test`, `y_test`; or `x` and `y`, one table |
//! | a folder of IDX files | MNIST and its relatives, compressed or not |
//! | a folder of CIFAR binary files | CIFAR-10 (`data_batch_1.bin` ... `test_batch.bin`) or CIFAR-100 with fine labels (`train.bin`, `test.bin`) |
//!
//! **Tables** (CSV, built-ins, `x` and `y`): the first rows train, the rows that follow test; by default 80 % and 20 %.
//! **Sources with two sets**: the first records of each; by default all. A missing test set is an empty one.
//! A [shuffle](Request::shuffle) permutes before anything is taken.
//!
//! **Columns of CSV tables** may be numbers, yes and no, dates or text, with cells missing: [`TableEncoding`] says what they become.
//!
//! **Images** are given as one plane after the other (channel, then row, then column), whatever the order in the file, with pixels in the file's own units:
//! 0 to 255 for IDX, CIFAR and `strokes`.
//!
//! **Classes** are the distinct labels of the whole source, training and test, sorted (as numbers if they are numbers), whatever part of it is taken; CIFAR has
//! always 10 or 100. Everything that is returned is finite. Columns without variance are allowed.

mod builtin;
mod cifar;
#[cfg(feature = "columnar")]
mod columnar;
#[cfg(feature = "columnar")]
mod columnar_cell;
#[cfg(feature = "columnar")]
mod columnar_check;
#[cfg(feature = "columnar")]
mod columnar_deltas;
#[cfg(feature = "columnar")]
mod columnar_pages;
mod csv_cells;
mod csv_inputs;
mod csv_load;
mod csv_source;
mod csv_table;
mod csv_targets;
mod dates;
mod encoding;
mod error;
mod folder;
mod given;
mod idx;
mod idx_stream;
mod inputs;
mod look;
mod npy;
mod npz;
mod npz_archive;
mod numbers;
mod part;
mod random;
mod split;
mod targets;

use std::path::Path;
use std::sync::Arc;

use reprior::model::dataset::Split;

pub use builtin::BUILT_INS;
pub use csv_source::{STDIN, read_stdin};
pub use encoding::{Becomes, ColumnEncoding, DateForm, Missing, TableEncoding};
pub use error::DataError;
pub use given::{GIVEN, GIVEN_ARRAYS, Given, GivenColumn, GivenValues};
pub use inputs::{
    ExpectedInputs, ExpectedTargets, Inputs, given_inputs, load_encoded_inputs, load_inputs,
};
pub use look::look;
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
    /// Name of a [built-in](BUILT_INS), `-` for a table from standard input, or a path. (`./strokes` is the file of that name.)
    pub source: String,
    /// What there is instead of what the source would give: of standard input, which can be read but once, and of data in memory.
    pub content: Option<Arc<Vec<u8>>>,
    /// Target columns of a CSV file; several give several real outputs. `None`: the last column. Must be `None` for other sources.
    pub target: Option<Vec<String>>,
    /// Columns of a CSV file that are left out. Must be empty for other sources.
    pub ignore: Vec<String>,
    /// Input columns of a CSV file whose values are levels, numbers or not. Must be empty for other sources.
    pub categorical: Vec<String>,
    /// What is made of missing cells of a CSV file.
    pub missing: Missing,
    /// What the target is taken for.
    pub task: Task,
    /// Number of training records; see the [module](self) for the default.
    pub train: Option<usize>,
    /// Number of test records; see the [module](self) for the default.
    pub test: Option<usize>,
    /// Permute the records with this seed before taking the first ones, with the classes interleaved: equally many of each for sources with a test set of
    /// their own, in the table's proportions for single tables.
    pub shuffle: Option<u64>,
    /// All records of a table train, and so many of them, evenly spaced, are the test records too. Must be `None` for other sources.
    pub watch: Option<usize>,
}

impl Request {
    /// All defaults for `source`.
    pub fn new(source: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            ..Self::default()
        }
    }

    /// All defaults for data in memory.
    pub fn given(given: &Given) -> Self {
        Self {
            content: Some(Arc::clone(given.bytes())),
            ..Self::new(given.source())
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

/// Records with what was found on the way.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// Training and test rows.
    pub split: Split,
    /// The columns of a CSV file that were taken for targets; empty for other sources.
    pub target_columns: Vec<String>,
    /// What the columns of a CSV file became; none of other sources.
    pub encoding: Option<TableEncoding>,
    /// What a user should know, one line each.
    pub notes: Vec<String>,
}

/// Loads the records that `request` describes.
///
/// # Errors
/// Anything in [`DataError`]: a source that is not there or not understood, fewer records than asked for, a malformed file, values that are not finite numbers.
pub fn load(request: &Request) -> Result<Split, DataError> {
    load_with_notes(request).map(|loaded| loaded.split)
}

/// The same, with what was made of the columns.
///
/// # Errors
/// As [`load`].
pub fn load_with_notes(request: &Request) -> Result<Loaded, DataError> {
    let path = Path::new(&request.source);
    let format = format_of(&request.source)?;
    if !matches!(format, Format::Csv) {
        let what = match () {
            () if request.target.is_some() => {
                Some("a target column can be chosen only for a .csv file; leave the target out")
            }
            () if !request.ignore.is_empty() => {
                Some("columns can be left out only of a .csv file; leave --ignore out")
            }
            () if request.watch.is_some() => Some(
                "all records can train, and some be watched, only of a .csv file; leave --watch out",
            ),
            () if !request.categorical.is_empty() => {
                Some("columns can be taken as text only of a .csv file; leave --categorical out")
            }
            () => None,
        };
        if let Some(what) = what {
            return Err(DataError::unsuitable(&request.source, what));
        }
    }
    let split = match format {
        Format::BuiltIn => builtin::load(request)?,
        Format::Csv => return csv_load::load(request),
        Format::Npz => npz::load(path, request)?,
        Format::Folder => folder::load(path, request)?,
    };
    Ok(Loaded {
        split,
        target_columns: Vec::new(),
        encoding: None,
        notes: Vec::new(),
    })
}

/// Whether a source is a table in a CSV file or from standard input.
///
/// # Errors
/// A path where nothing is, or nothing that is understood.
pub fn is_csv(source: &str) -> Result<bool, DataError> {
    Ok(matches!(format_of(source)?, Format::Csv))
}

/// Recognises a source by its name and, if it is a path, by what is there.
fn format_of(source: &str) -> Result<Format, DataError> {
    if BUILT_INS.contains(&source) {
        return Ok(Format::BuiltIn);
    }
    if source == STDIN || source == GIVEN {
        return Ok(Format::Csv);
    }
    if source == GIVEN_ARRAYS {
        return Ok(Format::Npz);
    }
    let path = Path::new(source);
    let metadata = path
        .metadata()
        .map_err(|cause| DataError::from_io(path, cause))?;
    let extension = path
        .extension()
        .map(|extension| extension.to_string_lossy().to_lowercase());
    let inner = path
        .file_stem()
        .map(|stem| Path::new(stem).extension().unwrap_or_default());
    let is_compressed_table = inner.is_some_and(|inner| {
        ["csv", "tsv"]
            .iter()
            .any(|name| inner.eq_ignore_ascii_case(name))
    });
    match extension.as_deref() {
        _ if metadata.is_dir() => Ok(Format::Folder),
        Some("csv" | "tsv") => Ok(Format::Csv),
        Some("parquet" | "arrow" | "feather") if cfg!(feature = "columnar") => Ok(Format::Csv),
        Some("gz") if is_compressed_table => Ok(Format::Csv),
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
