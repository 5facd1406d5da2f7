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
    /// Mean acceptance probability since warm-up ended (or since the start, before that).
    pub acceptance_rate: f64,
    /// Current step size, for methods that have one.
    pub step_size: Option<f64>,
    /// Current ℓ.
    pub log_ratio: f64,
    /// Divergences and failed evaluations since warm-up ended (or since the start).
    pub divergences: u64,
}
