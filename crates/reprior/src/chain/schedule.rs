//! How many chains, transitions and draws.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Numbers of chains, transitions and draws. `warmup` and `draws × thin` count transitions of one chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// Independent chains, at least 1.
    pub chains: usize,
    /// Transitions before the first draw, during which step sizes adapt.
    pub warmup: u64,
    /// Recorded draws of each chain, at least 1.
    pub draws: u64,
    /// Transitions from one draw to the next, at least 1.
    pub thin: u64,
    /// Key of every random number of the run.
    pub seed: u64,
}

/// A schedule that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ScheduleError {
    /// Zero of something.
    #[error("the number of {0} is 0: it must be at least 1")]
    Zero(&'static str),
    /// More transitions than a 64-bit counter holds.
    #[error("warm-up plus draws × thin is more transitions than can be counted")]
    Overflow,
}

impl Schedule {
    /// Checks the numbers.
    ///
    /// # Errors
    /// [`ScheduleError`] names what is out of range.
    pub fn check(&self) -> Result<(), ScheduleError> {
        if self.chains == 0 {
            return Err(ScheduleError::Zero("chains"));
        }
        if self.draws == 0 {
            return Err(ScheduleError::Zero("draws"));
        }
        if self.thin == 0 {
            return Err(ScheduleError::Zero("transitions per draw (thin)"));
        }
        let total = self
            .draws
            .checked_mul(self.thin)
            .and_then(|t| t.checked_add(self.warmup));
        let total = total.and_then(|t| t.checked_mul(self.chains as u64));
        total.map(|_| ()).ok_or(ScheduleError::Overflow)
    }

    /// Transitions of one chain.
    pub fn transitions(&self) -> u64 {
        self.warmup + self.draws * self.thin
    }

    /// Records of warm-up statistics: one per `thin` transitions.
    pub fn warmup_records(&self) -> u64 {
        self.warmup / self.thin
    }
}
