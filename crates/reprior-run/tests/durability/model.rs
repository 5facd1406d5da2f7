//! The model: which folders there are, what they may hold, and the bytes and predictions that runs must have.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use reprior_io::data::load_inputs;
use reprior_io::run::Files;
use reprior_run::{Failure, PredictionRequest, Predictor, Settings, sample, summarise};

use super::common::{Lasting, NEVER, Silent, lasting, options, settings};

/// A folder: the runs in the second and third have one chain of the two that the others have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Whole,
    First,
    Last,
    Merged,
}

pub const PLACES: [Place; 4] = [Place::Whole, Place::First, Place::Last, Place::Merged];
pub const SEEDS: [u64; 2] = [1, 2];

/// What a folder holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// Nothing that can be gone on with.
    NoRun,
    /// A run of this seed that has not come to its end.
    Begun(u64),
    /// A run of this seed, with the bytes that it must have.
    Complete(u64),
}

impl Held {
    /// What the folder of a place holds.
    pub fn look(place: Place, run: &Path) -> Self {
        let Ok(config) = fs::read(run.join("config.toml")) else {
            return Self::NoRun;
        };
        let truth = &truth().bytes;
        let seed = SEEDS
            .into_iter()
            .find(|&seed| truth[&(place, seed)]["config.toml"] == config);
        let seed = seed.unwrap_or_else(|| panic!("{place:?}: settings of no run"));
        // without a summary it has not come to its end, and need not be whole
        match run.join("summary.json").exists() && lasting(run) == truth[&(place, seed)] {
            true => Self::Complete(seed),
            false => Self::Begun(seed),
        }
    }

    pub fn seed(self) -> Option<u64> {
        match self {
            Self::NoRun => None,
            Self::Begun(seed) | Self::Complete(seed) => Some(seed),
        }
    }
}

impl Place {
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    pub fn settings(self, seed: u64) -> Settings {
        let chains = match self {
            Self::Whole | Self::Merged => "--chains 2",
            Self::First => "--chains 1",
            Self::Last => "--chains 1 --first-chain 1",
        };
        settings(&format!(
            "--data friedman --train 12 --test 4 --network fcn:3 --projections 2 --keep 3 --warmup 2 --draws 3 --seed {seed} {chains}"
        ))
    }
}

/// The runs as they must be, and what they predict.
pub struct Truth {
    pub bytes: BTreeMap<(Place, u64), Lasting>,
    pub predictions: BTreeMap<(Place, u64), Vec<u64>>,
}

pub fn truth() -> &'static Truth {
    static TRUTH: OnceLock<Truth> = OnceLock::new();
    TRUTH.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let mut truth = Truth {
            bytes: BTreeMap::new(),
            predictions: BTreeMap::new(),
        };
        for (place, seed) in PLACES
            .into_iter()
            .flat_map(|place| SEEDS.map(|seed| (place, seed)))
        {
            let run = folder.path().join(format!("{}-{seed}", place.name()));
            sample(place.settings(seed), &run, false, &options(&NEVER, &Silent)).unwrap();
            truth.bytes.insert((place, seed), lasting(&run));
            truth
                .predictions
                .insert((place, seed), predict(&run).unwrap());
        }
        truth
    })
}

/// Predicted means and standard deviations for new rows, bit for bit.
pub fn predict(run: &Path) -> Result<Vec<u64>, Failure> {
    let predictor = Predictor::of(run)?;
    let expected = predictor.description().expected_inputs();
    let inputs = load_inputs("friedman", &expected).map_err(Failure::request)?;
    let mut found = Vec::new();
    predictor.predict(&inputs.values, None, PredictionRequest::default(), |rows| {
        for row in 0..rows.len() {
            found.extend(rows.moments(row, 0)?.map(f64::to_bits));
        }
        Ok(())
    })?;
    Ok(found)
}

/// Every file of a folder with its bytes, those aside whose names begin with a dot; none where there is no folder.
pub fn raw(run: &Path) -> Option<Lasting> {
    let files = Files::from(run);
    let names = files.names().ok()?.into_iter();
    Some(
        names
            .map(|name| (files.read(&name), name))
            .map(|(bytes, name)| (name, bytes.unwrap().unwrap().to_vec()))
            .collect(),
    )
}

/// Whoever reads a run that is begun finds a part of it or is told that there is none yet, but never something broken.
pub fn check_read(read: &Result<(), Failure>, what: &str) {
    let Err(error) = read else { return };
    let text = error.to_string();
    let broken = [
        "damaged",
        "checksum",
        "is cut off",
        "instead of",
        "is missing",
    ];
    assert!(
        !broken.iter().any(|word| text.contains(word)),
        "{what}: {text}"
    );
}

/// Ends what another thread does, also where this one panics.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does something while another thread reads.
pub fn watched<T>(run: &Path, is_replaced: bool, act: impl FnOnce() -> T) -> T {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let reading = scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let read = [summarise(run).map(drop), predict(run).map(drop)];
                // of a run that is being removed anything may be missing
                if !is_replaced {
                    read.iter()
                        .for_each(|read| check_read(read, "read meanwhile"));
                }
            }
        });
        let ending = Ending(&is_done);
        let done = act();
        drop(ending);
        reading.join().unwrap();
        done
    })
}
