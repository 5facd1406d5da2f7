//! Arbitrary and damaged files give an error or records, never a panic, and never much more memory than the file's own size calls for.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Files, archive, cifar_record, f8, gzip, idx_images, idx_labels, npy};
use proptest::prelude::*;
use reprior_io::data::{Request, load};
use reprior_io::run::{
    DataType, DrawReader, DrawStore, Draws, Group, Labels, RunFolder, Schema, Selection, Values,
    Variable,
};
use serde_json::{Map, Value, json};

/// Notes the largest single allocation.
struct Noting;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

#[allow(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Noting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.fetch_max(size, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Noting = Noting;

/// Loads with and without a shuffle; the files here are below 20 kB.
fn survives(source: &str) {
    for shuffle in [None, Some(1)] {
        let request = Request {
            shuffle,
            ..Request::new(source)
        };
        if let Err(error) = load(&request) {
            assert!(!error.to_string().contains(['\n', '\r']), "{error:?}");
        }
    }
    let largest = LARGEST.load(Ordering::Relaxed);
    assert!(largest < 64 << 20, "{largest} bytes at once");
}

fn idx() -> Vec<u8> {
    idx_images(3, 2, 2, &[1; 12])
}

fn npz_bytes() -> Vec<u8> {
    let x = npy("<f8", false, "(3, 2)", &f8(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let files = archive(&[
        ("x_train", x),
        ("y_train", npy("|u1", false, "(3,)", &[1, 0, 1])),
    ]);
    fs::read(files.path("data.npz")).unwrap()
}

/// Every place of the file with every byte, and every length.
fn damage(bytes: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let length = bytes.len();
    (
        prop::collection::vec((0..length, any::<u8>()), 0..4),
        0..=length,
    )
        .prop_map(move |(changes, end)| {
            let mut bytes = bytes.clone();
            for (place, byte) in changes {
                bytes[place] = byte;
            }
            // Half of the cases keep their length.
            bytes.truncate(if end % 2 == 0 { length } else { end });
            bytes
        })
}

fn idx_folder(images: &[u8], labels: &[u8]) {
    let files = Files::new()
        .with("train-images-idx3-ubyte", images)
        .with("train-labels-idx1-ubyte", labels);
    survives(&files.folder());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300), header in 0..5_usize) {
        let start: &[u8] = [&b""[..], b"PK\x05\x06", &[0, 0, 8, 3], &[0x1f, 0x8b, 8, 0], b"a,b\n"][header];
        let bytes = [start, &bytes].concat();
        let files = Files::new().with("data.csv", &bytes).with("data.npz", &bytes);
        survives(&files.path("data.csv"));
        survives(&files.path("data.npz"));
        idx_folder(&bytes, &bytes);
        survives(&Files::new().with("train.bin", &bytes).folder());
    }

    #[test]
    fn any_csv(text in "[ab,\"\n\r 0-9.eE+-]{0,60}") {
        survives(&Files::new().with("data.csv", &text).path("data.csv"));
        survives(&Files::new().with("data.csv", format!("x,y\n{text}")).path("data.csv"));
    }

    #[test]
    fn damaged_idx(images in damage(idx()), labels in damage(idx_labels(3, &[0, 1, 0]))) {
        idx_folder(&images, &idx_labels(3, &[0, 1, 0]));
        idx_folder(&idx(), &labels);
    }

    #[test]
    fn damaged_gzip(images in damage(gzip(&idx())), inner in damage(idx())) {
        idx_folder(&images, &idx_labels(3, &[0, 1, 0]));
        idx_folder(&gzip(&inner), &idx_labels(3, &[0, 1, 0]));
    }

    #[test]
    fn damaged_cifar(bytes in damage([cifar_record(&[1], 0), cifar_record(&[2], 0)].concat())) {
        survives(&Files::new().with("data_batch_1.bin", &bytes).folder());
    }

    #[test]
    fn damaged_npz(bytes in damage(npz_bytes())) {
        survives(&Files::new().with("data.npz", bytes).path("data.npz"));
    }

    #[test]
    fn damaged_arrays(x in damage(npy("<f4", false, "(2, 3)", &[0; 24])), header in "[(){}\\[\\]':, 0-9a-z<>|]{0,80}") {
        let y = npy("|u1", false, "(2,)", &[0, 1]);
        survives(&archive(&[("x_train", x), ("y_train", y.clone())]).path("data.npz"));
        let mut array = b"\x93NUMPY\x01\x00".to_vec();
        array.extend((header.len() as u16).to_le_bytes());
        array.extend(header.as_bytes());
        survives(&archive(&[("x_train", array), ("y_train", y)]).path("data.npz"));
    }
}

#[test]
fn lying_headers_allocate_nothing() {
    for shape in ["(4000000000, 100)", "(100000000, 1)"] {
        let x = npy("<f8", false, shape, &[0; 64]);
        survives(&archive(&[("x_train", x.clone()), ("y_train", x)]).path("data.npz"));
    }
    // A deep header must not exhaust the stack.
    let deep = "[".repeat(60_000);
    survives(
        &archive(&[
            ("x_train", npy(&deep, false, &deep, &[])),
            ("y_train", npy(&deep, false, "(1,)", &[])),
        ])
        .path("data.npz"),
    );
    idx_folder(
        &gzip(&idx_images(50_000_000, 28, 28, &[0; 100])),
        &idx_labels(3, &[0; 3]),
    );
}

/// A run with a group of draws and one without.
fn run_schema() -> Schema {
    let group = |name: &str, draws, variables| Group {
        name: name.into(),
        draws,
        variables,
        attributes: Map::new(),
    };
    let x = Variable::new("x", DataType::F64, &[("row", 3), ("output", 2)]);
    let n = Variable::new("n", DataType::I64, &[]);
    let y = Variable::new("y", DataType::F64, &[("row", 3)]);
    Schema {
        chains: 2,
        groups: vec![
            group("posterior", Some(Draws::new(7)), vec![x, n]),
            group("observed_data", None, vec![y]),
        ],
        coordinates: [("output".into(), Labels::Text(vec!["a".into(), "b".into()]))].into(),
    }
}

fn whole_run(run: &Path) -> Value {
    let folder = RunFolder::create(run, false).unwrap();
    let store = DrawStore::create(&folder, &run_schema()).unwrap();
    for chain in 0..2 {
        let mut writer = store.writer(chain).unwrap();
        for draw in 0..7 {
            let values = [Values::F64(&[0.5; 6]), Values::I64(&[draw])];
            writer.push("posterior", &values).unwrap();
        }
        writer.flush().unwrap();
    }
    let y = Values::F64(&[1.0, 2.0, 3.0]);
    store.write_static("observed_data", "y", y).unwrap();
    serde_json::from_slice(&fs::read(run.join("draws.zarr/zarr.json")).unwrap()).unwrap()
}

/// Reads whatever there is; what is refused is refused in one line.
fn read_everything(run: &Path) -> bool {
    let calm = |error: &dyn std::fmt::Display| {
        let error = error.to_string();
        assert!(!error.contains(['\n', '\r']), "{error}");
    };
    let reader = match DrawReader::open(run) {
        Ok(reader) => reader,
        Err(error) => {
            calm(&error);
            return false;
        }
    };
    for (group, variable) in [
        ("posterior", "x"),
        ("posterior", "n"),
        ("observed_data", "y"),
    ] {
        let (all, mut numbers) = (Selection::all(), 0);
        let read = reader.read::<f64>(group, variable, &all);
        let each = |_, _, draw: &[f64]| numbers += draw.len();
        let passed = reader.for_each_draw::<f64>(group, variable, &all, each);
        match (read, passed) {
            (Ok(read), Ok(())) => assert_eq!(read.values.len(), numbers),
            (Err(error), Err(_)) => calm(&error),
            (read, passed) => panic!("{read:?} {passed:?}"),
        }
    }
    for dim in ["chain", "draw", "row", "output"] {
        if let Err(error) = reader.labels("posterior", dim) {
            calm(&error);
        }
    }
    reader.check(&run_schema()).is_ok()
}

/// Places of all numbers below `value`, as JSON pointers.
fn numbers(value: &Value, place: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(place.to_owned()),
        Value::Array(all) => {
            for (index, value) in all.iter().enumerate() {
                numbers(value, &format!("{place}/{index}"), found);
            }
        }
        Value::Object(all) => {
            for (key, value) in all {
                let key = key.replace('~', "~0").replace('/', "~1");
                numbers(value, &format!("{place}/{key}"), found);
            }
        }
        _ => {}
    }
}

const LIES: [u64; 9] = [
    0,
    1,
    4,
    6,
    100,
    1_000_000_000_000,
    1 << 61,
    (1 << 63) - 1,
    u64::MAX,
];

#[test]
fn descriptions_of_draws_that_lie_are_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let run = temporary.path().join("run");
    let truth = whole_run(&run);
    assert!(read_everything(&run));
    let write = |document: &Value| {
        fs::write(run.join("draws.zarr/zarr.json"), document.to_string()).unwrap();
    };
    let mut places = Vec::new();
    let root = "/consolidated_metadata/metadata";
    numbers(truth.pointer(root).unwrap(), root, &mut places);
    assert!(places.len() > 30, "{places:?}");
    // one number
    for place in &places {
        for lie in LIES {
            let mut document = truth.clone();
            let number = document.pointer_mut(place).unwrap();
            if *number == json!(lie) {
                continue;
            }
            *number = json!(lie);
            write(&document);
            assert!(DrawReader::open(&run).is_err(), "{place} {lie}");
        }
    }
    // every array and its chunks alike: a description that only the schema can tell from a true one
    for (dim, axis_of) in [
        ("row", ["posterior/x", "observed_data/y"]),
        ("chain", ["posterior/x", "posterior/n"]),
    ] {
        for lie in LIES {
            let mut document = truth.clone();
            let own = axis_of.iter().copied().chain(match dim {
                "row" => ["posterior/row", "observed_data/row"],
                _ => ["posterior/chain", "posterior/chain"],
            });
            for array in own {
                let array = &mut document["consolidated_metadata"]["metadata"][array];
                let names = array["dimension_names"].as_array().unwrap().clone();
                let Some(axis) = names.iter().position(|name| name == dim) else {
                    continue;
                };
                array["shape"][axis] = json!(lie);
                if dim == "row" || names.len() == 1 {
                    array["chunk_grid"]["configuration"]["chunk_shape"][axis] = json!(lie);
                }
            }
            if document == truth {
                continue;
            }
            write(&document);
            assert!(!read_everything(&run), "{dim} {lie}");
        }
    }
    let largest = LARGEST.load(Ordering::Relaxed);
    assert!(largest < 64 << 20, "{largest} bytes at once");
}

#[test]
fn draws_of_other_settings_are_told_apart() {
    let temporary = tempfile::tempdir().unwrap();
    whole_run(temporary.path());
    let reader = DrawReader::open(temporary.path()).unwrap();
    let refuse = |change: fn(&mut Schema), part: &str| {
        let mut schema = run_schema();
        change(&mut schema);
        let error = reader.check(&schema).unwrap_err().to_string();
        assert!(
            error.contains(part) && error.contains("zarr.json"),
            "{error}"
        );
    };
    refuse(|schema| schema.chains = 3, "2 chains");
    refuse(
        |schema| schema.groups[0].draws = Some(Draws::new(8)),
        "7 draws",
    );
    refuse(|schema| schema.groups[0].draws = None, "7 draws");
    refuse(
        |schema| schema.groups[1].variables[0].dims[0].1 = 4,
        "\"y\"",
    );
    refuse(
        |schema| schema.groups[0].variables[1].data_type = DataType::F64,
        "\"n\"",
    );
    let mut more = run_schema();
    more.groups[1].name = "observed".into();
    more.groups[0].variables[1]
        .attributes
        .insert("unit".into(), json!("m"));
    reader.check(&more).unwrap();
}

/// What never ends is refused, not waited for.
#[cfg(unix)]
#[test]
fn pipes_and_devices_are_not_read() {
    let files = Files::new();
    for name in ["pipe.csv", "pipe.npz", "run/draws.zarr/zarr.json"] {
        let path = files.path(name);
        fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        if !name.starts_with("run") {
            let error = load(&Request::new(path)).unwrap_err().to_string();
            assert!(error.contains("not a regular file"), "{error}");
        }
    }
    let run = files.path("run");
    let error = DrawReader::open(Path::new(&run)).unwrap_err().to_string();
    assert!(error.contains("not a regular file"), "{error}");
    let endless = files.path("endless.csv");
    std::os::unix::fs::symlink("/dev/zero", &endless).unwrap();
    let error = load(&Request::new(endless)).unwrap_err().to_string();
    assert!(error.contains("not a regular file"), "{error}");
}
