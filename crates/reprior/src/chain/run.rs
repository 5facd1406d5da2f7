//! Drives chains over threads, a slice of transitions at a time, the chain that is furthest behind first.
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

/// Chains with what sees them.
pub type Observed<T, O> = Vec<(Chain<T>, O)>;
/// Chains with what saw them, and how their run ended.
pub type Ended<T, O, E> = (Observed<T, O>, Result<Outcome, RunError<E>>);

/// A chain with its observer and the time of its last checkpoint.
struct Seat<T: Target, O> {
    chain: Chain<T>,
    observer: O,
    checkpointed: Instant,
    /// A record failed half-way: chain and observer no longer agree, only the last checkpoint does.
    is_broken: bool,
}

/// Runs `chains` to their end, or until `control.stop` is set. `progress` is called now and then, from any thread.
/// At the end - complete, stopped or failed - every chain that can be is checkpointed. Returns the observers in order.
///
/// # Errors
/// The first [`RunError`] of any chain; the other chains stop after their current transition.
pub fn run<T: Target, O: Observer<T>>(
    chains: Observed<T, O>,
    control: Control<'_>,
    progress: &(dyn Fn(Progress) + Sync),
) -> Ended<T, O, O::Error> {
    let now = Instant::now();
    let seats: Vec<Option<Seat<T, O>>> = chains
        .into_iter()
        .map(|(chain, observer)| {
            Some(Seat {
                chain,
                observer,
                checkpointed: now,
                is_broken: false,
            })
        })
        .collect();
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
        progress(seat.chain.progress());
        done.push((seat.chain, seat.observer));
    }
    let complete = done.iter().all(|(chain, _)| chain.is_done());
    let outcome = match error {
        Some(error) => Err(error),
        None if complete => Ok(Outcome::Complete),
        None => Ok(Outcome::Stopped),
    };
    (done, outcome)
}

/// Takes the unfinished chain with the fewest transitions out of its seat.
fn furthest_behind<T: Target, O>(seats: &mut [Option<Seat<T, O>>]) -> Option<(usize, Seat<T, O>)> {
    let unfinished = seats.iter().enumerate().filter_map(|(index, seat)| {
        let chain = &seat.as_ref()?.chain;
        (!chain.is_done()).then(|| (chain.snapshot().transition, index))
    });
    let (_, index) = unfinished.min()?;
    seats[index].take().map(|seat| (index, seat))
}

/// Advances one chain for a slice of time.
fn slice<T: Target, O: Observer<T>>(
    seat: &mut Seat<T, O>,
    control: &Control<'_>,
    halted: &impl Fn() -> bool,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<(), RunError<O::Error>> {
    let start = Instant::now();
    let mut reported = start;
    while !seat.chain.is_done() && !halted() {
        let advanced = seat.chain.advance(&mut seat.observer);
        seat.is_broken = matches!(advanced, Err(RunError::Observer { .. }));
        advanced?;
        let now = Instant::now();
        if now - reported >= REPORT {
            reported = now;
            progress(seat.chain.progress());
        }
        if now - seat.checkpointed >= control.checkpoint_every {
            checkpoint(seat)?;
        }
        if now - start >= SLICE {
            break;
        }
    }
    progress(seat.chain.progress());
    Ok(())
}

fn checkpoint<T: Target, O: Observer<T>>(seat: &mut Seat<T, O>) -> Result<(), RunError<O::Error>> {
    if seat.is_broken {
        return Ok(());
    }
    seat.checkpointed = Instant::now();
    let chain = seat.chain.index();
    seat.observer
        .checkpoint(seat.chain.snapshot())
        .map_err(|error| RunError::Observer { chain, error })
}
