//! `reprior bench`: where the time of a step goes, and how far it is from what this processor could do.
//!
//! The parts of ℓ are timed by themselves on one thread: necessary operations (triangles, symmetric halves and
//! factorisations once) against the rate of dense products in cache. Then a whole step of `pcn`, and ℓ with its gradient.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reprior::compute::{
    Cholesky, Packed, Purpose, Shape, Stream, gram_of_columns, gram_of_rows, matrix, matrix_mut,
    multiply, multiply_packed,
};
use reprior::network::Executor;
use reprior::posterior::{Coordinates, NetworkPosterior, Space, Target};
use reprior::sampler::{Method, SamplerSettings};
use serde_json::{Value, json};

use crate::arguments::BenchArguments;
use crate::budget::Sizes;
use crate::error::Failure;
use crate::method::MethodName;
use crate::names::Precision;
use crate::plan::Plan;
use crate::problem::Problem;
use crate::settings::Settings;
use crate::stored::Stored;
use crate::table::{align, number, to_stdout};

/// β of the step that is timed: its cost does not depend on it.
const BETA: f64 = 0.05;

/// One part of a step.
struct Part {
    name: &'static str,
    /// Necessary operations, and whether in double precision; `None` for noise and activations, which count as they are.
    operations: Option<(f64, bool)>,
    seconds: f64,
}

/// Runs the command.
///
/// # Errors
/// A wrong request; a problem whose ℓ cannot be evaluated at a draw of the prior.
pub fn command(arguments: &BenchArguments) -> Result<(), Failure> {
    let settings = Settings::from_arguments(&arguments.settings)?;
    if !matches!(settings.sampler.method, MethodName::Chain(_)) {
        return Err(Failure::request(format!(
            "bench times the steps of chains on all data; {} has none: give another --method",
            settings.sampler.method
        )));
    }
    if settings.coordinates() == Coordinates::Tangent {
        return Err(Failure::request(
            "bench times the parts of marginal, repriorised and standard coordinates: give another --coordinates",
        ));
    }
    if !(arguments.seconds.is_finite() && (0.001..=1e4).contains(&arguments.seconds)) {
        let message = format!(
            "--seconds is {}: it must be from 0.001 to 10000",
            arguments.seconds
        );
        return Err(Failure::Request(message));
    }
    let problem = Problem::load(settings)?;
    let plan = Plan::new(&problem)?;
    plan.check_memory(&problem.settings)?;
    match problem.settings.sampler.precision {
        Precision::Auto | Precision::F32 => bench::<f32>(&problem, &plan, arguments),
        Precision::F64 => bench::<f64>(&problem, &plan, arguments),
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
    let packed = Packed::new(matrix(&a, n, n), Shape::Full);
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
        });
    };
    let mut stream = Stream::new(0, 0, Purpose::Transition, 0);
    let mut position = noise::<R>(dim);
    let seconds = shortest(budget, || stream.fill_normal(&mut position));
    part("normal numbers", None, seconds);
    if let Some(&units) = widths.first() {
        let is_triangular = r <= n && sizes.is_reduced();
        let shape = if is_triangular {
            Shape::Lower
        } else {
            Shape::Full
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
    plan: &Plan,
    arguments: &BenchArguments,
) -> Result<(), Failure> {
    let sizes = &plan.sizes;
    let budget = Duration::from_secs_f64(arguments.seconds);
    let model = Arc::new(problem.model::<R>(&[])?);
    let sampler = problem.settings.sampler_settings();
    let mut target = NetworkPosterior::with_regulariser(
        model,
        sizes.coordinates,
        problem.settings.sampler.space.forced(),
        problem.settings.sampler.regulariser,
    );
    let dim = target.dim();
    let mut pcn = SamplerSettings {
        method: Method::Pcn,
        step_size: Some(BETA),
        ..sampler
    }
    .sampler::<R>();
    let mut state = pcn
        .init(&mut target, noise(dim))
        .map_err(|error| Failure::run(error.to_string()))?;
    let mut transition = 0;
    let mut failure = None;
    let step = shortest(budget, || {
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
    let with_gradient = shortest(budget, || {
        // failures were found above
        let _ = target.log_ratio_and_gradient(&state.position, &mut gradient);
    });
    let peaks = [peak::<R>(budget), peak::<f64>(budget)];
    let parts = parts::<R>(sizes, dim, budget);
    let at_peak = |part: &Part| match part.operations {
        Some((operations, is_double)) => operations / peaks[usize::from(is_double)],
        None => part.seconds,
    };
    let necessary: f64 = parts.iter().map(at_peak).sum();
    if arguments.json {
        let parts: Vec<Value> = parts
            .iter()
            .map(|part| {
                json!({
                    "name": part.name,
                    "operations": part.operations.map(|(operations, _)| operations),
                    "seconds": part.seconds,
                    "seconds_at_peak": at_peak(part),
                })
            })
            .collect();
        let document = json!({
            "precision": R::NAME,
            "peak": peaks[0],
            "peak_double": peaks[1],
            "parts": parts,
            "seconds_necessary": necessary,
            "seconds_per_step": step,
            "step_to_necessary": step / necessary,
            "seconds_per_gradient": with_gradient,
        });
        to_stdout(&document.to_string());
        return Ok(());
    }
    print(sizes, &parts, at_peak, peaks, [step, with_gradient]);
    Ok(())
}

fn print(
    sizes: &Sizes,
    parts: &[Part],
    at_peak: impl Fn(&Part) -> f64,
    peaks: [f64; 2],
    [step, with_gradient]: [f64; 2],
) {
    let milliseconds = |seconds: f64| format!("{:.3}", 1e3 * seconds);
    to_stdout(&format!(
        "{} rows, {}, {} coordinates, one thread; dense products: {} Gflop/s, in f64 {}",
        sizes.rows,
        match sizes.architecture.as_fully_connected() {
            Some(_) => format!("hidden layers {:?}", sizes.architecture.hidden_widths()),
            None => format!("{} parameters", sizes.architecture.parameters()),
        },
        sizes.coordinates,
        number(peaks[0] / 1e9),
        number(peaks[1] / 1e9),
    ));
    let cells = |cells: [&str; 5]| cells.map(str::to_owned).to_vec();
    let mut rows = vec![cells(["part", "Mflop", "ms at peak", "ms", "of peak"])];
    for part in parts {
        let (flops, share) = match part.operations {
            Some((operations, _)) => (
                number(operations / 1e6),
                format!("{:.0} %", 100.0 * at_peak(part) / part.seconds),
            ),
            None => ("-".into(), "-".into()),
        };
        let at_peak = milliseconds(at_peak(part));
        rows.push(vec![
            part.name.into(),
            flops,
            at_peak,
            milliseconds(part.seconds),
            share,
        ]);
    }
    let necessary: f64 = parts.iter().map(&at_peak).sum();
    let sum: f64 = parts.iter().map(|part| part.seconds).sum();
    rows.push(vec![
        "all parts".into(),
        "-".into(),
        milliseconds(necessary),
        milliseconds(sum),
        format!("{:.0} %", 100.0 * necessary / sum),
    ]);
    to_stdout(&align(&rows));
    to_stdout(&format!(
        "\na step of pcn: {} ms, {:.2} times what is necessary (operations at peak, noise and activation as they are)\n\
         the log-density with its gradient: {} ms",
        milliseconds(step),
        step / necessary,
        milliseconds(with_gradient),
    ));
}
