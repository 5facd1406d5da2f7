use super::common::{SAMPLED, push, schema};
use proptest::prelude::*;
use reprior_io::run::{
    DataType, DrawReader, DrawStore, RunFolder, Selection, Tensor, Values, Variable, checkpoint,
};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// A run of one chain that stopped in the middle of its second chunk.
fn stopped(folder: &Path) -> PathBuf {
    let run = folder.join("run");
    let folder = RunFolder::create(&run, false).unwrap();
    let store = DrawStore::create(&folder, &schema(1, 5, 230)).unwrap();
    let mut writer = store.writer(0).unwrap();
    for _ in 0..130 {
        push(&mut writer, "posterior");
    }
    let tensor = Tensor {
        name: "position",
        shape: &[2],
        values: Values::F64(&[1.0, 2.0]),
    };
    writer.checkpoint(&json!({"step": 130}), &[tensor]).unwrap();
    run
}

fn one_line(error: impl ToString, part: &str) {
    let error = error.to_string();
    assert!(error.contains(part) && !error.contains('\n'), "{error}");
}

#[test]
fn checkpoints_that_are_not_whole_are_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let run = stopped(temporary.path());
    let path = run.join(checkpoint::name(0));
    let whole = fs::read(&path).unwrap();
    let load = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        checkpoint::load(&run, 0)
    };
    for length in 0..whole.len() {
        let error = load(&whole[..length]).unwrap_err();
        one_line(error, "chain-000.safetensors");
    }
    for index in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[index] ^= 0x21;
        assert!(load(&bytes).is_err(), "byte {index} changed");
    }
    one_line(
        load(&[0xff; 64]).unwrap_err(),
        "is not a whole safetensors file",
    );
    one_line(load(b"").unwrap_err(), "is not a whole safetensors file");
    let text = String::from_utf8_lossy(&whole).replace("\\\"format\\\":1", "\\\"format\\\":9");
    let at = whole.len() - 16;
    let mut newer = text.as_bytes()[..at].to_vec();
    newer.extend_from_slice(&whole[at..]);
    one_line(
        load(&newer).unwrap_err(),
        "has format version 9, but this program reads version 1",
    );

    let checkpoint = load(&whole).unwrap().unwrap();
    one_line(
        checkpoint.f64("position", &[3]).unwrap_err(),
        "has type float64 and shape [2], but the chain needs float64 and [3]",
    );
    one_line(
        checkpoint.f32("position", &[2]).unwrap_err(),
        "needs float32",
    );
    one_line(
        checkpoint.f64("momentum", &[2]).unwrap_err(),
        "has no tensor \"momentum\"",
    );
    fs::copy(&path, run.join(checkpoint::name(1))).unwrap();
    one_line(checkpoint::load(&run, 1).unwrap_err(), "belongs to chain 0");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn garbage_is_an_error_not_a_panic(garbage in prop::collection::vec(any::<u8>(), 0..400)) {
        let temporary = tempfile::tempdir().unwrap();
        let run = temporary.path();
        for folder in ["checkpoint", "draws.zarr"] {
            fs::create_dir(run.join(folder)).unwrap();
        }
        fs::write(run.join(checkpoint::name(0)), &garbage).unwrap();
        fs::write(run.join("draws.zarr/zarr.json"), &garbage).unwrap();
        one_line(checkpoint::load(run, 0).unwrap_err(), "chain-000.safetensors: ");
        one_line(DrawReader::open(run).unwrap_err(), "zarr.json: ");
    }
}

#[test]
fn metadata_that_reprior_does_not_write_are_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let run = stopped(temporary.path());
    let path = run.join("draws.zarr/zarr.json");
    let whole = fs::read_to_string(&path).unwrap();
    for (from, to) in [
        ("\\\"chains\\\":1", "\\\"chains\\\":4000000000000"),
        ("\\\"version\\\":2", "\\\"version\\\":3"),
        ("\\\"draws\\\":230", "\\\"draws\\\":23"),
        ("130", "99999999999"),
        ("130", "131"),
        ("77", "0"),
        ("77", "18446744073709551615"),
        ("float64", "complex64"),
        ("\"dimension_names\"", "\"names\""),
        ("\"consolidated_metadata\"", "\"metadata\""),
    ] {
        let changed = whole.replacen(from, to, 1);
        assert_ne!(changed, whole, "{from}");
        fs::write(&path, changed).unwrap();
        one_line(DrawReader::open(&run).unwrap_err(), "zarr.json: ");
    }
    for length in (0..whole.len() - 1).step_by(17) {
        fs::write(&path, &whole[..length]).unwrap();
        one_line(DrawReader::open(&run).unwrap_err(), "zarr.json: ");
    }
}

#[test]
fn chunks_that_are_missing_or_cut_are_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let run = stopped(temporary.path());
    let cursor = checkpoint::load(&run, 0).unwrap().unwrap().cursor().clone();
    for chunk in ["c.0.0", "c.0.1"] {
        let path = run.join("draws.zarr/posterior/norm").join(chunk);
        let whole = fs::read(&path).unwrap();
        let check = |part: &str| {
            {
                let folder = RunFolder::open(&run).unwrap();
                let store = DrawStore::open(&folder).unwrap();
                one_line(store.writer_at(0, &cursor).unwrap_err(), part);
            }
            let reader = DrawReader::open(&run).unwrap();
            let whole = reader.read::<f64>("posterior", "norm", &Selection::all());
            one_line(whole.unwrap_err(), part);
        };
        fs::write(&path, &whole[1..]).unwrap();
        check("this chunk of draws has 615 bytes instead of 616");
        fs::remove_file(&path).unwrap();
        check("this chunk of draws is missing");
        fs::write(&path, &whole).unwrap();
    }
}

#[test]
fn wrong_requests_are_refused_and_change_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let run = temporary.path().join("run");
    let folder = RunFolder::create(&run, false).unwrap();
    let store = DrawStore::create(&folder, &schema(1, 1, 2)).unwrap();
    one_line(store.writer(1).unwrap_err(), "there is no chain 1");
    // a cursor says nothing of groups without draws
    assert_eq!(
        store.writer_at(0, &Default::default()).unwrap().cursor(),
        store.writer(0).unwrap().cursor()
    );
    let mut writer = store.writer(0).unwrap();
    let before = writer.cursor();
    for (group, values, part) in [
        ("prior", vec![], "the run has no group \"prior\""),
        (
            "observed_data",
            vec![],
            "the group \"observed_data\" has no draws",
        ),
        ("posterior", vec![Values::F64(&[1.0])], "has 2 variables"),
        (
            "warmup_sample_stats",
            vec![Values::F32(&[1.0])],
            "has 1 values of type float64, not 1 of type float32",
        ),
        (
            "warmup_sample_stats",
            vec![Values::F64(&[])],
            "not 0 of type float64",
        ),
    ] {
        one_line(writer.push(group, &values).unwrap_err(), part);
    }
    assert_eq!(writer.cursor(), before);
    push(&mut writer, SAMPLED[0]);
    let error = writer.push(SAMPLED[0], &[Values::F64(&[1.0])]).unwrap_err();
    one_line(error, "has all of its 1 draws");
    let error = store.write_static("posterior", "norm", Values::F64(&[1.0]));
    one_line(error.unwrap_err(), "is written draw by draw");
    let error = store.write_static("observed_data", "y", Values::F64(&[1.0]));
    one_line(
        error.unwrap_err(),
        "has shape [3, 2] and type float64, not 1 values",
    );
    let tensor = |name, shape| Tensor {
        name,
        shape,
        values: Values::F64(&[1.0]),
    };
    for tensors in [
        vec![tensor("a", &[2])],
        vec![tensor("a", &[]), tensor("a", &[1])],
        vec![tensor("__metadata__", &[])],
        vec![tensor("a", &[usize::MAX, 2])],
    ] {
        one_line(
            writer.checkpoint(&json!(null), &tensors).unwrap_err(),
            "tensor",
        );
    }
}

#[test]
fn schemas_that_contradict_themselves_are_refused() {
    let refuse = |change: fn(&mut reprior_io::run::Schema), part: &str| {
        let mut schema = schema(2, 1, 2);
        change(&mut schema);
        one_line(schema.bytes_on_disk().unwrap_err(), part);
    };
    refuse(|s| s.chains = 0, "at least one chain");
    refuse(
        |s| s.groups[1].name = "posterior".into(),
        "two groups called \"posterior\"",
    );
    refuse(
        |s| s.groups[1].name = "../x".into(),
        "cannot be the name of a group",
    );
    refuse(
        |s| s.groups[0].variables[0].name = "..".into(),
        "cannot be the name of a variable",
    );
    refuse(
        |s| s.groups[0].variables[0].name = "output".into(),
        "are called \"output\"",
    );
    refuse(
        |s| s.groups[0].variables[1].name = "prediction".into(),
        "are called \"prediction\"",
    );
    refuse(|s| s.groups[0].variables[0].dims[0].1 = 0, "has length 0");
    refuse(
        |s| s.groups[0].variables[0].dims[0].1 = 9,
        "has length 9 but 3 labels",
    );
    refuse(|s| s.groups[0].variables[0].dims[0].1 = u64::MAX, "labels");
    refuse(
        |s| s.groups[0].variables[0].dims[0].0 = "draw".into(),
        "is added by the store",
    );
    refuse(
        |s| {
            let dims = [("feature", u64::MAX), ("other", 2)];
            s.groups[0]
                .variables
                .push(Variable::new("big", DataType::F64, &dims));
        },
        "more than 2^64 bytes",
    );
}
