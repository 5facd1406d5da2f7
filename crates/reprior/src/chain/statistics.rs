//! Statistics of the transitions since the previous record, under ArviZ's names.

use serde::{Deserialize, Serialize};

use crate::sampler::Info;

/// What happened between two records of a chain. Evaluations, gradients and jitter are those of its replicas too.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Statistics {
    /// Transitions that this covers.
    pub transitions: u64,
    /// Sum of acceptance probabilities over them.
    pub acceptance_sum: f64,
    /// How many were accepted.
    pub accepted: u64,
    /// How many diverged, or met an evaluation that failed.
    pub divergences: u64,
    /// Evaluations of ℓ alone.
    pub n_evaluations: u64,
    /// Evaluations of ℓ with its gradient.
    pub n_gradients: u64,
    /// Steps of all trajectories.
    pub n_steps: u64,
    /// Times that a factorisation needed jitter.
    pub n_jitter: u64,
    /// Energy error of the last transition; absent if it was not finite.
    pub energy_error: Option<f64>,
    /// Step size of the last transition; absent for methods without one.
    pub step_size: Option<f64>,
}

impl Statistics {
    /// Takes one more transition in.
    pub fn add(&mut self, info: &Info, step_size: Option<f64>, jitter: u64) {
        self.transitions += 1;
        self.acceptance_sum += info.acceptance_rate;
        self.accepted += u64::from(info.is_accepted);
        self.divergences += u64::from(info.diverging);
        self.n_evaluations += u64::from(info.n_evaluations);
        self.n_gradients += u64::from(info.n_gradients);
        self.n_steps += u64::from(info.n_steps);
        self.n_jitter += jitter;
        self.energy_error = Some(info.energy_error).filter(|error| error.is_finite());
        self.step_size = step_size;
    }

    /// Takes later transitions' statistics in.
    pub fn merge(&mut self, later: &Self) {
        self.transitions += later.transitions;
        self.acceptance_sum += later.acceptance_sum;
        self.accepted += later.accepted;
        self.divergences += later.divergences;
        self.n_evaluations += later.n_evaluations;
        self.n_gradients += later.n_gradients;
        self.n_steps += later.n_steps;
        self.n_jitter += later.n_jitter;
        self.energy_error = later.energy_error;
        self.step_size = later.step_size;
    }

    /// Mean acceptance probability; NaN before the first transition.
    pub fn acceptance_rate(&self) -> f64 {
        self.acceptance_sum / self.transitions as f64
    }
}
