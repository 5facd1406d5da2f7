//! Transition kernels on a [`Target`], one algorithm a file.
//!
//! Every sampler leaves N(z; 0, I)·exp ℓ(z) invariant. [`Sampler::init`] makes a [`State`] (what must persist),
//! [`Sampler::step`] moves it and returns an [`Info`] (diagnostics only). Randomness comes from the stream passed in,
//! one per transition. A NaN, an infinity or a recoverable error in ℓ is a log-ratio of −∞: the proposal is rejected.

mod adaptation;
mod elliptical;
mod hmc_infinite;
mod nuts;
mod pcn;
mod settings;

use thiserror::Error;

use crate::compute::{Real, Stream};
use crate::posterior::{EvaluationError, Target};

pub use adaptation::DualAveraging;
pub use elliptical::Elliptical;
pub use hmc_infinite::HmcInfinite;
pub use nuts::Nuts;
pub use pcn::Pcn;
pub use settings::{Method, SamplerSettings, SettingsError};

/// What must persist from one transition to the next.
#[derive(Debug, Clone, PartialEq)]
pub struct State<R> {
    /// z.
    pub position: Vec<R>,
    /// ℓ(z), finite.
    pub log_ratio: f64,
    /// ∇ℓ(z); empty for methods that do not use it.
    pub gradient: Vec<R>,
}

/// Diagnostics of one transition.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Info {
    /// Acceptance probability, in [0, 1].
    pub acceptance_rate: f64,
    /// Whether the position moved.
    pub is_accepted: bool,
    /// Evaluations of ℓ alone.
    pub n_evaluations: u32,
    /// Evaluations of ℓ with its gradient.
    pub n_gradients: u32,
    /// Steps of the trajectory (1 for methods without one).
    pub n_steps: u32,
    /// Change of the energy along the transition, −log of the acceptance ratio; NaN if it could not be evaluated.
    pub energy_error: f64,
    /// The energy error exceeded [`DIVERGENCE`] or ℓ could not be evaluated on the way.
    pub diverging: bool,
}

/// Energy error beyond which a trajectory is given up as diverging.
pub const DIVERGENCE: f64 = 1000.0;

/// A fatal error of the target: the chain cannot go on.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("the target cannot be evaluated: {0}")]
pub struct Fatal(pub String);

/// A Markov transition kernel.
pub trait Sampler<R: Real>: Send {
    /// The state at `position`.
    ///
    /// # Errors
    /// If ℓ (or its gradient) is not finite there.
    fn init(
        &mut self,
        target: &mut dyn Target<Real = R>,
        position: Vec<R>,
    ) -> Result<State<R>, EvaluationError>;

    /// One transition.
    ///
    /// # Errors
    /// [`Fatal`] if the target says so; `state` is then as it was.
    fn step(
        &mut self,
        target: &mut dyn Target<Real = R>,
        state: &mut State<R>,
        stream: &mut Stream,
    ) -> Result<Info, Fatal>;

    /// The step size, for methods that have one.
    fn step_size(&self) -> Option<f64> {
        None
    }

    /// Sets the step size, clamped to what the method allows.
    fn set_step_size(&mut self, _step_size: f64) {}
}

/// ℓ at a proposal: −∞ where it is not finite or cannot be evaluated.
fn evaluate(result: Result<f64, EvaluationError>) -> Result<f64, Fatal> {
    match result {
        Ok(value) if value.is_finite() => Ok(value),
        Ok(_) | Err(EvaluationError::Recoverable(_)) => Ok(f64::NEG_INFINITY),
        Err(EvaluationError::Fatal(message)) => Err(Fatal(message)),
    }
}

/// ℓ at a starting position: an error where it is not finite.
fn evaluate_start(result: Result<f64, EvaluationError>) -> Result<f64, EvaluationError> {
    match result {
        Ok(value) if !value.is_finite() => Err(EvaluationError::Recoverable(format!(
            "the log-density is {value} at the start"
        ))),
        other => other,
    }
}

/// The state of a method that keeps ∇ℓ: an error where ℓ or its gradient is not finite.
fn gradient_start<R: Real>(
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

/// The Metropolis decision for a log acceptance ratio, NaN and −∞ included: (acceptance rate, accepted).
fn metropolis(log_acceptance: f64, stream: &mut Stream) -> (f64, bool) {
    let uniform = stream.uniform();
    if log_acceptance.is_nan() {
        return (0.0, false);
    }
    let rate = log_acceptance.min(0.0).exp();
    (rate, uniform < rate)
}
