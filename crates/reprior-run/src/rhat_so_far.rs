//! R-hat of chains that still go on: of their ℓ since warm-up, for who watches them.
//!
//! It says early that chains disagree; the summary's, of predictions and weights, says whether they agree. A chain has at most [`MOST`] values,
//! evenly spaced: where there are more, every other one is left out. It is computed anew where there is a tenth more to go by, so that watching costs
//! nothing that counts.

use reprior::chain::{Progress, ProgressDetails};
use reprior::diagnostics::{Draws, Estimator};

/// Values of a chain at most.
const MOST: usize = 500;
/// Values of every chain that something is said of, at least.
const FEWEST: usize = 10;

/// What chains have shown so far.
pub struct RhatSoFar {
    chains: Vec<Kept>,
    estimator: Estimator,
    /// The value, and how many transitions of every chain it is of.
    found: Option<f64>,
    of: u64,
}

/// Values of one chain.
#[derive(Debug, Clone)]
struct Kept {
    values: Vec<f64>,
    /// Transitions from one value to the next.
    every: u64,
    /// Transitions seen since warm-up.
    seen: u64,
    /// The last transition.
    at: u64,
}

impl RhatSoFar {
    /// Of so many chains, of which nothing is known.
    pub fn new(chains: usize) -> Self {
        let none = Kept {
            values: Vec::new(),
            every: 1,
            seen: 0,
            at: 0,
        };
        Self {
            chains: vec![none; chains],
            estimator: Estimator::new(),
            found: None,
            of: 0,
        }
    }

    /// One chain has got on.
    pub fn update(&mut self, progress: &Progress) {
        let ProgressDetails::Transitions { log_ratio, .. } = progress.news else {
            return;
        };
        let Some(chain) = self.chains.get_mut(progress.chain) else {
            return;
        };
        if progress.is_warmup || progress.transition <= chain.at {
            return;
        }
        chain.at = progress.transition;
        if chain.seen.is_multiple_of(chain.every) {
            chain.values.push(log_ratio);
        }
        chain.seen += 1;
        if chain.values.len() > MOST {
            let mut index = 0;
            chain.values.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            chain.every *= 2;
        }
    }

    /// The larger of rank-normalised and folded split R-hat (Vehtari et al. 2021); none of a single chain, and where there is too little to go by.
    pub fn value(&mut self) -> Option<f64> {
        let seen = self.chains.iter().map(|chain| chain.seen);
        let seen = seen.min().filter(|_| self.chains.len() > 1)?;
        if self.of > 0 && seen < self.of + self.of / 10 {
            return self.found;
        }
        let every = self.chains.iter().map(|chain| chain.every).max()?;
        // chains at one spacing, and as many values of each
        let count = (seen / every) as usize;
        if count < FEWEST {
            return None;
        }
        let values: Vec<f64> = (self.chains.iter())
            .flat_map(|chain| {
                let step = (every / chain.every) as usize;
                chain.values.iter().step_by(step).take(count).copied()
            })
            .collect();
        let draws = Draws::new(&values, self.chains.len()).ok()?;
        let rhat = self.estimator.rhat_rank(draws);
        let rhat = rhat.max(self.estimator.rhat_folded(draws));
        (self.found, self.of) = (Some(rhat).filter(|rhat| rhat.is_finite()), seen);
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(chain: usize, transition: u64, log_ratio: f64) -> Progress {
        Progress {
            chain,
            transition,
            total: 10_000,
            is_warmup: transition <= 5,
            step_size: None,
            news: ProgressDetails::Transitions {
                acceptance_rate: 1.0,
                log_ratio,
                divergences: 0,
            },
        }
    }

    /// Numbers between 0 and 1 that look like random ones.
    fn noise(at: u64) -> f64 {
        ((at as f64) * 12.9898)
            .sin()
            .mul_add(43758.5453, 0.0)
            .fract()
            .abs()
    }

    #[test]
    fn chains_that_agree_and_chains_that_do_not() {
        for (apart, count) in [(0.0, 3000), (0.0, 60), (2.0, 3000), (2.0, 60)] {
            let mut so_far = RhatSoFar::new(3);
            assert_eq!(so_far.value(), None);
            for transition in 1..=count {
                for chain in 0..3 {
                    // a warm-up far away does not count
                    let far = if transition <= 5 { 1e6 } else { 0.0 };
                    let own = noise(transition * 3 + chain as u64) + apart * chain as f64 + far;
                    so_far.update(&progress(chain, transition, own));
                    so_far.update(&progress(chain, transition, 1e9)); // told twice
                }
                so_far.value();
            }
            let rhat = so_far.value().unwrap();
            let is_high = rhat > 1.5;
            assert_eq!(is_high, apart > 0.0, "{apart} {count}: {rhat}");
            assert!(so_far.chains.iter().all(|chain| chain.values.len() <= MOST));
        }
    }

    #[test]
    fn nothing_is_said_of_one_chain_or_of_little() {
        let mut alone = RhatSoFar::new(1);
        let mut pair = RhatSoFar::new(2);
        for transition in 1..100 {
            alone.update(&progress(0, transition, noise(transition)));
            pair.update(&progress(0, transition, noise(transition)));
            // one chain hardly begins
            pair.update(&progress(1, transition.min(12), noise(transition)));
        }
        assert_eq!([alone.value(), pair.value()], [None, None]);
    }
}
