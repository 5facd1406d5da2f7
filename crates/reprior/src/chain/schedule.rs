//! How many chains, transitions and draws.

use serde::{Deserialize, Serialize};

use super::StartError;

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

impl Schedule {
    /// Checks the numbers.
    ///
    /// # Errors
    /// [`StartError`] names what is out of range.
    pub fn check(&self) -> Result<(), StartError> {
        if self.chains == 0 {
            return Err(StartError::Zero("chains"));
        }
        if self.draws == 0 {
            return Err(StartError::Zero("draws"));
        }
        if self.thin == 0 {
            return Err(StartError::Zero("transitions per draw (thin)"));
        }
        let total = self
            .draws
            .checked_mul(self.thin)
            .and_then(|t| t.checked_add(self.warmup));
        let total = total.and_then(|t| t.checked_mul(self.chains as u64));
        total.map(|_| ()).ok_or(StartError::Overflow)
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
