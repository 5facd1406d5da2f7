//! Archives of NumPy arrays.

use std::fs;

use crate::common::{Files, archive, f8, labels, message, npy, real};
use reprior::model::dataset::{InputKind, Split};
use reprior_io::data::{
    DataError, ExpectedInputs, Given, Request, Task, given_inputs, load, load_inputs,
};

fn read(arrays: &[(&str, Vec<u8>)], change: impl FnOnce(&mut Request)) -> Result<Split, DataError> {
    let files = archive(arrays);
    let mut request = Request::new(files.path("data.npz"));
    change(&mut request);
    load(&request)
}

fn x3() -> Vec<u8> {
    npy("<f8", false, "(3, 2)", &f8(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
}

fn y3() -> Vec<u8> {
    npy("<f8", false, "(3,)", &f8(&[0.5, 1.5, 2.5]))
}

#[test]
fn tables_with_and_without_a_test_set() {
    let split = read(&[("x_train", x3()), ("y_train", y3())], |_| {}).unwrap();
    assert_eq!(
        (split.train.rows, split.test.rows, split.test.columns),
        (3, 0, 2)
    );
    assert_eq!(
        split.train.inputs.to_reals(),
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    );
    assert_eq!(
        (real(&split.train), split.train.targets.names()),
        (&[0.5, 1.5, 2.5][..], &["y".to_string()][..])
    );
    assert_eq!(split.train.column_names, ["x0", "x1"]);
    let arrays = [
        ("x_train", x3()),
        ("y_train", y3()),
        ("x_test", x3()),
        ("y_test", y3()),
    ];
    let split = read(&arrays, |r| (r.train, r.test) = (Some(2), Some(1))).unwrap();
    assert_eq!((split.train.inputs.len(), split.test.inputs.len()), (4, 2));
    let shuffled = read(&arrays, |r| (r.train, r.shuffle) = (Some(2), Some(3))).unwrap();
    for (x, y) in shuffled
        .train
        .inputs
        .to_reals()
        .chunks(2)
        .zip(real(&shuffled.train))
    {
        assert_eq!(x[0] / 2.0, *y);
    }
    message(
        read(&arrays, |r| r.train = Some(4)),
        &["3 training records but 4"],
    );
    message(
        read(&arrays, |r| r.test = Some(4)),
        &["3 test records but 4"],
    );
    message(
        read(&arrays[..2], |r| r.test = Some(1)),
        &["0 test records but 1"],
    );
    let split = read(&[("x", x3()), ("y", y3())], |_| {}).unwrap();
    assert_eq!((split.train.rows, split.test.rows), (2, 1));
}

#[test]
fn fortran_order_is_undone() {
    let x = npy("<f8", true, "(3, 2)", &f8(&[1.0, 3.0, 5.0, 2.0, 4.0, 6.0]));
    let split = read(&[("x_train", x), ("y_train", y3())], |r| r.train = Some(2)).unwrap();
    assert_eq!(split.train.inputs.to_reals(), [1.0, 2.0, 3.0, 4.0]);
    let transposed: Vec<f64> = vec![
        0.0, 12.0, 4.0, 16.0, 8.0, 20.0, 1.0, 13.0, 5.0, 17.0, 9.0, 21.0,
    ];
    let rest: Vec<f64> = vec![
        2.0, 14.0, 6.0, 18.0, 10.0, 22.0, 3.0, 15.0, 7.0, 19.0, 11.0, 23.0,
    ];
    let x = npy("<f8", true, "(2, 3, 4)", &f8(&[transposed, rest].concat()));
    let y = npy("|u1", false, "(2,)", &[1, 0]);
    let split = read(&[("x_train", x), ("y_train", y)], |_| {}).unwrap();
    assert_eq!(
        split.train.inputs.to_reals(),
        (0..24).map(f64::from).collect::<Vec<_>>()
    );
}

#[test]
fn every_type_of_number() {
    let cases: [(&str, Vec<u8>, [f64; 2]); 13] = [
        (
            "<f4",
            [1.5_f32, -2.0].map(f32::to_le_bytes).concat(),
            [1.5, -2.0],
        ),
        (
            ">f4",
            [1.5_f32, -2.0].map(f32::to_be_bytes).concat(),
            [1.5, -2.0],
        ),
        ("<f8", f8(&[1.5, -2.0]), [1.5, -2.0]),
        (
            ">f8",
            [1.5_f64, -2.0].map(f64::to_be_bytes).concat(),
            [1.5, -2.0],
        ),
        ("|u1", vec![3, 255], [3.0, 255.0]),
        ("|i1", vec![3, 255], [3.0, -1.0]),
        ("|b1", vec![0, 1], [0.0, 1.0]),
        (
            "<i2",
            [3_i16, -300].map(i16::to_le_bytes).concat(),
            [3.0, -300.0],
        ),
        (
            "<u2",
            [3_u16, 60000].map(u16::to_le_bytes).concat(),
            [3.0, 60000.0],
        ),
        (
            "<i4",
            [3_i32, -70000].map(i32::to_le_bytes).concat(),
            [3.0, -70000.0],
        ),
        (
            "<u4",
            [3_u32, 4_000_000_000].map(u32::to_le_bytes).concat(),
            [3.0, 4e9],
        ),
        (
            "<i8",
            [3_i64, -(1 << 53)].map(i64::to_le_bytes).concat(),
            [3.0, -9007199254740992.0],
        ),
        (
            "<u8",
            [3_u64, 1 << 53].map(u64::to_le_bytes).concat(),
            [3.0, 9007199254740992.0],
        ),
    ];
    for (descr, bytes, values) in cases {
        let arrays = [
            ("x_train", npy(descr, false, "(2, 1)", &bytes)),
            ("y_train", npy("<f8", false, "(2,)", &f8(&[0.0, 1.0]))),
        ];
        assert_eq!(
            read(&arrays, |_| {}).unwrap().train.inputs.to_reals(),
            values,
            "{descr}"
        );
    }
    let large = npy("<u8", false, "(2, 1)", &[255; 16]);
    message(
        read(
            &[
                ("x_train", large),
                ("y_train", npy("|u1", false, "(2,)", &[0, 1])),
            ],
            |_| {},
        ),
        &["`x_train`", "2^53"],
    );
}

#[test]
fn images_become_planes() {
    let y = npy("|u1", false, "(2,)", &[1, 0]);
    let x = npy(
        "|u1",
        false,
        "(2, 1, 2, 3)",
        &[0, 1, 2, 10, 11, 12, 100, 101, 102, 110, 111, 112],
    );
    let split = read(&[("x_train", x), ("y_train", y.clone())], |_| {}).unwrap();
    assert_eq!(
        split.train.kind,
        InputKind::Image {
            height: 1,
            width: 2,
            channels: 3
        }
    );
    assert_eq!(
        split.train.inputs.to_reals()[..6],
        [0.0, 10.0, 1.0, 11.0, 2.0, 12.0]
    );
    assert!(split.train.column_names.is_empty());
    let pixels: Vec<u8> = (0..60).collect();
    let x = npy("|u1", false, "(2, 3, 2, 5)", &pixels);
    let split = read(&[("x_train", x), ("y_train", y)], |_| {}).unwrap();
    assert_eq!(
        split.train.kind,
        InputKind::Image {
            height: 2,
            width: 5,
            channels: 3
        }
    );
    assert_eq!(
        split.train.inputs.to_reals(),
        (0..60).map(f64::from).collect::<Vec<_>>()
    );
}

#[test]
fn targets_of_every_kind() {
    let integers = npy(
        "<i4",
        false,
        "(3,)",
        &[7_i32, -1, 7].map(i32::to_le_bytes).concat(),
    );
    let arrays = [
        ("x_train", x3()),
        ("y_train", integers),
        ("x_test", x3()),
        ("y_test", npy("|u1", false, "(3,)", &[2, 2, 7])),
    ];
    let split = read(&arrays, |_| {}).unwrap();
    assert_eq!(
        (labels(&split.train), labels(&split.test)),
        (&[2, 0, 2][..], &[1, 1, 2][..])
    );
    assert_eq!(split.train.targets.names(), ["-1", "2", "7"]);
    assert_eq!(
        real(&read(&arrays, |r| r.task = Task::Regression).unwrap().train),
        [7.0, -1.0, 7.0]
    );
    assert_eq!(
        labels(
            &read(&[("x_train", x3()), ("y_train", y3())], |r| r.task =
                Task::Classification)
            .unwrap()
            .train
        ),
        [0, 1, 2]
    );
    let two = npy("<f8", false, "(3, 2)", &f8(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let split = read(&[("x_train", x3()), ("y_train", two.clone())], |r| {
        r.train = Some(2)
    })
    .unwrap();
    assert_eq!(
        (real(&split.train), split.train.targets.names()),
        (
            &[1.0, 2.0, 3.0, 4.0][..],
            &["y0".to_string(), "y1".to_string()][..]
        )
    );
    message(
        read(&[("x_train", x3()), ("y_train", two)], |r| {
            r.task = Task::Classification
        }),
        &["2 outputs"],
    );
    let three = npy("<f8", false, "(3, 1, 1)", &f8(&[1.0, 2.0, 3.0]));
    message(
        read(&[("x_train", x3()), ("y_train", three)], |_| {}),
        &["`y_train`", "[3, 1, 1]"],
    );
}

#[test]
fn damaged_or_unsuitable_arrays() {
    let x = |bytes: Vec<u8>| read(&[("x_train", bytes), ("y_train", y3())], |_| {});
    let values = f8(&[1.0, 2.0, f64::NAN, 4.0, 5.0, 6.0]);
    message(
        x(npy("<f8", false, "(3, 2)", &values)),
        &["data.npz", "`x_train`", "NaN at index [1, 0]"],
    );
    message(
        x(npy("<f8", false, "(4, 2)", &values)),
        &["[4, 2]", "truncated"],
    );
    message(x(npy("<f8", false, "(2, 2)", &values)), &["does not fit"]);
    message(
        x(npy(
            "<f8",
            false,
            "(18446744073709551615, 9999999)",
            &values,
        )),
        &["does not fit"],
    );
    message(x(npy("<f8", false, "(0, 2)", &[])), &["0 records", "3"]);
    message(
        x(npy("<f8", false, "(3, 0)", &[])),
        &["`x_train` has shape [3, 0]"],
    );
    message(
        x(npy("<f8", false, "(6,)", &f8(&[0.0; 6]))),
        &["[6]", "records × columns"],
    );
    message(
        x(npy("<f8", false, "(2, 3)", &f8(&[0.0; 6]))),
        &["2 records", "3"],
    );
    message(x(npy("<f8", false, "()", &f8(&[0.0]))), &["single number"]);
    message(
        x(npy("<c16", false, "(3, 2)", &[0; 96])),
        &["`<c16`", "float64"],
    );
    message(x(npy("|O", false, "(3, 2)", &[0; 96])), &["`|O`"]);
    message(
        x(b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec()),
        &["claims 4294967295 bytes"],
    );
    message(
        x(b"not an array at all".to_vec()),
        &["does not begin as a NumPy array"],
    );
    message(x(Vec::new()), &["truncated"]);
    message(
        read(&[("a", x3())], |_| {}),
        &["no array `y_train`", "`a`", "x_train"],
    );
    message(read(&[("x_train", x3())], |_| {}), &["no array `y_train`"]);
    message(
        read(
            &[("x_train", x3()), ("y_train", y3()), ("x_test", x3())],
            |_| {},
        ),
        &["no array `y_test`"],
    );
    let other = npy("<f8", false, "(3, 1)", &f8(&[0.0; 3]));
    message(
        read(
            &[
                ("x_train", x3()),
                ("y_train", y3()),
                ("x_test", other),
                ("y_test", y3()),
            ],
            |_| {},
        ),
        &["x_test` differ"],
    );
    message(
        read(
            &[
                ("x_train", x3()),
                ("y_train", npy("<f8", false, "(2,)", &f8(&[0.0; 2]))),
            ],
            |r| r.train = Some(2),
        ),
        &["3 records", "2"],
    );
    for bytes in [&b""[..], b"PK", b"no archive"] {
        let files = Files::new().with("data.npz", bytes);
        message(load(&Request::new(files.path("data.npz"))), &["data.npz"]);
    }
    let files = archive(&[("x_train", x3()), ("y_train", y3())]);
    let bytes = fs::read(files.path("data.npz")).unwrap();
    let files = files.with("data.npz", &bytes[..bytes.len() - 30]);
    message(
        load(&Request::new(files.path("data.npz"))),
        &["not a readable .npz archive"],
    );
}

#[test]
fn only_the_rows_asked_for_are_read_of_one_table() {
    // a value that nobody may read is where it shows who does
    let x = npy("<f8", false, "(4, 1)", &f8(&[1.0, 2.0, 3.0, f64::NAN]));
    let y = npy("<f8", false, "(4,)", &f8(&[1.0, 2.0, 3.0, 4.0]));
    let files = archive(&[("x", x), ("y", y)]);
    let request = |train, test, shuffle| Request {
        train,
        test,
        shuffle,
        ..Request::new(files.path("data.npz"))
    };
    let split = load(&request(Some(2), Some(1), None)).unwrap();
    assert_eq!((split.train.rows, split.test.rows), (2, 1));
    for request in [
        request(Some(2), None, None),
        request(Some(3), Some(1), None),
        request(Some(2), Some(1), Some(1)),
    ] {
        assert!(load(&request).unwrap_err().to_string().contains("NaN"));
    }
    // more than there are
    let error = load(&request(Some(3), Some(2), None)).unwrap_err();
    assert!(!error.to_string().is_empty());
}

#[test]
fn arrays_in_memory_are_those_of_a_file() {
    let pixels: Vec<f64> = (0..18).map(f64::from).collect();
    let x = npy("<f8", false, "(3, 2, 3)", &f8(&pixels));
    let files = archive(&[("x", x), ("y", y3())]);
    let bytes = fs::read(files.path("data.npz")).unwrap();
    let given = Given::arrays(bytes.clone());
    let own = load(&Request::given(&given)).unwrap();
    assert_eq!(own, load(&Request::new(files.path("data.npz"))).unwrap());
    let expected = ExpectedInputs {
        kind: own.train.kind,
        columns: 6,
        column_names: Vec::new(),
        targets: None,
    };
    let inputs = given_inputs(&given, &expected, None).unwrap();
    let read = load_inputs(&files.path("data.npz"), &expected).unwrap();
    assert_eq!(inputs, read);
    assert_eq!(inputs.rows, 3);
    for (bytes, said) in [
        (bytes[..bytes.len() / 2].to_vec(), "numpy.savez"),
        (Vec::new(), "(arrays in memory)"),
    ] {
        let given = Given::arrays(bytes);
        message(load(&Request::given(&given)), &[said]);
        assert!(given_inputs(&given, &expected, None).is_err());
    }
}
