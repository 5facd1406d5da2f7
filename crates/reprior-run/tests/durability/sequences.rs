//! What people and schedulers do with run folders, at random and one after another, beside a model of what each folder must hold.
//!
//! `REPRIOR_SEQUENCES=N` makes N sequences in place of thirty-two; those that are made are the same each time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use reprior_run::{
    Failure, MergeOptions, Summary, merge, resume, sample, sample_or_resume, summarise,
};

use super::common::{Silent, assert_same, has_leftovers, lasting, options};
use super::disk::{Disk, Fault, Weather};
use super::model::{Held, PLACES, Place, SEEDS, check_read, predict, raw, truth, watched};

/// What happens on the way.
#[derive(Debug, Clone, Copy)]
enum Way {
    Undisturbed,
    /// Another thread reads all the while.
    Watched,
    Met(usize, Fault),
}

#[derive(Debug, Clone, Copy)]
enum Operation {
    Sample {
        place: Place,
        seed: u64,
        overwrite: bool,
        way: Way,
    },
    OrResume {
        place: Place,
        seed: u64,
        way: Way,
    },
    Resume {
        place: Place,
        way: Way,
    },
    Merge {
        overwrite: bool,
        shares_files: bool,
        way: Way,
    },
    Read {
        place: Place,
    },
}

fn operation() -> impl Strategy<Value = Operation> {
    let place = prop::sample::select(&PLACES[..]);
    let seed = prop_oneof![3 => Just(SEEDS[0]), 1 => Just(SEEDS[1])];
    let faults = [
        Fault::NoSpace,
        Fault::Device,
        Fault::Kill,
        Fault::Torn,
        Fault::PowerLoss,
        Fault::Stop,
    ];
    // a whole run has a thousand calls; what comes before its draws has thirty
    let at = prop_oneof![0..40_usize, 0..1000_usize];
    let met =
        (at, prop::sample::select(faults.to_vec())).prop_map(|(at, fault)| Way::Met(at, fault));
    let way = prop_oneof![4 => Just(Way::Undisturbed), 1 => Just(Way::Watched), 5 => met].boxed();
    prop_oneof![
        4 => (place.clone(), seed.clone(), any::<bool>(), way.clone())
            .prop_map(|(place, seed, overwrite, way)| Operation::Sample { place, seed, overwrite, way }),
        3 => (place.clone(), seed, way.clone()).prop_map(|(place, seed, way)| Operation::OrResume { place, seed, way }),
        3 => (place.clone(), way.clone()).prop_map(|(place, way)| Operation::Resume { place, way }),
        3 => (any::<bool>(), any::<bool>(), way)
            .prop_map(|(overwrite, shares_files, way)| Operation::Merge { overwrite, shares_files, way }),
        2 => place.prop_map(|place| Operation::Read { place }),
    ]
}

/// Operations that wrote: undisturbed, refused, and such as met something on the way.
static DONE: AtomicUsize = AtomicUsize::new(0);
static REFUSED: AtomicUsize = AtomicUsize::new(0);
static DISTURBED: AtomicUsize = AtomicUsize::new(0);

/// Folders, and the model of them.
struct Bench {
    disk: Disk,
    held: BTreeMap<Place, Held>,
}

impl Bench {
    fn new() -> Self {
        Self {
            disk: Disk::new(),
            held: PLACES.map(|place| (place, Held::NoRun)).into(),
        }
    }

    fn path(&self, place: Place) -> PathBuf {
        self.disk.path(&place.name())
    }

    fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Sample {
                place,
                seed,
                overwrite,
                way,
            } => {
                let is_refused = !overwrite && self.held[&place] != Held::NoRun;
                let act = |run: &Path, stop: &AtomicBool| {
                    sample(
                        place.settings(seed),
                        run,
                        overwrite,
                        &options(stop, &Silent),
                    )
                };
                self.write(place, (!is_refused).then_some(seed), overwrite, way, act);
            }
            Operation::OrResume { place, seed, way } => {
                let is_refused = self.held[&place].seed().is_some_and(|own| own != seed);
                let act = |run: &Path, stop: &AtomicBool| {
                    sample_or_resume(place.settings(seed), run, &options(stop, &Silent))
                };
                self.write(place, (!is_refused).then_some(seed), false, way, act);
            }
            Operation::Resume { place, way } => {
                let act = |run: &Path, stop: &AtomicBool| resume(run, &options(stop, &Silent));
                self.write(place, self.held[&place].seed(), false, way, act);
            }
            Operation::Merge {
                overwrite,
                shares_files,
                way,
            } => {
                let parts = [Place::First, Place::Last];
                let seed = match parts.map(|part| self.held[&part]) {
                    [Held::Complete(first), Held::Complete(last)] if first == last => Some(first),
                    _ => None,
                };
                let is_refused = !overwrite && self.held[&Place::Merged] != Held::NoRun;
                let runs = parts.map(|part| self.path(part));
                let merging = MergeOptions {
                    overwrite,
                    shares_files,
                    ..MergeOptions::default()
                };
                let act = |run: &Path, _: &AtomicBool| merge(&runs, run, merging);
                self.write(
                    Place::Merged,
                    seed.filter(|_| !is_refused),
                    overwrite,
                    way,
                    act,
                );
            }
            Operation::Read { place } => self.read(place),
        }
    }

    /// Does what writes to a folder, to a run of the seed: it is refused where there is none, makes or completes the run, or meets something on the way.
    fn write(
        &mut self,
        place: Place,
        seed: Option<u64>,
        is_replacing: bool,
        way: Way,
        act: impl Fn(&Path, &AtomicBool) -> Result<Summary, Failure>,
    ) {
        let run = self.path(place);
        let before = self.held[&place];
        let bytes_before = raw(&run);
        self.disk.set(match way {
            Way::Met(at, fault) => Weather::Storm(at, fault),
            _ => Weather::Fair,
        });
        let done = match way {
            Way::Watched => watched(&run, is_replacing, || act(&run, self.disk.stop())),
            _ => act(&run, self.disk.stop()),
        };
        let struck = self.disk.struck();
        self.disk.set(Weather::Fair);
        let what = format!(
            "{place:?}, {before:?}, met {struck:?}, said {:?}",
            done.as_ref().err()
        );
        let count = match (seed, &struck) {
            (None, _) => &REFUSED,
            (_, Some(_)) => &DISTURBED,
            _ => &DONE,
        };
        count.fetch_add(1, Ordering::Relaxed);
        let Some(seed) = seed else {
            assert!(done.is_err(), "{what}: it was not refused");
            let is_refused = matches!(done, Err(Failure::Request(_)));
            assert!(is_refused || struck.is_some(), "{what}");
            let is_same = raw(&run) == bytes_before;
            assert!(is_same, "{what}: what was refused changed the folder");
            return;
        };
        let after = Held::look(place, &run);
        let is_right = match done {
            Ok(_) => {
                assert_same(&lasting(&run), &truth().bytes[&(place, seed)], &what);
                assert!(!has_leftovers(&run), "{what}: there are leftovers");
                after == Held::Complete(seed)
            }
            // nothing fails by itself
            Err(_) if struck.is_none() => false,
            // what is gone on with is never less than it was
            Err(_) if !is_replacing && before.seed().is_some() => {
                after == before || after == Held::Complete(seed)
            }
            Err(_) => {
                let seeds = [None, Some(seed), before.seed()];
                seeds.contains(&after.seed())
            }
        };
        assert!(is_right, "{what}: it became {after:?}");
        self.held.insert(place, after);
    }

    fn read(&self, place: Place) {
        let run = self.path(place);
        let [summary, prediction] = [summarise(&run).map(drop), predict(&run).map(drop)];
        match self.held[&place] {
            Held::NoRun => assert!(summary.is_err() && prediction.is_err(), "{place:?}"),
            Held::Begun(_) => {
                check_read(&summary, &format!("{place:?}"));
                check_read(&prediction, &format!("{place:?}"));
            }
            Held::Complete(seed) => {
                summary.unwrap();
                assert_eq!(predict(&run).unwrap(), truth().predictions[&(place, seed)]);
            }
        }
    }
}

#[test]
fn sequences_of_operations_keep_to_the_model() {
    let asked = std::env::var("REPRIOR_SEQUENCES").ok();
    let asked: Option<u32> = asked.and_then(|count| count.parse().ok());
    let config = Config {
        cases: asked.unwrap_or(32),
        failure_persistence: None,
        max_shrink_iters: 300,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let sequences = prop::collection::vec(operation(), 4..16);
    // half of them have the parts of a merge to begin with
    let found = runner.run(&(any::<bool>(), sequences), |(has_parts, operations)| {
        let mut bench = Bench::new();
        let parts = [Place::First, Place::Last];
        parts.into_iter().filter(|_| has_parts).for_each(|place| {
            bench.apply(Operation::Sample {
                place,
                seed: SEEDS[0],
                overwrite: false,
                way: Way::Undisturbed,
            });
        });
        operations.into_iter().for_each(|own| bench.apply(own));
        Ok(())
    });
    found.unwrap();
    let counts = [&DONE, &REFUSED, &DISTURBED].map(|count| count.load(Ordering::Relaxed));
    eprintln!("{counts:?} operations that wrote were done, refused, disturbed");
    // the model is of no use where nothing happens
    let is_enough = counts.iter().all(|&count| count >= 40);
    assert!(is_enough || asked.is_some(), "{counts:?}");
}
