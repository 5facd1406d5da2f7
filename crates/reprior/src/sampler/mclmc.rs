//! Microcanonical Langevin Monte Carlo (Robnik, De Luca, Silverstein & Seljak 2023): one isokinetic step a transition, part of the direction
//! refreshed before each, and every step taken.
//!
//! The direction is refreshed as if forgotten at the rate 1/L, then kicked by h/2, drifted along by h and kicked by h/2
//! ([`isokinetic`](super::isokinetic)). In continuous time the law is N(z; 0, I)·exp ℓ(z) whatever L is; steps of h leave an error of order h², which
//! nothing corrects: the draws are biased. The energy error of a step, ΔE = −ℓ(z') + ℓ(z) + ½(‖z'‖² − ‖z‖²) + (d − 1) Σ_kicks log c, is recorded; warm-up
//! finds the step with E[ΔE²] = d·v ([`EnergyVariance`](super::energy_variance::EnergyVariance)) and L = √(Σ_i var z_i/d), the time that it takes to
//! cross the posterior ([`TotalVariance`](super::total_variance::TotalVariance)).
//!
//! A step to where ℓ or its gradient is not finite, half a kick would have δ above 6, or the energy is higher by 1000, is refused and counted; the
//! direction is then reversed. In one dimension no force turns a direction: what is left is the corrected walk of `mams`. One gradient a step; that
//! of the current state is kept.

use super::isokinetic::{Force, LARGEST, drift, refresh_direction};
use super::proposal::Proposal;
use super::{Fatal, Info, SMALLEST_STEP, Sampler, State, start_with_gradient};
use crate::compute::{Real, Stream, difference_dot};
use crate::posterior::{EvaluationError, Target};

/// The kernel with its buffers.
#[derive(Debug, Clone)]
pub struct Mclmc<R> {
    step_size: f64,
    /// L, in the time of which a step takes h.
    length: f64,
    /// The refreshed direction.
    refreshed: Vec<f64>,
    /// In double precision: what forces make of it hangs on how near to them it is.
    direction: Vec<f64>,
    end: Proposal<R>,
}

/// E[ΔE²]/d unless told otherwise (Robnik et al. 2023).
pub(super) const ENERGY_VARIANCE: f64 = 5e-4;
/// L before it is found: that of the prior.
const LENGTH: f64 = 1.0;

impl<R: Real> Mclmc<R> {
    /// The kernel with step size h in (0, 1.9] that forgets directions in a time of `length`; in that of the prior if `None`.
    pub fn new(step_size: f64, length: Option<f64>) -> Self {
        Self {
            step_size: step_size.clamp(SMALLEST_STEP, LARGEST),
            length: length.unwrap_or(LENGTH),
            refreshed: Vec::new(),
            direction: Vec::new(),
            end: Proposal::new(true),
        }
    }
}

impl<R: Real> Sampler<R> for Mclmc<R> {
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
        let (dim, h) = (state.position.len(), self.step_size);
        let (end, direction) = (&mut self.end, &mut self.direction);
        end.start(state);
        direction.resize(dim, 0.0);
        refresh_direction(direction, [h, self.length], &state.momentum, stream);
        self.refreshed.clear();
        self.refreshed.extend_from_slice(direction);
        let force = Force::new(direction, &state.gradient, &state.position);
        let kinetic = force.kinetic(0.5 * h);
        force.kick(direction, 0.5 * h, &state.gradient, &state.position);
        drift(&mut end.position, h, direction);
        let proposed = end.evaluate(target)?;
        let force = Force::new(direction, &end.gradient, &end.position);
        // a chain may leave a steep point, for which a step may have become too long, but not go to one
        let at_end = match force.is_steep(h) {
            true => f64::INFINITY,
            false => force.kinetic(0.5 * h),
        };
        if at_end.is_finite() {
            force.kick(direction, 0.5 * h, &end.gradient, &end.position);
        }
        let potential = difference_dot(&end.position, &state.position);
        let log_acceptance = proposed - state.log_ratio - (potential + kinetic + at_end);
        let found = ([proposed, log_acceptance], 1);
        let info = end.decide_trajectory(state, found, dim < 2, stream);
        state.momentum.resize(dim, R::ZERO);
        let (from, sign) = match info.is_accepted {
            true => (&self.direction, 1.0),
            false => (&self.refreshed, -1.0),
        };
        for (m, u) in state.momentum.iter_mut().zip(from) {
            *m = R::from_f64(sign * u);
        }
        Ok(info)
    }

    fn step_size(&self) -> Option<f64> {
        Some(self.step_size)
    }

    fn set_step_size(&mut self, step_size: f64) {
        self.step_size = step_size.clamp(SMALLEST_STEP, LARGEST);
    }

    fn tuned(&self) -> Option<f64> {
        Some(self.length)
    }

    fn set_tuned(&mut self, length: f64) {
        self.length = length;
    }
}
