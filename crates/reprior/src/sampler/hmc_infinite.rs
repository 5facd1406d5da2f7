//! Hamiltonian Monte Carlo that is exact for the Gaussian part (Beskos, Pinski, Sanz-Serna, Stuart 2011).
//!
//! The energy −ℓ(z) + ½‖z‖² + ½‖v‖² is integrated by kicks v ← v + (h/2)∇ℓ(z) and rotations of (z, v) by the angle h,
//! which solve the Gaussian part exactly and preserve ‖z‖² + ‖v‖². So
//! log a = ℓ(z') − ℓ(z) − Σ_kicks [ (s)⟨v, g⟩ + ½s²‖g‖² ] with s the length of each kick, a sum of differences, and the
//! step size need not shrink with the dimension of the prior. A trajectory of a quarter turn would give independent
//! draws of the prior; its length is jittered by a quarter up and down so that no direction is resonant.
//! One gradient a step; the gradient at the current state is kept.

use std::f64::consts::FRAC_PI_2;

use super::{DIVERGENCE, Fatal, Info, Sampler, State, evaluate, evaluate_start, metropolis};
use crate::compute::{Real, Stream, kick, rotate};
use crate::posterior::{EvaluationError, Target};

/// The kernel with its buffers.
#[derive(Debug, Clone)]
pub struct HmcInfinite<R> {
    step_size: f64,
    /// Mean angle of a trajectory.
    angle: f64,
    position: Vec<R>,
    velocity: Vec<R>,
    gradient: Vec<R>,
}

/// Relative jitter of a trajectory's angle.
const JITTER: f64 = 0.25;
/// Steps of the longest trajectory: while the step size is still being found, or where it must be tiny, a trajectory is
/// cut short rather than left to take hours. The number of steps does not depend on the state, so the law stays right.
const MOST_STEPS: f64 = 128.0;
/// The smallest step that is taken.
pub(super) const SMALLEST: f64 = FRAC_PI_2 / 1024.0;

impl<R: Real> HmcInfinite<R> {
    /// The kernel with step size h (an angle) and trajectories of `angle` on average, both in (0, π/2].
    pub fn new(step_size: f64, angle: f64) -> Self {
        Self {
            step_size: step_size.clamp(SMALLEST, FRAC_PI_2),
            angle,
            position: Vec::new(),
            velocity: Vec::new(),
            gradient: Vec::new(),
        }
    }

    /// Steps of a trajectory for a uniform number in (0, 1).
    fn steps(&self, uniform: f64) -> u32 {
        let angle = self.angle * (1.0 - JITTER + 2.0 * JITTER * uniform);
        (angle / self.step_size).round().clamp(1.0, MOST_STEPS) as u32
    }
}

impl<R: Real> Sampler<R> for HmcInfinite<R> {
    fn init(
        &mut self,
        target: &mut dyn Target<Real = R>,
        position: Vec<R>,
    ) -> Result<State<R>, EvaluationError> {
        let mut gradient = vec![R::ZERO; position.len()];
        let log_ratio = evaluate_start(target.log_ratio_and_gradient(&position, &mut gradient))?;
        if gradient.iter().any(|g| !g.to_f64().is_finite()) {
            let message = "the gradient of the log-density is not finite at the start".to_owned();
            return Err(EvaluationError::Recoverable(message));
        }
        Ok(State {
            position,
            log_ratio,
            gradient,
        })
    }

    fn step(
        &mut self,
        target: &mut dyn Target<Real = R>,
        state: &mut State<R>,
        stream: &mut Stream,
    ) -> Result<Info, Fatal> {
        let dim = state.position.len();
        self.velocity.resize(dim, R::ZERO);
        self.gradient.resize(dim, R::ZERO);
        self.position.clear();
        self.position.extend_from_slice(&state.position);
        let n_steps = self.steps(stream.uniform());
        stream.fill_normal(&mut self.velocity);
        let h = self.step_size;
        let mut kinetic = kick(&mut self.velocity, 0.5 * h, &state.gradient);
        let mut proposed = state.log_ratio;
        let mut taken = 0;
        let mut log_acceptance = 0.0;
        while taken < n_steps {
            rotate(&mut self.position, &mut self.velocity, h);
            let value = target.log_ratio_and_gradient(&self.position, &mut self.gradient);
            proposed = evaluate(value)?;
            taken += 1;
            // half a kick to see the energy at this point, the other half on the way to the next
            kinetic += kick(
                &mut self.velocity,
                if taken == n_steps { 0.5 * h } else { h },
                &self.gradient,
            );
            log_acceptance = proposed - state.log_ratio - kinetic;
            if log_acceptance.is_nan() || log_acceptance < -DIVERGENCE {
                break;
            }
        }
        let diverging = log_acceptance.is_nan() || log_acceptance < -DIVERGENCE;
        let (acceptance_rate, is_accepted) = if diverging {
            (0.0, false)
        } else {
            metropolis(log_acceptance, stream)
        };
        if is_accepted {
            std::mem::swap(&mut state.position, &mut self.position);
            std::mem::swap(&mut state.gradient, &mut self.gradient);
            state.log_ratio = proposed;
        }
        Ok(Info {
            acceptance_rate,
            is_accepted,
            n_evaluations: 0,
            n_gradients: taken,
            n_steps: taken,
            energy_error: -log_acceptance,
            diverging,
        })
    }

    fn step_size(&self) -> Option<f64> {
        Some(self.step_size)
    }

    fn set_step_size(&mut self, step_size: f64) {
        self.step_size = step_size.clamp(SMALLEST, FRAC_PI_2.min(self.angle));
    }
}
