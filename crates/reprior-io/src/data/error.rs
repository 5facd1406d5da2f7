//! What can be wrong with a data source, each as one line that names the place and the way out.

use std::fs::File;
use std::io;
use std::path::Path;

use super::BUILT_INS;
use super::given::GIVEN;
use super::targets::MAX_CLASSES;
use crate::regular;

/// Why records could not be loaded.
///
/// Every message is one line: the file, the line or record and the column where there is one, what was found, and what to do about it.
/// Lines of a CSV file are counted as an editor counts them: the header is line 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// Neither a file, a folder nor a built-in.
    #[error(
        "`{path}` does not exist; give a .csv (or .tsv, .csv.gz), .parquet, .arrow or .npz file, - for standard input, a folder of IDX or CIFAR binary files, or a built-in data set ({})",
        BUILT_INS.join(", ")
    )]
    NotFound {
        /// The source as it was asked for.
        path: String,
    },
    /// The operating system refuses to open the file.
    #[error("`{path}` may not be read (permission denied); change its permissions or read a copy")]
    PermissionDenied {
        /// The file.
        path: String,
    },
    /// Any other failure to read.
    #[error("`{path}` cannot be read: {cause}")]
    Io {
        /// The file.
        path: String,
        /// What the operating system says.
        cause: io::Error,
    },
    /// A file or folder of a kind that is not understood.
    #[error(
        "`{path}` is {found}; understood are .csv and .tsv files with a header (also as .csv.gz), .parquet and .arrow files, .npz files, and folders of IDX files (train-images-idx3-ubyte[.gz], train-labels-idx1-ubyte[.gz], t10k-...) or CIFAR binary files (data_batch_1.bin, test_batch.bin; train.bin, test.bin)"
    )]
    UnknownFormat {
        /// The file or folder.
        path: String,
        /// What it is instead.
        found: String,
    },
    /// A folder of images lacks files that are needed.
    #[error("folder `{path}` has no {what}; looked for {looked_for}")]
    MissingFiles {
        /// The folder.
        path: String,
        /// What is missing.
        what: &'static str,
        /// Names of files that would do.
        looked_for: String,
    },
    /// A column was asked for that the header does not have.
    #[error(
        "`{path}` has no column `{column}`{}; its columns are {}",
        suggestion(nearest.as_deref()),
        list(columns)
    )]
    UnknownColumn {
        /// The file.
        path: String,
        /// The column that was asked for.
        column: String,
        /// The column that is most like it, if any is.
        nearest: Option<String>,
        /// The columns there are, in the order of the file.
        columns: Vec<String>,
    },
    /// Columns that the model needs are missing from a file of inputs.
    #[error(
        "`{path}` lacks the input columns {}; add them (any order; other columns are ignored)",
        list(columns)
    )]
    MissingColumns {
        /// The file.
        path: String,
        /// The missing columns.
        columns: Vec<String>,
    },
    /// A cell of a CSV file, or a value of an array, is not what it has to be.
    #[error("`{path}`, {} {line}, column `{column}`: {problem}", counted(path))]
    Cell {
        /// The file.
        path: String,
        /// Line in the file, the header being line 1; row of a table in memory, the first being row 0.
        line: usize,
        /// Name of the column.
        column: String,
        /// What was found and what to do.
        problem: String,
    },
    /// A row has more or fewer cells than the header.
    #[error(
        "`{path}`, line {line}: {found} cells where the header has {expected}; check the separators and quotes of this line"
    )]
    RaggedRow {
        /// The file.
        path: String,
        /// Line in the file, the header being line 1.
        line: usize,
        /// Cells in this row.
        found: usize,
        /// Cells in the header.
        expected: usize,
    },
    /// The file holds nothing, or a header only.
    #[error("`{path}` holds no {what}")]
    Empty {
        /// The file.
        path: String,
        /// What is missing.
        what: &'static str,
    },
    /// So many distinct values of the target that they are hardly classes.
    #[error(
        "`{path}`: target `{column}` has {classes} distinct values, more than the {limit} classes allowed; ask for regression if it is a number, or choose another target"
    )]
    TooManyClasses {
        /// The file.
        path: String,
        /// The target.
        column: String,
        /// Distinct values found.
        classes: usize,
        /// The largest number of classes.
        limit: usize,
    },
    /// Fewer than two training records.
    #[error(
        "`{path}`: {rows} training record(s), but at least 2 are needed; ask for more training or fewer test records"
    )]
    TooFewRows {
        /// The source.
        path: String,
        /// Training records.
        rows: usize,
    },
    /// More records asked for than there are.
    #[error(
        "`{path}` has {available} {set} but {asked} were asked for; ask for at most {available}"
    )]
    NotEnough {
        /// The source.
        path: String,
        /// Which records.
        set: &'static str,
        /// How many there are.
        available: usize,
        /// How many were asked for.
        asked: usize,
    },
    /// The file breaks the rules of its format.
    #[error("`{path}`: {problem}")]
    Malformed {
        /// The file.
        path: String,
        /// What was found and what to do.
        problem: String,
    },
    /// The request does not fit the source.
    #[error("`{path}`: {problem}")]
    Unsuitable {
        /// The source.
        path: String,
        /// What does not fit and what to do.
        problem: String,
    },
}

impl DataError {
    /// The error for a failure of the operating system to open or read `path`.
    pub(super) fn from_io(path: &Path, cause: io::Error) -> Self {
        let path = show(path);
        match cause.kind() {
            io::ErrorKind::NotFound => Self::NotFound { path },
            io::ErrorKind::PermissionDenied => Self::PermissionDenied { path },
            _ => Self::Io { path, cause },
        }
    }

    /// A broken rule of the format of `path`.
    pub(super) fn malformed(path: &Path, problem: impl Into<String>) -> Self {
        Self::Malformed {
            path: show(path),
            problem: problem.into(),
        }
    }

    /// A file that lacks what it is for.
    pub(super) fn empty(path: &Path, what: &'static str) -> Self {
        Self::Empty {
            path: show(path),
            what,
        }
    }

    /// A cell of a CSV file that is not what it has to be.
    pub(super) fn cell(path: &Path, line: usize, column: &str, problem: impl Into<String>) -> Self {
        Self::Cell {
            path: show(path),
            line,
            column: excerpt(column),
            problem: problem.into(),
        }
    }

    /// More distinct values than classes may be.
    pub(super) fn too_many_classes(path: &Path, column: &str, classes: usize) -> Self {
        Self::TooManyClasses {
            path: show(path),
            column: excerpt(column),
            classes,
            limit: MAX_CLASSES,
        }
    }

    /// A request that does not fit `path`.
    pub(super) fn unsuitable(path: &str, problem: impl Into<String>) -> Self {
        Self::Unsuitable {
            path: path.to_string(),
            problem: problem.into(),
        }
    }

    /// A column that the header lacks.
    pub(super) fn unknown_column(path: &Path, column: &str, header: &[String]) -> Self {
        let wanted = column.to_lowercase();
        let edits = |name: &&String| distance(&name.to_lowercase(), &wanted);
        // more edits than a third of the name are no slip
        let most = 1.max(wanted.chars().count() / 3);
        let nearest = header.iter().min_by_key(edits);
        Self::UnknownColumn {
            path: show(path),
            column: excerpt(column),
            nearest: nearest.filter(|name| edits(name) <= most).cloned(),
            columns: header.to_vec(),
        }
    }
}

/// Opens a file that is not empty; with its length.
pub(super) fn open(path: &Path) -> Result<(File, u64), DataError> {
    let io = |cause| DataError::from_io(path, cause);
    let file = regular::open(path).map_err(io)?;
    match file.metadata().map_err(io)?.len() {
        0 => Err(DataError::empty(path, "bytes")),
        length => Ok((file, length)),
    }
}

/// What the rows of a source are counted by.
fn counted(path: &str) -> &'static str {
    match path {
        GIVEN => "row",
        _ => "line",
    }
}

/// A path as it is shown in messages.
pub(super) fn show(path: &Path) -> String {
    path.display().to_string()
}

/// At most 40 characters of a text from a file, without line breaks or control characters.
pub(super) fn excerpt(text: &str) -> String {
    let mut short: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    if text.chars().nth(40).is_some() {
        short.push_str("...");
    }
    short
}

/// The question whether another column is meant.
fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| {
        format!(" (is `{}` meant?)", excerpt(name))
    })
}

/// Up to twelve names in backquotes, and how many more.
pub(super) fn list(names: &[String]) -> String {
    let mut shown: Vec<String> = names
        .iter()
        .take(12)
        .map(|name| format!("`{}`", excerpt(name)))
        .collect();
    if names.len() > 12 {
        shown.push(format!("and {} more", names.len() - 12));
    }
    shown.join(", ")
}

/// Levenshtein's edit distance over characters, in O(|a|·|b|) time and O(|b|) memory.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(200).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(200).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distance_counts_single_edits() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("age", "age"), 0);
    }

    #[test]
    fn io_errors_become_their_own_kinds() {
        let path = Path::new("a.csv");
        let denied = DataError::from_io(path, io::Error::from(io::ErrorKind::PermissionDenied));
        assert!(matches!(denied, DataError::PermissionDenied { .. }));
        let missing =
            DataError::from_io(path, io::Error::from(io::ErrorKind::NotFound)).to_string();
        assert!(
            missing.contains("strokes") && missing.contains("a.csv"),
            "{missing}"
        );
    }

    #[test]
    fn excerpts_stay_on_one_line() {
        assert_eq!(excerpt("a\nb"), "a\\nb");
        assert_eq!(excerpt(&"x".repeat(50)).len(), 43);
    }
}
