//! Preconditioned Crank-Nicolson (Neal 1999; Cotter, Roberts, Stuart, White 2013).
//!
//! z' = √(1 − β²)·z + β·ξ, ξ ~ N(0, I), leaves N(0, I) invariant; log a = ℓ(z') − ℓ(z). One evaluation of ℓ a step.

use super::proposal::Proposal;
use super::{Fatal, Info, SMALLEST_STEP, Sampler, State, start};
use crate::compute::{Real, Stream, autoregress};
use crate::posterior::{EvaluationError, Target};

/// The pCN kernel.
#[derive(Debug, Clone)]
pub struct Pcn<R> {
    beta: f64,
    proposal: Proposal<R>,
}

impl<R: Real> Pcn<R> {
    /// The kernel with step size β in (0, 1].
    pub fn new(beta: f64) -> Self {
        Self {
            beta: beta.clamp(SMALLEST_STEP, 1.0),
            proposal: Proposal::new(false),
        }
    }
}

impl<R: Real> Sampler<R> for Pcn<R> {
    fn init(
        &mut self,
        target: &mut dyn Target<Real = R>,
        position: Vec<R>,
    ) -> Result<State<R>, EvaluationError> {
        start(target, position)
    }

    fn step(
        &mut self,
        target: &mut dyn Target<Real = R>,
        state: &mut State<R>,
        stream: &mut Stream,
    ) -> Result<Info, Fatal> {
        self.proposal.resize(state.position.len());
        // √(1 − β²) = 1 − shrink
        let keep = ((1.0 - self.beta) * (1.0 + self.beta)).sqrt();
        let shrink = self.beta * self.beta / (1.0 + keep);
        let (beta, z) = (self.beta, &state.position);
        stream.fill_normal_then(&mut self.proposal.position, |start, part| {
            autoregress(part, beta, shrink, &z[start..]);
        });
        let proposed = self.proposal.evaluate(target)?;
        let log_acceptance = proposed - state.log_ratio;
        Ok(self
            .proposal
            .decide(state, [proposed, log_acceptance], stream))
    }

    fn step_size(&self) -> Option<f64> {
        Some(self.beta)
    }

    fn set_step_size(&mut self, step_size: f64) {
        self.beta = step_size.clamp(SMALLEST_STEP, 1.0);
    }
}
