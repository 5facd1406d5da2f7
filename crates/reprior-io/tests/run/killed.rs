//! A process that is really killed, at moments that it does not choose.

use super::common::{SAMPLED, check_visible, push, schema, tree, uninterrupted};
use reprior_io::run::{DrawStore, RunFolder, checkpoint};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const VARIABLE: &str = "REPRIOR_TEST_KILLED_RUN";
const CHAINS: u64 = 3;
const DRAWS: u64 = 230;

/// Runs in the child process only.
#[test]
#[ignore = "a part of a_killed_process_resumes_to_the_same_bytes"]
fn child() {
    if let Some(run) = std::env::var_os(VARIABLE) {
        go_on(&PathBuf::from(run));
    }
}

fn go_on(run: &Path) {
    let folder = RunFolder::open(run).unwrap();
    let store = DrawStore::open(&folder)
        .or_else(|_| DrawStore::create(&folder, &schema(CHAINS, 4, DRAWS)))
        .unwrap();
    std::thread::scope(|scope| {
        for chain in 0..CHAINS {
            let mut writer = match checkpoint::load(run, chain).unwrap() {
                Some(checkpoint) => store.writer_at(chain, checkpoint.cursor()).unwrap(),
                None => store.writer(chain).unwrap(),
            };
            scope.spawn(move || {
                for (group, planned) in SAMPLED.into_iter().zip([4, DRAWS, DRAWS]) {
                    while writer.cursor().draws(group) < planned {
                        push(&mut writer, group);
                        match writer.cursor().draws(group) % 11 {
                            3 => writer.flush().unwrap(),
                            8 => writer.checkpoint(&json!(null), &[]).unwrap(),
                            _ => {}
                        }
                    }
                }
                writer.checkpoint(&json!(null), &[]).unwrap();
            });
        }
    });
}

#[test]
fn a_killed_process_resumes_to_the_same_bytes() {
    let temporary = tempfile::tempdir().unwrap();
    let schema = schema(CHAINS, 4, DRAWS);
    let reference = uninterrupted(&temporary.path().join("reference"), &schema);
    let run = temporary.path().join("run");
    let folder = RunFolder::create(&run, false).unwrap();
    folder.write_text("config.toml", "").unwrap();
    drop(folder);
    let mut kills = 0;
    loop {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["run::killed::child", "--exact", "--ignored"])
            .env(VARIABLE, &run)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // The longer it takes, the longer it is let live, so that the test ends on a slow disk too.
        std::thread::sleep(Duration::from_millis(5 + 3 * kills));
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success());
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        if run.join("draws.zarr/zarr.json").exists() {
            check_visible(&run);
        }
    }
    assert!(kills > 0);
    assert_eq!(check_visible(&run), DRAWS);
    assert!(tree(&run.join("draws.zarr")) == reference);
}
