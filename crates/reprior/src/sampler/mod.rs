//! Transition kernels on a [`Target`], one algorithm a file.
//!
//! Every sampler leaves N(z; 0, I)·exp ℓ(z) invariant, `mclmc` and uncorrected `langevin` up to errors of order h². [`Sampler::init`] makes a [`State`] (what must persist),
//! [`Sampler::step`] moves it and returns an [`Info`] (diagnostics only). Randomness comes from the stream passed in,
//! one per transition. A NaN, an infinity or a recoverable error in ℓ, or a gradient that is not finite, is a log-ratio
//! of −∞: the proposal is rejected and counted.

mod adaptation;
mod elliptical;
mod energy_variance;
mod hmc;
mod hmc_infinite;
mod isokinetic;
mod langevin;
mod local_step;
mod mala;
mod mams;
mod mclmc;
mod method;
mod nuts;
mod pcn;
mod pcnl;
mod proposal;
mod rwm;
mod search;
mod settings;
mod total_variance;
mod trajectory;
mod tuning;

use thiserror::Error;

use crate::compute::{Real, Stream, all_finite};
use crate::posterior::{EvaluationError, Target};

pub use method::Method;
pub(crate) use search::FoundStepSize;
pub use settings::{MOST_REPLICAS, SamplerSettings, SettingsError, Start};
pub(crate) use trajectory::DIVERGENCE;
pub use trajectory::{MAX_STEPS, TrajectoryLength};

/// The kernels by themselves, which [`SamplerSettings::sampler`] makes from their names. For tests and experiments: they change without notice.
#[doc(hidden)]
pub mod kernels {
    pub use super::adaptation::DualAveraging;
    pub use super::elliptical::Elliptical;
    pub use super::hmc::Hmc;
    pub use super::hmc_infinite::HmcInfinite;
    pub use super::langevin::Langevin;
    pub use super::mala::Mala;
    pub use super::mams::Mams;
    pub use super::mclmc::Mclmc;
    pub use super::nuts::Nuts;
    pub use super::pcn::Pcn;
    pub use super::pcnl::Pcnl;
    pub use super::rwm::Rwm;
    pub use super::tuning::Adaptation;
}

/// The smallest step that any method takes: below it, single precision would not notice one.
const SMALLEST_STEP: f64 = 1e-6;

/// What must persist from one transition to the next.
#[derive(Debug, Clone, PartialEq)]
pub struct State<R> {
    /// z.
    pub position: Vec<R>,
    /// ℓ(z), finite.
    pub log_ratio: f64,
    /// ∇ℓ(z); empty for methods that do not use it.
    pub gradient: Vec<R>,
    /// Momentum, or a direction; empty for methods that do not keep one, and before the first transition of those that do.
    pub momentum: Vec<R>,
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
    /// The energy error exceeded 1000 or ℓ could not be evaluated on the way.
    pub diverging: bool,
}

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

    /// What warm-up finds beside a step size: of `mclmc` the time in which directions are forgotten, of `hmc-infinite` the gradient's usual
    /// norm. None for other methods, and before it is found.
    fn tuned(&self) -> Option<f64> {
        None
    }

    /// Sets it.
    fn set_tuned(&mut self, _value: f64) {}
}

/// ℓ at a proposal: −∞ where it is not finite or cannot be evaluated.
pub(crate) fn evaluate(result: Result<f64, EvaluationError>) -> Result<f64, Fatal> {
    match result {
        Ok(value) if value.is_finite() => Ok(value),
        Ok(_) | Err(EvaluationError::Recoverable(_)) => Ok(f64::NEG_INFINITY),
        Err(EvaluationError::Fatal(message)) => Err(Fatal(message)),
    }
}

/// ℓ at a proposal, with ∇ℓ in `gradient`: −∞ where either is not finite or cannot be evaluated.
fn evaluate_gradient<R: Real>(
    target: &mut dyn Target<Real = R>,
    position: &[R],
    gradient: &mut [R],
) -> Result<f64, Fatal> {
    let value = evaluate(target.log_ratio_and_gradient(position, gradient))?;
    Ok(if all_finite(gradient) {
        value
    } else {
        f64::NEG_INFINITY
    })
}

/// The state at a starting position, for methods without gradients.
fn start<R: Real>(
    target: &mut dyn Target<Real = R>,
    position: Vec<R>,
) -> Result<State<R>, EvaluationError> {
    let log_ratio = target.log_ratio(&position)?;
    finite_start(log_ratio, position, Vec::new())
}

/// The state at a starting position, for methods with gradients.
fn start_with_gradient<R: Real>(
    target: &mut dyn Target<Real = R>,
    position: Vec<R>,
) -> Result<State<R>, EvaluationError> {
    let mut gradient = vec![R::ZERO; position.len()];
    let log_ratio = target.log_ratio_and_gradient(&position, &mut gradient)?;
    finite_start(log_ratio, position, gradient)
}

fn finite_start<R: Real>(
    log_ratio: f64,
    position: Vec<R>,
    gradient: Vec<R>,
) -> Result<State<R>, EvaluationError> {
    let message = if !log_ratio.is_finite() {
        format!("the log-density is {log_ratio} at the start")
    } else if !all_finite(&gradient) {
        "the gradient of the log-density is not finite at the start".to_owned()
    } else {
        return Ok(State {
            position,
            log_ratio,
            gradient,
            momentum: Vec::new(),
        });
    };
    Err(EvaluationError::Recoverable(message))
}

/// The Metropolis decision for a log acceptance ratio, NaN and −∞ included: (acceptance rate, accepted).
pub(crate) fn metropolis(log_acceptance: f64, stream: &mut Stream) -> (f64, bool) {
    let uniform = stream.uniform();
    if log_acceptance.is_nan() {
        return (0.0, false);
    }
    let rate = log_acceptance.min(0.0).exp();
    (rate, uniform < rate)
}
