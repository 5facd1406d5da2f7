//! Descriptions of draws that lie, one number after another; draws of other settings; what never ends.

use std::fs;
use std::path::Path;

use reprior_io::data::{Request, load};
use reprior_io::run::{
    DataType, DrawReader, DrawStore, Draws, Group, Labels, RunFolder, Schema, Selection, Values,
    Variable,
};
use serde_json::{Map, Value, json};

use crate::largest::{largest, most};

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
    let (asked, most) = (largest(), most(0));
    assert!(asked <= most, "{asked} bytes at once");
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
    let folder = tempfile::tempdir().unwrap();
    let of = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    for name in ["pipe.csv", "pipe.npz", "run/draws.zarr/zarr.json"] {
        let path = of(name);
        fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        if !name.starts_with("run") {
            let error = load(&Request::new(path)).unwrap_err().to_string();
            assert!(error.contains("not a regular file"), "{error}");
        }
    }
    let run = of("run");
    let error = DrawReader::open(Path::new(&run)).unwrap_err().to_string();
    assert!(error.contains("not a regular file"), "{error}");
    let endless = of("endless.csv");
    std::os::unix::fs::symlink("/dev/zero", &endless).unwrap();
    let error = load(&Request::new(endless)).unwrap_err().to_string();
    assert!(error.contains("not a regular file"), "{error}");
}
