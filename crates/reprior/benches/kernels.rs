//! Rates of the kernels that steps are made of, on one thread, in single precision (factorisations in double).
//!
//! ```text
//! cargo bench -p reprior --bench kernels [-- FILTER]
//! ```
//!
//! "elem/s" are necessary operations a second (triangles and symmetric halves once), or numbers a second where elements are
//! worked on one by one.
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use criterion::{
    BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime,
};
use reprior::compute::kernels::{
    Cholesky, Packed, PackedShape, autoregress, gram_of_columns, gram_of_rows, matrix_mut,
    multiply, multiply_columns, multiply_packed,
};
use reprior::compute::{Purpose, Stream, matrix};
use reprior::network::Activation;

fn noise(count: usize) -> Vec<f32> {
    let mut values = vec![0.0_f32; count];
    Stream::new(0, 0, Purpose::Initial, 0).fill_normal(&mut values);
    values
}

fn rate(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    operations: usize,
    mut operation: impl FnMut(),
) {
    group.throughput(Throughput::Elements(operations as u64));
    group.bench_function(name, |bencher| bencher.iter(&mut operation));
}

fn products(criterion: &mut Criterion) {
    for (n, d) in [(256, 1024), (256, 4096), (1024, 512)] {
        let mut group = criterion.benchmark_group(format!("{n} rows, {d} units"));
        let (l, v, mut f) = (noise(n * n), noise(n * d), noise(n * d));
        let (l, v) = (matrix(&l, n, n), matrix(&v, n, d));
        let mut out = matrix_mut(&mut f, n, d);
        let whole = 2 * n * n * d;
        rate(&mut group, "dense product (faer)", whole, || {
            multiply(out.as_mut(), false, 1.0, l, v);
        });
        let packed = Packed::new(l, PackedShape::Full);
        rate(&mut group, "dense product, packed", whole, || {
            multiply_packed(out.as_mut(), false, &packed, v);
        });
        let packed = Packed::new(l, PackedShape::Lower);
        rate(&mut group, "triangular product", whole / 2, || {
            multiply_packed(out.as_mut(), false, &packed, v);
        });
        let mut k = vec![0.0_f32; n * n];
        rate(&mut group, "Gram matrix of rows", whole / 2, || {
            gram_of_rows(matrix_mut(&mut k, n, n), false, v);
        });
        if d <= n {
            let mut k = vec![0.0_f32; d * d];
            rate(&mut group, "Gram matrix of columns", d * d * n, || {
                gram_of_columns(matrix_mut(&mut k, d, d), v);
            });
        }
        let cube = n * n * n;
        let mut cholesky = Cholesky::new(n);
        rate(&mut group, "Cholesky factorisation (f64)", cube / 3, || {
            let ridge = |i, j| if i == j { 10.0 } else { 0.0 };
            let entry = |i, j| f64::from(k[j * n + i]) + ridge(i, j);
            cholesky.factorise(entry).unwrap();
        });
        let (mut inverse, mut work) = (vec![0.0; n * n], vec![0.0; n * n]);
        let operations = 2 * cube / 3;
        rate(&mut group, "inverse (f64)", operations, || {
            cholesky.inverse(&mut inverse, &mut work);
        });
        group.finish();
    }
}

/// What layers of few units make of many rows: the left factor is the units below, with their constant column.
fn narrow(criterion: &mut Criterion) {
    for (n, d) in [(1000, 32), (1000, 50), (1000, 100), (1000, 190)] {
        let mut group = criterion.benchmark_group(format!("{n} rows, {d} units, narrow"));
        let p = d + 1;
        let (h, delta) = (noise(n * p), noise(n * d));
        let (h, delta) = (matrix(&h, n, p), matrix(&delta, n, d));
        let (mut gram, mut gradient) = (vec![0.0_f32; p * p], vec![0.0_f32; p * d]);
        rate(&mut group, "gram of columns", n * p * p, || {
            gram_of_columns(matrix_mut(&mut gram, p, p), h);
        });
        rate(&mut group, "gram of packed columns", n * p * p, || {
            gram_of_rows(matrix_mut(&mut gram, p, p), false, h.transpose());
        });
        rate(&mut group, "gradient of weights", 2 * n * p * d, || {
            multiply_columns(matrix_mut(&mut gradient, p, d), false, 0.5, h, delta);
        });
        rate(
            &mut group,
            "gradient by the general product",
            2 * n * p * d,
            || {
                let gradient = matrix_mut(&mut gradient, p, d);
                multiply(gradient, false, 0.5, h.transpose(), delta);
            },
        );
        group.finish();
    }
}

fn elementwise(criterion: &mut Criterion) {
    let count = 1 << 18;
    let (z, mut values, mut derivatives) = (noise(count), noise(count), noise(count));
    let mut group = criterion.benchmark_group(format!("{count} numbers"));
    let mut stream = Stream::new(0, 0, Purpose::Initial, 0);
    rate(&mut group, "normal numbers", count, || {
        stream.fill_normal(&mut values);
    });
    rate(&mut group, "autoregression", count, || {
        autoregress(&mut values, 0.01, 1e-4, &z);
    });
    for activation in [Activation::Gelu, Activation::Relu, Activation::Tanh] {
        rate(
            &mut group,
            &format!("{activation}, with a copy"),
            count,
            || {
                values.copy_from_slice(&z);
                activation.apply(&mut values);
            },
        );
        let name = format!("{activation} and derivative");
        rate(&mut group, &name, count, || {
            derivatives.copy_from_slice(&z);
            activation.apply_with_derivative(&mut derivatives, &mut values);
        });
    }
    group.finish();
}

criterion_group!(benches, products, narrow, elementwise);
criterion_main!(benches);
