//! Drives walks over threads, a slice of transitions at a time, the one that is furthest behind first.
//!
//! Clocks decide only when to look up (progress, checkpoints), never what is drawn.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use thiserror::Error;

use super::{Chain, Observer, Progress};
use crate::posterior::Target;

/// How a run is driven.
#[derive(Debug, Clone, Copy)]
pub struct Control<'a> {
    /// Threads; one works on one chain at a time.
    pub threads: usize,
    /// Time between checkpoints of a chain.
    pub checkpoint_every: Duration,
    /// Set from anywhere to stop after the current transitions.
    pub stop: &'a AtomicBool,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Every draw was made.
    Complete,
    /// Stopped on request; everything so far is checkpointed.
    Stopped,
}

/// Why a run ended early. What was drawn before is kept.
#[derive(Debug, Error)]
pub enum RunError<E: std::error::Error> {
    /// A target that cannot be evaluated.
    #[error("chain {chain} stopped at transition {transition}: {reason}")]
    Target {
        /// Which chain.
        chain: usize,
        /// After how many transitions.
        transition: u64,
        /// What the target said.
        reason: String,
    },
    /// Recording or checkpointing failed.
    #[error("chain {chain} could not be recorded: {error}")]
    Observer {
        /// Which chain.
        chain: usize,
        /// What went wrong.
        error: E,
    },
}

/// Time that a thread stays with one chain before it looks whether another is further behind.
const SLICE: Duration = Duration::from_millis(500);
/// Time between progress reports of one chain.
const REPORT: Duration = Duration::from_millis(100);

/// What [`run`] drives: a chain with what records it.
pub trait Walk: Send {
    /// What may go wrong with records, in words.
    type Error: std::error::Error + Send;

    /// One more transition.
    ///
    /// # Errors
    /// [`RunError`]; after an observer's the chain and its records no longer agree.
    fn advance(&mut self) -> Result<(), RunError<Self::Error>>;

    /// Everything so far is to survive a crash.
    ///
    /// # Errors
    /// The observer's.
    fn checkpoint(&mut self) -> Result<(), RunError<Self::Error>>;

    /// Where it is.
    fn progress(&self) -> Progress;
}

impl<T: Target, O: Observer<T>> Walk for (Chain<T>, O) {
    type Error = O::Error;

    fn advance(&mut self) -> Result<(), RunError<O::Error>> {
        self.0.advance(&mut self.1)
    }

    fn checkpoint(&mut self) -> Result<(), RunError<O::Error>> {
        let chain = self.0.index();
        self.1
            .checkpoint(self.0.snapshot())
            .map_err(|error| RunError::Observer { chain, error })
    }

    fn progress(&self) -> Progress {
        self.0.progress()
    }
}

/// Walks, and how their run ended.
pub type Ended<W> = (Vec<W>, Result<Outcome, RunError<<W as Walk>::Error>>);

/// A walk and the time of its last checkpoint.
struct Seat<W> {
    walk: W,
    checkpointed: Instant,
    /// A record failed half-way: chain and observer no longer agree, only the last checkpoint does.
    is_broken: bool,
}

/// Runs `walks` to their end, or until `control.stop` is set. `progress` is called now and then, from any thread.
/// At the end - complete, stopped or failed - every walk that can be is checkpointed. Returns them in order.
///
/// # Errors
/// The first [`RunError`] of any walk; the others stop after their current transition.
pub fn run<W: Walk>(
    walks: Vec<W>,
    control: Control<'_>,
    progress: &(dyn Fn(Progress) + Sync),
) -> Ended<W> {
    let now = Instant::now();
    let seat = |walk| {
        Some(Seat {
            walk,
            checkpointed: now,
            is_broken: false,
        })
    };
    let seats: Vec<Option<Seat<W>>> = walks.into_iter().map(seat).collect();
    let count = seats.len();
    let waiting = Mutex::new(seats);
    let failure = Mutex::new(None);
    let failed = AtomicBool::new(false);
    let halted = || control.stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
    let lock = || {
        waiting
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    };
    let worker = || {
        while !halted() {
            let next = furthest_behind(&mut lock());
            let Some((index, mut seat)) = next else { break };
            let result = slice(&mut seat, &control, &halted, progress);
            if let Err(error) = result {
                failed.store(true, Ordering::Relaxed);
                failure
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner)
                    .get_or_insert(error);
            }
            lock()[index] = Some(seat);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..control.threads.clamp(1, count.max(1)) {
            scope.spawn(worker);
        }
        worker();
    });
    let mut error = failure
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let seats = waiting
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut done = Vec::with_capacity(count);
    for mut seat in seats.into_iter().flatten() {
        if let Err(problem) = checkpoint(&mut seat) {
            error.get_or_insert(problem);
        }
        progress(seat.walk.progress());
        done.push(seat.walk);
    }
    let complete = done.iter().all(|walk| walk.progress().is_done());
    let outcome = match error {
        Some(error) => Err(error),
        None if complete => Ok(Outcome::Complete),
        None => Ok(Outcome::Stopped),
    };
    (done, outcome)
}

/// Takes the unfinished walk with the fewest transitions out of its seat.
fn furthest_behind<W: Walk>(seats: &mut [Option<Seat<W>>]) -> Option<(usize, Seat<W>)> {
    let unfinished = seats.iter().enumerate().filter_map(|(index, seat)| {
        let progress = seat.as_ref()?.walk.progress();
        (!progress.is_done()).then_some((progress.transition, index))
    });
    let (_, index) = unfinished.min()?;
    seats[index].take().map(|seat| (index, seat))
}

/// Advances one walk for a slice of time.
fn slice<W: Walk>(
    seat: &mut Seat<W>,
    control: &Control<'_>,
    halted: &impl Fn() -> bool,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<(), RunError<W::Error>> {
    let start = Instant::now();
    let mut reported = start;
    while !seat.walk.progress().is_done() && !halted() {
        let advanced = seat.walk.advance();
        seat.is_broken = matches!(advanced, Err(RunError::Observer { .. }));
        advanced?;
        let now = Instant::now();
        if now - reported >= REPORT {
            reported = now;
            progress(seat.walk.progress());
        }
        if now - seat.checkpointed >= control.checkpoint_every {
            checkpoint(seat)?;
        }
        if now - start >= SLICE {
            break;
        }
    }
    progress(seat.walk.progress());
    Ok(())
}

fn checkpoint<W: Walk>(seat: &mut Seat<W>) -> Result<(), RunError<W::Error>> {
    if seat.is_broken {
        return Ok(());
    }
    seat.checkpointed = Instant::now();
    seat.walk.checkpoint()
}
