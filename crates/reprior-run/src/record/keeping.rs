//! Which draws a run keeps whole: positions for `predict`, predictions for the test rows, weights.
//!
//! Unless the user says how many, positions and predictions are thinned evenly so that the run folder stays within a budget
//! ([`DEFAULT_MEGABYTES`], or `--keep-mb`). What every run needs comes first: targets, statistics, projections, moments.
//! Where predictions are thinned, some of them ([`Traces`]) are recorded at every draw, for R-hat and effective sample
//! sizes; metrics are then of the recorded draws, all test rows of each. Log-likelihoods of training rows are recorded at every draw, for as many rows
//! as half of the budget has room for.

use std::fs;
use std::path::Path;

use reprior_io::run::DrawReader;

use super::groups::{LOG_LIKELIHOOD, POSITIONS, PREDICTIONS, TRACES as TRACED};
use super::scored;
use crate::failure::Failure;
use crate::problem::Problem;
use crate::settings::{FIRST_LOOK, MethodName, Settings};
use crate::words::bytes;

/// Megabytes (of 10⁶ bytes) of a run folder unless told otherwise.
pub const DEFAULT_MEGABYTES: u64 = 20;
/// Positions of each chain that are kept at most unless told otherwise: beyond, predictions hardly change.
const MOST_POSITIONS: u64 = 100;
/// Positions of all chains that `predict` should have, where the readout is integrated out given each ...
const FEWEST_MARGINAL: u64 = 16;
/// ... and where each is one function.
const FEWEST_POSITIONS: u64 = 32;
/// Draws of all chains that metrics should be of.
const FEWEST_PREDICTIONS: u64 = 100;
/// Bytes that those fewest positions or predictions may take, if the default budget is too small for them.
const MOST_BYTES: u64 = 256_000_000;
/// Training rows whose log-likelihoods should be recorded.
const FEWEST_SCORED: u64 = 100;
/// Predictions that are recorded at every draw where not all are: at most, and at least.
const TRACES: [u64; 2] = [500, 100];

/// How often draws are kept whole, in draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeping {
    /// Every how many draws a position is kept.
    pub positions_every: u64,
    /// Every how many draws the predictions for all test rows are recorded.
    pub predictions_every: u64,
    /// Every how many draws whole weights are kept, if they are.
    pub weights_every: Option<u64>,
}

impl Keeping {
    /// The spacing that the settings ask for; all draws where they leave something open.
    pub fn new(settings: &Settings) -> Self {
        let draws = settings.schedule().draws;
        let every = |count: u64| draws.div_ceil(count.clamp(1, draws.max(1))).max(1);
        let record = &settings.record;
        if let Some(settled) = record.settled {
            return Self {
                positions_every: settled.positions_every.max(1),
                predictions_every: settled.predictions_every.max(1),
                weights_every: settled.weights_every.map(|every| every.max(1)),
            };
        }
        Self {
            positions_every: every(record.keep.unwrap_or(draws)),
            predictions_every: every(record.keep_predictions.unwrap_or(draws)),
            weights_every: (record.keep_weights > 0).then(|| every(record.keep_weights)),
        }
    }

    /// How many positions of each chain of `draws` draws are kept.
    pub fn positions(self, draws: u64) -> u64 {
        draws.div_ceil(self.positions_every)
    }

    /// How many draws' predictions of each chain of `draws` draws are recorded.
    pub fn predictions(self, draws: u64) -> u64 {
        draws.div_ceil(self.predictions_every)
    }
}

/// Predictions that are recorded at every draw, where not all are: evenly spread over rows and outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traces {
    /// Rows times outputs.
    all: u64,
    count: u64,
}

impl Traces {
    /// Of so many predictions (rows times outputs), so many.
    pub fn of(all: u64, count: u64) -> Self {
        let count = count.min(all);
        Self { all, count }
    }

    /// What a run records, if it does: a quarter of the budget, as far as the bounds allow.
    pub fn new(settings: &Settings, test_rows: usize, outputs: usize) -> Option<Self> {
        let schedule = settings.schedule();
        let keeping = Keeping::new(settings);
        if test_rows == 0 || keeping.predictions_every == 1 {
            return None;
        }
        if let Some(settled) = settings.record.settled {
            return settled
                .traces
                .map(|count| Self::of((test_rows * outputs) as u64, count));
        }
        let budget = megabytes(settings).saturating_mul(1_000_000) / 4;
        let of_one = schedule
            .draws
            .saturating_mul(8)
            .saturating_mul(schedule.chains as u64);
        let [most, least] = TRACES;
        let count = (budget / of_one.max(1)).clamp(least, most);
        Some(Self::of((test_rows * outputs) as u64, count))
    }

    /// How many.
    pub fn count(self) -> u64 {
        self.count
    }

    /// Which: row times the number of outputs plus output.
    pub fn positions(self) -> impl Iterator<Item = usize> {
        (0..self.count).map(move |k| (k * self.all / self.count) as usize)
    }
}

/// The budget in use.
pub fn megabytes(settings: &Settings) -> u64 {
    settings.record.keep_mb.unwrap_or(DEFAULT_MEGABYTES)
}

/// Bytes of what a run records, before it is decided how often.
#[derive(Debug, Clone, Copy, Default)]
pub struct Load {
    /// Of a position.
    pub position: u64,
    /// Of one draw's predictions for all test rows.
    pub prediction: u64,
    /// Of one draw of one trace of predictions.
    pub trace: u64,
    /// Of everything that does not depend on the keeping, whole weights left out: they are on top of the budget.
    pub rest: u64,
    /// Whether the readout is integrated out given a position.
    pub is_marginal: bool,
    pub test_rows: usize,
    pub outputs: usize,
    /// Training rows whose log-likelihoods can be recorded.
    pub scored_rows: u64,
}

/// Bytes of a run folder's metadata and settings, roughly.
const METADATA_BYTES: usize = 200_000;

impl Load {
    /// Of a problem whose positions have so many numbers, and whose network so many parameters; with so many bytes more of each chain.
    pub fn of(problem: &Problem, [position, parameters]: [usize; 2], of_each_chain: u64) -> Self {
        let (settings, description) = (&problem.settings, &problem.description);
        let real = settings.sampler.precision.bytes();
        let (rows, outputs) = (description.test_rows, description.output_names.len());
        let kind = problem.kind();
        let number = if description.is_classification { 4 } else { 8 };
        let spread = match kind.has_variance() {
            true => kind.spread(outputs),
            false => 0,
        };
        let schedule = settings.schedule();
        // projections, statistics and a few numbers more of each draw; moments of the weights
        let draws = schedule.draws.saturating_add(schedule.warmup_records());
        let of_draws = draws.saturating_mul(8 * (settings.record.projections as u64 + 16));
        let of_chain = of_draws.saturating_add((parameters as u64).saturating_mul(8));
        let targets = 8 * outputs * (description.train_rows + rows);
        Self {
            position: real.saturating_mul(position) as u64,
            prediction: (number * rows * (outputs + spread)) as u64,
            trace: match settings.model.likelihood().has_row_noise() {
                true => 2 * number,
                false => number,
            } as u64,
            rest: of_chain
                .saturating_add(of_each_chain)
                .saturating_mul(schedule.chains as u64)
                .saturating_add((targets + METADATA_BYTES) as u64),
            is_marginal: false,
            test_rows: rows,
            outputs,
            scored_rows: {
                let available = scored::available(settings, description);
                match settings.sampler.method() {
                    MethodName::Minibatch(_) => available.min(scored::MOST_EVALUATED) as u64,
                    _ => available as u64,
                }
            },
        }
    }

    /// Writes the number of rows whose log-likelihoods are recorded into the settings, where the user has not given it, and gives their bytes.
    fn resolve_scored(self, settings: &mut Settings) -> u64 {
        let schedule = settings.schedule();
        let of_row = 8_u64
            .saturating_mul(schedule.draws)
            .saturating_mul(schedule.chains as u64);
        let record = &settings.record;
        // a run of a version that knew none of it goes on without
        let is_earlier =
            record.keep_mb.is_some() && record.keep.is_some() && record.keep_predictions.is_some();
        if record.keep_log_likelihood.is_none() && !is_earlier {
            let budget = megabytes(settings).saturating_mul(1_000_000) / 2;
            let least = match record.keep_mb {
                Some(_) => 1,
                None => FEWEST_SCORED,
            };
            let count = (budget / of_row.max(1)).max(least).min(self.scored_rows);
            settings.record.keep_log_likelihood = Some(count);
        }
        let count = settings.record.keep_log_likelihood.unwrap_or(0);
        count.min(self.scored_rows).saturating_mul(of_row)
    }

    /// Writes the numbers of draws that are kept into the settings, where the user has not given them.
    ///
    /// A run that ends when its draws say enough has the fewest, or those that are given, at the first look already, and more at the end of
    /// more draws, as far as [`MOST_BYTES`] allow.
    pub fn resolve(self, settings: &mut Settings) {
        let schedule = settings.schedule();
        let (chains, draws) = (schedule.chains.max(1) as u64, schedule.draws.max(1));
        let longer = match settings.run.until {
            Some(_) => draws.div_ceil(FIRST_LOOK),
            None => 1,
        };
        let is_given = settings.record.keep_mb.is_some();
        let scored = self.resolve_scored(settings);
        settings.record.keep_mb = Some(megabytes(settings));
        let position = self.position.saturating_mul(chains).max(1);
        let prediction = self.prediction.saturating_mul(chains).max(1);
        // a budget that the user gave is kept to, down to one draw of each chain
        let room = |wanted: u64, bytes: u64| {
            let all = wanted.saturating_mul(longer);
            all.min((MOST_BYTES / bytes).max(wanted))
        };
        let fewest = |of_all: u64, bytes: u64, most: u64| {
            let wanted = match is_given {
                true => 1,
                false => of_all.div_ceil(chains).saturating_mul(longer),
            };
            wanted.min((MOST_BYTES / bytes).max(1)).min(most)
        };
        let of_marginal = if self.is_marginal {
            FEWEST_MARGINAL
        } else {
            FEWEST_POSITIONS
        };
        let record = &settings.record;
        let most_positions = match record.keep {
            Some(keep) => room(keep, position),
            None => MOST_POSITIONS.max(fewest(of_marginal, position, draws)),
        };
        let most_positions = most_positions.min(draws);
        let most_predictions = match record.keep_predictions {
            Some(keep) => room(keep, prediction).min(draws),
            None => draws,
        };
        let all_positions = most_positions.saturating_mul(position);
        let all_predictions = most_predictions.saturating_mul(prediction);
        let budget = megabytes(settings).saturating_mul(1_000_000);
        let free = budget.saturating_sub(self.rest.saturating_add(scored));
        let (mut positions, mut predictions) = (most_positions, most_predictions);
        if all_positions.saturating_add(all_predictions) > free {
            // each has half, or what the other one leaves
            let half = free / 2;
            let share = half.max(free.saturating_sub(all_positions));
            if record.keep_predictions.is_none() && all_predictions > share {
                settings.record.keep_predictions = Some(1);
                let traces = Traces::new(settings, self.test_rows, self.outputs);
                let traces = (traces.map_or(0, Traces::count) * self.trace)
                    .saturating_mul(chains)
                    .saturating_mul(draws);
                let least = fewest(FEWEST_PREDICTIONS, prediction, most_predictions);
                let fitting = share.saturating_sub(traces) / prediction;
                // as many as an even spacing gives; positions get the rest
                let every = draws.div_ceil(fitting.clamp(least, most_predictions));
                predictions = draws.div_ceil(every);
                let taken = traces.saturating_add(predictions.saturating_mul(prediction));
                positions = free.saturating_sub(taken) / position;
            } else {
                positions = free.saturating_sub(all_predictions) / position;
            }
            let least = fewest(of_marginal, position, most_positions);
            positions = positions.clamp(least, most_positions);
        }
        settings.record.keep = Some(match settings.record.keep {
            Some(_) => most_positions,
            None => positions,
        });
        settings.record.keep_predictions = Some(predictions);
        // as many as an even spacing gives
        let keeping = Keeping::new(settings);
        settings.record.keep = Some(keeping.positions(draws));
        settings.record.keep_predictions = Some(keeping.predictions(draws));
    }
}

/// Bytes of all files in a folder and below.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let of_entry = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.map(of_entry).sum()
}

/// What a finished run folder takes, and what of it is draws that are kept whole.
///
/// # Errors
/// A run folder that cannot be read.
pub fn kept_in_words(run: &Path) -> Result<String, Failure> {
    let reader = DrawReader::open(run).map_err(Failure::request)?;
    let draws = |name: &str| {
        let group = reader.groups().find(|group| group.name == name);
        group.and_then(|group| group.draws).unwrap_or(0) * reader.chains()
    };
    let of = |name: &str| size(&run.join("draws.zarr").join(name)) as f64;
    let mut parts = Vec::new();
    if draws(POSITIONS) > 0 {
        parts.push(format!(
            "{} positions for `predict` {}",
            draws(POSITIONS),
            bytes(of(POSITIONS))
        ));
    }
    if draws(PREDICTIONS) > 0 && draws("posterior") > 0 {
        parts.push(format!(
            "predictions of {} of {} draws {}",
            draws(PREDICTIONS),
            draws("posterior"),
            bytes(of(PREDICTIONS) + of(TRACED))
        ));
    }
    if draws(LOG_LIKELIHOOD) > 0 {
        parts.push(format!(
            "log-likelihoods of training rows {}",
            bytes(of(LOG_LIKELIHOOD))
        ));
    }
    let mut text = format!("It takes {}", bytes(size(run) as f64));
    if !parts.is_empty() {
        text += &format!(": {}; --keep-mb says how much", parts.join(", "));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Until;

    /// fcn:512 on 200 strokes, 1,000 of them to test on.
    const STROKES: Load = Load {
        position: 412_000,
        prediction: 44_000,
        trace: 4,
        rest: 5_000_000,
        is_marginal: true,
        test_rows: 1000,
        outputs: 10,
        scored_rows: 0,
    };

    /// Positions and recorded predictions of each of four chains of 250 draws, and the bytes of both.
    fn resolved(load: Load, settings: impl FnOnce(&mut Settings)) -> ([u64; 2], u64) {
        let mut all = Settings::default();
        settings(&mut all);
        load.resolve(&mut all);
        let record = &all.record;
        let counts = [record.keep, record.keep_predictions].map(Option::unwrap);
        let traces = Traces::new(&all, load.test_rows, load.outputs).map_or(0, Traces::count);
        let bytes = 4
            * (counts[0] * load.position + counts[1] * load.prediction + 250 * traces * load.trace);
        (counts, bytes + load.rest)
    }

    #[test]
    fn what_fits_is_kept_whole() {
        let small = Load {
            position: 1000,
            prediction: 320,
            ..STROKES
        };
        assert_eq!(resolved(small, |_| ()).0, [84, 250]);
        assert_eq!(
            resolved(STROKES, |all| all.record.keep_mb = Some(500)).0,
            [84, 250]
        );
    }

    #[test]
    fn the_budget_is_shared() {
        let ([positions, predictions], bytes) = resolved(STROKES, |_| ());
        assert!(
            positions >= 4 && predictions >= 25,
            "{positions} {predictions}"
        );
        assert!((12_000_000..20_500_000).contains(&bytes), "{bytes}");
        // what one needs less, the other has
        let few = Load {
            prediction: 400,
            ..STROKES
        };
        let (counts, bytes) = resolved(few, |_| ());
        assert!(counts[0] > positions && counts[1] == 250, "{counts:?}");
        assert!(bytes <= 20_000_000, "{bytes}");
    }

    #[test]
    fn what_is_given_wins() {
        let ([positions, predictions], _) = resolved(STROKES, |all| {
            (all.record.keep, all.record.keep_predictions) = (Some(50), Some(250));
        });
        assert_eq!([positions, predictions], [50, 250]);
        // a budget too small for anything: one draw of each chain
        assert_eq!(
            resolved(STROKES, |all| all.record.keep_mb = Some(1)).0,
            [1, 1]
        );
    }

    #[test]
    fn a_run_that_may_end_early_has_the_fewest_by_then() {
        let of = |keep| {
            resolved(STROKES, |all| {
                (all.run.until, all.run.draws) = (Some(Until::agreement(4)), Some(20_000));
                (all.record.keep, all.record.keep_predictions) = keep;
            })
        };
        let at_first_look = |kept: u64| FIRST_LOOK.div_ceil(20_000_u64.div_ceil(kept));
        let ([positions, predictions], _) = of((None, None));
        // 412 kB a position of four chains: no more than 256 MB of them
        assert_eq!(positions, 154);
        assert!(at_first_look(predictions) * 4 >= 30, "{predictions}");
        // a budget that is given is kept to all the same
        let given = resolved(STROKES, |all| {
            (all.run.until, all.run.draws) = (Some(Until::agreement(4)), Some(20_000));
            all.record.keep_mb = Some(1);
        });
        assert_eq!(given.0, [1, 1]);
        let ([positions, predictions], _) = of((Some(3), Some(2)));
        assert_eq!([positions, predictions].map(at_first_look), [2, 2]);
    }

    #[test]
    fn wide_networks_keep_what_256_megabytes_hold() {
        let wide = Load {
            position: 33_000_000,
            ..STROKES
        };
        assert_eq!(resolved(wide, |_| ()).0[0], 1);
        let wide = Load {
            position: 4_000_000,
            is_marginal: false,
            ..STROKES
        };
        assert_eq!(resolved(wide, |_| ()).0[0], 8);
    }

    #[test]
    fn log_likelihoods_take_half_at_most() {
        let rows = |scored_rows, settings: &dyn Fn(&mut Settings)| {
            let mut all = Settings::default();
            settings(&mut all);
            let load = Load {
                scored_rows,
                ..STROKES
            };
            load.resolve(&mut all);
            all.record.keep_log_likelihood
        };
        // 8 kB a row of 4 x 250 draws
        assert_eq!(rows(200, &|_| ()), Some(200));
        assert_eq!(rows(100_000, &|_| ()), Some(1250));
        let megabytes = |count| move |all: &mut Settings| all.record.keep_mb = Some(count);
        assert_eq!(rows(100_000, &megabytes(100)), Some(6250));
        assert_eq!(rows(100_000, &megabytes(1)), Some(62));
        let none = |all: &mut Settings| all.record.keep_log_likelihood = Some(0);
        assert_eq!(rows(200, &none), Some(0));
        // as the configurations of version 0.1 are
        let earlier = |all: &mut Settings| {
            let record = &mut all.record;
            (record.keep_mb, record.keep, record.keep_predictions) = (Some(20), Some(9), Some(9));
        };
        assert_eq!(rows(200, &earlier), None);
    }

    #[test]
    fn traces_are_spread_evenly() {
        let traces = Traces::of(7, 3);
        assert_eq!(traces.positions().collect::<Vec<_>>(), [0, 2, 4]);
        assert_eq!(Traces::of(2, 500).count(), 2);
    }
}
