//! Step size adapted to a target acceptance rate by dual averaging (Hoffman & Gelman 2014, Section 3.2.1).

use serde::{Deserialize, Serialize};

use super::SMALLEST_STEP;

/// Dual averaging of the logarithm of a step size. Used in warm-up only; afterwards the average is frozen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DualAveraging {
    /// Acceptance rate that is aimed at.
    target: f64,
    /// Logarithm of the largest step size allowed.
    log_limit: f64,
    /// Logarithm towards which steps shrink.
    centre: f64,
    count: f64,
    error_sum: f64,
    log_step: f64,
    log_average: f64,
    /// Average of log ‖∇ℓ‖ with the same weights, where there are gradients.
    #[serde(default)]
    log_norm: Option<f64>,
}

/// Shrinkage γ, delay t₀ and decay κ of the paper. Its γ is 0.05: two rejections at the start then divide the step by 40,
/// which in a warm-up of a hundred costly trajectories is most of the time; with 0.15 they divide it by 3.5.
const GAMMA: f64 = 0.15;
const DELAY: f64 = 10.0;
const DECAY: f64 = 0.75;

impl DualAveraging {
    /// Adaptation from `initial`, never above `limit` nor below 1e-6, towards the acceptance rate `target` in (0, 1).
    pub fn new(initial: f64, limit: f64, target: f64) -> Self {
        let log_step = initial.ln();
        Self {
            target,
            log_limit: limit.ln(),
            centre: log_step,
            count: 0.0,
            error_sum: 0.0,
            log_step,
            log_average: log_step,
            log_norm: None,
        }
    }

    /// Takes ‖∇ℓ‖ at the end of the transition that is next taken into account.
    pub(super) fn see(&mut self, gradient_norm: f64) {
        let log_norm = gradient_norm.ln();
        let weight = (self.count + 1.0).powf(-DECAY);
        let before = self.log_norm.unwrap_or(log_norm);
        self.log_norm = Some(weight * log_norm + (1.0 - weight) * before);
    }

    /// The averaged norm of the gradient: that which belongs to the [averaged](Self::average) step size.
    pub(super) fn gradient_norm(&self) -> Option<f64> {
        self.log_norm.map(f64::exp)
    }

    /// Takes the acceptance rate of one transition into account (a NaN counts as 0); returns the next step size.
    pub fn update(&mut self, acceptance_rate: f64) -> f64 {
        let rate = if acceptance_rate.is_nan() {
            0.0
        } else {
            acceptance_rate
        };
        self.count += 1.0;
        self.error_sum += self.target - rate;
        let mean_error = self.error_sum / (self.count + DELAY);
        let log_step = (self.centre - self.count.sqrt() / GAMMA * mean_error)
            .min(self.log_limit)
            // what lies below is not taken, and would weigh on the average
            .max(SMALLEST_STEP.ln());
        self.log_step = log_step;
        let weight = self.count.powf(-DECAY);
        self.log_average = weight * log_step + (1.0 - weight) * self.log_average;
        log_step.exp()
    }

    /// The averaged step size, to be used once warm-up is over.
    pub fn average(&self) -> f64 {
        self.log_average.exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_step_size_with_the_target_acceptance() {
        // acceptance falls with the step size as exp(−3 s)
        for initial in [1e-3, 0.2, 1.0] {
            let mut adaptation = DualAveraging::new(initial, 2.0, 0.8);
            let mut step = initial;
            for _ in 0..3000 {
                step = adaptation.update((-3.0 * step).exp());
            }
            let exact = -(0.8_f64.ln()) / 3.0;
            assert!(
                (adaptation.average() / exact - 1.0).abs() < 0.05,
                "{}",
                adaptation.average()
            );
        }
    }

    #[test]
    fn never_exceeds_the_limit() {
        let mut adaptation = DualAveraging::new(0.1, 1.0, 0.3);
        for _ in 0..500 {
            assert!(adaptation.update(1.0) <= 1.0 + 1e-12);
        }
        assert!(adaptation.average() <= 1.0 + 1e-12);
        assert!(adaptation.update(f64::NAN).is_finite());
    }
}
