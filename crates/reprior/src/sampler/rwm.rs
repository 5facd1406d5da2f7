//! Random-walk Metropolis (Metropolis et al. 1953).
//!
//! z' = z + s·ξ, ξ ~ N(0, I); log a = ℓ(z') − ℓ(z) − ½(‖z'‖² − ‖z‖²). The baseline that the other methods are measured
//! against: the best step is about 2.4/√dim, with acceptance 0.234 (Roberts, Gelman, Gilks 1997), so that it needs
//! transitions in proportion to the dimension. One evaluation of ℓ a step.

use super::proposal::Proposal;
use super::{Fatal, Info, SMALLEST_STEP, Sampler, State, start};
use crate::compute::{Real, Stream, autoregress, difference_dot};
use crate::posterior::{EvaluationError, Target};

/// The random-walk kernel.
#[derive(Debug, Clone)]
pub struct Rwm<R> {
    step_size: f64,
    proposal: Proposal<R>,
}

/// The largest step: several standard deviations of the prior.
pub(super) const LARGEST: f64 = 10.0;

impl<R: Real> Rwm<R> {
    /// The kernel with step size s in (0, 10].
    pub fn new(step_size: f64) -> Self {
        Self {
            step_size: step_size.clamp(SMALLEST_STEP, LARGEST),
            proposal: Proposal::new(false),
        }
    }
}

impl<R: Real> Sampler<R> for Rwm<R> {
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
        let (step, z) = (self.step_size, &state.position);
        stream.fill_normal_then(&mut self.proposal.position, |start, part| {
            autoregress(part, step, 0.0, &z[start..]);
        });
        let proposed = self.proposal.evaluate(target)?;
        let log_acceptance =
            proposed - state.log_ratio - difference_dot(&self.proposal.position, &state.position);
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
