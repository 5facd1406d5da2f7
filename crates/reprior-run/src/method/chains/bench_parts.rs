//! The parts of ℓ and of a step of `pcn`, each timed by itself on one thread.

use std::time::{Duration, Instant};

use reprior::compute::kernels::{
    Cholesky, Packed, PackedShape, gram_of_columns, gram_of_rows, matrix_mut, multiply,
    multiply_packed,
};
use reprior::compute::{Purpose, Stream, matrix};
use reprior::model::design::Design;
use reprior::network::Executor;
use reprior::posterior::{Coordinates, Space};

use super::sizes::ProblemSizes;
use crate::stored::Stored;

/// One part of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct TimedPart {
    /// What it does.
    pub name: &'static str,
    /// Necessary operations, and whether in double precision; `None` for noise and activations, which count as they are.
    pub operations: Option<(f64, bool)>,
    /// Measured.
    pub seconds: f64,
    /// At the processor's peak.
    pub seconds_at_peak: f64,
}

/// Shortest time of one `operation` in the clock's budget: other programs only ever make it longer.
pub fn shortest(budget: Duration, mut operation: impl FnMut()) -> f64 {
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

/// Standard normal numbers.
pub fn noise<R: Stored>(count: usize) -> Vec<R> {
    let mut values = vec![R::ZERO; count];
    Stream::new(0, 0, Purpose::Initial, 0).fill_normal(&mut values);
    values
}

/// Operations a second of dense products whose factors stay in the cache.
pub fn peak<R: Stored>(budget: Duration) -> f64 {
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
pub fn parts<R: Stored>(
    sizes: &ProblemSizes,
    design: &Design<R>,
    dim: usize,
    budget: Duration,
) -> Vec<TimedPart> {
    let mut parts = Parts {
        sizes,
        budget,
        measured: Vec::new(),
    };
    let mut stream = Stream::new(0, 0, Purpose::Transition, 0);
    let mut position = noise::<R>(dim);
    parts.time("normal numbers", None, || stream.fill_normal(&mut position));
    parts.first_layer(design);
    parts.layers_above::<R>();
    parts.activation::<R>();
    if sizes.coordinates != Coordinates::Standard {
        parts.readout::<R>();
    }
    parts.measured
}

struct Parts<'a> {
    sizes: &'a ProblemSizes,
    budget: Duration,
    measured: Vec<TimedPart>,
}

impl Parts<'_> {
    fn add(&mut self, name: &'static str, operations: Option<(f64, bool)>, seconds: f64) {
        self.measured.push(TimedPart {
            name,
            operations,
            seconds,
            seconds_at_peak: seconds,
        });
    }

    fn time(&mut self, name: &'static str, operations: Option<f64>, operation: impl FnMut()) {
        let seconds = shortest(self.budget, operation);
        self.add(name, operations.map(|count| (count, false)), seconds);
    }

    /// A product with the design.
    fn first_layer<R: Stored>(&mut self, design: &Design<R>) {
        let Some(&units) = self.sizes.architecture.hidden_widths().first() else {
            return;
        };
        let v = noise::<R>(design.columns() * units);
        let mut out = noise::<R>(design.rows() * units);
        let operations = design.operations() * units;
        self.time("first layer", Some(operations as f64), || {
            design.multiply(&v, &mut out);
        });
    }

    /// Products of the other dense layers, or all layers of a network that is not fully connected.
    fn layers_above<R: Stored>(&mut self) {
        let (n, architecture) = (self.sizes.rows, &self.sizes.architecture);
        if architecture.as_fully_connected().is_none() {
            let Ok(mut executor) = Executor::<R>::new(architecture) else {
                return;
            };
            let features = architecture.readout_rows() - 1;
            let inputs = architecture.inputs();
            let weights = noise::<R>(architecture.inner_parameters());
            let (x, mut out) = (noise::<R>(n * inputs), noise::<R>(n * features));
            let operations = n as f64 * architecture.operations();
            self.time("layers", Some(operations), || {
                let out = matrix_mut(&mut out, n, features);
                executor.features(&weights, matrix(&x, n, inputs), out);
            });
            return;
        }
        let (mut operations, mut seconds) = (0.0, 0.0);
        for pair in architecture.hidden_widths().windows(2) {
            let (below, units) = (pair[0] + 1, pair[1]);
            let (h, w) = (noise::<R>(n * below), noise::<R>(below * units));
            let (h, w) = (matrix(&h, n, below), matrix(&w, below, units));
            let mut out = noise::<R>(n * units);
            seconds += shortest(self.budget, || {
                multiply(matrix_mut(&mut out, n, units), false, 1.0, h, w);
            });
            operations += (2 * n * below * units) as f64;
        }
        if operations > 0.0 {
            self.add("layers above", Some((operations, false)), seconds);
        }
    }

    /// The activation of all hidden layers of a fully connected network.
    fn activation<R: Stored>(&mut self) {
        let architecture = &self.sizes.architecture;
        let hidden = architecture.as_fully_connected();
        let Some(activation) = hidden.and_then(|hidden| hidden.first()?.activation) else {
            return;
        };
        let numbers = self.sizes.rows * architecture.hidden_widths().iter().sum::<usize>();
        let (source, mut values) = (noise::<R>(numbers), noise::<R>(numbers));
        let copying = shortest(self.budget, || values.copy_from_slice(&source));
        let both = shortest(self.budget, || {
            values.copy_from_slice(&source);
            activation.apply(&mut values);
        });
        self.add("activation", None, both - copying);
    }

    /// The matrix of the integrated readout, and its factorisation for each noise scale.
    fn readout<R: Stored>(&mut self) {
        let (n, p) = (self.sizes.rows, self.sizes.architecture.readout_rows());
        let is_of_features = self.sizes.space == Space::Feature;
        let size = if is_of_features { p } else { n };
        let (h, mut gram) = (noise::<R>(n * p), vec![R::ZERO; size * size]);
        self.time("kernel matrix", Some((size * n * p) as f64), || {
            let (gram, h) = (matrix_mut(&mut gram, size, size), matrix(&h, n, p));
            if is_of_features {
                gram_of_columns(gram, h);
            } else {
                gram_of_rows(gram, false, h);
            }
        });
        let mut cholesky = Cholesky::new(size);
        let ridge = (n + p) as f64;
        let seconds = shortest(self.budget, || {
            let entry = |row: usize, column: usize| {
                gram[column * size + row].to_f64() + if row == column { ridge } else { 0.0 }
            };
            // positive definite by its ridge
            let _ = cholesky.factorise(entry);
        });
        let count = self.sizes.factorisations as f64;
        let operations = count * (size as f64).powi(3) / 3.0;
        self.add(
            "factorisation (f64)",
            Some((operations, true)),
            seconds * count,
        );
    }
}
