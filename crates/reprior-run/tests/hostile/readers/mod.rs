//! Everything that reads what somebody else may have written, each as a function of bytes.
//!
//! One definition for the fuzzer by coverage (`fuzz/`) and for the tests: neither knows anything of a format. A reader's bytes are a file
//! as it lies on the disk where nothing is said; where a file alone would not come far, they are what its maker would be told, with lengths and
//! checksums made right.

mod arrays;
mod edits;
mod images;
pub mod runs;
mod settings;
mod tables;
pub mod tensors;
mod weights;

use std::fmt::Display;
use std::path::Path;

use tempfile::TempDir;

/// One kind of file.
#[derive(Debug, Clone, Copy)]
pub struct Reader {
    /// The name of its corpus.
    pub name: &'static str,
    /// Reads the bytes, and goes on with what they gave as far as nothing is computed.
    pub read: fn(&[u8]),
    /// New inputs in the tests: together some seconds.
    pub new_inputs: usize,
    /// Words of the format, which chance does not find.
    pub words: &'static [&'static str],
}

/// All of them.
pub const READERS: [Reader; 14] = [
    Reader {
        name: "csv",
        read: tables::csv,
        new_inputs: 8_000,
        words: tables::WORDS,
    },
    Reader {
        name: "gzip",
        read: tables::file,
        new_inputs: 5_000,
        words: &["\u{1f}\u{8b}\u{8}"],
    },
    Reader {
        name: "given",
        read: tables::given,
        new_inputs: 8_000,
        words: tables::WORDS,
    },
    Reader {
        name: "parquet",
        read: tables::file,
        new_inputs: 8_000,
        words: &["PAR1"],
    },
    Reader {
        name: "arrow",
        read: tables::file,
        new_inputs: 5_000,
        words: &["ARROW1"],
    },
    Reader {
        name: "npy",
        read: arrays::npy,
        new_inputs: 8_000,
        words: arrays::WORDS,
    },
    Reader {
        name: "npz",
        read: arrays::npz,
        new_inputs: 12_000,
        words: arrays::WORDS,
    },
    Reader {
        name: "idx",
        read: images::idx,
        new_inputs: 400,
        words: &[],
    },
    Reader {
        name: "cifar",
        read: images::cifar,
        new_inputs: 1_500,
        words: &["\n"],
    },
    Reader {
        name: "weights",
        read: weights::weights,
        new_inputs: 20_000,
        words: weights::WORDS,
    },
    Reader {
        name: "network",
        read: settings::network,
        new_inputs: 5_000,
        words: settings::LAYER_WORDS,
    },
    Reader {
        name: "config",
        read: settings::config,
        new_inputs: 5_000,
        words: settings::WORDS,
    },
    Reader {
        name: "tensors",
        read: tensors::tensors,
        new_inputs: 12_000,
        words: tensors::WORDS,
    },
    Reader {
        name: "run",
        read: runs::run,
        new_inputs: 80,
        words: &[],
    },
];

/// Refusals are one line.
fn calm(error: &dyn Display) {
    let error = error.to_string();
    assert!(!error.contains(['\n', '\r']), "{error:?}");
}

/// Goes on with what was read; what was refused was refused in one line.
fn calmly<T, E: Display>(read: Result<T, E>) -> Option<T> {
    match read {
        Ok(read) => Some(read),
        Err(error) => {
            calm(&error);
            None
        }
    }
}

/// Calls `with` a folder of this thread's own, whose files of earlier calls are still there.
fn in_scratch<T>(with: impl FnOnce(&Path) -> T) -> T {
    thread_local! {
        static SCRATCH: TempDir = tempfile::tempdir().unwrap();
    }
    SCRATCH.with(|folder| with(folder.path()))
}
