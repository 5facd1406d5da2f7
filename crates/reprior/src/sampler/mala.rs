//! Metropolis-adjusted Langevin (Besag 1994; Roberts & Tweedie 1996).
//!
//! z' = z + (h²/2)G(z) + h·ξ, ξ ~ N(0, I), with G = ∇ℓ − z the gradient of log π. The quadratic parts of the prior and of
//! the two proposal densities cancel, which leaves, with g = ∇ℓ,
//! log a = ℓ(z') − ℓ(z) − ½⟨z' − z, g(z) + g(z')⟩ − (h²/8)⟨G(z') − G(z), G(z') + G(z)⟩.
//! The best step shrinks as dim^(−1/6), with acceptance 0.574 (Roberts & Rosenthal 1998); `pcnl` treats the Gaussian part
//! exactly and has no such limit. One evaluation of ℓ with its gradient a step; the gradient at the current state is kept.

use super::proposal::Proposal;
use super::{Fatal, Info, SMALLEST_STEP, Sampler, State, start_with_gradient};
use crate::compute::{Real, Stream, autoregress_about, sum_fours};
use crate::posterior::{EvaluationError, Target};

/// The Langevin kernel.
#[derive(Debug, Clone)]
pub struct Mala<R> {
    step_size: f64,
    proposal: Proposal<R>,
}

/// The largest step: from 2 on the drift overshoots by more than it corrects, already for the prior.
pub(super) const LARGEST: f64 = 1.9;

impl<R: Real> Mala<R> {
    /// The kernel with step size h in (0, 1.9].
    pub fn new(step_size: f64) -> Self {
        Self {
            step_size: step_size.clamp(SMALLEST_STEP, LARGEST),
            proposal: Proposal::new(true),
        }
    }
}

impl<R: Real> Sampler<R> for Mala<R> {
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
        self.proposal.resize(state.position.len());
        let (step, z, g) = (self.step_size, &state.position, &state.gradient);
        let half = 0.5 * step * step;
        stream.fill_normal_then(&mut self.proposal.position, |start, part| {
            autoregress_about(part, step, half, &z[start..], &g[start..]);
        });
        let proposed = self.proposal.evaluate(target)?;
        let asymmetry = sum_fours(
            [z, &self.proposal.position, g, &self.proposal.gradient],
            |z, to, g, g_to| {
                let (change, sum) = ((g_to - g) - (to - z), (g + g_to) - (z + to));
                -0.5 * (to - z) * (g + g_to) - 0.25 * half * change * sum
            },
        );
        let log_acceptance = proposed - state.log_ratio + asymmetry;
        Ok(self
            .proposal
            .decide(state, [proposed, log_acceptance], stream))
    }

    fn step_size(&self) -> Option<f64> {
        Some(self.step_size)
    }

    fn set_step_size(&mut self, step_size: f64) {
        self.step_size = step_size.clamp(SMALLEST_STEP, LARGEST);
    }
}
