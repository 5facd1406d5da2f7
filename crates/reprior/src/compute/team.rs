//! Threads that wait awake for the next piece of work: an update of a small network is a few milliseconds of half a dozen phases,
//! between which a thread that sleeps takes longer to wake up than its part of a phase.
//!
//! Workers spin for [`PATIENCE`] and sleep after that; a team of one has none. Work is shared piece by piece, and which thread
//! does what is left open: pieces must not depend on it. Whoever is asleep when the last piece is taken is not waited for.
//!
//! A chain's thread has a team of its own where there are more threads than chains ([`with_team`]), and kernels whose work is worth it
//! [`spread`] it over the team of the thread that calls them. Pieces follow from shapes alone, and each number is made by one piece, so
//! that it has the same bits whoever makes it.
#![allow(unsafe_code)] // a job that the workers see for as long as `run` lasts; tested below

use std::cell::Cell;
use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// How long a worker waits awake.
const PATIENCE: Duration = Duration::from_micros(200);

/// Operations that are worth a thread: some microseconds, several times what it takes to meet. A large team leaves short work to a few.
const WORTHWHILE: usize = 1 << 19;

thread_local! {
    /// Whoever helps this thread.
    static LENT: Cell<Option<Team>> = const { Cell::new(None) };
}

/// Does `work`, for whose kernels there are so many threads, this one included; fewer where the system has no more.
pub fn with_team<T>(threads: usize, work: impl FnOnce() -> T) -> T {
    if threads < 2 {
        return work();
    }
    let before = LENT.replace(Team::new(threads).ok());
    let result = work();
    LENT.set(before);
    result
}

/// How many threads [`spread`] has for so many operations.
pub(crate) fn hands(operations: usize) -> usize {
    let wanted = operations / WORTHWHILE;
    if wanted < 2 {
        return 1;
    }
    let team = LENT.take();
    let threads = team.as_ref().map_or(1, Team::threads);
    LENT.set(team);
    threads.min(wanted)
}

/// Has every item, of so many operations together, worked on, by this thread and its team if it has one and there is enough to do.
/// Items of items are worked on by the thread that has the item.
pub(crate) fn spread<T: Send>(
    operations: usize,
    items: impl Iterator<Item = T> + Send,
    work: impl Fn(T) + Sync,
) {
    let hands = hands(operations);
    let team = if hands > 1 { LENT.take() } else { None };
    let Some(mut team) = team else {
        return items.for_each(work);
    };
    let queue = Mutex::new(items);
    team.run(hands, &|| {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(item) = next else { break };
            work(item);
        }
    });
    LENT.set(Some(team));
}

/// A job, without its lifetime: [`Team::run`] does not return before every worker has left it, and none finds it after that.
#[derive(Clone, Copy)]
struct Job {
    work: *const (dyn Fn() + Sync + 'static),
    /// Workers that it is for, at most.
    workers: usize,
}

// SAFETY: what it points to is `Sync`
unsafe impl Send for Job {}

#[derive(Default)]
struct TeamState {
    /// How many jobs there have been; the latest.
    generation: AtomicUsize,
    job: Mutex<Option<Job>>,
    /// Workers that have taken the latest and not left it yet.
    busy: AtomicUsize,
    /// Workers that sleep, or are about to.
    asleep: AtomicUsize,
    wake: Condvar,
    has_panicked: AtomicBool,
    is_over: AtomicBool,
}

/// Threads that work together.
pub(crate) struct Team {
    shared: Arc<TeamState>,
    workers: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for Team {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Team of {}", self.threads())
    }
}

impl TeamState {
    fn lock(&self) -> MutexGuard<'_, Option<Job>> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a job after number `seen`, which counts the caller as busy; its number and itself, nothing if there will be no more.
    fn next(&self, mut seen: usize) -> Option<(usize, Job)> {
        loop {
            let job = self.wait(seen);
            if self.is_over.load(Ordering::SeqCst) {
                return None;
            }
            seen = self.generation.load(Ordering::SeqCst);
            // what is over already, or has enough of them, is not looked at
            if let Some(job) = *job
                && self.busy.load(Ordering::SeqCst) < job.workers
            {
                self.busy.fetch_add(1, Ordering::SeqCst);
                return Some((seen, job));
            }
        }
    }

    /// Waits for another generation than the one that was seen.
    fn wait(&self, seen: usize) -> MutexGuard<'_, Option<Job>> {
        let start = Instant::now();
        let mut spins = 0_u32;
        while self.generation.load(Ordering::Acquire) == seen {
            spins += 1;
            spin_loop();
            // the clock is looked at now and then
            if spins.is_multiple_of(64) && start.elapsed() > PATIENCE {
                break;
            }
        }
        let mut job = self.lock();
        if self.generation.load(Ordering::SeqCst) == seen {
            self.asleep.fetch_add(1, Ordering::SeqCst);
            while self.generation.load(Ordering::SeqCst) == seen {
                job = self.wake.wait(job).unwrap_or_else(PoisonError::into_inner);
            }
            self.asleep.fetch_sub(1, Ordering::SeqCst);
        }
        job
    }

    /// Announces what is in `job` now.
    fn announce(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) > 0 {
            // nobody is between looking and falling asleep
            drop(self.lock());
            self.wake.notify_all();
        }
    }

    fn work(&self) {
        let mut seen = 0;
        while let Some((generation, job)) = self.next(seen) {
            seen = generation;
            // SAFETY: `run` keeps the job alive until `busy` is 0
            let result = catch_unwind(AssertUnwindSafe(|| unsafe { (*job.work)() }));
            if result.is_err() {
                self.has_panicked.store(true, Ordering::SeqCst);
            }
            self.busy.fetch_sub(1, Ordering::Release);
        }
    }
}

impl Team {
    /// With the calling thread `threads` of them (0 counts as 1).
    ///
    /// # Errors
    /// The system has no more threads.
    pub fn new(threads: usize) -> std::io::Result<Self> {
        let mut team = Self {
            shared: Arc::default(),
            workers: Vec::new(),
        };
        for _ in 1..threads.max(1) {
            let shared = Arc::clone(&team.shared);
            let worker = Builder::new().spawn(move || shared.work())?;
            team.workers.push(worker);
        }
        Ok(team)
    }

    /// How many, the calling thread included.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Has every item worked on, by whichever thread is free.
    pub fn share<T: Send>(&mut self, items: Vec<T>, work: impl Fn(T) + Sync) {
        if self.workers.is_empty() || items.len() < 2 {
            return items.into_iter().for_each(work);
        }
        let queue = Mutex::new(items.into_iter());
        self.run(self.threads(), &|| {
            loop {
                let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some(item) = next else { break };
                work(item);
            }
        });
    }

    /// Runs `job` on this thread and on others that are awake in time, once or more often, so many at a time at most, and returns when all
    /// are done.
    fn run(&mut self, hands: usize, job: &(dyn Fn() + Sync)) {
        let shared = &*self.shared;
        // SAFETY: the lifetime is left out, but nobody uses the job after this function: `busy` is 0 then, panics included
        let erased = unsafe {
            std::mem::transmute::<*const (dyn Fn() + Sync + '_), *const (dyn Fn() + Sync + 'static)>(
                job,
            )
        };
        *shared.lock() = Some(Job {
            work: erased,
            workers: hands - 1,
        });
        shared.announce();
        let own = catch_unwind(AssertUnwindSafe(job));

        // from here on nobody takes it
        *shared.lock() = None;
        let mut spins = 0_u32;
        while shared.busy.load(Ordering::Acquire) > 0 {
            spins = spins.wrapping_add(1);
            if spins.is_multiple_of(1024) {
                std::thread::yield_now();
            } else {
                spin_loop();
            }
        }
        let others_panicked = shared.has_panicked.swap(false, Ordering::SeqCst);
        if let Err(panic) = own {
            resume_unwind(panic);
        }
        assert!(!others_panicked, "a thread of a team panicked");
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.shared.announce();
        for worker in self.workers.drain(..) {
            // a worker's panic was passed on by `run`
            let _ = worker.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the same work on one thread, with pauses in which workers fall asleep.
    #[test]
    fn every_item_is_worked_on_once() {
        let mut team = Team::new(3).unwrap();
        assert_eq!(team.threads(), 3);
        for round in 0..2000_usize {
            let mut values: Vec<usize> = (0..round % 17).collect();
            team.share(values.iter_mut().collect(), |value| *value += round);
            assert_eq!(values, (round..round + round % 17).collect::<Vec<_>>());
            if round % 500 == 0 {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        let mut alone = Team::new(0).unwrap();
        let mut values = [1, 2];
        alone.share(values.iter_mut().collect(), |value: &mut i32| *value *= 3);
        assert_eq!(values, [3, 6]);
    }

    /// Each piece on its own, nested ones by whoever has the outer one; a team that panicked is given up.
    #[test]
    fn what_is_spread_is_done_once_with_and_without_a_team() {
        let square = |operations: usize| {
            let mut values: Vec<usize> = (0..100).collect();
            spread(operations, values.chunks_mut(7), |chunk| {
                spread(usize::MAX, chunk.iter_mut(), |value| *value *= *value);
            });
            values
        };
        let expected: Vec<usize> = (0..100).map(|value| value * value).collect();
        with_team(3, || {
            for _ in 0..2000 {
                assert_eq!(square(usize::MAX), expected);
            }
            assert_eq!(square(0), expected);
            let failed = catch_unwind(|| spread(usize::MAX, 0..9, |item| assert!(item < 5)));
            assert!(failed.is_err());
            assert_eq!(square(usize::MAX), expected);
        });
        assert_eq!(square(usize::MAX), expected);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_team_goes_on() {
        let mut team = Team::new(2).unwrap();
        for bad in 0..4 {
            let failed = catch_unwind(AssertUnwindSafe(|| {
                team.share((0..4).collect(), |item: usize| assert!(item < bad));
            }));
            assert!(failed.is_err());
        }
        // whoever panicked, what follows is not blamed for it
        let sum = AtomicUsize::new(0);
        team.share((0..100).collect(), |item| {
            sum.fetch_add(item, Ordering::SeqCst);
        });
        assert_eq!(sum.into_inner(), 4950);
    }
}
