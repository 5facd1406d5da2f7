//! Step size found from the energy errors of single steps (Robnik et al. 2023, Section 4; the weights are BlackJAX's).
//!
//! ΔE of a step of h has a variance ∝ h⁶. Each step says ξ = ΔE²/(d·v), 1 on average at the step size that is aimed at, so that ξ/h⁶ estimates that
//! size's h⁻⁶: they are averaged with a memory of some 75 steps, and with weights exp(−½(log ξ/9)²) that make little of steps from where h is far
//! off. A step that failed counts as one of a h that is a quarter too large. O(1) a step.

use serde::{Deserialize, Serialize};

use super::total_variance::TotalVariance;
use super::{Info, SMALLEST_STEP};
use crate::compute::Real;

/// The adaptation of a step size to an energy variance per dimension, and of a length to the posterior's width. Used in warm-up only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EnergyVariance {
    /// E[ΔE²]/d that is aimed at.
    energy_variance: f64,
    largest: f64,
    step_size: f64,
    weight: f64,
    /// Of ξ/h⁶.
    weighted_sum: f64,
    /// Absent where the length is fixed.
    width: Option<TotalVariance>,
}

/// What the memory shrinks by at each step: 150 effective steps.
const DECAY: f64 = 149.0 / 151.0;
/// Width of the weights in log ξ.
const TRUST: f64 = 9.0;
/// ξ of a failed step: (5/4)⁶, near enough.
const FAILED: f64 = 4.0;
/// Keeps logarithms finite.
const LEAST: f64 = 1e-8;

/// ξ of one step in `dimension` coordinates, where E[ΔE²]/d is to be `energy_variance`; a walk in one dimension is corrected, and aims at
/// errors of 1.
pub(super) fn relative_square(info: &Info, energy_variance: f64, dimension: usize) -> f64 {
    let aim = match dimension {
        0 | 1 => 1.0,
        _ => energy_variance * dimension as f64,
    };
    match info.energy_error.is_finite() {
        true => info.energy_error * info.energy_error / aim + LEAST,
        false => FAILED,
    }
}

impl EnergyVariance {
    /// Adaptation from `initial`, never above `largest`, towards E[ΔE²]/d = `energy_variance`; with that of a length or without.
    pub fn new(initial: f64, largest: f64, energy_variance: f64, finds_length: bool) -> Self {
        Self {
            energy_variance,
            largest,
            step_size: initial,
            weight: 0.0,
            weighted_sum: 0.0,
            width: finds_length.then(TotalVariance::default),
        }
    }

    /// Takes one step in, that ended at `position`; returns the next step size.
    pub fn update<R: Real>(&mut self, info: &Info, position: &[R]) -> f64 {
        let square = relative_square(info, self.energy_variance, position.len());
        let weight = (-0.5 * (square.ln() / TRUST).powi(2)).exp();
        let sixth = self.step_size.powi(6);
        self.weight = DECAY * self.weight + weight;
        self.weighted_sum = DECAY * self.weighted_sum + weight * square / sixth;
        let next = (self.weighted_sum / self.weight).powf(-1.0 / 6.0);
        if next.is_finite() {
            self.step_size = next.max(SMALLEST_STEP).min(self.largest);
        }
        if let Some(width) = &mut self.width {
            width.update(position);
        }
        self.step_size
    }

    /// The step size, to be used once warm-up is over.
    pub fn average(&self) -> f64 {
        self.step_size
    }

    /// The length √(Σ_i var z_i/d); absent where it is fixed, and before it is known.
    pub fn length(&self) -> Option<f64> {
        self.width.as_ref().and_then(TotalVariance::root_mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::{Purpose, Stream};

    /// Normal energy errors whose variance is d·a·h⁶: the step is found where that is d·v.
    #[test]
    fn finds_the_step_size_with_the_energy_variance() {
        let (a, v, position) = (0.03, 5e-4_f64, [0.0_f64; 50]);
        let exact = (v / a).powf(1.0 / 6.0);
        for initial in [1e-3, 0.1, 1.8] {
            let mut adaptation = EnergyVariance::new(initial, 1.9, v, false);
            let mut stream = Stream::new(6, 0, Purpose::Initial, 0);
            let mut step = initial;
            let mut sum = 0.0;
            for at in 0..4000 {
                let error = (50.0 * a * step.powi(6)).sqrt() * stream.normal();
                let info = Info {
                    energy_error: error,
                    ..Info::default()
                };
                step = adaptation.update(&info, &position);
                sum += if at >= 1000 { step / 3000.0 } else { 0.0 };
            }
            // weights favour errors near the aim, by less than a hundredth
            assert!((sum / exact - 1.0).abs() < 0.03, "{initial} {sum} {exact}");
            assert!((step / exact - 1.0).abs() < 0.15, "{step}");
        }
    }

    #[test]
    fn failures_make_steps_smaller_within_bounds() {
        let mut adaptation = EnergyVariance::new(0.5, 0.5, 5e-4, false);
        let with = |energy_error| Info {
            energy_error,
            ..Info::default()
        };
        for _ in 0..200 {
            assert!(adaptation.update(&with(0.0), &[0.0_f64; 3]) <= 0.5);
        }
        for _ in 0..20_000 {
            let step = adaptation.update(&with(f64::NAN), &[0.0_f64; 3]);
            assert!((SMALLEST_STEP..=0.5).contains(&step));
        }
        assert!(adaptation.average() < 1e-3, "{}", adaptation.average());
    }
}
