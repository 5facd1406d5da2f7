//! A run in memory: the same bytes as in a folder, by the same calls.

use super::common::{SAMPLED, bytes, check_visible, push, schema, tree, write_whole};
use reprior_io::run::{
    Checkpoint, DrawReader, DrawStore, DrawWriter, Files, Labels, RunError, RunFolder, Selection,
    Tensor, Values, checkpoint,
};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

const CHAINS: u64 = 2;
const PLANNED: [u64; 3] = [4, 230, 230];

fn save(writer: &mut DrawWriter) {
    let position = [writer.cursor().draws("posterior") as f64, f64::NAN];
    let tensor = Tensor {
        name: "position",
        shape: &[2],
        values: Values::F64(&position),
    };
    let document = json!({"chain": writer.chain()});
    writer.checkpoint(&document, &[tensor]).unwrap();
}

/// Goes on with each chain up to `draws` draws, group after group, with a checkpoint each 50 of a group and one at the end.
fn go_on(folder: &RunFolder, draws: u64) {
    let store = DrawStore::open(folder).unwrap();
    for chain in 0..CHAINS {
        let mut writer = match checkpoint::load(folder.files(), chain).unwrap() {
            Some(checkpoint) => store.writer_at(chain, checkpoint.cursor()).unwrap(),
            None => store.writer(chain).unwrap(),
        };
        for (group, planned) in SAMPLED.into_iter().zip(PLANNED) {
            while writer.cursor().draws(group) < planned.min(draws) {
                push(&mut writer, group);
                if writer.cursor().draws(group) % 50 == 0 {
                    save(&mut writer);
                }
            }
        }
        if draws >= PLANNED[1] {
            save(&mut writer);
        }
        writer.flush().unwrap();
    }
}

fn begin(folder: &RunFolder) -> DrawStore {
    folder.write_text("config.toml", "seed = 1\n").unwrap();
    DrawStore::create(folder, &schema(CHAINS, PLANNED[0], PLANNED[1])).unwrap()
}

/// What is left once the chains are at their end.
fn end(folder: &RunFolder) {
    let store = DrawStore::open(folder).unwrap();
    store
        .write_static("observed_data", "y", Values::F64(&[0.5; 6]))
        .unwrap();
    store
        .write_static("observed_data", "count", Values::U64(&[1]))
        .unwrap();
    checkpoint::finish(folder.files(), 0).unwrap();
    folder.write_text("summary.json", "{}\n").unwrap();
}

/// A run of one go in `folder`, with the bytes of its files.
fn whole(folder: &RunFolder) -> BTreeMap<String, Vec<u8>> {
    begin(folder);
    go_on(folder, PLANNED[1]);
    end(folder);
    bytes(folder.files())
}

/// A run in memory that was left at draw 130, with checkpoints at draw 100 of the statistics.
fn stopped() -> RunFolder {
    let folder = RunFolder::in_memory();
    begin(&folder);
    go_on(&folder, 130);
    folder
}

#[test]
fn a_folder_and_memory_have_the_same_bytes() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("run");
    let on_disk = RunFolder::create(&path, false).unwrap();
    let in_memory = RunFolder::in_memory();
    let expected = whole(&on_disk);
    assert!(expected.len() > 50);
    assert!(whole(&in_memory) == expected);
    let schema = schema(CHAINS, PLANNED[0], PLANNED[1]);
    for folder in [&on_disk, &in_memory] {
        assert_eq!(schema.bytes_to_write(folder.files(), 500).unwrap(), 0);
        assert_eq!(check_visible(folder.files()), PLANNED[1]);
    }
    // of either, a copy of either kind; below a folder that is not there yet, or in an empty one
    fs::create_dir(temporary.path().join("empty")).unwrap();
    for (folder, name) in [(&in_memory, "a/b/copy"), (&on_disk, "empty")] {
        let copy = temporary.path().join(name);
        folder.save_to(&copy).unwrap();
        assert!(tree(&copy) == tree(&path));
        assert_eq!(check_visible(&copy), PLANNED[1]);
        RunFolder::open(&copy).unwrap();
        let folder = folder.to_memory().unwrap();
        assert!(bytes(folder.files()) == expected);
        assert_eq!(folder.files().folder(), None);
    }
    assert_eq!(on_disk.files().folder(), Some(path.as_path()));
    // a run that has only begun has the same folders too
    let begun = RunFolder::in_memory();
    begin(&begun);
    let copy = temporary.path().join("begun");
    begun.save_to(&copy).unwrap();
    assert!(copy.join("checkpoint").is_dir());
    assert!(copy.join("draws.zarr/observed_data/y").is_dir());
}

#[test]
fn a_run_in_memory_goes_on_from_its_checkpoint() {
    let expected = whole(&RunFolder::in_memory());
    let folder = stopped();
    assert_eq!(check_visible(folder.files()), 130);
    let load = |chain| -> Checkpoint { checkpoint::load(folder.files(), chain).unwrap().unwrap() };
    assert_eq!(load(1).cursor().draws("posterior"), 130);
    assert_eq!(load(1).cursor().draws("sample_stats"), 100);
    assert_eq!(load(1).document(), &json!({"chain": 1}));
    assert_eq!(load(1).f64("position", &[2]).unwrap()[0], 130.0);
    assert!(checkpoint::load(folder.files(), 2).unwrap().is_none());

    // a copy goes on without its original, on disk as in memory
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("run");
    folder.save_to(&path).unwrap();
    let before = bytes(folder.files());
    let copies = [
        RunFolder::open(&path).unwrap(),
        folder.to_memory().unwrap(),
        folder.to_memory().unwrap(),
    ];
    for copy in copies {
        go_on(&copy, PLANNED[1]);
        end(&copy);
        assert!(bytes(copy.files()) == expected);
    }
    assert!(bytes(folder.files()) == before);
    go_on(&folder, PLANNED[1]);
    end(&folder);
    assert!(bytes(folder.files()) == expected);
    assert!(load(0).is_finished() && !load(1).is_finished());
}

#[test]
fn a_reader_has_a_run_in_memory_at_any_moment() {
    let folder = RunFolder::in_memory();
    let store = begin(&folder);
    let early = DrawReader::open(folder.files()).unwrap();
    let mut writers: Vec<_> = (0..CHAINS)
        .map(|chain| store.writer(chain).unwrap())
        .collect();
    for writer in &mut writers {
        (0..7).for_each(|_| push(writer, "posterior"));
        writer.flush().unwrap();
    }
    assert_eq!(check_visible(folder.files()), 7);
    let read = |reader: &DrawReader| {
        let norm = reader.read::<f64>("posterior", "norm", &Selection::all());
        norm.unwrap().values.len()
    };
    let late = DrawReader::open(folder.files()).unwrap();
    assert_eq!((read(&early), read(&late)), (0, 14));
    let heights = Selection {
        chains: None,
        draws: Some(2..5),
        rest: vec![0..3, 0..1],
    };
    let heights = late.read::<f32>("posterior", "prediction", &heights);
    assert_eq!(heights.unwrap().shape, [2, 3, 3, 1]);
    assert_eq!(
        late.labels("posterior", "observation").unwrap(),
        Labels::Integers(vec![4, 7, 9])
    );
    let error = late.read::<f64>("observed_data", "y", &Selection::all());
    let error = error.unwrap_err().to_string();
    assert_eq!(
        error,
        "draws.zarr/observed_data/y/c.0.0 in memory: the run has not written \"y\" yet"
    );
    // the files outlive who writes them
    let files = folder.files().clone();
    drop((folder, store, writers));
    assert_eq!(check_visible(&files), 7);
    let error = DrawReader::open(Files::in_memory()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read draws.zarr/zarr.json in memory: there is no such file or folder"
    );
}

#[test]
fn damaged_bytes_in_memory_are_refused() {
    let folder = stopped();
    let files = folder.files();
    let cursor = checkpoint::load(files, 0).unwrap().unwrap();
    let refuse = |name: &str, damaged: &[u8], refused: &dyn Fn() -> Result<(), RunError>| {
        let whole = files.read(name).unwrap().unwrap();
        files.write(name, damaged).unwrap();
        let error = refused().unwrap_err();
        assert!(matches!(error, RunError::Damaged { .. }), "{error}");
        let error = error.to_string();
        assert!(
            error.starts_with(&format!("{name} in memory: ")) && !error.contains('\n'),
            "{error}"
        );
        files.write(name, &whole).unwrap();
    };
    let load = || checkpoint::load(files, 0).map(|_| ());
    let name = checkpoint::name(0);
    let whole = files.read(&name).unwrap().unwrap();
    for length in 0..whole.len() {
        refuse(&name, &whole[..length], &load);
    }
    for index in 0..whole.len() {
        let mut bytes = whole.to_vec();
        bytes[index] ^= 0x21;
        refuse(&name, &bytes, &load);
    }
    let open = || DrawReader::open(files).map(|_| ());
    let resume = || DrawStore::open(&folder).map(|_| ());
    let root = "draws.zarr/zarr.json";
    let text = files.read_text(root).unwrap().unwrap();
    for (from, to) in [
        ("float64", "complex64"),
        ("\\\"draws\\\":230", "\\\"draws\\\":23"),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text);
        refuse(root, changed.as_bytes(), &open);
        refuse(root, changed.as_bytes(), &resume);
    }
    let chunk = "draws.zarr/posterior/norm/c.0.0";
    let whole = files.read(chunk).unwrap().unwrap();
    let read = || {
        let reader = DrawReader::open(files).unwrap();
        let norm = reader.read::<f64>("posterior", "norm", &Selection::all());
        norm.map(|_| ())
    };
    let write = || {
        let store = DrawStore::open(&folder).unwrap();
        store.writer_at(0, cursor.cursor()).map(|_| ())
    };
    refuse(chunk, &whole[1..], &read);
    refuse(chunk, &whole[1..], &write);
    refuse(chunk, b"", &read);
    load().and_then(|()| open()).and_then(|()| read()).unwrap();

    // a chunk that is missing
    let others = Files::in_memory();
    for (name, bytes) in bytes(files).iter().filter(|(name, _)| *name != chunk) {
        others.write(name, bytes).unwrap();
    }
    let reader = DrawReader::open(&others).unwrap();
    let norm = reader.read::<f64>("posterior", "norm", &Selection::all());
    let error = norm.unwrap_err().to_string();
    assert!(
        error.contains("c.0.0 in memory: this chunk of draws is missing"),
        "{error}"
    );
}

/// Copies that are taken while chains write are of one moment: what they show is there, and they go on.
#[test]
fn threads_share_a_store_in_memory() {
    const CHAINS: u64 = 8;
    let schema = schema(CHAINS, 4, 150);
    let reference = RunFolder::in_memory();
    write_whole(&reference, &schema);
    let folder = RunFolder::in_memory();
    let store = DrawStore::create(&folder, &schema).unwrap();
    let running = AtomicU64::new(CHAINS);
    let finish = |folder: &RunFolder, store: &DrawStore, chain: u64| {
        let mut writer = match checkpoint::load(folder.files(), chain).unwrap() {
            Some(checkpoint) => store.writer_at(chain, checkpoint.cursor()).unwrap(),
            None => store.writer(chain).unwrap(),
        };
        for (group, planned) in SAMPLED.into_iter().zip([4, 150, 150]) {
            while writer.cursor().draws(group) < planned {
                push(&mut writer, group);
                match writer.cursor().draws(group) % 11 {
                    3 => writer.flush().unwrap(),
                    8 => save(&mut writer),
                    _ => {}
                }
            }
        }
        writer.flush().unwrap();
    };
    let mut copies = Vec::new();
    std::thread::scope(|scope| {
        for chain in 0..CHAINS {
            let (folder, store, running) = (&folder, &store, &running);
            scope.spawn(move || {
                finish(folder, store, chain);
                running.fetch_sub(1, Ordering::Relaxed);
            });
        }
        while running.load(Ordering::Relaxed) > 0 {
            check_visible(folder.files());
            copies.push(folder.to_memory().unwrap());
        }
    });
    let draws = |folder: &RunFolder| {
        let mut files = bytes(folder.files());
        files.retain(|name, _| name.starts_with("draws.zarr/"));
        files
    };
    assert!(draws(&folder) == draws(&reference));
    let step = copies.len().div_ceil(10).max(1);
    for copy in copies.iter().step_by(step) {
        check_visible(copy.files());
        let store = DrawStore::open(copy).unwrap();
        (0..CHAINS).for_each(|chain| finish(copy, &store, chain));
        assert!(draws(copy) == draws(&reference));
    }
}

#[test]
fn a_run_is_saved_whole_or_not_at_all() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = stopped();
    let path = temporary.path().join("run");
    let beside = || fs::read_dir(temporary.path()).unwrap().count();
    fs::create_dir(&path).unwrap();
    fs::write(path.join("thesis.tex"), "mine").unwrap();
    let error = folder.save_to(&path).unwrap_err();
    assert!(matches!(error, RunError::Exists(_)), "{error}");
    assert_eq!((beside(), tree(&path).len()), (1, 1));
    fs::remove_file(path.join("thesis.tex")).unwrap();

    // a file is where a folder has to be
    folder.files().write("data.json", b"{}").unwrap();
    folder.files().write("data.json/more", b"{}").unwrap();
    let error = folder.save_to(&path).unwrap_err();
    assert!(matches!(error, RunError::Io { .. }), "{error}");
    assert_eq!((beside(), tree(&path).len()), (1, 0));
    for path in ["file", "file/run"] {
        fs::write(temporary.path().join("file"), "").unwrap();
        let error = folder.save_to(&temporary.path().join(path)).unwrap_err();
        assert!(error.to_string().contains("not a folder"), "{error}");
    }

    let folder = stopped();
    folder.save_to(&path).unwrap();
    let error = folder.save_to(&path).unwrap_err();
    assert!(matches!(error, RunError::Exists(_)), "{error}");
    assert_eq!(beside(), 2);
}

#[test]
fn texts_are_read_from_either() {
    let temporary = tempfile::tempdir().unwrap();
    let on_disk = RunFolder::create(&temporary.path().join("run"), false).unwrap();
    let in_memory = RunFolder::in_memory();
    for folder in [&on_disk, &in_memory] {
        let files = folder.files();
        let text = |name: &str| files.read_text(name).unwrap();
        assert_eq!(text("data.json"), None);
        assert!(!files.contains("data.json"));
        for written in ["{\"ü\": 1}\n", ""] {
            folder.write_text("data.json", written).unwrap();
            assert_eq!(text("data.json").as_deref(), Some(written));
            assert_eq!(files.size("data.json").unwrap(), Some(written.len() as u64));
        }
        assert_eq!(files.names().unwrap(), ["data.json"]);
        files.write("data.json", b"\xff").unwrap();
        let error = files.read_text("data.json").unwrap_err().to_string();
        assert!(error.ends_with("valid UTF-8"), "{error}");
        assert!(folder.write_text("../data.json", "").is_err());
    }
    let error = on_disk.files().read_text("checkpoint").unwrap_err();
    assert!(error.to_string().ends_with("it is a folder, not a file"));
    // what is shown of it is no bytes
    assert_eq!(
        format!("{:?}", in_memory.files()),
        "Memory([\"data.json\"])"
    );
}
