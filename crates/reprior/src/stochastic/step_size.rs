//! Step sizes of minibatch methods as functions of the number of the update.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

/// How the step size η_t of update t = 0, 1, … follows from the first, η₀.
///
/// | schedule | Σ η_t | what the updates give |
/// |---|---|---|
/// | [`Constant`](Self::Constant) | ∞ | a sampler with a bias that is proportional to η |
/// | [`Polynomial`](Self::Polynomial) | ∞ if the exponent is at most 1 | a sampler; the posterior in the limit. Exponent ⅓ has the best rate (Teh, Thiery & Vollmer 2016) |
/// | [`Halving`](Self::Halving) | < ∞ | an ensemble around one mode: after 2·`every`·η₀ of time in all everything stands still (Marceau-Caron & Ollivier 2017 use it) |
/// | [`Cyclical`](Self::Cyclical) | ∞ | a sampler with a bias in each cycle's second part, of several modes (Zhang et al. 2020) |
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "schedule", rename_all = "kebab-case", deny_unknown_fields)]
pub enum StepSize {
    /// η₀.
    #[default]
    Constant,
    /// η₀/2^⌊t/every⌋.
    Halving {
        /// Updates, at least 1.
        every: u64,
    },
    /// η₀·(1 + t/after)^−exponent.
    Polynomial {
        /// Positive.
        exponent: f64,
        /// Updates, at least 1, after which the step size has fallen by 2^−exponent.
        after: u64,
    },
    /// η₀·½(1 + cos(π·s)) with s the part of the cycle that is over.
    Cyclical {
        /// Updates of a cycle, at least 2.
        length: u64,
        /// Part of a cycle in [0, 1) that explores: no noise, no draws.
        exploration: f64,
    },
}

impl StepSize {
    /// η_t/η₀.
    pub fn factor(&self, update: u64) -> f64 {
        match *self {
            Self::Constant => 1.0,
            Self::Halving { every } => {
                let halvings = update / every.max(1);
                0.5_f64.powi(i32::try_from(halvings).unwrap_or(i32::MAX))
            }
            Self::Polynomial { exponent, after } => {
                (1.0 + update as f64 / after.max(1) as f64).powf(-exponent)
            }
            Self::Cyclical { .. } => 0.5 * (1.0 + (PI * self.part(update)).cos()),
        }
    }

    /// Whether update `update` has noise, and its position may be drawn: all but those of a cycle's first part.
    pub fn is_sampling(&self, update: u64) -> bool {
        match *self {
            Self::Cyclical { exploration, .. } => self.part(update) >= exploration,
            _ => true,
        }
    }

    /// How many of the first updates, so many, are [sampling](Self::is_sampling) ones.
    pub fn sampling_updates(&self, updates: u64) -> u64 {
        let Some([length, first]) = self.cycle() else {
            return updates;
        };
        let part = (updates % length).saturating_sub(first);
        (updates / length) * (length - first) + part
    }

    /// Updates after `first` of them until so many are [sampling](Self::is_sampling) ones; `u64::MAX` if that is too many to
    /// count.
    pub fn updates_for(&self, first: u64, count: u64) -> u64 {
        let Some([length, begin]) = self.cycle() else {
            return count;
        };
        if count == 0 {
            return 0;
        }
        let last = self.sampling_updates(first).saturating_add(count) - 1;
        let per_cycle = length - begin;
        // the update with that number among the sampling ones
        let at = (last / per_cycle)
            .checked_mul(length)
            .and_then(|start| start.checked_add(begin + last % per_cycle + 1));
        at.map_or(u64::MAX, |end| end - first)
    }

    /// Of cycles the length, and the first update of one that may be drawn; none where all may be.
    fn cycle(&self) -> Option<[u64; 2]> {
        match *self {
            Self::Cyclical {
                length,
                exploration,
            } if exploration > 0.0 && length > 0 => {
                let near = (exploration * length as f64) as u64;
                // by the same rounding as `is_sampling`, which holds for the last update
                let candidates = near.saturating_sub(1)..length;
                let first = candidates
                    .into_iter()
                    .find(|&update| self.is_sampling(update));
                Some([length, first.unwrap_or(length - 1)])
            }
            _ => None,
        }
    }

    /// Whether the sum of all step sizes is finite, so that the updates end up standing still.
    pub fn is_summable(&self) -> bool {
        match *self {
            Self::Halving { .. } => true,
            Self::Polynomial { exponent, .. } => exponent > 1.0,
            Self::Constant | Self::Cyclical { .. } => false,
        }
    }

    /// The part of its cycle that is over.
    fn part(&self, update: u64) -> f64 {
        match *self {
            Self::Cyclical { length, .. } => {
                let length = length.max(1);
                (update % length) as f64 / length as f64
            }
            _ => 0.0,
        }
    }

    /// What is out of range, in words.
    ///
    /// # Errors
    /// The name of the setting, its value and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        match *self {
            Self::Halving { every: 0 } => {
                Err("the step size halves every 0 updates: it must be at least 1".to_owned())
            }
            Self::Polynomial { exponent, .. } if !(exponent.is_finite() && exponent > 0.0) => Err(
                format!("the exponent of the step size is {exponent}: it must be positive"),
            ),
            Self::Polynomial { after: 0, .. } => {
                Err("the step size falls after 0 updates: it must be at least 1".to_owned())
            }
            Self::Cyclical { length, .. } if length < 2 => Err(format!(
                "a cycle of the step size has {length} updates: it must have at least 2"
            )),
            Self::Cyclical {
                length,
                exploration,
            } if !(0.0..=(length - 1) as f64 / length as f64).contains(&exploration) => {
                Err(format!(
                    "the exploring part of a cycle is {exploration}: it must be in [0, 1), and leave the last update"
                ))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_follow_their_formulas() {
        let halving = StepSize::Halving { every: 10 };
        assert_eq!(
            [0, 9, 10, 35].map(|t| halving.factor(t)),
            [1.0, 1.0, 0.5, 0.125]
        );
        let cube = StepSize::Polynomial {
            exponent: 1.0 / 3.0,
            after: 7,
        };
        assert!((cube.factor(49) - 0.5).abs() < 1e-15 && cube.factor(0) == 1.0);
        let cycle = StepSize::Cyclical {
            length: 8,
            exploration: 0.5,
        };
        assert!((cycle.factor(4) - 0.5).abs() < 1e-15 && cycle.factor(8) == 1.0);
        assert!(!cycle.is_sampling(11) && cycle.is_sampling(12) && cube.is_sampling(0));
        assert!(halving.is_summable() && !cube.is_summable());
        assert_eq!(StepSize::Constant.factor(1 << 60), 1.0);
        assert!(halving.factor(u64::MAX) == 0.0);
    }

    #[test]
    fn updates_until_so_many_may_be_drawn() {
        let cycle = StepSize::Cyclical {
            length: 7,
            exploration: 0.6,
        };
        assert_eq!(StepSize::Constant.updates_for(5, 9), 9);
        for first in 0..15 {
            for count in 0..12 {
                let mut updates = 0;
                let mut found = 0;
                while found < count {
                    found += u64::from(cycle.is_sampling(first + updates));
                    updates += 1;
                }
                assert_eq!(cycle.updates_for(first, count), updates, "{first} {count}");
            }
        }
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        for (wrong, word) in [
            (StepSize::Halving { every: 0 }, "halves"),
            (
                StepSize::Polynomial {
                    exponent: -1.0,
                    after: 1,
                },
                "exponent",
            ),
            (
                StepSize::Polynomial {
                    exponent: 0.3,
                    after: 0,
                },
                "falls",
            ),
            (
                StepSize::Cyclical {
                    length: 1,
                    exploration: 0.0,
                },
                "cycle",
            ),
            (
                StepSize::Cyclical {
                    length: 9,
                    exploration: 1.0,
                },
                "exploring",
            ),
        ] {
            assert!(wrong.check().unwrap_err().contains(word), "{wrong:?}");
        }
        assert_eq!(StepSize::default().check(), Ok(()));
    }
}
