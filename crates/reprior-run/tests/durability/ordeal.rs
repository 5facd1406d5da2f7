//! Something that writes, done again and again with a fault at each of its calls.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Instant;

use reprior_io::run::disk::Call;
use reprior_run::Failure;

use super::common::{Lasting, assert_same, has_leftovers, lasting};
use super::disk::{Disk, Fault, Weather};

/// At the beginning and at the end of all calls, so many have a fault each; and so many in between, at even distances. `REPRIOR_FAULTS=all` has all.
const ENDS: usize = 8;
const BETWEEN: usize = 12;

/// What is done, on a disk, and how it is brought to its end after a fault.
pub struct Ordeal<'a> {
    pub name: &'a str,
    /// What must be there before; in fair weather.
    pub prepare: &'a dyn Fn(&Disk),
    /// What meets the fault.
    pub act: &'a dyn Fn(&Disk) -> Result<(), Failure>,
    /// What is done then; told the number of the call that met the fault, for more than one way.
    pub mend: &'a dyn Fn(&Disk, usize) -> Result<(), Failure>,
    /// The run that must then be there.
    pub run: &'a str,
}

impl Ordeal<'_> {
    /// Does it in fair weather, then in all kinds of foul, and says how often.
    pub fn endure(&self) {
        let start = Instant::now();
        let disk = Disk::new();
        let run = disk.path(self.run);
        (self.prepare)(&disk);
        disk.set(Weather::Fair);
        (self.act)(&disk).unwrap();
        let calls = disk.calls();
        let expected = lasting(&run);
        self.clear(&disk);
        // every call interrupted and every write short: nobody notices
        (self.prepare)(&disk);
        disk.set(Weather::Gusty);
        (self.act)(&disk).unwrap();
        disk.set(Weather::Fair);
        assert_same(
            &lasting(&run),
            &expected,
            &format!("{}: interrupted calls", self.name),
        );
        self.clear(&disk);
        let mut faults = BTreeMap::<Call, usize>::new();
        for (number, at) in chosen(&calls).into_iter().enumerate() {
            for fault in faults_of(calls[at].0, number) {
                // by the clock, rarely, there are fewer calls than there were
                if let Some(call) = self.meet(&disk, at, fault, &expected) {
                    *faults.entry(call).or_default() += 1;
                }
            }
        }
        let all: BTreeSet<Call> = calls.iter().map(|(call, _)| *call).collect();
        assert!(
            all.iter().eq(faults.keys()),
            "{}: {all:?}, {faults:?}",
            self.name
        );
        let count: usize = faults.values().sum();
        eprintln!(
            "{}: {} calls, {count} faults {faults:?}, {:.1} s",
            self.name,
            calls.len(),
            start.elapsed().as_secs_f64()
        );
        assert!(count >= 40, "{}: {count} faults", self.name);
    }

    /// Does it with a fault at one call, and brings it to its end; the kind of call.
    fn meet(&self, disk: &Disk, at: usize, fault: Fault, expected: &Lasting) -> Option<Call> {
        let run = disk.path(self.run);
        disk.set(Weather::Fair);
        (self.prepare)(disk);
        disk.set(Weather::Storm(at, fault));
        let acted = (self.act)(disk);
        let struck = disk.struck();
        disk.set(Weather::Fair);
        let what = format!("{}: {fault:?} at call {at}, {struck:?}", self.name);
        let call = struck.map(|(call, _)| call);
        match (&acted, call) {
            (Ok(()), None) => {}
            // another way was found, or what is left harms nobody
            (Ok(()), Some(Call::Link | Call::Remove)) => {}
            (Ok(()), Some(_)) => panic!("{what}: nobody noticed"),
            (Err(error), _) => check_message(error, fault, disk, &what),
        }
        if acted.is_ok() {
            assert_same(&lasting(&run), expected, &what);
        }
        if let Err(error) = (self.mend)(disk, at) {
            panic!("{what}: said {acted:?}, and then: {error}");
        }
        assert_same(&lasting(&run), expected, &what);
        assert!(!has_leftovers(&run), "{what}: there are leftovers");
        self.clear(disk);
        call
    }

    /// Forgets everything that is on the disk.
    fn clear(&self, disk: &Disk) {
        let root = disk.path("");
        for entry in fs::read_dir(root).unwrap() {
            remove(&entry.unwrap().path());
        }
    }
}

fn remove(path: &Path) {
    match path.is_dir() {
        true => fs::remove_dir_all(path).unwrap(),
        false => fs::remove_file(path).unwrap(),
    }
}

/// A message is one line that names a file on the disk and the cause.
fn check_message(error: &Failure, fault: Fault, disk: &Disk, what: &str) {
    let text = error.to_string();
    let root = disk.path("");
    let named = root.to_string_lossy();
    assert!(text.contains(named.trim_end_matches('/')), "{what}: {text}");
    assert_eq!(text.lines().count(), 1, "{what}: {text}");
    let causes: &[&str] = match fault {
        Fault::NoSpace => &["no space is left on the disk"],
        Fault::Torn => &["Input/output error", "failed to write whole buffer"],
        _ => &["Input/output error"],
    };
    assert!(
        causes.iter().any(|cause| text.contains(cause)),
        "{what}: {text}"
    );
}

/// The numbers of calls at which there are faults: the first and the last of each kind and file, and others at even distances.
fn chosen(calls: &[(Call, String)]) -> Vec<usize> {
    if std::env::var("REPRIOR_FAULTS").is_ok_and(|all| all == "all") {
        return (0..calls.len()).collect();
    }
    let mut first: BTreeMap<Call, usize> = BTreeMap::new();
    let mut last = first.clone();
    for (at, (call, _)) in calls.iter().enumerate() {
        first.entry(*call).or_insert(at);
        last.insert(*call, at);
    }
    let mut chosen: BTreeSet<usize> = first.into_values().chain(last.into_values()).collect();
    // the beginning has every kind of file, the end what comes after the draws
    let ends = (0..ENDS).chain(calls.len().saturating_sub(ENDS)..calls.len());
    chosen.extend(ends.filter(|&at| at < calls.len()));
    chosen.extend((0..BETWEEN).map(|part| part * calls.len() / BETWEEN));
    chosen.into_iter().collect()
}

/// The faults at a call, of which those that differ in words only take turns.
fn faults_of(call: Call, number: usize) -> Vec<Fault> {
    let refused = [Fault::NoSpace, Fault::Device][number % 2];
    let dying = match call {
        Call::Write | Call::Copy | Call::RemoveAll => Fault::Torn,
        _ => [Fault::Kill, Fault::PowerLoss][number / 2 % 2],
    };
    vec![refused, dying]
}
