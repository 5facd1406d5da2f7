//! Rates of the kernels that steps are made of, on one thread, in single precision (factorisations in double).
//!
//! ```text
//! cargo bench -p reprior --bench kernels
//! ```
//!
//! The shortest time of many counts, as other programs only ever make it longer. Operations are the necessary ones:
//! triangles and symmetric halves once.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use reprior::compute::{
    Cholesky, Packed, Purpose, Shape, Stream, autoregress, gram_of_columns, gram_of_rows, matrix,
    matrix_mut, multiply, multiply_packed,
};
use reprior::network::Activation;

/// Time spent on each line.
const BUDGET: Duration = Duration::from_millis(300);

fn shortest(mut operation: impl FnMut()) -> f64 {
    let (start, mut least) = (Instant::now(), f64::INFINITY);
    while start.elapsed() < BUDGET {
        let begin = Instant::now();
        operation();
        least = least.min(begin.elapsed().as_secs_f64());
    }
    least
}

fn noise(count: usize) -> Vec<f32> {
    let mut values = vec![0.0_f32; count];
    Stream::new(0, 0, Purpose::Initial, 0).fill_normal(&mut values);
    values
}

fn rate(name: &str, operations: f64, operation: impl FnMut()) {
    let seconds = shortest(operation);
    let speed = operations / seconds / 1e9;
    println!("{name:36} {:9.3} ms {speed:7.1} Gflop/s", seconds * 1e3);
}

fn each(name: &str, count: usize, operation: impl FnMut()) {
    let seconds = shortest(operation);
    println!("{name:36} {:9.3} ns each", seconds / count as f64 * 1e9);
}

fn products(n: usize, d: usize) {
    println!("{n} rows, {d} units");
    let (l, v, mut f) = (noise(n * n), noise(n * d), noise(n * d));
    let (l, v) = (matrix(&l, n, n), matrix(&v, n, d));
    let (rows, units) = (n as f64, d as f64);
    let mut out = matrix_mut(&mut f, n, d);
    let whole = 2.0 * rows * rows * units;
    rate("dense product (faer)", whole, || {
        multiply(out.as_mut(), false, 1.0, l, v);
    });
    let packed = Packed::new(l, Shape::Full);
    rate("dense product, packed", whole, || {
        multiply_packed(out.as_mut(), false, &packed, v);
    });
    let packed = Packed::new(l, Shape::Lower);
    rate("triangular product, packed", whole / 2.0, || {
        multiply_packed(out.as_mut(), false, &packed, v);
    });
    let mut k = vec![0.0_f32; n * n];
    rate("Gram matrix of rows", whole / 2.0, || {
        gram_of_rows(matrix_mut(&mut k, n, n), false, v);
    });
    if d <= n {
        let mut k = vec![0.0_f32; d * d];
        rate("Gram matrix of columns", units * units * rows, || {
            gram_of_columns(matrix_mut(&mut k, d, d), v);
        });
    }
    let cube = rows * rows * rows;
    let mut cholesky = Cholesky::new(n);
    rate("Cholesky factorisation (f64)", cube / 3.0, || {
        let ridge = |i, j| if i == j { 10.0 } else { 0.0 };
        let entry = |i, j| f64::from(k[j * n + i]) + ridge(i, j);
        cholesky.factorise(entry).unwrap();
    });
    let (mut inverse, mut work) = (vec![0.0; n * n], vec![0.0; n * n]);
    rate("inverse from the factor (f64)", 2.0 * cube / 3.0, || {
        cholesky.inverse(&mut inverse, &mut work);
    });
}

fn elementwise() {
    let count = 1 << 18;
    let (z, mut values, mut derivatives) = (noise(count), noise(count), noise(count));
    println!("{count} numbers");
    let mut stream = Stream::new(0, 0, Purpose::Initial, 0);
    each("normal numbers", count, || stream.fill_normal(&mut values));
    each("autoregression", count, || {
        autoregress(&mut values, 0.01, 1e-4, &z);
    });
    for activation in [Activation::Gelu, Activation::Relu, Activation::Tanh] {
        each(&format!("{activation}, with a copy"), count, || {
            values.copy_from_slice(&z);
            activation.apply(&mut values);
        });
        each(&format!("{activation} and derivative"), count, || {
            derivatives.copy_from_slice(&z);
            activation.apply_with_derivative(&mut derivatives, &mut values);
        });
    }
    black_box((values, derivatives));
}

fn main() {
    for (n, d) in [(256, 1024), (256, 4096), (1024, 512)] {
        products(n, d);
    }
    elementwise();
}
