//! Where the adaptation of a step size begins: a search by doubling and halving (Hoffman & Gelman 2014, Algorithm 4).
//!
//! One step of the method, from the state where the chain is, is accepted with some probability. The step size is doubled
//! while that is at least what adaptation aims at (or the energy error, of `mclmc`, at most what it aims at), or halved until it is; the largest that was good is taken. Every trial
//! uses the same random numbers, so that its acceptance varies smoothly with the step size. Trajectories have one step
//! here, whatever their length: a trial costs one evaluation, and the 17 halvings from 0.1 to the smallest step that any
//! method takes cost less than one trajectory.

use super::kernels::{Hmc, HmcInfinite, Mams};
use super::settings::{AdaptedSteps, NewSampler};
use super::{Fatal, Method, Sampler, SamplerSettings, State};
use crate::compute::{Real, Stream};
use crate::posterior::Target;

/// What a search found, and what it cost.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FoundStepSize {
    /// The step size.
    pub step_size: f64,
    /// Evaluations of ℓ alone.
    pub n_evaluations: u32,
    /// Evaluations of ℓ with its gradient.
    pub n_gradients: u32,
}

impl SamplerSettings {
    /// The step size that adaptation begins with at `state`, for which `stream` makes the random numbers (the same at each
    /// call); none where the step size is fixed or there is none.
    ///
    /// # Errors
    /// [`Fatal`] if the target says so.
    pub fn search<R: Real>(
        &self,
        target: &mut dyn Target<Real = R>,
        state: &State<R>,
        stream: impl Fn() -> Stream,
    ) -> Result<Option<FoundStepSize>, Fatal> {
        let Some(steps) = self.adapted_steps() else {
            return Ok(None);
        };
        let AdaptedSteps {
            initial,
            smallest,
            largest,
            aim,
        } = steps;
        let mut found = FoundStepSize::default();
        let mut is_good = |step_size: f64| {
            let mut state = State {
                momentum: Vec::new(),
                ..state.clone()
            };
            let mut trial = self.one_step(step_size);
            let info = trial.step(target, &mut state, &mut stream())?;
            found.n_evaluations += info.n_evaluations;
            found.n_gradients += info.n_gradients;
            Ok(aim.is_met(&info, state.position.len()))
        };
        let mut step_size = initial;
        if is_good(step_size)? {
            while step_size < largest && is_good((2.0 * step_size).min(largest))? {
                step_size = (2.0 * step_size).min(largest);
            }
        } else {
            while step_size > smallest {
                step_size = (0.5 * step_size).max(smallest);
                if is_good(step_size)? {
                    break;
                }
            }
        }
        found.step_size = step_size;
        Ok(Some(found))
    }

    /// A sampler of which each transition is one step of the method.
    fn one_step<R: Real>(&self, step_size: f64) -> Box<dyn Sampler<R>> {
        R::of_precision(NewSampler {
            settings: self,
            one_step: Some(step_size),
        })
    }

    pub(super) fn new_one_step<R: Real>(&self, step_size: f64) -> Box<dyn Sampler<R>> {
        match self.method {
            Method::HmcInfinite => Box::new(HmcInfinite::new(step_size, step_size, 1.0)),
            Method::Hmc | Method::Nuts => Box::new(Hmc::new(step_size, step_size)),
            Method::Mams => Box::new(Mams::new(step_size, step_size)),
            _ => Self {
                step_size: Some(step_size),
                ..self.clone()
            }
            .sampler(),
        }
    }
}
