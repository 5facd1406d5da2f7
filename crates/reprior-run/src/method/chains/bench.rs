//! Where the time of a step goes, and how far it is from what this processor could do.
//!
//! The parts of ℓ are timed by themselves on one thread: necessary operations (triangles, symmetric halves and
//! factorisations once) against the rate of dense products in cache. Then a whole step of `pcn`, and ℓ with its gradient.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reprior::compute::kernels::{
    Cholesky, Packed, PackedShape, gram_of_columns, gram_of_rows, matrix_mut, multiply,
    multiply_packed,
};
use reprior::compute::{Purpose, Stream, matrix};
use reprior::network::Executor;
use reprior::posterior::{Coordinates, Posterior, Space, Target};
use reprior::sampler::{Method, SamplerSettings};

use super::budget::Sizes;
use super::plan::sizes;
use super::sampler_settings;
use crate::failure::Failure;
use crate::problem::Problem;
use crate::settings::{MethodName, Precision, Settings};
use crate::stored::Stored;

/// β of the step that is timed: its cost does not depend on it.
const BETA: f64 = 0.05;

/// One part of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// What it does.
    pub name: &'static str,
    /// Necessary operations, and whether in double precision; `None` for noise and activations, which count as they are.
    pub operations: Option<(f64, bool)>,
    /// Measured.
    pub seconds: f64,
    /// At the processor's peak.
    pub seconds_at_peak: f64,
}

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
    pub parts: Vec<Part>,
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
    let MethodName::Chain(method) = settings.sampler.method else {
        return Err(Failure::request(format!(
            "bench times the steps of chains on all data; {} has none: give another --method",
            settings.sampler.method
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

/// Shortest time of one `operation` in the clock's budget: other programs only ever make it longer.
fn shortest(budget: Duration, mut operation: impl FnMut()) -> f64 {
    let (start, mut least) = (Instant::now(), f64::INFINITY);
    loop {
        let begin = Instant::now();
        operation();
        least = least.min(begin.elapsed().as_secs_f64());
        if start.elapsed() >= budget {
            return least;
        }
    }
}

fn noise<R: Stored>(count: usize) -> Vec<R> {
    let mut values = vec![R::ZERO; count];
    Stream::new(0, 0, Purpose::Initial, 0).fill_normal(&mut values);
    values
}

/// Operations a second of dense products whose factors stay in the cache.
fn peak<R: Stored>(budget: Duration) -> f64 {
    let (n, columns) = (192, 96);
    let (a, b, mut out) = (
        noise::<R>(n * n),
        noise::<R>(n * columns),
        noise::<R>(n * columns),
    );
    let packed = Packed::new(matrix(&a, n, n), PackedShape::Full);
    let seconds = shortest(budget, || {
        let out = matrix_mut(&mut out, n, columns);
        multiply_packed(out, false, &packed, matrix(&b, n, columns));
    });
    2.0 * (n * n * columns) as f64 / seconds
}

/// The parts of ℓ and of a step of `pcn`, each by itself.
fn parts<R: Stored>(sizes: &Sizes, dim: usize, budget: Duration) -> Vec<Part> {
    let architecture = &sizes.architecture;
    let (n, r, p) = (sizes.rows, sizes.first_rows, architecture.readout_rows());
    let hidden = architecture.as_fully_connected();
    let widths = architecture.hidden_widths();
    let mut parts = Vec::new();
    let mut part = |name, operations, seconds| {
        parts.push(Part {
            name,
            operations,
            seconds,
            seconds_at_peak: seconds,
        });
    };
    let mut stream = Stream::new(0, 0, Purpose::Transition, 0);
    let mut position = noise::<R>(dim);
    let seconds = shortest(budget, || stream.fill_normal(&mut position));
    part("normal numbers", None, seconds);
    if let Some(&units) = widths.first() {
        let is_triangular = r <= n && sizes.is_reduced();
        let shape = if is_triangular {
            PackedShape::Lower
        } else {
            PackedShape::Full
        };
        let packed = Packed::new(matrix(&noise::<R>(n * r), n, r), shape);
        let (v, mut out) = (noise::<R>(r * units), noise::<R>(n * units));
        let seconds = shortest(budget, || {
            let out = matrix_mut(&mut out, n, units);
            multiply_packed(out, false, &packed, matrix(&v, r, units));
        });
        let entries = if is_triangular {
            2 * n * r - r * r
        } else {
            2 * n * r
        };
        part(
            "first layer",
            Some(((entries * units) as f64, false)),
            seconds,
        );
    }
    if hidden.is_none() {
        let executor = Executor::<R>::new(architecture);
        if let Ok(mut executor) = executor {
            let (inputs, weights) = (architecture.inputs(), architecture.inner_parameters());
            let (x, weights) = (noise::<R>(n * inputs), noise::<R>(weights));
            let mut out = noise::<R>(n * (p - 1));
            let seconds = shortest(budget, || {
                let out = matrix_mut(&mut out, n, p - 1);
                executor.features(&weights, matrix(&x, n, inputs), out);
            });
            let operations = n as f64 * architecture.operations();
            part("layers", Some((operations, false)), seconds);
        }
    }
    let (mut operations, mut seconds) = (0.0, 0.0);
    for pair in widths.windows(2) {
        let (below, units) = (pair[0] + 1, pair[1]);
        let (h, w) = (noise::<R>(n * below), noise::<R>(below * units));
        let mut out = noise::<R>(n * units);
        seconds += shortest(budget, || {
            let out = matrix_mut(&mut out, n, units);
            multiply(
                out,
                false,
                1.0,
                matrix(&h, n, below),
                matrix(&w, below, units),
            );
        });
        operations += (2 * n * below * units) as f64;
    }
    if operations > 0.0 {
        part("layers above", Some((operations, false)), seconds);
    }
    let numbers = n * widths.iter().sum::<usize>();
    let activation = hidden.and_then(|hidden| hidden.first()?.activation);
    if let Some(activation) = activation {
        let (source, mut values) = (noise::<R>(numbers), noise::<R>(numbers));
        let copying = shortest(budget, || values.copy_from_slice(&source));
        let both = shortest(budget, || {
            values.copy_from_slice(&source);
            activation.apply(&mut values);
        });
        part("activation", None, both - copying);
    }
    if sizes.coordinates == Coordinates::Standard {
        return parts;
    }
    let h = noise::<R>(n * p);
    let size = if sizes.space == Space::Feature { p } else { n };
    let mut gram = vec![R::ZERO; size * size];
    let seconds = shortest(budget, || {
        let (gram, h) = (matrix_mut(&mut gram, size, size), matrix(&h, n, p));
        if sizes.space == Space::Feature {
            gram_of_columns(gram, h);
        } else {
            gram_of_rows(gram, false, h);
        }
    });
    part(
        "kernel matrix",
        Some(((size * n * p) as f64, false)),
        seconds,
    );
    let mut cholesky = Cholesky::new(size);
    let ridge = (n + p) as f64;
    let seconds = shortest(budget, || {
        let entry = |row: usize, column: usize| {
            gram[column * size + row].to_f64() + if row == column { ridge } else { 0.0 }
        };
        // positive definite by its ridge
        let _ = cholesky.factorise(entry);
    });
    let (seconds, groups) = (
        seconds * sizes.noise_scales as f64,
        sizes.noise_scales as f64,
    );
    let operations = groups * (size as f64).powi(3) / 3.0;
    part("factorisation (f64)", Some((operations, true)), seconds);
    parts
}

fn bench<R: Stored>(
    problem: &Problem,
    method: Method,
    budget: Duration,
) -> Result<Benchmark, Failure> {
    let sizes = sizes(problem, method);
    let settings = &problem.settings;
    let model = Arc::new(problem.model::<R>(&[])?);
    let mut target = Posterior::new(model, settings.posterior()).map_err(Failure::request)?;
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
    let mut parts = parts::<R>(&sizes, dim, budget);
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
