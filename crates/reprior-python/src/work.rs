//! The thread that makes a run, and what others see of it: how it gets on, its notes, its end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use reprior::chain::Progress;
use reprior_io::run::{Files, RunFolder};
use reprior_run::{Failure, More, Options, RhatSoFar, Watcher};

/// Time between checkpoints of runs in a folder unless told otherwise, as the program's; those in memory have nothing to lose.
pub const CHECKPOINT_EVERY: Duration = Duration::from_secs(10);

/// The time between checkpoints that so many seconds are, or what it is unless told otherwise.
///
/// # Errors
/// A number that is no time.
pub fn checkpoint_every(seconds: Option<f64>) -> Result<Duration, Failure> {
    let every = seconds.map(Duration::try_from_secs_f64).transpose();
    let every =
        every.map_err(|_| Failure::request("checkpoint_seconds must be zero or positive"))?;
    Ok(every.unwrap_or(CHECKPOINT_EVERY))
}

/// What a thread makes, as others see it.
#[derive(Default)]
pub struct Work {
    /// Ends it at its next step.
    pub stop: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

/// How far it is.
#[derive(Default)]
pub struct State {
    /// Where each chain is.
    pub chains: Vec<Option<Progress>>,
    /// Whether they agree so far.
    pub so_far: Option<RhatSoFar>,
    /// Transitions that were made before this process went on.
    pub before: u64,
    /// What there is to know of it.
    pub notes: Vec<String>,
    /// Its files, once there are any.
    pub files: Option<Files>,
    /// A run in memory, once it has ended.
    pub folder: Option<RunFolder>,
    /// Since when chains are drawn.
    pub began: Option<Instant>,
    /// The summary that a run was ended with, as JSON.
    pub summary: Option<String>,
    /// How it ended.
    pub end: Option<Result<(), Failure>>,
}

impl Work {
    /// What there is.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what there is, and wakes who waits for it.
    pub fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
    }

    /// Waits until `is_so`, or until so much time is over; whether it is.
    pub fn wait(&self, timeout: Duration, is_so: impl Fn(&State) -> bool) -> bool {
        let state = self.state();
        let waited = self
            .changed
            .wait_timeout_while(state, timeout, |state| !is_so(state));
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        is_so(&state)
    }

    /// Makes a run, or a part of one, on a thread of its own, with checkpoints so often: `make` gets its place, and gives it back with how it ended.
    ///
    /// # Errors
    /// A system that starts no thread.
    pub fn start(
        self: &Arc<Self>,
        threads: Option<usize>,
        checkpoint_every: Duration,
        more: Option<More>,
        is_part: bool,
        make: impl FnOnce(&Self, &Options<'_>) -> Result<(), Failure> + Send + 'static,
    ) -> Result<(), Failure> {
        let work = Arc::clone(self);
        let body = move || {
            let options = Options {
                threads,
                checkpoint_every,
                stop: &work.stop,
                watcher: &*work,
                more,
                is_part,
            };
            // a panic is a fault of ours, and must not leave who waits for the end waiting
            let made = catch_unwind(AssertUnwindSafe(|| make(&work, &options)));
            let end = made.unwrap_or_else(|_| {
                Err(Failure::run(
                    "reprior failed in a way that it should not have; please report it with the data and settings",
                ))
            });
            work.change(|state| state.end = Some(end));
        };
        let thread = std::thread::Builder::new().name("reprior".to_owned());
        thread.spawn(body).map_err(Failure::run)?;
        Ok(())
    }

    /// Asks it to stop.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Watcher for Work {
    fn note(&self, text: &str) {
        let note = text.trim_start_matches("note: ").to_owned();
        self.change(|state| state.notes.push(note));
    }

    fn begin(&self, made: &[u64], _: u64) -> Result<(), Failure> {
        self.change(|state| {
            state.chains = vec![None; made.len()];
            state.so_far = Some(RhatSoFar::new(made.len()));
            state.before = made.iter().sum();
            state.began = Some(Instant::now());
        });
        Ok(())
    }

    fn update(&self, progress: Progress) {
        self.change(|state| {
            if let Some(so_far) = &mut state.so_far {
                so_far.update(&progress);
            }
            if let Some(chain) = state.chains.get_mut(progress.chain) {
                *chain = Some(progress);
            }
        });
    }
}
