//! A target that fails once nobody waits for it any more, so that a long search on it ends.

use std::ops::Range;

use crate::posterior::{EvaluationError, Target};

/// A target, and whether to stop.
pub(super) struct Heeding<'a, T> {
    target: &'a mut T,
    halted: &'a (dyn Fn() -> bool + Sync),
    has_stopped: bool,
}

impl<'a, T: Target> Heeding<'a, T> {
    pub fn new(target: &'a mut T, halted: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self {
            target,
            halted,
            has_stopped: false,
        }
    }

    /// Whether an evaluation was refused.
    pub fn has_stopped(&self) -> bool {
        self.has_stopped
    }

    fn heed(&mut self) -> Result<(), EvaluationError> {
        self.has_stopped |= (self.halted)();
        match self.has_stopped {
            true => Err(EvaluationError::Fatal("stopped".to_owned())),
            false => Ok(()),
        }
    }
}

impl<T: Target> Target for Heeding<'_, T> {
    type Real = T::Real;

    fn dim(&self) -> usize {
        self.target.dim()
    }

    fn log_ratio(&mut self, z: &[T::Real]) -> Result<f64, EvaluationError> {
        self.heed()?;
        self.target.log_ratio(z)
    }

    fn log_ratio_and_gradient(
        &mut self,
        z: &[T::Real],
        gradient: &mut [T::Real],
    ) -> Result<f64, EvaluationError> {
        self.heed()?;
        self.target.log_ratio_and_gradient(z, gradient)
    }

    fn held_at_modes(&self) -> Vec<Range<usize>> {
        self.target.held_at_modes()
    }

    fn released(&self, gradient: &[T::Real]) -> Vec<(usize, f64)> {
        self.target.released(gradient)
    }
}
