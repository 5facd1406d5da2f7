//! Arrays of NumPy: whole archives, and single arrays in an archive that is sound.

use std::io::{Cursor, Write};
use std::sync::Arc;

use reprior::model::dataset::InputKind;
use reprior_io::data::{
    ExpectedInputs, ExpectedTargets, GIVEN_ARRAYS, Given, Request, Task, given_inputs, load,
};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::calmly;

/// What stands in headers.
pub const WORDS: &[&str] = &[
    "\u{93}NUMPY",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }",
    "'<f4'",
    "'>i8'",
    "'|u1'",
    "'|b1'",
    "True",
    "(1,)",
    "(2, 2, 2, 1)",
    "(0, 3)",
    "x_train.npy",
    "y_train.npy",
    "x_test.npy",
    "y_test.npy",
    "x.npy",
    "y.npy",
    "PK\u{1}\u{2}",
    "PK\u{3}\u{4}",
    "PK\u{5}\u{6}",
];

/// The arrays of the inputs and of the targets, behind the length of the first.
pub fn npy(bytes: &[u8]) {
    let Some((length, arrays)) = bytes.split_first_chunk::<2>() else {
        return;
    };
    let length = usize::from(u16::from_le_bytes(*length)).min(arrays.len());
    let (x, y) = arrays.split_at(length);
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (names, set) in [
        (["x_train.npy", "y_train.npy"], "test"),
        (["x.npy", "y.npy"], ""),
    ] {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        let mut put = |name: &str, array: &[u8]| {
            archive.start_file(name, options).unwrap();
            archive.write_all(array).unwrap();
        };
        put(names[0], x);
        put(names[1], y);
        if set == "test" {
            put("x_test.npy", x);
            put("y_test.npy", y);
        }
        npz(archive.finish().unwrap().get_ref());
    }
}

/// An archive.
pub fn npz(bytes: &[u8]) {
    let content = Some(Arc::new(bytes.to_vec()));
    let plain = Request {
        content,
        ..Request::new(GIVEN_ARRAYS)
    };
    for (task, train, test, shuffle) in [
        (Task::Auto, None, None, None),
        (Task::Regression, Some(2), Some(1), None),
        (Task::Classification, None, None, Some(1)),
    ] {
        calmly(load(&Request {
            task,
            train,
            test,
            shuffle,
            ..plain.clone()
        }));
    }
    let given = Given::arrays(bytes.to_vec());
    let names = ["0", "1"].map(str::to_owned).to_vec();
    let image = InputKind::Image {
        height: 2,
        width: 2,
        channels: 1,
    };
    let classes = ExpectedTargets::Classes {
        column: None,
        names: names.clone(),
    };
    for (kind, columns, targets) in [
        (InputKind::Table, 2, ExpectedTargets::Real { names }),
        (image, 4, classes),
    ] {
        let expected = ExpectedInputs {
            kind,
            columns,
            column_names: Vec::new(),
            targets: Some(targets),
        };
        calmly(given_inputs(&given, &expected, None));
    }
}
