//! Small runs, and what of them must be the same however they came about.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use reprior_io::run::{Files, checkpoint};
use reprior_run::{Options, Watcher};
use serde_json::Value;

pub use crate::common::{Silent, settings};

/// Nobody stops a run by this.
pub static NEVER: AtomicBool = AtomicBool::new(false);

/// One thread, so that calls come in the same order each time, and a checkpoint after every transition.
pub fn options<'a>(stop: &'a AtomicBool, watcher: &'a dyn Watcher) -> Options<'a> {
    crate::common::options(1, stop, watcher)
}

/// What a run holds, by the names of its files: the bytes, but of summaries and checkpoints what does not say how long it took.
pub type Lasting = BTreeMap<String, Vec<u8>>;

pub fn lasting(run: &Path) -> Lasting {
    let files = Files::from(run);
    let names = files.names().unwrap().into_iter();
    names
        .map(|name| {
            let bytes = files.read(&name).unwrap().unwrap().to_vec();
            let own = match name.strip_prefix("checkpoint/chain-") {
                Some(rest) => {
                    let chain = rest.trim_end_matches(".safetensors").parse().unwrap();
                    state_of(&files, chain)
                }
                None if name == "summary.json" => {
                    timeless(&serde_json::from_slice(&bytes).unwrap())
                        .to_string()
                        .into_bytes()
                }
                None => bytes,
            };
            (name, own)
        })
        .collect()
}

/// What a checkpoint holds.
fn state_of(files: &Files, chain: u64) -> Vec<u8> {
    let found = checkpoint::load(files, chain).unwrap().unwrap();
    let mut text = format!("{:?} {}", found.cursor(), timeless(found.document()));
    for (name, shape) in found.tensors() {
        let bits = |own: Vec<f64>| own.into_iter().map(f64::to_bits).collect::<Vec<_>>();
        let narrow = |own: Vec<f32>| own.into_iter().map(|x| u64::from(x.to_bits())).collect();
        let values = found.f64(name, shape).map(bits);
        let values = values.or_else(|_| found.f32(name, shape).map(narrow));
        let values = values.or_else(|_| found.u64(name, shape)).unwrap();
        text += &format!("\n{name} {shape:?} {values:?}");
    }
    text.into_bytes()
}

/// Without what is called after seconds.
fn timeless(value: &Value) -> Value {
    match value {
        Value::Object(all) => {
            let lasting = all.iter().filter(|(name, _)| !name.contains("second"));
            Value::Object(
                lasting
                    .map(|(name, own)| (name.clone(), timeless(own)))
                    .collect(),
            )
        }
        Value::Array(all) => Value::Array(all.iter().map(timeless).collect()),
        other => other.clone(),
    }
}

/// Fails, naming the files, unless two runs are the same.
pub fn assert_same(found: &Lasting, expected: &Lasting, what: &str) {
    let names = |own: &Lasting| own.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(found), names(expected), "{what}: the files");
    let differ: Vec<_> = found
        .keys()
        .filter(|name| found[*name] != expected[*name])
        .map(|name| {
            let text = |own: &Lasting| {
                String::from_utf8_lossy(&own[name])
                    .chars()
                    .take(3000)
                    .collect::<String>()
            };
            (name, text(found), text(expected))
        })
        .collect();
    assert!(differ.is_empty(), "{what}: these differ: {differ:#?}");
}

/// Whether a process left something half written.
pub fn has_leftovers(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).unwrap().flatten();
    entries.map(|entry| entry.path()).any(|path| {
        let is_leftover = path.extension().is_some_and(|end| end == "tmp");
        is_leftover || (path.is_dir() && has_leftovers(&path))
    })
}
