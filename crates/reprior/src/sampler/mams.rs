//! Metropolis-adjusted microcanonical sampler (Robnik, Cohn-Gordon & Seljak 2025): trajectories of constant speed whose direction is turned by the
//! gradient.
//!
//! Drifts and kicks are those of [`isokinetic`](super::isokinetic). They are reversible, and kicks take the kinetic energy (d − 1)·log c, so
//! log a = ℓ(z') − ℓ(z) − ½(‖z'‖² − ‖z‖²) − (d − 1) Σ_kicks log c.
//! Where half a kick has δ above 6, the step is far too large, and rounding decides what e^(−2δ) is to be compared with: a trajectory with such a point, first
//! and last included, is rejected as diverging, which is the same forwards and backwards. Directions are drawn anew for each trajectory; the number of steps is that of `hmc`. In one dimension no force turns a direction, and what
//! is left is a walk of normal steps. One gradient a step; the last is kept.

use super::isokinetic::{Force, LARGEST, draw_direction, drift};
use super::proposal::Proposal;
use super::trajectory::{TrajectoryLength, integrate};
use super::{Fatal, Info, SMALLEST_STEP, Sampler, State, start_with_gradient};
use crate::compute::{Real, Stream, difference_dot};
use crate::posterior::{EvaluationError, Target};

/// The kernel with its buffers.
#[derive(Debug, Clone)]
pub struct Mams<R> {
    step_size: f64,
    length: TrajectoryLength,
    /// In double precision: what forces make of it hangs on how near to them it is.
    direction: Vec<f64>,
    /// Where the trajectory is.
    end: Proposal<R>,
}

impl<R: Real> Mams<R> {
    /// The kernel with step size h in (0, 1.9], at most the length of an average trajectory.
    pub fn new(step_size: f64, length: impl Into<TrajectoryLength>) -> Self {
        let mut kernel = Self {
            step_size,
            length: length.into(),
            direction: Vec::new(),
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

impl<R: Real> Sampler<R> for Mams<R> {
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
        let (end, direction) = (&mut self.end, &mut self.direction);
        end.start(state);
        direction.resize(state.position.len(), 0.0);
        let n_steps = self.length.steps(h, stream.uniform());
        draw_direction(direction, stream);
        let force = Force::new(direction, &state.gradient, &state.position);
        let mut kinetic = match force.is_steep(h) {
            true => f64::INFINITY,
            false => force.kinetic(0.5 * h),
        };
        force.kick(direction, 0.5 * h, &state.gradient, &state.position);
        let found = integrate(n_steps, |is_last| {
            drift(&mut end.position, h, direction);
            let proposed = end.evaluate(target)?;
            let force = Force::new(direction, &end.gradient, &end.position);
            let potential = difference_dot(&end.position, &state.position);
            // the energy of the point is that after half a kick
            let at_point = match force.is_steep(h) {
                true => f64::INFINITY,
                false => kinetic + force.kinetic(0.5 * h),
            };
            let log_acceptance = proposed - state.log_ratio - (potential + at_point);
            if !is_last {
                // the second half of this kick and the first of the next at once
                kinetic += force.kinetic(h);
                force.kick(direction, h, &end.gradient, &end.position);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::{Purpose, norm_squared};

    /// Far too large a step would be accepted if the volume of what cannot be told from one direction were believed.
    #[test]
    fn where_rounding_decides_nothing_is_accepted() {
        struct Narrow;
        impl Target for Narrow {
            type Real = f64;
            fn dim(&self) -> usize {
                3
            }
            fn log_ratio(&mut self, z: &[f64]) -> Result<f64, EvaluationError> {
                Ok(-0.5e6 * norm_squared(z))
            }
            fn log_ratio_and_gradient(
                &mut self,
                z: &[f64],
                gradient: &mut [f64],
            ) -> Result<f64, EvaluationError> {
                for (g, z) in gradient.iter_mut().zip(z) {
                    *g = -1e6 * z;
                }
                self.log_ratio(z)
            }
        }
        for (step, is_good) in [(1.0, false), (0.1, false), (0.01, false), (1e-4, true)] {
            let mut kernel = Mams::new(step, step);
            let mut state = kernel.init(&mut Narrow, vec![1e-3; 3]).unwrap();
            let mut stream = Stream::new(5, 0, Purpose::Transition, 1);
            let info = kernel.step(&mut Narrow, &mut state, &mut stream).unwrap();
            assert_eq!(info.diverging, !is_good, "{step} {info:?}");
            assert_eq!(info.acceptance_rate > 0.5, is_good, "{step} {info:?}");
        }
    }
}
