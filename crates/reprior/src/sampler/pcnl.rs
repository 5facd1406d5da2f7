//! Preconditioned Crank-Nicolson Langevin (Cotter, Roberts, Stuart, White 2013, Section 4.2).
//!
//! z' = [(2 − δ)z + 2δ∇ℓ(z) + √(8δ)ξ]/(2 + δ), ξ ~ N(0, I). With c = (2 − δ)/(2 + δ) = √(1 − β²) that is
//! z' = c·z + (1 − c)∇ℓ(z) + β·ξ: pCN about the gradient instead of about 0, with the same β in (0, 1].
//! Its acceptance ratio is log a = ρ(z, z') − ρ(z', z),
//! ρ(u, v) = −ℓ(u) − ½⟨v − u, ∇ℓ(u)⟩ − (δ/4)⟨u + v, ∇ℓ(u)⟩ + (δ/4)‖∇ℓ(u)‖² (their eq. 4.9 with ℓ for −Φ), here as one
//! sum of differences, with g = ∇ℓ(z) and g' = ∇ℓ(z'):
//! log a = ℓ(z') − ℓ(z) + Σ [−½(z' − z)(g + g') + (δ/4)(g' − g)(z + z' − g − g')].
//!
//! ℓ must be the density of the target against N(0, I) in the same coordinates. With the log-likelihood of reparametrised
//! weights in its place the likelihood counts twice, and the readout's variance comes out about half of what it is.
//! One evaluation of ℓ with its gradient a step; the gradient at the current state is kept.

use super::proposal::Proposal;
use super::{Fatal, Info, SMALLEST_STEP, Sampler, State, start_with_gradient};
use crate::compute::{Real, Stream, autoregress_about, sum_fours};
use crate::posterior::{EvaluationError, Target};

/// The pCNL kernel.
#[derive(Debug, Clone)]
pub struct Pcnl<R> {
    beta: f64,
    proposal: Proposal<R>,
}

impl<R: Real> Pcnl<R> {
    /// The kernel with step size β in (0, 1].
    pub fn new(beta: f64) -> Self {
        Self {
            beta: beta.clamp(SMALLEST_STEP, 1.0),
            proposal: Proposal::new(true),
        }
    }
}

/// (1 − c, δ) with c = √(1 − β²) and δ = 2(1 − c)/(1 + c), without cancellation.
fn shrink_and_delta(beta: f64) -> (f64, f64) {
    let keep = ((1.0 - beta) * (1.0 + beta)).sqrt();
    let shrink = beta * beta / (1.0 + keep);
    (shrink, 2.0 * shrink / (1.0 + keep))
}

impl<R: Real> Sampler<R> for Pcnl<R> {
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
        let (shrink, delta) = shrink_and_delta(self.beta);
        let (beta, z, g) = (self.beta, &state.position, &state.gradient);
        stream.fill_normal_then(&mut self.proposal.position, |start, part| {
            autoregress_about(part, beta, shrink, &z[start..], &g[start..]);
        });
        let proposed = self.proposal.evaluate(target)?;
        let asymmetry = sum_fours(
            [z, &self.proposal.position, g, &self.proposal.gradient],
            |z, to, g, g_to| {
                -0.5 * (to - z) * (g + g_to) + 0.25 * delta * (g_to - g) * (z + to - g - g_to)
            },
        );
        let log_acceptance = proposed - state.log_ratio + asymmetry;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delta_of_beta() {
        for (beta, expected) in [(0.2, 0.020_410_3), (0.1, 0.005_025_16), (0.01, 5.000_25e-5)] {
            let (shrink, delta) = shrink_and_delta(beta);
            assert!((delta / expected - 1.0).abs() < 1e-5);
            assert!((8.0 * delta / (2.0 + delta).powi(2) - beta * beta).abs() < 1e-15);
            assert!((shrink - 2.0 * delta / (2.0 + delta)).abs() < 1e-15);
        }
    }
}
