//! Gaussian processes against the formulas with explicit inverses, finite differences and grids.

use reprior::compute::{Purpose, Stream, matrix};
use reprior::gaussian_process::GaussianProcess;
use reprior::gaussian_process::evidence::{Covariance, fit_scales};
use reprior::gaussian_process::noise::fit_noise;
use reprior::network::Activation;
use reprior::network::infinite::{InfiniteNetwork, Kinds};

use super::networks::*;

const N: usize = 12;
const M: usize = 4;
const C: usize = 2;

struct Problem {
    kernel: Vec<f64>,
    cross: Vec<f64>,
    prior: Vec<f64>,
    targets: Vec<f64>,
}

fn problem() -> Problem {
    let infinite = InfiniteNetwork::new(&fully_connected(3, 2, Activation::Gelu)).unwrap();
    let values = noise((N + M) * 3, 11);
    let x = matrix(&values, N + M, 3);
    let (train, test) = (x.subrows(0, N), x.subrows(N, M));
    let kernel = |a, b| infinite.cross_kernels(a, b, Kinds::Nngp, 1).unwrap().nngp;
    Problem {
        kernel: kernel(train, train),
        cross: kernel(train, test),
        prior: kernel(test, test),
        targets: noise(N * C, 12),
    }
}

/// Inverse and log-determinant by Gauss & Jordan.
fn inverse(matrix: &[f64], n: usize) -> (Vec<f64>, f64) {
    let mut a = matrix.to_vec();
    let mut b = vec![0.0; n * n];
    let mut log_determinant = 0.0;
    for i in 0..n {
        b[i * (n + 1)] = 1.0;
    }
    for i in 0..n {
        let pivot = a[i * (n + 1)];
        log_determinant += pivot.ln();
        for k in 0..n {
            a[i * n + k] /= pivot;
            b[i * n + k] /= pivot;
        }
        for j in (0..n).filter(|&j| j != i) {
            let factor = a[j * n + i];
            for k in 0..n {
                a[j * n + k] -= factor * a[i * n + k];
                b[j * n + k] -= factor * b[i * n + k];
            }
        }
    }
    (b, log_determinant)
}

fn with_noise(kernel: &[f64], noise: f64) -> Vec<f64> {
    let diagonal = |at: usize| {
        if at.is_multiple_of(N + 1) {
            noise * noise
        } else {
            0.0
        }
    };
    kernel
        .iter()
        .enumerate()
        .map(|(at, k)| k + diagonal(at))
        .collect()
}

fn quadratic(a: &[f64], inverse: &[f64], b: &[f64]) -> f64 {
    (0..N * N)
        .map(|at| a[at / N] * inverse[at] * b[at % N])
        .sum()
}

#[test]
fn posterior_and_likelihood_are_those_of_the_formulas() {
    let Problem {
        kernel,
        cross,
        prior,
        targets,
    } = problem();
    let noise = 0.3;
    let process = GaussianProcess::new(&kernel, N, &targets, noise).unwrap();
    let (inverse, log_determinant) = inverse(&with_noise(&kernel, noise), N);
    let (mean, variance) = (
        process.mean(&cross).unwrap(),
        process.covariance(&cross, &prior).unwrap(),
    );
    let diagonal: Vec<f64> = (0..M).map(|t| prior[t * (M + 1)]).collect();
    let marginal = process.variance(&cross, &diagonal).unwrap().values;
    let column = |t: usize| &cross[t * N..(t + 1) * N];
    for t in 0..M {
        for (j, y) in targets.chunks(N).enumerate() {
            assert!((mean[j * M + t] - quadratic(column(t), &inverse, y)).abs() < 1e-11);
        }
        for s in 0..M {
            let exact = prior[t * M + s] - quadratic(column(t), &inverse, column(s));
            assert!((variance[t * M + s] - exact).abs() < 1e-11);
        }
        assert!((marginal[t] - variance[t * (M + 1)]).abs() < 1e-14);
    }
    let fit: f64 = targets.chunks(N).map(|y| quadratic(y, &inverse, y)).sum();
    let constant = (N * C) as f64 * std::f64::consts::TAU.ln();
    let exact = -0.5 * (fit + C as f64 * log_determinant + constant);
    assert!((process.log_marginal_likelihood() - exact).abs() < 1e-10);
    assert_eq!(
        (process.jitter(), process.outputs(), process.size()),
        (0, C, N)
    );
}

#[test]
fn gradients_are_those_of_central_differences() {
    let Problem {
        kernel, targets, ..
    } = problem();
    let likelihood = |kernel: &[f64], noise: f64| {
        GaussianProcess::new(kernel, N, &targets, noise)
            .unwrap()
            .log_marginal_likelihood()
    };
    let noise = 0.4_f64;
    let process = GaussianProcess::new(&kernel, N, &targets, noise).unwrap();
    let h = 1e-5_f64;
    let difference = (likelihood(&kernel, noise * (h).exp())
        - likelihood(&kernel, noise * (-h).exp()))
        / (2.0 * h);
    assert!(
        (process.noise_gradient() - difference).abs() < 1e-7,
        "{difference}"
    );
    let moved = |h: f64| -> Vec<f64> { kernel.iter().map(|k| k + h * k * k).collect() };
    let derivative: Vec<f64> = kernel.iter().map(|k| k * k).collect();
    let difference = (likelihood(&moved(h), noise) - likelihood(&moved(-h), noise)) / (2.0 * h);
    let exact = process.gradient(&derivative).unwrap();
    assert!(
        (exact - difference).abs() < 1e-7 * (1.0 + exact.abs()),
        "{exact} {difference}"
    );
}

#[test]
fn draws_have_the_posterior_mean_and_covariance() {
    let Problem {
        kernel,
        cross,
        prior,
        targets,
    } = problem();
    let process = GaussianProcess::new(&kernel, N, &targets, 0.3).unwrap();
    let count = 40_000;
    let mut stream = Stream::new(3, 0, Purpose::Initial, 0);
    let (draws, jitter) = process.draws(&cross, &prior, count, &mut stream).unwrap();
    assert_eq!((draws.len(), jitter), (count * M * C, 0));
    let mean = process.mean(&cross).unwrap();
    let covariance = process.covariance(&cross, &prior).unwrap();
    let average =
        |term: &dyn Fn(&[f64]) -> f64| draws.chunks(M * C).map(term).sum::<f64>() / count as f64;
    for a in 0..M * C {
        let sd = covariance[a % M * (M + 1)].sqrt();
        // five standard errors
        let error = 5.0 / (count as f64).sqrt();
        assert!((average(&|f| f[a]) - mean[a]).abs() < error * sd);
        for b in 0..M * C {
            let exact = if a / M == b / M {
                covariance[a % M * M + b % M]
            } else {
                0.0
            };
            let scale = sd * covariance[b % M * (M + 1)].sqrt();
            let sampled = average(&|f| (f[a] - mean[a]) * (f[b] - mean[b]));
            assert!(
                (sampled - exact).abs() < error * 2.0_f64.sqrt() * scale,
                "{a} {b}"
            );
        }
    }
}

/// A network of linear layers only: trained by gradient flow it is its posterior without noise.
#[test]
fn a_trained_linear_ensemble_varies_as_the_posterior_does() {
    let infinite = InfiniteNetwork::new(&network([1, 1, 30], vec![])).unwrap();
    let values = noise((N + M) * 30, 13);
    let x = matrix(&values, N + M, 30);
    let (train, test) = (x.subrows(0, N), x.subrows(N, M));
    let kernel = infinite.kernels(train, Kinds::NngpAndNtk, 1).unwrap();
    assert_eq!(kernel.nngp, kernel.ntk);
    let cross = infinite
        .cross_kernels(train, test, Kinds::NngpAndNtk, 1)
        .unwrap();
    let prior = infinite.diagonals(test, Kinds::Nngp, 1).unwrap().nngp;
    let process = GaussianProcess::new(&kernel.ntk, N, &noise(N, 14), 0.0).unwrap();
    let posterior = process.variance(&cross.ntk, &prior).unwrap().values;
    let trained = process
        .trained_ensemble_variance(&cross.ntk, &kernel.nngp, &cross.nngp, &prior)
        .unwrap()
        .values;
    for (a, b) in trained.iter().zip(&posterior) {
        assert!((a - b).abs() < 1e-12, "{a} {b}");
    }
    // and with noise, each network's mean to the data's own: what is left is the prior's part alone
    let process = GaussianProcess::new(&kernel.ntk, N, &noise(N, 14), 1e4).unwrap();
    let untrained = process
        .trained_ensemble_variance(&cross.ntk, &kernel.nngp, &cross.nngp, &prior)
        .unwrap()
        .values;
    for (a, b) in untrained.iter().zip(&prior) {
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }
}

#[test]
fn the_most_likely_noise_is_that_of_a_grid() {
    let Problem { kernel, .. } = problem();
    // a draw of the process with noise 0.2
    let prior = GaussianProcess::new(&kernel, N, &[0.0; N], 1e6).unwrap();
    let mut stream = Stream::new(8, 0, Purpose::Initial, 0);
    let (mut targets, _) = prior
        .draws(&vec![0.0; N * N], &kernel, 5, &mut stream)
        .unwrap();
    for y in &mut targets {
        *y += 0.2 * stream.normal();
    }
    let fit = fit_noise(&kernel, N, &targets).unwrap();
    let likelihood = |noise: f64| {
        GaussianProcess::new(&kernel, N, &targets, noise)
            .unwrap()
            .log_marginal_likelihood()
    };
    assert!((fit.log_marginal_likelihood - likelihood(fit.noise)).abs() < 1e-8);
    for i in 0..2000 {
        let noise = (-7.0 + 9.0 * f64::from(i) / 2000.0).exp();
        assert!(
            likelihood(noise) < fit.log_marginal_likelihood + 1e-9,
            "{noise}"
        );
    }
    assert!(
        !fit.is_at_limit && (0.1..0.4).contains(&fit.noise),
        "{fit:?}"
    );
    let gradient = GaussianProcess::new(&kernel, N, &targets, fit.noise)
        .unwrap()
        .noise_gradient();
    assert!(gradient.abs() < 1e-4, "{gradient}");
    assert!(fit_noise(&kernel, N, &[0.0; N]).unwrap().is_at_limit);
}

#[test]
fn the_most_likely_scales_are_those_of_a_grid() {
    let infinite = InfiniteNetwork::new(&fully_connected(3, 1, Activation::Erf)).unwrap();
    let n = 40;
    let values = noise(n * 3, 15);
    let x = matrix(&values, n, 3);
    let truth = infinite
        .scaled(1.6, 4.0)
        .kernels(x, Kinds::Nngp, 1)
        .unwrap()
        .nngp;
    let prior = GaussianProcess::new(&truth, n, &vec![0.0; n], 1e6).unwrap();
    let mut stream = Stream::new(9, 0, Purpose::Initial, 0);
    let (mut targets, _) = prior
        .draws(&vec![0.0; n * n], &truth, 6, &mut stream)
        .unwrap();
    for y in &mut targets {
        *y += 0.1 * stream.normal();
    }
    for covariance in [Covariance::Nngp, Covariance::Ntk] {
        let fit = fit_scales(&infinite, covariance, x, &targets, 2).unwrap();
        let likelihood = |noise: f64, weight: f64, bias: f64| {
            let kernels = infinite
                .scaled(weight, bias)
                .kernels(x, Kinds::NngpAndNtk, 1)
                .unwrap();
            let kernel = if covariance == Covariance::Nngp {
                kernels.nngp
            } else {
                kernels.ntk
            };
            GaussianProcess::new(&kernel, n, &targets, noise)
                .unwrap()
                .log_marginal_likelihood()
        };
        let best = fit.log_marginal_likelihood;
        assert!((best - likelihood(fit.noise, fit.weight_factor, fit.bias_factor)).abs() < 1e-8);
        assert!(!fit.is_at_limit, "{fit:?}");
        let steps = [-1.0, -0.3, -0.03, 0.0, 0.03, 0.3, 1.0_f64];
        for a in steps {
            for b in steps {
                for c in steps {
                    let [a, b, c] = [a, b, c].map(f64::exp);
                    let there =
                        likelihood(fit.noise * a, fit.weight_factor * b, fit.bias_factor * c);
                    assert!(there < best + 1e-6, "{covariance:?}: {a} {b} {c}");
                }
            }
        }
        if covariance == Covariance::Nngp {
            assert!(
                (0.07..0.14).contains(&fit.noise) && (1.2..2.2).contains(&fit.weight_factor),
                "{fit:?}"
            );
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_and_jitter_is_counted() {
    let Problem {
        kernel,
        targets,
        cross,
        ..
    } = problem();
    let message = |kernel: &[f64], targets: &[f64], noise| match GaussianProcess::new(
        kernel, N, targets, noise,
    ) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    };
    assert_eq!(
        message(&kernel[1..], &targets, 0.1),
        "the kernel: 143 numbers, 144 are needed"
    );
    assert_eq!(
        message(&kernel, &targets[1..], 0.1),
        "targets: 23 numbers, 12 are needed"
    );
    assert_eq!(
        message(&kernel, &[f64::NAN; N], 0.1),
        "targets must be there and finite"
    );
    assert!(message(&kernel, &targets, -1.0).contains("-1"));
    assert!(message(&[f64::NAN; N * N], &targets, 0.1).contains("not positive definite"));
    let process = GaussianProcess::new(&kernel, N, &targets, 0.1).unwrap();
    assert!(process.mean(&cross[1..]).is_err() && process.variance(&cross, &[1.0]).is_err());
    let singular = GaussianProcess::new(&[1.0; N * N], N, &targets, 0.0).unwrap();
    assert!(singular.jitter() > 0);
}
