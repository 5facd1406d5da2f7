//! How to anneal, checked before anything runs, and why it may end early.

use thiserror::Error;

use crate::sampler::{Method, SamplerSettings, SettingsError};

/// How to anneal.
#[derive(Debug, Clone, PartialEq)]
pub struct AnnealingSettings {
    /// Particles, at least 2.
    pub particles: usize,
    /// Transitions of each particle at each temperature, at least 1.
    pub transitions: u64,
    /// Conditional effective sample size from one temperature to the next, as a share of the particles, in (0, 1).
    pub conditional_ess: f64,
    /// What moves particles: an exact method. Its settings of warm-up and replicas play no part.
    pub sampler: SamplerSettings,
    /// Key of every random number.
    pub seed: u64,
}

impl Default for AnnealingSettings {
    fn default() -> Self {
        Self {
            particles: 128,
            transitions: 2,
            conditional_ess: 0.9,
            sampler: SamplerSettings::default(),
            seed: 0,
        }
    }
}

/// Settings that cannot be, or a target that cannot be evaluated.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum AnnealingError {
    /// Too few of something.
    #[error("{found} {what} are too few: at least {least} are needed")]
    TooFew {
        /// Of what.
        what: &'static str,
        /// How many there are.
        found: u64,
        /// How many it takes.
        least: u64,
    },
    /// The conditional effective sample size.
    #[error(
        "a conditional effective sample size of {0} is out of range: it must lie between 0 and 1, both excluded"
    )]
    ConditionalEss(f64),
    /// Settings of the sampler.
    #[error(transparent)]
    Sampler(#[from] SettingsError),
    /// A sampler that does not leave its target invariant.
    #[error(
        "particles are moved by exact methods: `{0}` takes every step, without Metropolis correction"
    )]
    Uncorrected(Method),
    /// ℓ was finite nowhere.
    #[error("none of {particles} draws from the prior could be evaluated; the last said: {reason}")]
    NoStart {
        /// How many there were.
        particles: usize,
        /// What the last one said.
        reason: String,
    },
    /// The target said that nothing will help.
    #[error("at temperature number {rung} (β = {beta}) {reason}")]
    Target {
        /// Temperatures before.
        rung: usize,
        /// β.
        beta: f64,
        /// What the target said.
        reason: String,
    },
    /// A ladder without an end.
    #[error(
        "after {0} temperatures β is {1}: the posterior is too far from its prior for so many particles; \
         use more of them, or a smaller conditional effective sample size"
    )]
    TooManyRungs(usize, f64),
}

impl AnnealingSettings {
    /// Checks ranges.
    ///
    /// # Errors
    /// [`AnnealingError`] names the value and what is allowed.
    pub fn check(&self) -> Result<(), AnnealingError> {
        let too_few = |what, found, least| match found < least {
            true => Err(AnnealingError::TooFew { what, found, least }),
            false => Ok(()),
        };
        too_few("particles", self.particles as u64, 2)?;
        too_few("transitions a temperature", self.transitions, 1)?;
        if !(self.conditional_ess > 0.0 && self.conditional_ess < 1.0) {
            return Err(AnnealingError::ConditionalEss(self.conditional_ess));
        }
        self.sampler.check()?;
        if !self.sampler.is_exact() {
            return Err(AnnealingError::Uncorrected(self.sampler.method));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused() {
        let good = AnnealingSettings::default();
        assert_eq!(good.check(), Ok(()));
        let message = |bad: AnnealingSettings| bad.check().unwrap_err().to_string();
        let few = AnnealingSettings {
            particles: 1,
            ..good.clone()
        };
        assert!(message(few).contains("1 particles"));
        let still = AnnealingSettings {
            transitions: 0,
            ..good.clone()
        };
        assert!(message(still).contains("transitions"));
        for conditional_ess in [0.0, 1.0, f64::NAN] {
            let bad = AnnealingSettings {
                conditional_ess,
                ..good.clone()
            };
            assert!(message(bad).contains("between 0 and 1"));
        }
        for sampler in [
            SamplerSettings {
                method: Method::Mclmc,
                ..SamplerSettings::default()
            },
            SamplerSettings {
                method: Method::Langevin,
                metropolis: false,
                ..SamplerSettings::default()
            },
        ] {
            let bad = AnnealingSettings {
                sampler,
                ..good.clone()
            };
            assert!(message(bad).contains("exact"));
        }
    }
}
