//! Hostile files give an error or records: never a panic, never a wait without end, never much more memory than the file's own size calls for.
//!
//! Every reader is given its corpus (`fuzz/corpus`: what the fuzzer by coverage found worth keeping, and every input that once broke
//! something), and then new inputs made of it, the same on every machine. `fuzz/README.md` says how the corpus is made.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on may as well stop here"
)]
#![allow(clippy::print_stdout, reason = "how many inputs there were")]

mod largest;
mod lies;
mod mutate;
mod readers;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use largest::{largest, most};
use mutate::{Chance, mutated};
use readers::{READERS, Reader};

/// No input takes so long; most take less than a thousandth of a second.
const PATIENCE: Duration = Duration::from_secs(20);

fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

/// The inputs of a reader, in the order of their names; whether they are small files that unfold to a lot, of which few are made.
fn corpus(reader: &Reader) -> Vec<(bool, Vec<u8>)> {
    let folder = corpora().join(reader.name);
    let mut paths: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let is_bomb = |path: &Path| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("bomb-"))
    };
    paths
        .iter()
        .map(|path| (is_bomb(path), fs::read(path).unwrap()))
        .collect()
}

/// Leaves the input where it can be looked at if it breaks something.
fn survives(reader: &Reader, bytes: &[u8]) {
    struct Kept<'a>(&'a str, &'a [u8]);
    impl Drop for Kept<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                let path = std::env::temp_dir().join(format!("hostile-{}", self.0));
                let written = fs::write(&path, self.1);
                println!("the input is in {}: {written:?}", path.display());
            }
        }
    }
    let kept = Kept(reader.name, bytes);
    let begun = Instant::now();
    (reader.read)(bytes);
    let took = begun.elapsed();
    assert!(took < PATIENCE, "{}: {took:?}", reader.name);
    let (asked, most) = (largest(), most(bytes.len()));
    assert!(asked <= most, "{}: {asked} bytes at once", reader.name);
    drop(kept);
}

fn corpus_and_new_inputs(name: &str) {
    let reader = READERS.iter().find(|reader| reader.name == name).unwrap();
    let corpus = corpus(reader);
    assert!(!corpus.is_empty(), "{name}");
    for (_, bytes) in &corpus {
        survives(reader, bytes);
    }
    let corpus = corpus.into_iter().filter(|(is_bomb, _)| !is_bomb);
    let corpus: Vec<Vec<u8>> = corpus.map(|(_, bytes)| bytes).collect();
    let Some((seed, seconds)) = others() else {
        let mut chance = Chance::new(16);
        for _ in 0..reader.new_inputs {
            survives(reader, &mutated(&corpus, reader.words, &mut chance));
        }
        return;
    };
    let (begun, mut chance, mut count) = (Instant::now(), Chance::new(seed), 0_u64);
    let last = std::env::temp_dir().join(format!("hostile-{name}-last"));
    while begun.elapsed() < seconds {
        let bytes = mutated(&corpus, reader.words, &mut chance);
        // what ends the program leaves nobody who could tell
        fs::write(&last, &bytes).unwrap();
        survives(reader, &bytes);
        count += 1;
    }
    let _ = fs::remove_file(last);
    println!("{name}: {count} new inputs");
}

/// A seed and how long each reader is given inputs of it, by `REPRIOR_NEW_INPUTS=SEED,SECONDS`: others than those of every run of the tests.
fn others() -> Option<(u64, Duration)> {
    let asked = std::env::var("REPRIOR_NEW_INPUTS").ok()?;
    let (seed, seconds) = asked.split_once(',').unwrap();
    let seconds = Duration::from_secs(seconds.parse().unwrap());
    Some((seed.parse().unwrap(), seconds))
}

macro_rules! survived {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            corpus_and_new_inputs(stringify!($name));
        })*

        const TESTED: &[&str] = &[$(stringify!($name)),*];
    };
}

survived! { csv gzip given parquet arrow npy npz idx cifar weights network config tensors run }

#[test]
fn every_reader_has_a_corpus_and_a_test() {
    let names: BTreeSet<&str> = READERS.iter().map(|reader| reader.name).collect();
    assert_eq!(names, TESTED.iter().copied().collect());
    let folders = fs::read_dir(corpora()).unwrap();
    let folders = folders.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let folders: BTreeSet<String> = folders.collect();
    assert!(names.iter().copied().eq(folders.iter().map(String::as_str)));
}

/// What is nested without end must not exhaust the stack; no fuzzer makes files so long.
#[test]
fn depth_is_refused() {
    let reader = |name: &str| READERS.iter().find(|reader| reader.name == name).unwrap();
    let deep = 100_000;
    let dots = vec!["a"; deep].join(".");
    let branches = vec!["layers.branches"; deep / 10].join(".");
    let layers = "layers = [{ type = \"parallel\", branches = [{ ".repeat(deep / 10);
    for text in [
        format!("{dots} = 1\n"),
        format!("[{dots}]\n"),
        format!("a = {}", "[".repeat(deep)),
        format!("a = {}", "{ a = ".repeat(deep)),
        format!("[[{branches}]]\n"),
        layers,
    ] {
        survives(reader("network"), text.as_bytes());
        survives(reader("config"), text.as_bytes());
    }
    let header = "[".repeat(60_000);
    let mut array = b"\x93NUMPY\x01\x00".to_vec();
    array.extend(60_000_u16.to_le_bytes());
    array.extend(header.as_bytes());
    let length = u16::MAX.to_le_bytes();
    survives(reader("npy"), &[&length[..], &array, &array].concat());
    survives(
        reader("weights"),
        &[&[16][..], "[".repeat(deep).as_bytes()].concat(),
    );
    for file in 0..60 {
        let script = [0, file, 0, 0, 255, 0];
        survives(
            reader("run"),
            &[&script[..], "[".repeat(deep).as_bytes()].concat(),
        );
    }
}
