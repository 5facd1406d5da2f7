//! What Metropolis methods share: a proposed position with what was evaluated there, and the decision on it.

use super::trajectory::is_diverging;
use super::{Fatal, Info, State, evaluate, evaluate_gradient, metropolis};
use crate::compute::{Real, Stream};
use crate::posterior::Target;

/// A proposed position.
#[derive(Debug, Clone)]
pub(super) struct Proposal<R> {
    pub position: Vec<R>,
    /// ∇ℓ there; empty for methods without.
    pub gradient: Vec<R>,
    has_gradient: bool,
}

impl<R: Real> Proposal<R> {
    /// Of a method with or without gradients.
    pub fn new(has_gradient: bool) -> Self {
        Self {
            position: Vec::new(),
            gradient: Vec::new(),
            has_gradient,
        }
    }

    /// Makes room for so many coordinates.
    pub fn resize(&mut self, dim: usize) {
        self.position.resize(dim, R::ZERO);
        if self.has_gradient {
            self.gradient.resize(dim, R::ZERO);
        }
    }

    /// Begins where the chain is.
    pub fn start(&mut self, state: &State<R>) {
        self.resize(state.position.len());
        self.position.copy_from_slice(&state.position);
    }

    /// ℓ at the proposal, −∞ where it cannot be evaluated; with the gradient for methods with.
    pub fn evaluate(&mut self, target: &mut dyn Target<Real = R>) -> Result<f64, Fatal> {
        if self.has_gradient {
            evaluate_gradient(target, &self.position, &mut self.gradient)
        } else {
            evaluate(target.log_ratio(&self.position))
        }
    }

    /// The decision on a proposal with ℓ = `proposed`; `state` becomes it where it is accepted.
    pub fn decide(
        &mut self,
        state: &mut State<R>,
        [proposed, log_acceptance]: [f64; 2],
        stream: &mut Stream,
    ) -> Info {
        let (acceptance_rate, is_accepted) = metropolis(log_acceptance, stream);
        if is_accepted {
            self.replace(state, proposed);
        }
        Info {
            acceptance_rate,
            is_accepted,
            n_evaluations: u32::from(!self.has_gradient),
            n_gradients: u32::from(self.has_gradient),
            n_steps: 1,
            energy_error: -log_acceptance,
            diverging: proposed == f64::NEG_INFINITY,
        }
    }

    /// The decision on the end of a trajectory of so many steps, which is rejected if it diverged; otherwise it is accepted always
    /// unless `is_corrected`.
    pub fn decide_trajectory(
        &mut self,
        state: &mut State<R>,
        ([proposed, log_acceptance], taken): ([f64; 2], u32),
        is_corrected: bool,
        stream: &mut Stream,
    ) -> Info {
        let diverging = is_diverging(log_acceptance);
        let (acceptance_rate, is_accepted) = if diverging {
            (0.0, false)
        } else {
            let (rate, is_accepted) = metropolis(log_acceptance, stream);
            (rate, is_accepted || !is_corrected)
        };
        if is_accepted {
            self.replace(state, proposed);
        }
        Info {
            acceptance_rate,
            is_accepted,
            n_evaluations: 0,
            n_gradients: taken,
            n_steps: taken,
            energy_error: -log_acceptance,
            diverging,
        }
    }

    fn replace(&mut self, state: &mut State<R>, proposed: f64) {
        std::mem::swap(&mut state.position, &mut self.position);
        std::mem::swap(&mut state.gradient, &mut self.gradient);
        state.log_ratio = proposed;
    }
}
