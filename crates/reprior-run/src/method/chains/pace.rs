//! How far chains may go, where time decides: to a limit, or to where the furthest of them is when their time is up.
//!
//! All chains make the same number of transitions, whatever the clock says: the draws of a run that was cut short are those of a run
//! that was asked for as many.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use reprior::chain::driver::ChainDriver;
use reprior::chain::{DriverError, Progress};

/// A clock that may have been running before this process.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
    before: f64,
}

impl Clock {
    /// After so many seconds.
    pub fn after(before: f64) -> Self {
        Self {
            start: Instant::now(),
            before,
        }
    }

    /// What it shows.
    pub fn seconds(&self) -> f64 {
        self.before + self.start.elapsed().as_secs_f64()
    }
}

/// The bounds of some transitions of all chains.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Transitions that every chain makes in all, at most.
    pub limit: u64,
    /// However late it is, every chain makes so many.
    pub least: u64,
    /// Beyond those, a limit is so much of it, or a multiple more.
    pub multiple: u64,
    /// When time is up, on the clock.
    pub due: f64,
}

/// The limit that chains share.
#[derive(Debug)]
pub struct Pace {
    clock: Clock,
    bounds: Bounds,
    /// What the clock showed at the beginning, and the furthest chain's transitions then.
    begin: f64,
    from: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    limit: u64,
    /// Transitions of the furthest chain, the one that it makes now among them.
    furthest: u64,
    is_cut: bool,
    /// Seconds of every transition, chain by chain.
    seconds: Vec<Vec<f32>>,
}

impl Pace {
    /// For so many chains, the furthest of which has made so many transitions.
    pub fn new(clock: Clock, bounds: Bounds, chains: usize, furthest: u64) -> Arc<Self> {
        Arc::new(Self {
            clock,
            bounds,
            begin: clock.seconds(),
            from: furthest,
            state: Mutex::new(State {
                limit: bounds.limit,
                furthest,
                is_cut: false,
                seconds: vec![Vec::new(); chains],
            }),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a chain may make its transition number `transition`.
    fn allows(&self, transition: u64) -> bool {
        let Bounds {
            limit,
            least,
            multiple,
            due,
        } = self.bounds;
        let mut state = self.state();
        if !state.is_cut && self.clock.seconds() >= due {
            state.is_cut = true;
            let beyond = state.furthest.saturating_sub(least).div_ceil(multiple);
            state.limit = limit.min(least + beyond * multiple);
        }
        let is_allowed = transition <= state.limit;
        if is_allowed {
            state.furthest = state.furthest.max(transition);
        }
        is_allowed
    }

    fn took(&self, chain: usize, seconds: f64) {
        if let Some(own) = self.state().seconds.get_mut(chain) {
            own.push(seconds as f32);
        }
    }

    /// Transitions that every chain makes.
    pub fn limit(&self) -> u64 {
        self.state().limit
    }

    /// Transitions that every chain will have made, as far as can be told now: more than any has, until all are at the limit.
    fn expected(&self) -> u64 {
        let state = self.state();
        let (passed, time) = (
            self.clock.seconds() - self.begin,
            self.bounds.due - self.begin,
        );
        let made = state.furthest.saturating_sub(self.from) as f64;
        let projected = self.from.saturating_add((made * time / passed) as u64);
        projected
            .max(self.bounds.least)
            .max(state.furthest + 1)
            .min(state.limit)
    }

    /// Seconds that a transition of all chains takes on so many threads, of the later half of those that were made; none without any.
    pub fn seconds_of_all(&self, threads: usize) -> Option<f64> {
        let state = self.state();
        let of_chain = |seconds: &Vec<f32>| {
            let later = &seconds[seconds.len() / 2..];
            let sum: f64 = later.iter().copied().map(f64::from).sum();
            (!later.is_empty()).then(|| sum / later.len() as f64)
        };
        let all: Vec<f64> = state.seconds.iter().filter_map(of_chain).collect();
        let (count, sum) = (all.len(), all.iter().sum::<f64>());
        let of_one = (count > 0).then(|| sum / count as f64)?;
        let chains = state.seconds.len();
        Some(of_one * chains as f64 / threads.clamp(1, chains) as f64)
    }
}

/// A chain that goes as far as a [`Pace`] lets it.
pub struct Paced<W> {
    pub inner: W,
    pub pace: Arc<Pace>,
}

impl<W: ChainDriver> ChainDriver for Paced<W> {
    type Error = W::Error;

    fn advance(&mut self, halted: &(dyn Fn() -> bool + Sync)) -> Result<(), DriverError<W::Error>> {
        let Progress {
            chain, transition, ..
        } = self.inner.progress();
        if !self.pace.allows(transition + 1) {
            return Ok(());
        }
        let start = Instant::now();
        let advanced = self.inner.advance(halted);
        if self.inner.progress().transition > transition {
            self.pace.took(chain, start.elapsed().as_secs_f64());
        }
        advanced
    }

    fn checkpoint(&mut self) -> Result<(), DriverError<W::Error>> {
        self.inner.checkpoint()
    }

    fn progress(&self) -> Progress {
        Progress {
            total: self.pace.expected(),
            ..self.inner.progress()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(due: f64) -> Bounds {
        Bounds {
            limit: 100,
            least: 20,
            multiple: 2,
            due,
        }
    }

    #[test]
    fn without_hurry_the_limit_is_the_one_that_was_given() {
        let pace = Pace::new(Clock::after(0.0), bounds(1e9), 2, 0);
        assert!(pace.allows(1) && pace.allows(100) && !pace.allows(101));
        assert_eq!(pace.limit(), 100);
        assert_eq!(pace.seconds_of_all(2), None);
    }

    #[test]
    fn when_time_is_up_all_chains_come_to_where_the_furthest_is() {
        let pace = Pace::new(Clock::after(10.0), bounds(10.02), 2, 0);
        assert!(pace.allows(37));
        std::thread::sleep(std::time::Duration::from_millis(30));
        // the chain that is behind notices
        assert!(pace.allows(12));
        assert_eq!(pace.limit(), 38);
        assert!(pace.allows(38) && !pace.allows(39));
    }

    #[test]
    fn however_late_it_is_the_least_is_made() {
        let pace = Pace::new(Clock::after(10.0), bounds(1.0), 2, 3);
        assert!(pace.allows(20) && !pace.allows(21));
    }

    #[test]
    fn the_pace_is_that_of_the_later_half() {
        let pace = Pace::new(Clock::after(0.0), bounds(1e9), 2, 0);
        for seconds in [9.0, 9.0, 1.0, 1.0] {
            pace.took(0, seconds);
            pace.took(1, 3.0 * seconds);
        }
        assert_eq!(pace.seconds_of_all(2), Some(2.0));
        assert_eq!(pace.seconds_of_all(1), Some(4.0));
    }
}
