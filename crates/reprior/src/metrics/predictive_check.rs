//! Whether as many test values are hit as a model expects of itself: a posterior predictive check with a known error rate.
//!
//! A hit is a value within its central 90 % interval, or a label that was predicted. How many hits a model expects, and how much that varies, is
//! simulated: in each of [`PredictiveCheck::REPLICATES`] replicates one draw of the posterior is the truth, for all rows together, and every row's
//! value is drawn from it. If the data come from the model and the draws from its posterior, the observed number is one more
//! replicate (Rubin 1984); so it falls outside the central 99 % with probability 1 %, whatever the rows have in common.
//! Cost: one uniform number and one probability per replicate and value; memory: one counter per replicate.

use crate::compute::{Purpose, Stream};

/// What was observed, against what was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expectation {
    /// As many hits as chance allows.
    Met,
    /// Fewer: the predictions are too sure.
    TooFew,
    /// More: the predictions are not sure enough.
    TooMany,
}

/// Hits that were observed and those of every replicate, gathered value by value.
#[derive(Debug, Clone)]
pub struct PredictiveCheck {
    values: u64,
    observed: u64,
    replicates: Vec<u32>,
    /// Standard normals of every replicate, one per output: what a draw leaves open of the function, the same for all rows.
    shared: Vec<f64>,
    outputs: usize,
}

/// Probability of a false alarm on either side.
const FALSE_ALARM: f64 = 0.005;

impl PredictiveCheck {
    /// Data sets that are simulated.
    pub const REPLICATES: usize = 2000;

    /// Of values in rows of `outputs`.
    pub fn new(outputs: usize) -> Self {
        let mut shared = vec![0.0; Self::REPLICATES * outputs];
        Stream::new(0, 0, Purpose::Check, 0).fill_normal(&mut shared);
        Self {
            values: 0,
            observed: 0,
            replicates: vec![0; Self::REPLICATES],
            shared,
            outputs,
        }
    }

    /// Takes in one value: whether it is a hit, and the probability of a hit in a replicate (its number, which says what draw is its truth,
    /// and its normals, one per output).
    pub fn add(&mut self, is_hit: bool, probability: impl Fn(usize, &[f64]) -> f64) {
        self.values += 1;
        self.observed += u64::from(is_hit);
        let mut stream = Stream::new(0, 0, Purpose::Check, self.values);
        let shared = self.shared.chunks_exact(self.outputs);
        for (replicate, (hits, shared)) in self.replicates.iter_mut().zip(shared).enumerate() {
            *hits += u32::from(stream.uniform() < probability(replicate, shared));
        }
    }

    /// Hits among the values.
    pub fn observed(&self) -> u64 {
        self.observed
    }

    /// Values taken in.
    pub fn values(&self) -> u64 {
        self.values
    }

    /// What was observed.
    pub fn expectation(&self) -> Expectation {
        let share = |is: &dyn Fn(u64) -> bool| {
            let count = self.replicates.iter().filter(|&&hits| is(hits.into()));
            count.count() as f64 / Self::REPLICATES as f64
        };
        if share(&|hits| hits <= self.observed) < FALSE_ALARM {
            Expectation::TooFew
        } else if share(&|hits| hits >= self.observed) < FALSE_ALARM {
            Expectation::TooMany
        } else {
            Expectation::Met
        }
    }

    /// The central 99 % of the replicates, as shares of the values: what chance allows. NaN where nothing was taken in.
    pub fn range(&self) -> [f64; 2] {
        let mut sorted = self.replicates.clone();
        sorted.sort_unstable();
        let at = |share: f64| sorted[(share * (Self::REPLICATES - 1) as f64).round() as usize];
        [FALSE_ALARM, 1.0 - FALSE_ALARM].map(|share| f64::from(at(share)) / self.values as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Mixture, PredictiveFamily};

    /// Rows that share one unknown mean: y = m + noise, m ~ N(0, 1), seen `seen` times; the posterior of m by exact draws. The noise is 1;
    /// the model takes it to be `noise`.
    fn check(set: u64, rows: usize, seen: f64, noise: f64) -> Expectation {
        let mut stream = Stream::new(5, 0, Purpose::Initial, set);
        let truth = stream.normal();
        let mean_seen = truth + stream.normal() / seen.sqrt();
        let precision = 1.0 + seen / (noise * noise);
        let centre = mean_seen * seen / (noise * noise) / precision;
        let draws: Vec<f64> = (0..400)
            .map(|_| centre + stream.normal() / precision.sqrt())
            .collect();
        let variance = [noise * noise];
        let mixture = Mixture::new(PredictiveFamily::NORMAL, &draws, &variance).unwrap();
        let [low, high] = [0.05, 0.95].map(|p| mixture.quantile(p));
        let mut check = PredictiveCheck::new(1);
        for _ in 0..rows {
            let y = truth + stream.normal();
            check.add((low..=high).contains(&y), |replicate, _| {
                let mean = draws[replicate % draws.len()];
                let cdf = |y| PredictiveFamily::NORMAL.cdf(y, mean, variance[0]);
                cdf(high) - cdf(low)
            });
        }
        check.expectation()
    }

    #[test]
    fn false_alarms_are_rare_and_wrong_noise_is_found() {
        let share = |rows, seen, noise, of: Expectation| {
            let found = (0..400).filter(|&set| check(set, rows, seen, noise) == of);
            found.count() as f64 / 400.0
        };
        // what the rows have in common is most of the uncertainty in the first, hardly any in the second
        for seen in [1.0, 1000.0] {
            let alarms = 1.0 - share(100, seen, 1.0, Expectation::Met);
            // of 400 sets 4 are expected; more than 11 have probability 1e-3
            assert!(alarms <= 11.0 / 400.0, "{seen}: {alarms}");
        }
        assert!(share(100, 1000.0, 0.6, Expectation::TooFew) > 0.95);
        assert!(share(100, 1000.0, 2.0, Expectation::TooMany) > 0.95);
        // 77 rows of 77 in their intervals
        assert!(share(77, 1000.0, 2.5, Expectation::TooMany) > 0.9);
    }

    #[test]
    fn ranges_hold_what_is_expected() {
        let mut check = PredictiveCheck::new(1);
        for value in 0..200 {
            check.add(value % 10 > 0, |_, _| 0.9);
        }
        let [low, high] = check.range();
        assert!(
            low > 0.82 && low < 0.87 && high > 0.93 && high < 0.96,
            "{low} {high}"
        );
        assert_eq!(check.expectation(), Expectation::Met);
    }
}
