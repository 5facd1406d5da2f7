use super::common::schema;
use reprior_io::run::{
    DrawReader, DrawStore, RunError, RunFolder, atomic, checkpoint, free_bytes, is_being_written,
    overwritten_bytes,
};
use serde_json::json;
use std::fs;
use std::path::Path;

#[test]
fn existing_folders_are_kept_unless_they_are_runs_to_overwrite() {
    let temporary = tempfile::tempdir().unwrap();
    let run = temporary.path().join("run");
    fs::create_dir(&run).unwrap();
    {
        let folder = RunFolder::create(&run, false).unwrap();
        folder.write_text("config.toml", "a = 1\n").unwrap();
        DrawStore::create(&folder, &schema(1, 1, 1)).unwrap();
        fs::write(run.join("notes.txt"), "mine").unwrap();
    }
    assert_eq!(
        fs::read_to_string(run.join("config.toml")).unwrap(),
        "a = 1\n"
    );
    let error = RunFolder::create(&run, false).unwrap_err();
    assert!(matches!(error, RunError::Exists(_)), "{error}");
    {
        let folder = RunFolder::create(&run, true).unwrap();
        assert!(!run.join("config.toml").exists() && !run.join("draws.zarr").exists());
        assert_eq!(fs::read_to_string(run.join("notes.txt")).unwrap(), "mine");
        DrawStore::create(&folder, &schema(1, 1, 1)).unwrap();
    }

    let other = temporary.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("thesis.tex"), "").unwrap();
    for result in [RunFolder::create(&other, true), RunFolder::open(&other)] {
        let error = result.unwrap_err();
        assert!(matches!(error, RunError::NotARun(_)), "{error}");
    }
    assert!(other.join("thesis.tex").exists());
}

#[test]
fn one_process_writes_at_a_time() {
    let temporary = tempfile::tempdir().unwrap();
    let run = temporary.path().join("run");
    let folder = RunFolder::create(&run, false).unwrap();
    folder.write_text("config.toml", "").unwrap();
    for result in [RunFolder::open(&run), RunFolder::create(&run, true)] {
        let error = result.unwrap_err().to_string();
        assert!(
            error.contains("is being written by another process"),
            "{error}"
        );
    }
    assert!(run.join("config.toml").exists() && is_being_written(&run));
    drop(folder);
    assert!(!is_being_written(&run) && !is_being_written(temporary.path()));
    RunFolder::open(&run).unwrap();
}

/// Under a regular file no folder can be made, not even by a superuser.
#[test]
fn errors_name_the_path_and_the_cause() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [file.clone(), file.join("run"), file.join("deep/run")] {
        let error = RunFolder::create(&path, false).unwrap_err().to_string();
        let expected = format!(
            "cannot create {}: a part of the path is a file, not a folder",
            path.display()
        );
        assert_eq!(error, expected);
    }
    let missing = temporary.path().join("missing");
    let error = RunFolder::open(&missing).unwrap_err().to_string();
    assert!(
        error.ends_with("missing: there is no such file or folder"),
        "{error}"
    );
    let error = DrawReader::open(&missing).unwrap_err().to_string();
    assert!(
        error.ends_with("draws.zarr/zarr.json: there is no such file or folder"),
        "{error}"
    );
    let folder = RunFolder::create(&missing, false).unwrap();
    for name in ["../config.toml", "a/b", "", "/etc/x", ".."] {
        let error = folder.write_text(name, "").unwrap_err().to_string();
        assert!(
            error.ends_with("is not the plain name of a file"),
            "{error}"
        );
    }
}

#[test]
fn a_failed_write_leaves_the_old_file() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("a");
    atomic::write(&path, b"old").unwrap();
    atomic::write(&path, b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    // A folder cannot be replaced by a file.
    let folder = temporary.path().join("b");
    fs::create_dir(&folder).unwrap();
    let error = atomic::write(&folder, b"bytes").unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("cannot write {}: ", folder.display())),
        "{error}"
    );
    let names: Vec<_> = fs::read_dir(temporary.path()).unwrap().collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn leftovers_of_a_killed_process_are_removed() {
    let temporary = tempfile::tempdir().unwrap();
    let run = temporary.path().join("run");
    let folder = RunFolder::create(&run, false).unwrap();
    DrawStore::create(&folder, &schema(1, 1, 1)).unwrap();
    drop(folder);
    let leftovers = [
        ".config.toml.1-0.tmp",
        "draws.zarr/posterior/.zarr.json.7-1.tmp",
    ];
    for name in leftovers {
        fs::write(run.join(name), "half of").unwrap();
    }
    fs::write(run.join("mine.tmp"), "").unwrap();
    DrawReader::open(&run).unwrap();
    RunFolder::open(&run).unwrap();
    for name in leftovers {
        assert!(!run.join(name).exists());
    }
    assert!(run.join("mine.tmp").exists());
}

#[test]
fn free_space_is_known_before_the_folder_exists() {
    let temporary = tempfile::tempdir().unwrap();
    let free = free_bytes(&temporary.path().join("not/yet/there")).unwrap();
    if cfg!(unix) {
        assert!(free.unwrap() > 0);
    }
}

/// A kill before the settings are there, at every step that leaves something behind.
#[test]
fn a_folder_in_which_a_run_had_only_begun_can_be_taken() {
    let lock = |folder: &Path| fs::write(folder.join(".lock"), "reprior\n").unwrap();
    let checkpoint = |folder: &Path| fs::create_dir(folder.join("checkpoint")).unwrap();
    let file = |name: &'static str| move |folder: &Path| fs::write(folder.join(name), "").unwrap();
    let steps: [&dyn Fn(&Path); 5] = [
        &lock,
        &checkpoint,
        &file(".weights.safetensors.7-0.tmp"),
        &file("weights.safetensors"),
        &file(".config.toml.7-0.tmp"),
    ];
    for made in 0..=steps.len() {
        for overwrite in [false, true] {
            for others in [false, true] {
                let temporary = tempfile::tempdir().unwrap();
                let run = temporary.path().join("run");
                fs::create_dir(&run).unwrap();
                steps[..made].iter().for_each(|step| step(&run));
                if others {
                    fs::write(run.join("notes.txt"), "mine").unwrap();
                }
                if made > 1 {
                    let error = RunFolder::open(&run).unwrap_err();
                    assert!(matches!(error, RunError::NotBegun(_)), "{error}");
                }
                let taken = RunFolder::create(&run, overwrite);
                // what is not a run's is not taken silently, and without a lock of ours not at all
                if others && !(overwrite && made > 0) {
                    assert!(taken.is_err(), "{made} {overwrite}");
                } else {
                    let folder = taken.unwrap();
                    assert!(!run.join("weights.safetensors").exists());
                    folder.write_text("config.toml", "a = 1\n").unwrap();
                    drop(folder);
                    RunFolder::open(&run).unwrap();
                    let names = fs::read_dir(&run).unwrap();
                    let names = names.map(|entry| entry.unwrap().file_name());
                    let leftover = names.filter(|name| name.to_string_lossy().ends_with(".tmp"));
                    assert_eq!(leftover.count(), 0);
                }
                assert!(!others || run.join("notes.txt").exists());
            }
        }
    }
}

/// As an earlier version left it: an empty lock file.
#[test]
fn a_beginning_without_a_mark_can_be_taken_too() {
    let temporary = tempfile::tempdir().unwrap();
    let run = temporary.path();
    fs::write(run.join(".lock"), "").unwrap();
    fs::create_dir(run.join("checkpoint")).unwrap();
    fs::write(run.join(".config.toml.123-0.tmp"), "half of").unwrap();
    RunFolder::create(run, false).unwrap();
    assert!(!run.join(".config.toml.123-0.tmp").exists());
}

#[test]
fn checkpoints_without_settings_are_not_a_beginning() {
    let temporary = tempfile::tempdir().unwrap();
    let run = temporary.path();
    fs::create_dir(run.join("checkpoint")).unwrap();
    fs::write(run.join("checkpoint/chain-000.safetensors"), "precious").unwrap();
    for overwrite in [false, true] {
        RunFolder::create(run, overwrite).unwrap_err();
    }
    assert!(run.join("checkpoint/chain-000.safetensors").exists());
}

#[test]
fn a_run_that_has_begun_meanwhile_is_not_taken() {
    let temporary = tempfile::tempdir().unwrap();
    let run = temporary.path().join("run");
    let folder = RunFolder::create(&run, false).unwrap();
    let other = std::thread::spawn({
        let run = run.clone();
        move || RunFolder::create(&run, false)
    });
    // the other one waits for the lock of a folder that it found empty
    std::thread::sleep(std::time::Duration::from_millis(100));
    folder.write_text("config.toml", "a = 1\n").unwrap();
    drop(folder);
    let error = other.join().unwrap().unwrap_err();
    assert!(matches!(error, RunError::Exists(_)), "{error}");
    assert!(run.join("config.toml").exists());
}

#[test]
fn only_what_is_missing_is_still_to_be_written() {
    let temporary = tempfile::tempdir().unwrap();
    let run = temporary.path().join("run");
    let schema = schema(2, 3, 230);
    let whole = schema.bytes_on_disk().unwrap();
    assert_eq!(schema.bytes_to_write(&run, 500).unwrap(), whole + 1000);
    assert_eq!(overwritten_bytes(&run).unwrap(), 0);
    let folder = RunFolder::create(&run, false).unwrap();
    assert_eq!(schema.bytes_to_write(&run, 500).unwrap(), whole + 1000);
    let store = DrawStore::create(&folder, &schema).unwrap();
    let empty = schema.bytes_to_write(&run, 500).unwrap();
    assert!(empty < whole, "what is there is not written again");
    let mut before = empty;
    for chain in 0..2 {
        let mut writer = store.writer(chain).unwrap();
        for group in &schema.groups {
            for _ in 0..group.draws.map_or(0, |draws| draws.length) {
                super::common::push(&mut writer, &group.name);
            }
        }
        writer.checkpoint(&json!(null), &[]).unwrap();
        assert!(run.join(checkpoint::name(chain)).exists());
        let after = schema.bytes_to_write(&run, 500).unwrap();
        // each chain half of it, and the arrays without draws are left
        assert!(after + 500 < before, "{after} {before}");
        before = after;
    }
    use reprior_io::run::Values;
    store
        .write_static("observed_data", "y", Values::F64(&[0.0; 6]))
        .unwrap();
    store
        .write_static("observed_data", "count", Values::U64(&[1]))
        .unwrap();
    assert_eq!(schema.bytes_to_write(&run, 500).unwrap(), 0);
    let files = super::common::tree(&run);
    let sum: usize = files.values().map(Vec::len).sum();
    let lock = files[".lock"].len();
    assert_eq!(overwritten_bytes(&run).unwrap(), (sum - lock) as u64);
}

#[test]
fn what_has_not_changed_is_not_written_again() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("a");
    atomic::write_changed(&path, b"old").unwrap();
    let first = fs::metadata(&path).unwrap().modified().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    atomic::write_changed(&path, b"old").unwrap();
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), first);
    atomic::write_changed(&path, b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
}

#[test]
fn keys_are_in_alphabetical_order_whatever_json_keeps() {
    // another crate of these tests has serde_json keep the order in which keys come
    let temporary = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(temporary.path(), true).unwrap();
    DrawStore::create(&folder, &schema(1, 1, 1)).unwrap();
    let text = fs::read_to_string(temporary.path().join("draws.zarr/zarr.json")).unwrap();
    assert!(text.starts_with("{\n  \"attributes\": {"), "{text}");
    let places = [
        "{\\\"chains\\\":1,\\\"groups\\\":[{\\\"coordinates\\\"",
        "\\\"version\\\":2}",
        "\"consolidated_metadata\"",
        "\"node_type\": \"group\",\n  \"zarr_format\": 3\n}",
    ];
    let places = places.map(|part| text.rfind(part).unwrap());
    assert!(places.is_sorted(), "{places:?}");
}

/// What a kill leaves before the settings are written: a part of the mark, a table or arrays, whole or half, a merge.
#[test]
fn what_was_killed_before_its_settings_can_be_begun_again() {
    let temporary = tempfile::tempdir().unwrap();
    let run = temporary.path().join("run");
    fs::create_dir(&run).unwrap();
    fs::write(run.join(".lock"), "repr").unwrap();
    drop(RunFolder::create(&run, false).unwrap());
    assert_eq!(fs::read_to_string(run.join(".lock")).unwrap(), "reprior\n");
    for name in [
        "arrays.npz",
        ".table.csv.9-1.tmp",
        "next/draws.zarr/zarr.json",
        "checkpoint/chain-000.safetensors",
        "data.json",
    ] {
        let path = run.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "half").unwrap();
        let error = RunFolder::open(&run).unwrap_err();
        assert!(matches!(error, RunError::NotBegun(_)), "{name}: {error}");
        drop(RunFolder::create(&run, false).unwrap());
        assert!(!path.exists(), "{name}");
    }
    // what is somebody's own keeps a folder from being taken
    fs::write(run.join("notes.txt"), "mine").unwrap();
    let error = RunFolder::create(&run, false).unwrap_err();
    assert!(matches!(error, RunError::Exists(_)), "{error}");
}
