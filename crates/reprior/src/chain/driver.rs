//! Drives chains over threads, a slice of transitions at a time, the one that is furthest behind first.
//!
//! Clocks decide only when to look up (progress, checkpoints), never what is drawn.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use thiserror::Error;

use super::{Chain, Observer, Progress};
use crate::compute::with_team;
use crate::posterior::Target;

/// How a run is driven.
#[derive(Debug, Clone, Copy)]
pub struct Control<'a> {
    /// Threads; where there are more than chains, several work on one together.
    pub threads: usize,
    /// Time between checkpoints of a chain.
    pub checkpoint_every: Duration,
    /// Set from anywhere to stop after the current transitions.
    pub stop: &'a AtomicBool,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunOutcome {
    /// Every draw was made.
    Complete,
    /// Stopped on request; everything so far is checkpointed.
    Stopped,
}

/// Why a run ended early. What was drawn before is kept.
#[derive(Debug, Error)]
pub enum DriverError<E: std::error::Error> {
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
pub trait ChainDriver: Send {
    /// What may go wrong with records, in words.
    type Error: std::error::Error + Send;

    /// One more transition; none where `halted` says, while there is a long search before it, that nobody waits for it any more.
    ///
    /// # Errors
    /// [`DriverError`]; after an observer's the chain and its records no longer agree.
    fn advance(
        &mut self,
        halted: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), DriverError<Self::Error>>;

    /// Everything so far is to survive a crash.
    ///
    /// # Errors
    /// The observer's.
    fn checkpoint(&mut self) -> Result<(), DriverError<Self::Error>>;

    /// Where it is.
    fn progress(&self) -> Progress;
}

impl<T: Target, O: Observer<T>> ChainDriver for (Chain<T>, O) {
    type Error = O::Error;

    fn advance(&mut self, halted: &(dyn Fn() -> bool + Sync)) -> Result<(), DriverError<O::Error>> {
        self.0.advance(&mut self.1, halted)
    }

    fn checkpoint(&mut self) -> Result<(), DriverError<O::Error>> {
        if self.0.is_torn() {
            return Ok(());
        }
        let chain = self.0.index();
        self.1
            .checkpoint(self.0.snapshot())
            .map_err(|error| DriverError::Observer { chain, error })
    }

    fn progress(&self) -> Progress {
        self.0.progress()
    }
}

/// The drivers, and how their run ended.
pub type Driven<W> = (
    Vec<W>,
    Result<RunOutcome, DriverError<<W as ChainDriver>::Error>>,
);

/// A driver and the time of its last checkpoint.
struct Slot<W> {
    driver: W,
    checkpointed: Instant,
    /// A record failed half-way: chain and observer no longer agree, only the last checkpoint does.
    is_broken: bool,
}

/// Runs `chains` to their end, or until `control.stop` is set. `progress` is called now and then, from any thread.
/// At the end - complete, stopped or failed - every driver that can be is checkpointed. Returns them in order.
///
/// # Errors
/// The first [`DriverError`] of any driver; the others stop after their current transition.
pub fn run<W: ChainDriver>(
    chains: Vec<W>,
    control: Control<'_>,
    progress: &(dyn Fn(Progress) + Sync),
) -> Driven<W> {
    let now = Instant::now();
    let slot = |driver| {
        Some(Slot {
            driver,
            checkpointed: now,
            is_broken: false,
        })
    };
    let slots: Vec<Option<Slot<W>>> = chains.into_iter().map(slot).collect();
    let count = slots.len();
    let waiting = Mutex::new(slots);
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
            let Some((index, mut slot)) = next else { break };
            let result = slice(&mut slot, &control, &halted, progress);
            if let Err(error) = result {
                failed.store(true, Ordering::Relaxed);
                failure
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner)
                    .get_or_insert(error);
            }
            lock()[index] = Some(slot);
        }
    };
    let workers = control.threads.clamp(1, count.max(1));
    let (each, more) = (control.threads / workers, control.threads % workers);
    let with_its_team = |index: usize| with_team(each + usize::from(index < more), worker);
    std::thread::scope(|scope| {
        for index in 1..workers {
            let with_its_team = &with_its_team;
            scope.spawn(move || with_its_team(index));
        }
        with_its_team(0);
    });
    let mut error = failure
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let slots = waiting
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut done = Vec::with_capacity(count);
    for mut slot in slots.into_iter().flatten() {
        if let Err(problem) = checkpoint(&mut slot) {
            error.get_or_insert(problem);
        }
        progress(slot.driver.progress());
        done.push(slot.driver);
    }
    let complete = done.iter().all(|driver| driver.progress().is_done());
    let outcome = match error {
        Some(error) => Err(error),
        None if complete => Ok(RunOutcome::Complete),
        None => Ok(RunOutcome::Stopped),
    };
    (done, outcome)
}

/// Takes the unfinished driver with the fewest transitions out of its slot.
fn furthest_behind<W: ChainDriver>(slots: &mut [Option<Slot<W>>]) -> Option<(usize, Slot<W>)> {
    let unfinished = slots.iter().enumerate().filter_map(|(index, slot)| {
        let progress = slot.as_ref()?.driver.progress();
        (!progress.is_done()).then_some((progress.transition, index))
    });
    let (_, index) = unfinished.min()?;
    slots[index].take().map(|slot| (index, slot))
}

/// Advances one driver for a slice of time.
fn slice<W: ChainDriver>(
    slot: &mut Slot<W>,
    control: &Control<'_>,
    halted: &(impl Fn() -> bool + Sync),
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<(), DriverError<W::Error>> {
    let start = Instant::now();
    let mut reported = start;
    while !slot.driver.progress().is_done() && !halted() {
        let advanced = slot.driver.advance(halted);
        slot.is_broken = matches!(advanced, Err(DriverError::Observer { .. }));
        advanced?;
        let now = Instant::now();
        if now - reported >= REPORT {
            reported = now;
            progress(slot.driver.progress());
        }
        if now - slot.checkpointed >= control.checkpoint_every {
            checkpoint(slot)?;
        }
        if now - start >= SLICE {
            break;
        }
    }
    progress(slot.driver.progress());
    Ok(())
}

fn checkpoint<W: ChainDriver>(slot: &mut Slot<W>) -> Result<(), DriverError<W::Error>> {
    if slot.is_broken {
        return Ok(());
    }
    slot.checkpointed = Instant::now();
    slot.driver.checkpoint()
}
