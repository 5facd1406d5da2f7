use super::common::{SAMPLED, check_visible, push, schema, tree, uninterrupted};
use proptest::prelude::*;
use reprior_io::run::{DrawStore, DrawWriter, RunFolder, Schema, Tensor, Values, checkpoint};
use serde_json::json;
use std::fs;
use std::path::Path;

const CHAINS: u64 = 3;

/// What happens to a run, chain by chain.
#[derive(Debug, Clone)]
enum Event {
    Push {
        chain: usize,
        group: usize,
        draws: u64,
    },
    Flush {
        chain: usize,
    },
    Checkpoint {
        chain: usize,
    },
    /// All writers vanish; `stale_root` as if the kill came before the root's metadata were replaced.
    Crash {
        stale_root: bool,
    },
}

fn event() -> impl Strategy<Value = Event> {
    let chain = 0..CHAINS as usize;
    prop_oneof![
        6 => (chain.clone(), 0..3_usize, 1..70_u64)
            .prop_map(|(chain, group, draws)| Event::Push { chain, group, draws }),
        2 => chain.clone().prop_map(|chain| Event::Flush { chain }),
        3 => chain.prop_map(|chain| Event::Checkpoint { chain }),
        2 => any::<bool>().prop_map(|stale_root| Event::Crash { stale_root }),
    ]
}

/// Opens the run as a resumed process does.
fn resume(run: &Path, schema: &Schema) -> (RunFolder, Vec<DrawWriter>) {
    let folder = RunFolder::open(run).unwrap();
    let store = DrawStore::open(&folder).unwrap();
    assert!(store.matches(schema).unwrap());
    let writers = (0..CHAINS)
        .map(|chain| match checkpoint::load(run, chain).unwrap() {
            Some(checkpoint) => {
                let draws = checkpoint.u64("draws", &[]).unwrap();
                assert_eq!(draws, [checkpoint.cursor().draws("posterior")]);
                store.writer_at(chain, checkpoint.cursor()).unwrap()
            }
            None => store.writer(chain).unwrap(),
        })
        .collect();
    (folder, writers)
}

#[test]
fn a_run_of_another_version_goes_on_but_not_one_of_other_settings() {
    let place = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(&place.path().join("run"), false).unwrap();
    let mut schema = schema(1, 10, 10);
    let store = DrawStore::create(&folder, &schema).unwrap();
    let mut with = |key: &str, value| {
        for group in &mut schema.groups {
            group.attributes.insert(key.into(), json!(value));
        }
        store.matches(&schema).unwrap()
    };
    assert!(with("inference_library_version", "0.3.0"));
    assert!(!with("reprior_settings", "{\"seed\": 2}"));
}

fn save(writer: &mut DrawWriter) {
    let draws = [writer.cursor().draws("posterior")];
    let tensor = Tensor {
        name: "draws",
        shape: &[],
        values: Values::U64(&draws),
    };
    writer
        .checkpoint(&json!({"chain": writer.chain()}), &[tensor])
        .unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn interrupted_runs_end_with_the_same_bytes(
        events in prop::collection::vec(event(), 1..40),
        warmup in 0..30_u64,
        draws in 1..260_u64,
    ) {
        let schema = schema(CHAINS, warmup, draws);
        let temporary = tempfile::tempdir().unwrap();
        let reference = uninterrupted(&temporary.path().join("reference"), &schema);
        let run = temporary.path().join("run");
        let store = run.join("draws.zarr");
        let planned = |group| if group == SAMPLED[0] { warmup } else { draws };
        {
            let folder = RunFolder::create(&run, false).unwrap();
            folder.write_text("config.toml", "").unwrap();
            DrawStore::create(&folder, &schema).unwrap();
        }
        let (mut folder, mut writers) = resume(&run, &schema);
        let mut root = fs::read(store.join("zarr.json")).unwrap();
        for event in events {
            match event {
                Event::Push { chain, group, draws } => {
                    let writer = &mut writers[chain];
                    let group = SAMPLED[group];
                    let left = planned(group) - writer.cursor().draws(group);
                    for _ in 0..draws.min(left) {
                        push(writer, group);
                    }
                }
                Event::Flush { chain } => {
                    root = fs::read(store.join("zarr.json")).unwrap();
                    writers[chain].flush().unwrap();
                }
                Event::Checkpoint { chain } => {
                    root = fs::read(store.join("zarr.json")).unwrap();
                    save(&mut writers[chain]);
                }
                Event::Crash { stale_root } => {
                    drop((folder, writers));
                    if stale_root {
                        fs::write(store.join("zarr.json"), &root).unwrap();
                    }
                    for name in [".zarr.json.1-2.tmp", "posterior/lp/.c.0.0.1-3.tmp"] {
                        let path = store.join(name);
                        fs::create_dir_all(path.parent().unwrap()).unwrap();
                        fs::write(path, "half of").unwrap();
                    }
                    (folder, writers) = resume(&run, &schema);
                    root = fs::read(store.join("zarr.json")).unwrap();
                    fs::remove_dir(store.join("posterior/lp")).unwrap();
                }
            }
            check_visible(&run);
        }
        for writer in &mut writers {
            for group in SAMPLED {
                while writer.cursor().draws(group) < planned(group) {
                    push(writer, group);
                }
            }
            save(writer);
        }
        prop_assert_eq!(check_visible(&run), draws);
        prop_assert!(tree(&store) == reference);
        drop(folder);
    }
}

#[test]
fn draws_beyond_the_checkpoint_are_hidden_and_written_again() {
    let temporary = tempfile::tempdir().unwrap();
    let run = temporary.path().join("run");
    let schema = schema(CHAINS, 0, 150);
    {
        let folder = RunFolder::create(&run, false).unwrap();
        let store = DrawStore::create(&folder, &schema).unwrap();
        for chain in 0..CHAINS {
            let mut writer = store.writer(chain).unwrap();
            for draw in 0..120 {
                if draw == 90 {
                    save(&mut writer);
                }
                push(&mut writer, "posterior");
            }
            writer.flush().unwrap();
        }
    }
    assert_eq!(check_visible(&run), 120);
    let (_folder, mut writers) = resume(&run, &schema);
    assert_eq!(check_visible(&run), 90);
    push(&mut writers[0], "posterior");
    writers[0].flush().unwrap();
    assert_eq!(check_visible(&run), 90);
}

#[test]
fn a_store_killed_while_it_is_made_is_made_afresh() {
    let temporary = tempfile::tempdir().unwrap();
    let run = temporary.path().join("run");
    let folder = RunFolder::create(&run, false).unwrap();
    folder.write_text("config.toml", "").unwrap();
    fs::create_dir_all(run.join("draws.zarr/posterior/other")).unwrap();
    let error = DrawStore::open(&folder).unwrap_err().to_string();
    assert!(
        error.contains("draws.zarr/zarr.json: there is no such file"),
        "{error}"
    );
    DrawStore::create(&folder, &schema(1, 0, 1)).unwrap();
    assert!(!run.join("draws.zarr/posterior/other").exists());
    let error = DrawStore::create(&folder, &schema(1, 0, 1))
        .unwrap_err()
        .to_string();
    assert!(error.contains("exists already"), "{error}");
}
