//! Chains whose lengths are settled while they run: by a limit of time (`--minutes`), and by what their draws say (`--until`).
//!
//! Warm-up has a third of the time, at most as many transitions as the settings have. What it took says how many draws there is time
//! for. From then on the run's settings have these numbers, and nothing of time: a run from them has the same draws. If the draws take
//! longer than the warm-up made expect, or say enough before, the run ends with those that all chains have.

use std::sync::Arc;

use reprior::chain::driver::ChainDriver;
use reprior::diagnostics::Spread;
use reprior::model::Model;
use reprior::sampler::Method;
use reprior_io::run::{DrawStore, NextLayout, checkpoint};

use super::checkpoint::read_document;
use super::pace::{Bounds, Clock, Pace, Paced};
use super::plan;
use super::run::{RecordedChains, make_chains, write_moments_of};
use crate::failure::Failure;
use crate::method::{MethodFamily, RunContext};
use crate::problem::Problem;
use crate::read::{Rates, Recorded};
use crate::record::{Keeping, traces_of};
use crate::settings::{CONFIG, FIRST_LOOK, SettledKeeping, Until};
use crate::stored::Stored;
use crate::words::{duration, number};

/// The part of a run's time that is for what comes before its chains and after them, and seconds of it at most: reading and choosing,
/// diagnostics, and rows that are left out.
const ASIDE_SHARE: f64 = 0.1;
const MOST_ASIDE: f64 = 6.0;
/// The part of the chains' time that warm-up may take.
const WARMUP_SHARE: f64 = 1.0 / 3.0;
/// However little time there is: transitions of warm-up, and draws.
pub(super) const FEWEST_WARMUP: u64 = 16;
pub(super) const FEWEST_DRAWS: u64 = 10;
/// Draws of each chain at most where time is given; and where they go on until they say enough, which is given up for want of time, not of room.
const MOST_DRAWS: u64 = 5000;
const MOST_DRAWS_UNTIL: u64 = 20_000;

pub(super) const fn most_draws(has_bounds: bool) -> u64 {
    match has_bounds {
        true => MOST_DRAWS_UNTIL,
        false => MOST_DRAWS,
    }
}

/// How many times as long as it may take a run has to be before it says so.
const NOTICEABLY: f64 = 1.2;

/// How much more draws there are at each look at what they say.
const LOOK_FACTOR: f64 = 1.5;

/// A run against the clock.
pub struct Timed<'a, R> {
    problem: &'a mut Problem,
    method: Method,
    model: &'a Arc<Model<R>>,
    place: &'a RunContext<'a>,
    clock: Clock,
    /// Seconds that the run may take, and of these, on the clock, its chains.
    given: f64,
    seconds: f64,
    until: Option<Until>,
}

impl<'a, R: Stored> Timed<'a, R> {
    /// A run whose settings have a limit of time, or that is to go on for more; none otherwise.
    ///
    /// # Errors
    /// A damaged checkpoint.
    pub fn new(
        problem: &'a mut Problem,
        method: Method,
        model: &'a Arc<Model<R>>,
        place: &'a RunContext<'a>,
    ) -> Result<Option<Self>, Failure> {
        let own = &problem.settings.run;
        let more = place.options.more;
        let (minutes, until, before) = match (more, own.minutes) {
            (Some(more), _) => (more.minutes(), more.until, 0.0),
            (None, Some(minutes)) => (minutes, own.until, seconds_before(problem, place)?),
            (None, None) => return Ok(None),
        };
        Ok(Some(Self {
            problem,
            method,
            model,
            place,
            clock: Clock::after(before),
            given: 60.0 * minutes,
            seconds: 60.0 * minutes - (60.0 * minutes * ASIDE_SHARE).min(MOST_ASIDE),
            until,
        }))
    }

    /// To the end, from the checkpoints that there are.
    ///
    /// # Errors
    /// A failed run, whose draws are kept; a run that was stopped.
    pub fn sample(mut self, store: DrawStore) -> Result<(), Failure> {
        let mut planned = self.problem.settings.schedule();
        let threads = self.place.options.threads();
        let chains = self.chains(&store)?;
        self.place.begin(&chains)?;
        // the warm-up
        let arrival = self.problem.settings.sampler.arrival.unwrap_or(0);
        let least = FEWEST_WARMUP.max(2 * arrival).min(planned.warmup);
        let furthest = furthest(&chains);
        let has_draws = furthest > planned.warmup;
        let (warmup, pace) = match has_draws {
            true => {
                drop(chains);
                (planned.warmup, self.pace_so_far(furthest)?)
            }
            false => {
                let bounds = Bounds {
                    limit: planned.warmup,
                    least,
                    multiple: 1,
                    due: self.seconds * WARMUP_SHARE,
                };
                let (chains, pace) = self.advance(chains, bounds, threads, 0)?;
                drop(chains);
                (pace.limit(), pace.seconds_of_all(threads))
            }
        };
        // as many draws as there is time for
        let left = (self.seconds - self.clock.seconds()).max(0.0);
        let made = furthest.saturating_sub(warmup).div_ceil(planned.thin);
        if self.place.options.more.is_some() {
            planned.draws = planned
                .draws
                .max(made.saturating_add(most_draws(self.until.is_some())));
        }
        let fewest = self.fewest(made).min(planned.draws.max(made));
        let draws = match pace {
            Some(seconds) => {
                let fitting = left / (seconds * planned.thin as f64).max(1e-9);
                made.saturating_add(fitting as u64)
                    .clamp(fewest, planned.draws.max(made))
            }
            None => planned.draws,
        };
        // as it is now: laying out the store, on a slow disk, is no reason to call these the fewest
        let more = (draws.saturating_sub(made) * planned.thin) as f64;
        let expected = pace.map(|seconds| self.clock.seconds() + seconds * more);
        let store = self.settle(store, [warmup, draws], has_draws)?;
        if [warmup, draws] != [planned.warmup, planned.draws] {
            let note = lengths(self.given, [warmup, draws], expected);
            self.place.options.watcher.note(&note);
        }
        let (chains, made) = self.draw(&store, [warmup, made, draws])?;
        self.place.end();
        if made == draws {
            return write_moments_of(chains, &store);
        }
        drop(chains);
        let store = self.settle(store, [warmup, made], true)?;
        write_moments_of(self.chains(&store)?, &store)
    }

    /// Draws that every chain has at the end, however little time there is, if it has so many now.
    fn fewest(&self, made: u64) -> u64 {
        match self.place.options.more {
            Some(_) => made.saturating_add(FEWEST_DRAWS),
            None => made.max(FEWEST_DRAWS),
        }
    }

    /// Draws up to `draws` of each chain, fewer if time is up or they say enough; the number that every chain has.
    fn draw(
        &self,
        store: &DrawStore,
        [warmup, made, draws]: [u64; 3],
    ) -> Result<(RecordedChains<R>, u64), Failure> {
        let thin = self.problem.settings.schedule().thin;
        let threads = self.place.options.threads();
        let mut chains = self.chains(store)?;
        let mut look = match self.until {
            Some(_) => FIRST_LOOK.max(made + 1),
            None => draws,
        };
        loop {
            let end = look.min(draws);
            let bounds = Bounds {
                limit: warmup + end * thin,
                least: warmup + self.fewest(made).min(end) * thin,
                multiple: thin,
                due: self.seconds,
            };
            let planned = warmup + draws * thin;
            let (advanced, pace) = self.advance(chains, bounds, threads, planned)?;
            chains = advanced;
            let reached = (pace.limit() - warmup) / thin;
            let is_late = reached < end || self.clock.seconds() >= self.seconds;
            let is_enough = match self.until {
                Some(until) => self.is_reached(until, reached, [is_late, end == draws])?,
                None => false,
            };
            if is_late || is_enough || end == draws {
                return Ok((chains, reached));
            }
            look = ((look as f64) * LOOK_FACTOR) as u64;
        }
    }

    /// Whether the draws so far say enough; says so, or at the end, when it is too late or all draws are made, that they do not.
    fn is_reached(
        &self,
        until: Until,
        draws: u64,
        [is_late, are_all_made]: [bool; 2],
    ) -> Result<bool, Failure> {
        let run = Recorded::of(self.place.folder.files())?;
        let found = run.predictions(&Rates::UNIT)?;
        let all = match found.ess {
            Some(ess) => vec![Some(ess), found.row_noise],
            // without test rows the weights have to do
            None => vec![run.projections(&Rates::UNIT)?],
        };
        let all: Vec<_> = all.into_iter().flatten().collect();
        if all.is_empty() {
            return Ok(false);
        }
        let rhat = Spread::of(all.iter().map(|ess| ess.rhat_max)).max;
        let fewest = Spread::of(all.iter().map(|ess| ess.min.min(ess.tail_min))).min;
        let is_reached = until.is_reached(rhat, fewest);
        if is_reached || is_late || are_all_made {
            let so_far = format!(
                "R-hat is {} and there are {} effective draws, after {draws} draws of each chain",
                number(rhat),
                number(fewest)
            );
            self.place.options.watcher.note(&match (is_reached, is_late) {
                (true, _) => format!("{until} is reached: {so_far}"),
                (false, true) => format!("{until} is not reached, and the time is up: {so_far}"),
                (false, false) => format!(
                    "{until} is not reached: {so_far}, which are all that were to be made; resume --minutes makes more"
                ),
            });
        }
        Ok(is_reached)
    }

    /// The chains, from their checkpoints where they have any.
    fn chains(&self, store: &DrawStore) -> Result<RecordedChains<R>, Failure> {
        let checkpoints = self.place.checkpoints(store.chains())?;
        make_chains(self.problem, self.method, self.model, &checkpoints, store)
    }

    /// Runs chains within bounds, which may be on their way to more, and says at what pace.
    fn advance(
        &self,
        chains: RecordedChains<R>,
        bounds: Bounds,
        threads: usize,
        planned: u64,
    ) -> Result<(RecordedChains<R>, Arc<Pace>), Failure> {
        let pace = Pace::new(self.clock, bounds, chains.len(), furthest(&chains));
        let paced = chains.into_iter().map(|inner| Paced {
            inner,
            pace: Arc::clone(&pace),
        });
        let at_least = if bounds.limit < planned { planned } else { 0 };
        let advanced = self.place.advance(paced.collect(), threads, at_least)?;
        let chains = advanced.into_iter().map(|paced| paced.inner).collect();
        Ok((chains, pace))
    }

    /// Writes lengths into the settings, of the run and of its folder, and lays its draws out for them.
    fn settle(
        &mut self,
        store: DrawStore,
        [warmup, draws]: [u64; 2],
        has_draws: bool,
    ) -> Result<DrawStore, Failure> {
        let checkpoints = self.place.checkpoints(store.chains())?;
        let keeping = Keeping::new(&self.problem.settings);
        let traces = traces_of(self.problem).map(|traces| traces.count());
        let asked = self.problem.asked.clone();
        let settings = &mut self.problem.settings;
        settings.run.minutes = None;
        (settings.run.warmup, settings.run.draws) = (Some(warmup), Some(draws));
        if has_draws {
            let record = &mut settings.record;
            record.settled = Some(SettledKeeping {
                positions_every: keeping.positions_every,
                predictions_every: keeping.predictions_every,
                weights_every: keeping.weights_every,
                traces,
            });
            record.keep = Some(keeping.positions(draws));
            record.keep_predictions = Some(keeping.predictions(draws));
        } else {
            settings.record = asked.unwrap_or_else(|| settings.record.clone());
            super::Chains(self.method).complete(self.problem)?;
        }
        self.problem.settings.run.until = None;
        let schema = plan::plan(self.problem, self.method)?.schema;
        let config = self.problem.settings.to_toml()?;
        let folder = self.place.folder;
        let cursors: Vec<_> = checkpoints
            .iter()
            .map(|checkpoint| checkpoint.as_ref().map(|own| own.cursor().clone()))
            .map(Option::unwrap_or_default)
            .collect();
        if store.matches(&schema).map_err(Failure::run)? {
            folder.write_text(CONFIG, &config).map_err(Failure::run)?;
            return Ok(store);
        }
        drop(store);
        let next = NextLayout::write(folder, &schema, &cursors).map_err(Failure::run)?;
        folder.write_text(CONFIG, &config).map_err(Failure::run)?;
        next.take_over(folder).map_err(Failure::run)?;
        DrawStore::open(folder).map_err(Failure::run)
    }

    /// Seconds of a transition of all chains, as the run has made them so far; rather too few, since the search for a mode and the first steps of
    /// warm-up take longer than others, and what is too many in the end is cut.
    fn pace_so_far(&self, furthest: u64) -> Result<Option<f64>, Failure> {
        let seconds = seconds_before(self.problem, self.place)?;
        Ok((furthest > 0 && seconds > 0.0).then(|| seconds / (3.0 * furthest as f64)))
    }
}

/// What the run says of its lengths, which it expects to have made after so many seconds of those that were given.
fn lengths(given: f64, [warmup, draws]: [u64; 2], expected: Option<f64>) -> String {
    let each = format!("{warmup} transitions of warm-up and {draws} draws of each chain");
    match expected.filter(|&seconds| seconds > given * NOTICEABLY) {
        Some(seconds) => format!(
            "{} are not enough: {each}, the fewest that a run has, take about {}; --minutes gives more",
            duration(given),
            duration(seconds)
        ),
        None => format!(
            "in {} there is room for {each}; --minutes gives more",
            duration(given)
        ),
    }
}

/// Transitions of the chain that is furthest.
fn furthest<W: ChainDriver>(chains: &[W]) -> u64 {
    let all = chains.iter().map(|chain| chain.progress().transition);
    all.max().unwrap_or(0)
}

/// Seconds that the run has taken in earlier processes.
fn seconds_before(problem: &Problem, place: &RunContext<'_>) -> Result<f64, Failure> {
    let mut seconds: f64 = 0.0;
    for chain in 0..problem.settings.schedule().chains as u64 {
        let found = checkpoint::load(place.folder.files(), chain).map_err(Failure::run)?;
        if let Some(found) = found {
            seconds = seconds.max(read_document(&found).map_err(Failure::run)?.seconds);
        }
    }
    Ok(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_will_take_longer_says_how_long() {
        let lengths = |expected| lengths(60.0, [16, 10], expected);
        assert_eq!(
            lengths(Some(170.0)),
            "1 min 0 s are not enough: 16 transitions of warm-up and 10 draws of each chain, the fewest that a run has, take about \
             2 min 50 s; --minutes gives more"
        );
        let enough = "in 1 min 0 s there is room for 16 transitions of warm-up and 10 draws of each chain; --minutes gives more";
        assert_eq!([lengths(Some(65.0)), lengths(None)], [enough, enough]);
    }
}
