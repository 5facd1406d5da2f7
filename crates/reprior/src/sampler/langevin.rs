//! Underdamped Langevin dynamics: generalised Hamiltonian Monte Carlo with one leapfrog step (Horowitz 1991).
//!
//! The momentum is refreshed in part, m ← √(1 − b)·m + √b·ξ, ξ ~ N(0, I), with damping b in (0, 1]; then one leapfrog step
//! of size h for the energy −ℓ(z) + ½‖z‖² + ½‖m‖²: m ← m + (h/2)(∇ℓ(z) − z), z ← z + h·m, m ← m + (h/2)(∇ℓ(z) − z).
//! log a = ℓ(z') − ℓ(z) − ½(‖z'‖² − ‖z‖²) − Σ_kicks ½Δ‖m‖², a sum of differences. A rejected step keeps the position and
//! turns the refreshed momentum round, which keeps the target's law exactly; b = 1 is `mala`.
//!
//! Without Metropolis correction every step is taken (Hron et al. 2022), and the law is right up to errors of order h²:
//! the acceptance rate that is reported, and adapted to, then says how far it can be off. Even so a step to where ℓ or its
//! gradient is not finite, or the energy is higher by 1000, is refused and counted.
//!
//! A rejection sends the chain back the way it came, so that rejections must be rare, the more so the less is refreshed.
//! Effective draws a step of predictions (and of weights) in `marginal` coordinates, 100 rows of Friedman's function and a
//! layer of 64: damping 0.01 with acceptance 0.9 gives 0.0099 (0.0050), with 0.97 0.0113 (0.0061); damping 0.03 with 0.97
//! gives 0.0129 (0.0063), 0.1 with 0.97 0.0133 (0.0050), 0.3 with 0.97 0.0091 (0.0027). 128 images of CIFAR-10 and a layer
//! of 512, acceptance 0.97: 0.046 for damping 0.01, 0.071 for 0.03. Hence the defaults, 0.03 and 0.97.
//! One evaluation of ℓ with its gradient a step; the gradient at the current state is kept.

use super::proposal::Proposal;
use super::trajectory::refresh;
use super::{Fatal, Info, SMALLEST_STEP, Sampler, State, start_with_gradient};
use crate::compute::{Real, Stream, add_scaled, difference_dot, kick_about, negate};
use crate::posterior::{EvaluationError, Target};

/// The kernel with its buffers.
#[derive(Debug, Clone)]
pub struct Langevin<R> {
    step_size: f64,
    damping: f64,
    corrected: bool,
    /// The refreshed momentum.
    refreshed: Vec<R>,
    momentum: Vec<R>,
    end: Proposal<R>,
}

/// The largest step: from 2 on the leapfrog is unstable, already for the prior.
pub(super) const LARGEST: f64 = 1.9;
/// Damping unless told otherwise: of 0.01 (Hron et al. 2022), 0.03, 0.1 and 0.3 the one with the most effective draws of
/// weights and predictions together, on tables and images (see the module's text).
pub(super) const DAMPING: f64 = 0.03;

impl<R: Real> Langevin<R> {
    /// The kernel with step size h in (0, 1.9] and damping b in (0, 1]; `corrected`: with Metropolis correction.
    pub fn new(step_size: f64, damping: f64, corrected: bool) -> Self {
        Self {
            step_size: step_size.clamp(SMALLEST_STEP, LARGEST),
            damping,
            corrected,
            refreshed: Vec::new(),
            momentum: Vec::new(),
            end: Proposal::new(true),
        }
    }
}

impl<R: Real> Sampler<R> for Langevin<R> {
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
        self.refreshed.resize(dim, R::ZERO);
        refresh(&mut self.refreshed, self.damping, &state.momentum, stream);
        self.momentum.clear();
        self.momentum.extend_from_slice(&self.refreshed);
        let (end, momentum) = (&mut self.end, &mut self.momentum);
        end.start(state);
        let mut kinetic = kick_about(momentum, 0.5 * h, &state.gradient, &state.position);
        add_scaled(&mut end.position, h, momentum);
        let proposed = end.evaluate(target)?;
        kinetic += kick_about(momentum, 0.5 * h, &end.gradient, &end.position);
        let potential = difference_dot(&end.position, &state.position);
        let log_acceptance = proposed - state.log_ratio - (potential + kinetic);
        let found = ([proposed, log_acceptance], 1);
        let info = end.decide_trajectory(state, found, self.corrected, stream);
        state.momentum.resize(dim, R::ZERO);
        if info.is_accepted {
            std::mem::swap(&mut state.momentum, &mut self.momentum);
        } else {
            std::mem::swap(&mut state.momentum, &mut self.refreshed);
            negate(&mut state.momentum);
        }
        Ok(info)
    }

    fn step_size(&self) -> Option<f64> {
        Some(self.step_size)
    }

    fn set_step_size(&mut self, step_size: f64) {
        self.step_size = step_size.clamp(SMALLEST_STEP, LARGEST);
    }
}
