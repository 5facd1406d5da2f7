//! Where the time of a step goes, and how far it is from what this processor could do.
//!
//! The parts of ℓ are timed by themselves on one thread: necessary operations (triangles, symmetric halves and
//! factorisations once) against the rate of dense products in cache. Then a whole step of `pcn`, and ℓ with its gradient.

use std::sync::Arc;
use std::time::Duration;

use reprior::compute::{Purpose, Stream};
use reprior::posterior::{Coordinates, Posterior, Target};
use reprior::sampler::{Method, SamplerSettings};

use super::bench_parts::{noise, parts, peak, shortest};
use super::plan::sizes;
use super::sampler_settings;
use crate::failure::Failure;
use crate::problem::Problem;
use crate::settings::{MethodName, Precision, Settings};
use crate::stored::Stored;

pub use super::bench_parts::TimedPart;

/// β of the step that is timed: its cost does not depend on it.
const BETA: f64 = 0.05;

/// What was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Benchmark {
    /// The problem in words.
    pub problem: String,
    /// `f32` or `f64`.
    pub precision: &'static str,
    /// Operations a second of dense products in the network's precision, and in double precision.
    pub peaks: [f64; 2],
    /// The parts of ℓ and of a step.
    pub parts: Vec<TimedPart>,
    /// A step of `pcn`.
    pub seconds_per_step: f64,
    /// ℓ with its gradient.
    pub seconds_per_gradient: f64,
}

/// Refuses what has no steps of chains to measure.
///
/// # Errors
/// A wrong request.
pub fn check(settings: &Settings, seconds: f64) -> Result<Method, Failure> {
    let MethodName::Chain(method) = settings.sampler.method() else {
        return Err(Failure::request(format!(
            "bench times the steps of chains on all data; {} has none: give another --method",
            settings.sampler.method()
        )));
    };
    if settings.coordinates() == Coordinates::Tangent {
        return Err(Failure::request(
            "bench times the parts of marginal, repriorised and standard coordinates: give another --coordinates",
        ));
    }
    if !(seconds.is_finite() && (0.001..=1e4).contains(&seconds)) {
        let message = format!("--seconds is {seconds}: it must be from 0.001 to 10000");
        return Err(Failure::Request(message));
    }
    Ok(method)
}

/// Measures for `seconds` a part.
///
/// # Errors
/// A problem whose ℓ cannot be evaluated at a draw of the prior.
pub fn measure(problem: &Problem, method: Method, seconds: f64) -> Result<Benchmark, Failure> {
    let budget = Duration::from_secs_f64(seconds);
    match problem.settings.sampler.precision {
        Precision::Auto | Precision::F32 => bench::<f32>(problem, method, budget),
        Precision::F64 => bench::<f64>(problem, method, budget),
    }
}

fn bench<R: Stored>(
    problem: &Problem,
    method: Method,
    budget: Duration,
) -> Result<Benchmark, Failure> {
    let sizes = sizes(problem, method);
    let settings = &problem.settings;
    let model = Arc::new(problem.sampled_model::<R>(&[])?);
    let mut target =
        Posterior::new(Arc::clone(&model), settings.posterior()).map_err(Failure::request)?;
    let dim = target.dim();
    let mut pcn = SamplerSettings {
        step_size: Some(BETA),
        ..sampler_settings(settings, Method::Pcn)
    }
    .sampler::<R>();
    let mut state = pcn
        .init(&mut target, noise(dim))
        .map_err(|error| Failure::run(error.to_string()))?;
    let mut transition = 0;
    let mut failure = None;
    let seconds_per_step = shortest(budget, || {
        let mut stream = Stream::new(0, 0, Purpose::Transition, transition);
        transition += 1;
        if let Err(fatal) = pcn.step(&mut target, &mut state, &mut stream) {
            failure = Some(fatal);
        }
    });
    if let Some(fatal) = failure {
        return Err(Failure::run(fatal.to_string()));
    }
    let mut gradient = vec![R::ZERO; dim];
    let seconds_per_gradient = shortest(budget, || {
        // failures were found above
        let _ = target.log_ratio_and_gradient(&state.position, &mut gradient);
    });
    let peaks = [peak::<R>(budget), peak::<f64>(budget)];
    let mut parts = parts(&sizes, &model.design, dim, budget);
    for part in &mut parts {
        if let Some((operations, is_double)) = part.operations {
            part.seconds_at_peak = operations / peaks[usize::from(is_double)];
        }
    }
    Ok(Benchmark {
        problem: format!(
            "{} rows, {}, {} coordinates",
            sizes.rows,
            match sizes.architecture.as_fully_connected() {
                Some(_) => format!("hidden layers {:?}", sizes.architecture.hidden_widths()),
                None => format!("{} parameters", sizes.architecture.parameters()),
            },
            sizes.coordinates
        ),
        precision: R::NAME,
        peaks,
        parts,
        seconds_per_step,
        seconds_per_gradient,
    })
}
