//! What a front end can show of a running chain.

/// Where a chain is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Which chain.
    pub chain: usize,
    /// Transitions made.
    pub transition: u64,
    /// Transitions in all.
    pub total: u64,
    /// Whether it is still warming up.
    pub is_warmup: bool,
    /// Current step size, for methods that have one.
    pub step_size: Option<f64>,
    /// How it fares.
    pub news: ProgressDetails,
}

/// How a chain fares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ProgressDetails {
    /// A chain of transitions that may be rejected.
    Transitions {
        /// Mean acceptance probability since warm-up ended (or since the start, before that).
        acceptance_rate: f64,
        /// Current ℓ.
        log_ratio: f64,
        /// Divergences and failed evaluations since warm-up ended (or since the start).
        divergences: u64,
    },
    /// Updates by minibatches.
    Updates {
        /// Epochs that are over.
        epochs: u64,
        /// Mean −log p of the last epoch's minibatches, each at the position before its update.
        train_nll: Option<f64>,
        /// Mean −log p of the validation rows after the last epoch, where there are any.
        validation_nll: Option<f64>,
    },
}

impl Progress {
    /// Whether every transition has been made.
    pub fn is_done(&self) -> bool {
        self.transition >= self.total
    }
}
