//! A target between the prior and itself: N(z; 0, I)·exp βℓ(z), 0 < β ≤ 1. The prior stays as it is; ℓ and ∇ℓ are multiplied by β. Cost: that of
//! the target, and O(dim) for a gradient.

use std::ops::Range;

use super::target::{Ellipse, EvaluationError, Target};
use crate::compute::Real;

/// A target at a temperature.
#[derive(Debug, Clone)]
pub struct Tempered<T> {
    target: T,
    beta: f64,
}

impl<T: Target> Tempered<T> {
    /// The target at β in (0, 1]; at 1 it is the target itself.
    pub fn new(target: T, beta: f64) -> Self {
        Self { target, beta }
    }

    /// β.
    pub fn beta(&self) -> f64 {
        self.beta
    }

    /// Sets β. States that were evaluated before are then of another target.
    pub fn set_beta(&mut self, beta: f64) {
        self.beta = beta;
    }

    /// The target itself.
    pub fn target_mut(&mut self) -> &mut T {
        &mut self.target
    }
}

impl<T: Target> Target for Tempered<T> {
    type Real = T::Real;

    fn dim(&self) -> usize {
        self.target.dim()
    }

    fn log_ratio(&mut self, z: &[T::Real]) -> Result<f64, EvaluationError> {
        Ok(self.beta * self.target.log_ratio(z)?)
    }

    fn log_ratio_and_gradient(
        &mut self,
        z: &[T::Real],
        gradient: &mut [T::Real],
    ) -> Result<f64, EvaluationError> {
        let value = self.target.log_ratio_and_gradient(z, gradient)?;
        if self.beta != 1.0 {
            let beta = T::Real::from_f64(self.beta);
            for g in gradient {
                *g *= beta;
            }
        }
        Ok(self.beta * value)
    }

    fn log_ratio_on_ellipse(
        &mut self,
        ellipse: Ellipse<'_, T::Real>,
        angle: f64,
    ) -> Result<f64, EvaluationError> {
        Ok(self.beta * self.target.log_ratio_on_ellipse(ellipse, angle)?)
    }

    fn arrives_by_gradients(&self) -> bool {
        self.target.arrives_by_gradients()
    }

    fn held_at_modes(&self) -> Vec<Range<usize>> {
        self.target.held_at_modes()
    }

    fn released(&self, gradient: &[T::Real]) -> Vec<(usize, f64)> {
        // the target's own gradient, and what is gained at this temperature
        let beta = T::Real::from_f64(self.beta);
        let gradient: Vec<T::Real> = gradient.iter().map(|&g| g / beta).collect();
        let mut released = self.target.released(&gradient);
        released.iter_mut().for_each(|(_, gain)| *gain *= self.beta);
        released
    }

    fn approach_mode(
        &mut self,
        position: &mut [T::Real],
        seed_and_chain: [u64; 2],
        halted: &dyn Fn() -> bool,
    ) -> bool {
        self.target.approach_mode(position, seed_and_chain, halted)
    }

    fn corrections(&self) -> u64 {
        self.target.corrections()
    }
}
