//! Chains driven into a run folder: its store, checkpoints, progress, the stop.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use reprior::chain::driver::ChainDriver;
use reprior::chain::moments::WeightMoments;
use reprior::chain::{Control, Progress, RunOutcome, run};
use reprior_io::run::{Checkpoint, DrawStore, RunFolder, Schema, Values, checkpoint};

use crate::failure::{Failure, name_of};
use crate::problem::Problem;
use crate::record::MOMENTS;
use crate::settings::{MINUTES_UNTIL, Until};

const COMPLETE: &str = "This run is complete; there is nothing to go on with.";

/// Sees how a run gets on.
pub trait Watcher: Sync {
    /// Something to know before the run, or in place of it.
    fn note(&self, _text: &str) {}

    /// Chains begin: those have made so many steps already, of so many each.
    ///
    /// # Errors
    /// What the watcher cannot go on without.
    fn begin(&self, _made: &[u64], _total: u64) -> Result<(), Failure> {
        Ok(())
    }

    /// One chain has got on; from any thread.
    fn update(&self, _progress: Progress) {}

    /// Chains have come to their end, or were stopped.
    fn end(&self) {}
}

/// How a run is made; nothing of it changes what is drawn.
pub struct Options<'a> {
    /// Threads; one per core unless given. Where there are more than chains, they share the work of each chain.
    pub threads: Option<usize>,
    /// Between checkpoints of each chain.
    pub checkpoint_every: Duration,
    /// Ends the run at its next step once it is set.
    pub stop: &'a AtomicBool,
    /// Sees how it gets on.
    pub watcher: &'a dyn Watcher,
    /// What a run that is gone on with is given on top of what its settings say.
    pub more: Option<More>,
    /// The run will be merged into one that is summarised: of it alone nothing is worked out, and its `summary.json` says that it is complete.
    pub is_part: bool,
}

/// More time for a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct More {
    /// Minutes from now.
    pub minutes: Option<f64>,
    /// It ends before, when its draws say so much.
    pub until: Option<Until>,
}

impl More {
    /// Minutes, where only the bounds are given too.
    pub(crate) fn minutes(self) -> f64 {
        self.minutes.unwrap_or(MINUTES_UNTIL)
    }
}

impl Options<'_> {
    /// Threads in use.
    pub(crate) fn threads(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or(cores)
    }
}

/// Where a run is made, and how.
pub(crate) struct RunContext<'a> {
    pub folder: &'a RunFolder,
    pub options: &'a Options<'a>,
}

impl RunContext<'_> {
    /// Writes what the data are, opens the store of draws, or makes it where the run has not come that far, and writes the targets.
    ///
    /// # Errors
    /// A wrong request: draws of other settings. A disk that refuses.
    pub fn open(&self, problem: &Problem, schema: &Schema) -> Result<DrawStore, Failure> {
        problem.description.write(self.folder)?;
        reprior_io::run::take_over(self.folder, schema).map_err(Failure::run)?;
        let store = if self.folder.files().contains("draws.zarr/zarr.json") {
            let store = DrawStore::open(self.folder).map_err(Failure::run)?;
            if !store.matches(schema).map_err(Failure::run)? {
                return Err(Failure::request(format!(
                    "the draws in `{}` were recorded with other settings than its config.toml says",
                    name_of(self.folder.files())
                )));
            }
            store
        } else {
            DrawStore::create(self.folder, schema).map_err(Failure::run)?;
            let store = DrawStore::open(self.folder).map_err(Failure::run)?;
            let watcher = self.options.watcher;
            problem
                .notes()
                .for_each(|note| watcher.note(&format!("note: {note}")));
            store
        };
        problem.write_targets(&store)?;
        Ok(store)
    }

    /// The checkpoints of so many chains, where there are any.
    ///
    /// # Errors
    /// A damaged checkpoint.
    pub fn checkpoints(&self, chains: u64) -> Result<Vec<Option<Checkpoint>>, Failure> {
        let load = |chain| checkpoint::load(self.folder.files(), chain).map_err(Failure::run);
        (0..chains).map(load).collect()
    }

    /// Whether the run had come to its end before; says so.
    ///
    /// # Errors
    /// A wrong request: to go on with it all the same.
    pub fn has_ended(&self, checkpoints: &[Option<Checkpoint>]) -> Result<bool, Failure> {
        let has_ended = checkpoints.iter().flatten().any(Checkpoint::is_finished);
        if has_ended && self.options.more.is_some() {
            return Err(Failure::request(format!(
                "`{}` is complete, and the states of its chains were not kept, because they take more than a tenth of --keep-mb: \
                 make it anew, with --minutes or --keep-mb",
                name_of(self.folder.files())
            )));
        }
        if has_ended {
            self.options.watcher.note(COMPLETE);
        }
        Ok(has_ended)
    }

    /// Runs chains on so many threads to their end, and then `finish`, or until they are stopped or fail.
    ///
    /// # Errors
    /// A failed run, whose draws are kept; a run that was stopped.
    pub fn drive<W: ChainDriver>(
        &self,
        chains: Vec<W>,
        threads: usize,
        finish: impl FnOnce(Vec<W>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if chains.iter().all(|chain| chain.progress().is_done()) {
            self.options.watcher.note(COMPLETE);
            return finish(chains);
        }
        self.begin(&chains)?;
        let chains = self.advance(chains, threads, 0)?;
        self.end();
        finish(chains)
    }

    /// Shows that chains begin.
    ///
    /// # Errors
    /// The watcher's.
    pub fn begin<W: ChainDriver>(&self, chains: &[W]) -> Result<(), Failure> {
        let progress: Vec<Progress> = chains.iter().map(ChainDriver::progress).collect();
        let made: Vec<u64> = progress.iter().map(|chain| chain.transition).collect();
        let total = progress.first().map_or(0, |chain| chain.total);
        self.options.watcher.begin(&made, total)
    }

    /// Shows that chains have come to their end.
    pub fn end(&self) {
        self.options.watcher.end();
    }

    /// Runs chains on so many threads until all are done; what is shown has `at_least` transitions to go to, where more are to follow.
    ///
    /// # Errors
    /// A failed run, whose draws are kept; a run that was stopped.
    pub fn advance<W: ChainDriver>(
        &self,
        chains: Vec<W>,
        threads: usize,
        at_least: u64,
    ) -> Result<Vec<W>, Failure> {
        let watcher = self.options.watcher;
        let control = Control {
            threads,
            checkpoint_every: self.options.checkpoint_every,
            stop: self.options.stop,
        };
        // watchers know chains by their places: numbers may begin anywhere
        let numbers: Vec<usize> = chains.iter().map(|chain| chain.progress().chain).collect();
        let (chains, outcome) = run(chains, control, &|progress| {
            let place = numbers.iter().position(|&number| number == progress.chain);
            watcher.update(Progress {
                chain: place.unwrap_or(progress.chain),
                total: progress.total.max(at_least),
                ..progress
            });
        });
        if !matches!(outcome, Ok(RunOutcome::Complete)) {
            watcher.end();
        }
        let name = name_of(self.folder.files());
        match outcome {
            Ok(RunOutcome::Complete) => Ok(chains),
            Ok(RunOutcome::Stopped) => {
                watcher.note(&format!(
                    "Stopped; everything drawn so far is kept. Go on with: reprior resume {name}"
                ));
                Err(Failure::Stopped)
            }
            Err(error) => Err(Failure::run(format!(
                "{error}. What was drawn before is kept in `{name}`"
            ))),
        }
    }
}

/// Writes the running moments of all chains, once they are complete.
///
/// # Errors
/// A disk that refuses.
pub(crate) fn write_moments(moments: &[WeightMoments], store: &DrawStore) -> Result<(), Failure> {
    let write = |name, values: &[f32]| {
        store
            .write_static(MOMENTS, name, Values::F32(values))
            .map_err(Failure::run)
    };
    let means = moments.iter().flat_map(|moments| &moments.mean);
    write("mean", &means.map(|&x| x as f32).collect::<Vec<_>>())?;
    let variances = moments.iter().flat_map(WeightMoments::variance);
    write("variance", &variances.map(|x| x as f32).collect::<Vec<_>>())
}
