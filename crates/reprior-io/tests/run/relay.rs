//! Draws laid out for another number: the bytes are those of a run that was planned so, and a kill at any moment loses nothing.

use super::common::{SAMPLED, bytes, check_visible, push, schema};
use reprior_io::run::{
    Cursor, DrawReader, DrawStore, NextLayout, RunFolder, Schema, Values, checkpoint, take_over,
};
use serde_json::json;
use std::collections::BTreeMap;

const CHAINS: u64 = 2;
const WARMUP: u64 = 3;

/// Pushes up to `draws` draws of every chain and group, and the whole warm-up, from where its checkpoint is.
fn go_on(folder: &RunFolder, draws: u64) -> Vec<Cursor> {
    let store = DrawStore::open(folder).unwrap();
    let values = Values::F64(&[0.5; 6]);
    store.write_static("observed_data", "y", values).unwrap();
    let chain = |chain| {
        let mut writer = match checkpoint::load(folder.files(), chain).unwrap() {
            Some(checkpoint) => store.writer_at(chain, checkpoint.cursor()).unwrap(),
            None => store.writer(chain).unwrap(),
        };
        for group in SAMPLED {
            let wanted = if group == SAMPLED[0] { WARMUP } else { draws };
            while writer.cursor().draws(group) < wanted {
                push(&mut writer, group);
            }
        }
        writer.checkpoint(&json!({}), &[]).unwrap();
        writer.cursor()
    };
    (0..CHAINS).map(chain).collect()
}

fn draws_of(folder: &RunFolder) -> BTreeMap<String, Vec<u8>> {
    let mut all = bytes(folder.files());
    all.retain(|name, _| name.starts_with("draws.zarr"));
    all
}

fn planned(draws: u64) -> Schema {
    schema(CHAINS, WARMUP, draws)
}

/// What a run has that was planned for `draws` from the beginning.
fn as_planned(draws: u64) -> BTreeMap<String, Vec<u8>> {
    let folder = RunFolder::in_memory();
    DrawStore::create(&folder, &planned(draws)).unwrap();
    go_on(&folder, draws);
    draws_of(&folder)
}

#[test]
fn fewer_and_more_draws_have_the_bytes_of_a_run_that_was_planned_so() {
    let temporary = tempfile::tempdir().unwrap();
    let on_disk = RunFolder::create(&temporary.path().join("run"), false).unwrap();
    for folder in [RunFolder::in_memory(), on_disk] {
        // planned for a longer warm-up, and more draws
        DrawStore::create(&folder, &schema(CHAINS, 20, 230)).unwrap();
        let cursors = go_on(&folder, 130);
        let next = NextLayout::write(&folder, &planned(130), &cursors).unwrap();
        next.take_over(&folder).unwrap();
        assert_eq!(draws_of(&folder), as_planned(130));
        assert_eq!(check_visible(folder.files()), 130);
        // of the run that has ended more are drawn
        let next = NextLayout::write(&folder, &planned(350), &cursors).unwrap();
        next.take_over(&folder).unwrap();
        assert_eq!(check_visible(folder.files()), 130);
        go_on(&folder, 350);
        assert_eq!(draws_of(&folder), as_planned(350));
        // and without any nothing is copied
        let names = folder.files().names().unwrap();
        assert!(
            names.iter().all(|name| !name.starts_with("next/")),
            "{names:?}"
        );
    }
}

#[test]
fn chains_need_not_have_equally_many() {
    let folder = RunFolder::in_memory();
    DrawStore::create(&folder, &planned(50)).unwrap();
    go_on(&folder, 30);
    let store = DrawStore::open(&folder).unwrap();
    let first = checkpoint::load(folder.files(), 0).unwrap().unwrap();
    let mut writer = store.writer_at(0, first.cursor()).unwrap();
    push(&mut writer, "posterior");
    writer.checkpoint(&json!({}), &[]).unwrap();
    let cursors: Vec<Cursor> = (0..CHAINS)
        .map(|chain| checkpoint::load(folder.files(), chain).unwrap().unwrap())
        .map(|checkpoint| checkpoint.cursor().clone())
        .collect();
    let next = NextLayout::write(&folder, &planned(220), &cursors).unwrap();
    next.take_over(&folder).unwrap();
    go_on(&folder, 220);
    assert_eq!(draws_of(&folder), as_planned(220));
}

#[test]
fn a_kill_loses_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("run");
    let begin = || {
        let folder = RunFolder::create(&path, true).unwrap();
        folder.write_text("config.toml", "").unwrap();
        DrawStore::create(&folder, &planned(40)).unwrap();
        let cursors = go_on(&folder, 25);
        let next = NextLayout::write(&folder, &planned(25), &cursors).unwrap();
        (folder, next)
    };
    // before the settings were written: they ask for what there was
    let (folder, next) = begin();
    drop(next);
    take_over(&folder, &planned(40)).unwrap();
    assert!(!path.join("next").exists());
    go_on(&folder, 40);
    assert_eq!(draws_of(&folder), as_planned(40));
    drop(folder);
    // after that
    let (folder, next) = begin();
    drop(next);
    take_over(&folder, &planned(25)).unwrap();
    assert_eq!(draws_of(&folder), as_planned(25));
    drop(folder);
    // and after the old draws were removed
    let (folder, next) = begin();
    drop(next);
    std::fs::remove_dir_all(path.join("draws.zarr")).unwrap();
    take_over(&folder, &planned(25)).unwrap();
    assert_eq!(draws_of(&folder), as_planned(25));
    drop(folder);
    // half written it is forgotten
    let (folder, next) = begin();
    drop(next);
    // until then whoever reads is told what is going on, and not that the run is damaged
    let error = DrawReader::open(folder.files())
        .unwrap()
        .check(&planned(90))
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("laid out for another number of draws"),
        "{error}"
    );
    std::fs::remove_file(path.join("next/draws.zarr/zarr.json")).unwrap();
    take_over(&folder, &planned(40)).unwrap();
    assert!(!path.join("next").exists());
    assert_eq!(check_visible(folder.files()), 25);
    drop(folder);
    // an overwritten run leaves none behind
    let (folder, next) = begin();
    drop((folder, next));
    drop(RunFolder::create(&path, true).unwrap());
    assert!(!path.join("next").exists());
}

#[test]
fn what_does_not_fit_is_refused() {
    let folder = RunFolder::in_memory();
    DrawStore::create(&folder, &planned(40)).unwrap();
    let cursors = go_on(&folder, 30);
    let error = NextLayout::write(&folder, &planned(20), &cursors).unwrap_err();
    assert!(
        error.to_string().contains("30 draws of the group"),
        "{error}"
    );
    let mut other = planned(60);
    for group in &mut other.groups {
        for variable in &mut group.variables {
            for (dim, length) in &mut variable.dims {
                *length += u64::from(dim == "observation");
            }
        }
    }
    other.coordinates.remove("observation");
    let error = NextLayout::write(&folder, &other, &cursors).unwrap_err();
    assert!(
        error.to_string().contains("another shape or type"),
        "{error}"
    );
    // the draws are as they were
    go_on(&folder, 40);
    assert_eq!(draws_of(&folder), as_planned(40));
}
