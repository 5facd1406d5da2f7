use crate::common::schema;
use reprior_io::run::{DrawReader, DrawStore, RunError, RunFolder, atomic, free_bytes};
use std::fs;

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
    assert!(run.join("config.toml").exists());
    drop(folder);
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
