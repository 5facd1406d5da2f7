//! Hamiltonian Monte Carlo with the leapfrog integrator (Duane et al. 1987; Neal 2011).
//!
//! The energy −ℓ(z) + ½‖z‖² + ½‖m‖² is integrated from a fresh momentum m ~ N(0, I) by kicks m ← m + (h/2)(∇ℓ(z) − z) and
//! drifts z ← z + h·m; log a = ℓ(z') − ℓ(z) − ½(‖z'‖² − ‖z‖²) − Σ_kicks ½Δ‖m‖², a sum of differences. The step shrinks as
//! dim^(−1/4) (Beskos et al. 2013); `hmc-infinite` solves the Gaussian part exactly and has no such limit. The number of
//! steps is that of `hmc-infinite`: a length with jitter, at most 128 unless told otherwise. One gradient a step; the last is kept.

use super::proposal::Proposal;
use super::trajectory::{TrajectoryLength, integrate, is_diverging, second_half};
use super::{Fatal, Info, SMALLEST_STEP, Sampler, State, start_with_gradient};
use crate::compute::{Real, Stream, add_scaled, difference_dot, kick_about};
use crate::posterior::{EvaluationError, Target};

/// The kernel with its buffers.
#[derive(Debug, Clone)]
pub struct Hmc<R> {
    step_size: f64,
    length: TrajectoryLength,
    momentum: Vec<R>,
    /// Where the trajectory is.
    end: Proposal<R>,
}

/// The largest step: from 2 on the leapfrog is unstable, already for the prior.
pub(super) const LARGEST: f64 = 1.9;

impl<R: Real> Hmc<R> {
    /// The kernel with step size h in (0, 1.9], at most the length of an average trajectory.
    pub fn new(step_size: f64, length: impl Into<TrajectoryLength>) -> Self {
        let mut kernel = Self {
            step_size,
            length: length.into(),
            momentum: Vec::new(),
            end: Proposal::new(true),
        };
        kernel.step_size = kernel.clamped(step_size);
        kernel
    }

    fn clamped(&self, step_size: f64) -> f64 {
        step_size.clamp(
            SMALLEST_STEP,
            self.length.mean.clamp(SMALLEST_STEP, LARGEST),
        )
    }
}

impl<R: Real> Sampler<R> for Hmc<R> {
    fn init(
        &mut self,
        target: &mut dyn Target<Real = R>,
        position: Vec<R>,
    ) -> Result<State<R>, EvaluationError> {
        start_with_gradient(target, position)
    }

    fn step(
        &mut self,
        target: &mut dyn Target<Real = R>,
        state: &mut State<R>,
        stream: &mut Stream,
    ) -> Result<Info, Fatal> {
        let h = self.step_size;
        let (end, momentum) = (&mut self.end, &mut self.momentum);
        end.start(state);
        momentum.resize(state.position.len(), R::ZERO);
        let n_steps = self.length.steps(h, stream.uniform());
        stream.fill_normal(momentum);
        let mut kinetic = kick_about(momentum, 0.5 * h, &state.gradient, &state.position);
        let found = integrate(n_steps, |is_last| {
            add_scaled(&mut end.position, h, momentum);
            let proposed = end.evaluate(target)?;
            // on the way, the second half of this kick and the first of the next at once
            let kick = if is_last { 0.5 * h } else { h };
            kinetic += kick_about(momentum, kick, &end.gradient, &end.position);
            let potential = difference_dot(&end.position, &state.position);
            let mut log_acceptance = proposed - state.log_ratio - (potential + kinetic);
            if !is_last && is_diverging(log_acceptance) {
                log_acceptance += second_half(momentum, h, &end.gradient, Some(&end.position));
            }
            Ok([proposed, log_acceptance])
        })?;
        Ok(self.end.decide_trajectory(state, found, true, stream))
    }

    fn step_size(&self) -> Option<f64> {
        Some(self.step_size)
    }

    fn set_step_size(&mut self, step_size: f64) {
        self.step_size = self.clamped(step_size);
    }
}
