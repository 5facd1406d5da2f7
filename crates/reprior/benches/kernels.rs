//! Rates of the dense kernels, one thread.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark")]
use reprior::compute::*;
use std::time::{Duration, Instant};

fn best(mut f: impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut least = f64::INFINITY;
    while start.elapsed() < Duration::from_millis(300) {
        let t = Instant::now();
        f();
        least = least.min(t.elapsed().as_secs_f64());
    }
    least
}
fn noise(n: usize) -> Vec<f32> {
    let mut v = vec![0.0_f32; n];
    Stream::new(0, 0, Purpose::Initial, 0).fill_normal(&mut v);
    v
}
fn line(name: &str, seconds: f64, operations: f64) {
    println!(
        "{name:40} {:9.3} ms {:7.1} Gflop/s",
        seconds * 1e3,
        operations / seconds / 1e9
    );
}
fn main() {
    for (n, d) in [(256, 1024), (256, 4096), (1024, 512)] {
        println!("n {n}, d {d}");
        let (l, v, mut f) = (noise(n * n), noise(n * d), noise(n * d));
        let (nf, df) = (n as f64, d as f64);
        let a = matrix(&l, n, n);
        let half = nf * (nf + 1.0) * df;
        line(
            "dense faer",
            best(|| multiply(matrix_mut(&mut f, n, d), false, 1.0, a, matrix(&v, n, d))),
            2.0 * nf * nf * df,
        );
        let full = Packed::new(a, Shape::Full);
        line(
            "dense packed",
            best(|| multiply_packed(matrix_mut(&mut f, n, d), false, &full, matrix(&v, n, d))),
            2.0 * nf * nf * df,
        );
        let lower = Packed::new(a, Shape::Lower);
        line(
            "lower packed",
            best(|| multiply_packed(matrix_mut(&mut f, n, d), false, &lower, matrix(&v, n, d))),
            half,
        );
        let mut k = noise(n * n);
        let h = matrix(&v, n, d);
        line(
            "gram",
            best(|| gram_of_rows(matrix_mut(&mut k, n, n), false, h)),
            half,
        );
        let mut c = Cholesky::new(n);
        for i in 0..n {
            k[i * n + i] += 10.0
        }
        line(
            "cholesky",
            best(|| {
                c.factorise(|i, j| f64::from(k[j * n + i])).unwrap();
            }),
            nf * nf * nf / 3.0,
        );
        let (mut inv, mut work) = (vec![0.0; n * n], vec![0.0; n * n]);
        line(
            "inverse",
            best(|| c.inverse(&mut inv, &mut work)),
            2.0 * nf * nf * nf / 3.0,
        );
    }
    let n = 1 << 18;
    let mut v = noise(n);
    let per = |name: &str, s: f64| println!("{name:40} {:9.3} ns each", s / n as f64 * 1e9);
    let mut stream = Stream::new(0, 0, Purpose::Initial, 0);
    per("normals", best(|| stream.fill_normal(&mut v)));
    let mut words = 0_u64;
    per(
        "random words",
        best(|| {
            for _ in 0..n / 2 {
                words ^= rand_word(&mut stream)
            }
        }),
    );
    println!("{words}");
    let z = noise(n);
    per("autoregress", best(|| autoregress(&mut v, 0.01, 1e-4, &z)));
    let mut w = noise(n);
    let gelu = reprior::network::Activation::Gelu;
    per(
        "gelu (with copy)",
        best(|| {
            w.copy_from_slice(&z);
            gelu.apply(&mut w)
        }),
    );
    let mut d = noise(n);
    per(
        "gelu derivative (with copy)",
        best(|| {
            d.copy_from_slice(&z);
            gelu.apply_with_derivative(&mut d, &mut w)
        }),
    );
    let s = best(|| v.iter_mut().for_each(|x| *x = *x * 0.999 + 0.001));
    per("plain pass", s);
}
fn rand_word(stream: &mut Stream) -> u64 {
    (stream.uniform() * 1e9) as u64
}
