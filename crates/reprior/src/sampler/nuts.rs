//! The No-U-Turn sampler (Hoffman & Gelman 2014) with multinomial trajectories (Betancourt 2017), by the crate nuts-rs.
//!
//! The energy −ℓ(z) + ½‖z‖² + ½‖v‖² is integrated by leapfrog steps of a fixed size with the identity as mass matrix;
//! trajectories double until they turn back, at most 2¹⁰ − 1 steps or fewer if asked for, and a point is drawn from them with weight
//! exp(−energy). One gradient a step; the gradient at the current state is kept.
//!
//! A transition must be a function of the state, the step size and the stream alone, or a run could not be resumed to
//! the same bytes and the law would not be left invariant. nuts-rs adapts, and its diagonal and low-rank chains set
//! the mass matrix from the gradient at the position they are put on, even with no tuning asked for: a kernel made of
//! them would depend on where it starts. Here its chain for user-supplied transformations is used, made anew for each
//! transition, with the identity as transformation (so nothing can adapt), no tuning, and a fixed step size without
//! jitter; its generator is seeded from the stream. nuts-rs takes a log-density in two terms, which are ℓ and, in the
//! place of the log-determinant, −½‖z‖²; so ℓ and ∇ℓ of the draw come back without rounding.
//!
//! Trajectories run in double precision; ℓ is evaluated at the position rounded to the target's precision, and such a
//! position is what the state takes. Memory is allocated in each transition: five vectors for each point that a
//! trajectory keeps, three points per doubling (measured: 63 vectors at four doublings, 153 at ten). Beside the gradient
//! a step takes some 6 ns per coordinate. The draws depend on the version of nuts-rs.

use std::collections::HashMap;

use nuts_rs::{
    Chain, CpuLogpFunc, CpuMath, CpuMathError, FlowNutsSettings, FlowSettings, HasDims,
    KineticEnergyKind, LogpError, NutsError, Settings, StepSizeAdaptMethod, rand,
};
use thiserror::Error;

use super::{
    DIVERGENCE, Fatal, Info, SMALLEST_STEP, Sampler, State, evaluate_gradient, start_with_gradient,
};
use crate::compute::{Real, Stream};
use crate::posterior::{EvaluationError, Target};

/// The kernel with its buffers.
#[derive(Debug, Clone)]
pub struct Nuts<R> {
    step_size: f64,
    /// Doublings at most.
    depth: u64,
    position: Vec<R>,
    gradient: Vec<R>,
}

/// Doublings of the longest trajectory.
const MAX_DEPTH: u64 = 10;
/// The largest: from 2 on the leapfrog is unstable already for the prior.
pub(super) const LARGEST: f64 = 1.9;

/// Doublings that so many steps have room for, 1 to 10.
fn depth(max_steps: Option<u32>) -> u64 {
    let fitting = |steps: u32| u64::from(steps.max(1).saturating_add(1).ilog2());
    max_steps.map_or(MAX_DEPTH, fitting).min(MAX_DEPTH)
}

/// Steps of the longest trajectory that is made of at most so many.
pub(super) fn most_steps(max_steps: Option<u32>) -> u32 {
    (1 << depth(max_steps)) - 1
}

impl<R: Real> Nuts<R> {
    /// The kernel with a step size in (0, 1.9] and as many doublings as `max_steps` steps have room for, one at least.
    pub fn new(step_size: f64, max_steps: Option<u32>) -> Self {
        Self {
            step_size: step_size.clamp(SMALLEST_STEP, LARGEST),
            depth: depth(max_steps),
            position: Vec::new(),
            gradient: Vec::new(),
        }
    }

    fn settings(&self) -> FlowNutsSettings {
        let mut adapt_options = FlowSettings::default();
        adapt_options.step_size_settings.jitter = None;
        adapt_options.step_size_settings.adapt_options.method =
            StepSizeAdaptMethod::Fixed(self.step_size);
        FlowNutsSettings {
            num_tune: 0,
            maxdepth: self.depth,
            max_energy_error: DIVERGENCE,
            store_gradient: true,
            trajectory_kind: KineticEnergyKind::Euclidean,
            gradient_clipping: None,
            adapt_options,
            ..FlowNutsSettings::default()
        }
    }
}

impl<R: Real> Sampler<R> for Nuts<R> {
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
        let dim = state.position.len();
        if dim == 0 {
            // there is nothing to move
            return Ok(Info {
                acceptance_rate: 1.0,
                is_accepted: true,
                ..Info::default()
            });
        }
        let start: Vec<f64> = state.position.iter().map(|z| z.to_f64()).collect();
        self.position.resize(dim, R::ZERO);
        self.gradient.resize(dim, R::ZERO);
        let settings = self.settings();
        let mut n_gradients = 0;
        let density = NutsDensity {
            target,
            start: state,
            position: &mut self.position,
            gradient: &mut self.gradient,
            n_gradients: &mut n_gradients,
        };
        let result = settings
            .new_chain(0, CpuMath::new(density), stream.generator())
            .and_then(|mut chain| {
                chain.set_position(&start)?;
                chain.expanded_draw()
            });
        let (position, _, statistics, progress) = result.map_err(|error| {
            Fatal(match error.downcast_ref() {
                Some(NutsError::LogpFailure(failure)) => failure.to_string(),
                _ => error.to_string(),
            })
        })?;
        let is_accepted = statistics.point.index_in_trajectory != 0;
        if is_accepted {
            write(&mut state.position, &position);
            if let Some(gradient) = &statistics.point.gradient {
                write(&mut state.gradient, gradient);
            }
            state.log_ratio = statistics.point.logp;
        }
        Ok(Info {
            acceptance_rate: statistics.adapt.step_size.mean_tree_accept,
            is_accepted,
            n_evaluations: 0,
            n_gradients,
            n_steps: u32::try_from(progress.num_steps).unwrap_or(u32::MAX),
            energy_error: statistics.point.energy_error,
            diverging: progress.diverging,
        })
    }

    fn step_size(&self) -> Option<f64> {
        Some(self.step_size)
    }

    fn set_step_size(&mut self, step_size: f64) {
        self.step_size = step_size.clamp(SMALLEST_STEP, LARGEST);
    }
}

/// What nuts-rs sees of a target: the identity as transformation, ℓ as log-density, −½‖z‖² as log-determinant.
struct NutsDensity<'a, R: Real> {
    target: &'a mut dyn Target<Real = R>,
    /// Where the transition starts; what is known there is not evaluated again.
    start: &'a State<R>,
    position: &'a mut [R],
    gradient: &'a mut [R],
    n_gradients: &'a mut u32,
}

/// A position where ℓ cannot be evaluated.
#[derive(Debug, Error)]
enum NutsFailure {
    #[error("ℓ cannot be evaluated there")]
    Recoverable,
    #[error("{0}")]
    Fatal(String),
}

impl LogpError for NutsFailure {
    fn is_recoverable(&self) -> bool {
        matches!(self, Self::Recoverable)
    }
}

impl<R: Real> HasDims for NutsDensity<'_, R> {
    fn dim_sizes(&self) -> HashMap<String, u64> {
        HashMap::from([(
            "unconstrained_parameter".to_owned(),
            self.position.len() as u64,
        )])
    }
}

impl<R: Real> CpuLogpFunc for NutsDensity<'_, R> {
    type LogpError = NutsFailure;
    type FlowParameters = ();
    type ExpandedVector = ();

    fn dim(&self) -> usize {
        self.position.len()
    }

    /// Called once, at the start, for a gradient that a transformation could be made from.
    fn logp(&mut self, _: &[f64], gradient: &mut [f64]) -> Result<f64, NutsFailure> {
        read(gradient, &self.start.gradient);
        Ok(self.start.log_ratio)
    }

    fn expand_vector<G: rand::Rng + ?Sized>(
        &mut self,
        _: &mut G,
        _: &[f64],
    ) -> Result<(), CpuMathError> {
        Ok(())
    }

    fn new_transformation<G: rand::Rng + ?Sized>(
        &mut self,
        _: &mut G,
        _: usize,
        _: u64,
    ) -> Result<(), NutsFailure> {
        Ok(())
    }

    fn init_transformation<G: rand::Rng + ?Sized>(
        &mut self,
        _: &mut G,
        _: &[f64],
        _: &[f64],
        _: u64,
    ) -> Result<(), NutsFailure> {
        Ok(())
    }

    fn transformation_id(&self, (): &()) -> Result<i64, NutsFailure> {
        Ok(0)
    }

    /// The start, from the state.
    fn init_from_untransformed_position(
        &mut self,
        (): &(),
        position: &[f64],
        gradient: &mut [f64],
        transformed: &mut [f64],
        transformed_gradient: &mut [f64],
        _: Option<f64>,
    ) -> Result<(f64, f64), NutsFailure> {
        transformed.copy_from_slice(position);
        read(gradient, &self.start.gradient);
        let log_normal = normal_part(transformed, gradient, transformed_gradient);
        Ok((self.start.log_ratio, log_normal))
    }

    /// A step of a trajectory.
    fn init_from_transformed_position(
        &mut self,
        (): &(),
        position: &mut [f64],
        gradient: &mut [f64],
        transformed: &[f64],
        transformed_gradient: &mut [f64],
        _: Option<f64>,
    ) -> Result<(f64, f64), NutsFailure> {
        write(self.position, transformed);
        read(position, self.position);
        *self.n_gradients += 1;
        let log_ratio = evaluate_gradient(self.target, self.position, self.gradient)
            .map_err(|Fatal(message)| NutsFailure::Fatal(message))?;
        if log_ratio == f64::NEG_INFINITY {
            return Err(NutsFailure::Recoverable);
        }
        read(gradient, self.gradient);
        let log_normal = normal_part(transformed, gradient, transformed_gradient);
        Ok((log_ratio, log_normal))
    }
}

/// −½‖z‖², with ∇ℓ − z written to `whole`. nuts-rs refuses to start where a derivative is exactly 0: the smallest
/// number takes its place, everywhere, so that steps stay reversible.
fn normal_part(z: &[f64], gradient: &[f64], whole: &mut [f64]) -> f64 {
    let mut norm = 0.0;
    for ((whole, &z), &gradient) in whole.iter_mut().zip(z).zip(gradient) {
        norm += z * z;
        *whole = gradient - z;
        if *whole == 0.0 {
            *whole = f64::MIN_POSITIVE;
        }
    }
    -0.5 * norm
}

fn read<R: Real>(to: &mut [f64], from: &[R]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = from.to_f64();
    }
}

fn write<R: Real>(to: &mut [R], from: &[f64]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = R::from_f64(*from);
    }
}
