//! The law that updates settle in, with preconditioners that have come to rest: closed form for linear regression, quadrature
//! for logistic regression.

use reprior::compute::kernels::{dot, log_determinant, matrix_mut, multiply};
use reprior::compute::matrix;
use reprior::model::likelihood::{Bernoulli, Gaussian};
use reprior::stochastic::objective::Objective;
use reprior::stochastic::preconditioner::{Block, Decay, Preconditioner, Scope};
use reprior::stochastic::update::{StochasticGradient, StochasticGradientState};
use reprior::stochastic::{Dynamics, StochasticGradientSettings};

use super::{network, normals, objective, preconditioners, settings};

const ROWS: usize = 12;
const SIGMA: f64 = 0.8;

/// Weights 2, bias 1: three parameters, whose posterior is Gaussian with mean μ and covariance S.
fn regression() -> (Vec<f64>, Vec<f64>, Vec<f64>, [f64; 3]) {
    let x = normals(2 * ROWS, 1);
    let y: Vec<f64> = normals(ROWS, 2).iter().map(|e| 1.0 + SIGMA * e).collect();
    let mut precision = vec![0.0; 9];
    let mut linear = [0.0; 3];
    for row in 0..ROWS {
        let features = [x[2 * row], x[2 * row + 1], 1.0];
        for i in 0..3 {
            linear[i] += features[i] * y[row] / (SIGMA * SIGMA);
            for j in 0..3 {
                precision[3 * j + i] += features[i] * features[j] / (SIGMA * SIGMA);
            }
        }
    }
    for i in 0..3 {
        precision[4 * i] += 1.0;
    }
    (x, y, precision, linear)
}

/// A⁻¹ of a 3 × 3 matrix by cofactors.
fn inverse(a: &[f64]) -> Vec<f64> {
    let minor = |r: usize, c: usize| {
        let at = |i: usize, j: usize| a[(c + 1 + j) % 3 * 3 + (r + 1 + i) % 3];
        at(0, 0) * at(1, 1) - at(0, 1) * at(1, 0)
    };
    let determinant: f64 = (0..3).map(|c| a[3 * c] * minor(0, c)).sum();
    let (log, sign) = log_determinant(a, 3);
    assert!((determinant - sign * log.exp()).abs() < 1e-9 * determinant.abs());
    (0..9)
        .map(|at| minor(at / 3, at % 3) / determinant)
        .collect()
}

fn product(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; 9];
    multiply(
        matrix_mut(&mut out, 3, 3),
        false,
        1.0,
        matrix(a, 3, 3),
        matrix(b, 3, 3),
    );
    out
}

/// C of a chain whose one layer is one block.
fn matrix_of(kind: &dyn Preconditioner<f64>, state: &StochasticGradientState<f64>) -> Vec<f64> {
    let block = Block {
        rows: 3,
        units: 1,
        has_bias: kind.scope() != Scope::All,
    };
    let column = |at: usize| {
        let mut unit = vec![0.0; 3];
        unit[at] = 1.0;
        kind.transform(block, &state.preconditioner, &mut unit, &mut []);
        unit
    };
    (0..3).flat_map(column).collect()
}

/// A chain whose preconditioner has seen 3,000 updates and changes no more.
fn at_rest(
    make: &dyn Fn() -> Objective<f64>,
    kind: usize,
    settings: StochasticGradientSettings,
) -> StochasticGradient<f64> {
    let preconditioner = || preconditioners::<f64>(1e-4).swap_remove(kind);
    let plain = StochasticGradientSettings {
        dynamics: Dynamics::Langevin,
        ..settings.clone()
    };
    let dim = make().layout().len();
    let mut chain =
        StochasticGradient::new(make(), preconditioner(), plain, vec![0.0; dim]).unwrap();
    for _ in 0..3000 {
        chain.update().unwrap();
    }
    let settings = StochasticGradientSettings {
        decay: Decay::Constant { rate: 1e-300 },
        ..settings
    };
    let mut state = chain.state().clone();
    if settings.dynamics != Dynamics::Langevin {
        state.momentum = vec![0.0; dim];
    }
    if let Dynamics::NoseHoover { friction } = settings.dynamics {
        state.thermostat = friction;
    }
    StochasticGradient::resume(make(), preconditioner(), settings, state).unwrap()
}

/// Mean and covariance of `updates` positions, and the means of both temperatures.
fn settle(chain: &mut StochasticGradient<f64>, updates: usize) -> (Vec<f64>, Vec<f64>, [f64; 2]) {
    let dim = chain.state().position.len();
    let (mut mean, mut squares) = (vec![0.0; dim], vec![0.0; dim * dim]);
    let mut temperatures = [0.0; 2];
    for _ in 0..updates {
        let update = chain.update().unwrap();
        let theta = &chain.state().position;
        temperatures[0] += update.configurational_temperature / updates as f64;
        temperatures[1] += update.kinetic_temperature.unwrap_or(0.0) / updates as f64;
        for i in 0..dim {
            mean[i] += theta[i] / updates as f64;
            for j in 0..dim {
                squares[j * dim + i] += theta[i] * theta[j] / updates as f64;
            }
        }
    }
    for i in 0..dim {
        for j in 0..dim {
            squares[j * dim + i] -= mean[i] * mean[j];
        }
    }
    (mean, squares, temperatures)
}

/// θ ← θ − hCP(θ − μ) + √(2h)C^{1/2}ξ settles in N(μ, (P − ½hPCP)⁻¹), at a step where that differs from the posterior P⁻¹ by a
/// tenth and more.
#[test]
fn linear_regression_with_every_preconditioner() {
    let (x, y, precision, linear) = regression();
    let network = network(2, &[], 1);
    let make = || objective::<f64>(&network, &x, &y, Gaussian, SIGMA, 1);
    let covariance = inverse(&precision);
    let mu: Vec<f64> = (0..3)
        .map(|i| {
            dot(
                &[covariance[i], covariance[3 + i], covariance[6 + i]],
                &linear,
            )
        })
        .collect();
    for kind in 0..6 {
        // a step for which hCP's largest eigenvalue is about a half
        let probe = at_rest(&make, kind, settings(1e-3));
        let preconditioner = preconditioners::<f64>(1e-4).swap_remove(kind);
        let cp = product(&matrix_of(&*preconditioner, probe.state()), &precision);
        let trace = cp[0] + cp[4] + cp[8];
        let step_size = 0.6 / trace * ROWS as f64;
        let mut chain = at_rest(&make, kind, settings(step_size));
        let c = matrix_of(&*preconditioner, chain.state());
        let cp = product(&c, &precision);
        let h = step_size / ROWS as f64;
        let pcp = product(&precision, &cp);
        let entries = precision.iter().zip(&pcp);
        let expected: Vec<f64> = entries.map(|(p, pcp)| p - 0.5 * h * pcp).collect();
        let expected = inverse(&expected);
        let updates = 200_000;
        let (mean, found, [configurational, _]) = settle(&mut chain, updates);
        for i in 0..3 {
            let sd = covariance[4 * i].sqrt();
            assert!(
                (mean[i] - mu[i]).abs() < 0.05 * sd,
                "{preconditioner:?}: mean"
            );
            for j in 0..3 {
                let at = 3 * j + i;
                let scale = (covariance[4 * i] * covariance[4 * j]).sqrt();
                let error = (found[at] - expected[at]).abs() / scale;
                assert!(error < 0.05, "{preconditioner:?} {i} {j}: {error}");
            }
        }
        // E⟨θ, P(θ − μ)⟩ = tr P·cov: more than D by what the step size adds
        let virial = product(&precision, &expected);
        let expected_temperature = (virial[0] + virial[4] + virial[8]) / 3.0;
        assert!(
            (configurational - expected_temperature).abs() < 0.06,
            "{preconditioner:?}"
        );
    }
}

/// Momentum: the posterior and kinetic temperature 1 at a small step.
#[test]
fn linear_regression_with_momentum() {
    let (x, y, precision, _) = regression();
    let network = network(2, &[], 1);
    let make = || objective::<f64>(&network, &x, &y, Gaussian, SIGMA, 1);
    let covariance = inverse(&precision);
    for (dynamics, kind) in [
        (Dynamics::Hamiltonian { friction: 0.1 }, 0),
        (Dynamics::Hamiltonian { friction: 0.2 }, 3),
        (Dynamics::NoseHoover { friction: 0.1 }, 0),
    ] {
        let step_size = if kind == 0 { 2e-3 } else { 2e-2 } * ROWS as f64;
        let settings = StochasticGradientSettings {
            dynamics,
            ..settings(step_size)
        };
        let mut chain = at_rest(&make, kind, settings);
        let (_, found, [_, kinetic]) = settle(&mut chain, 300_000);
        for i in 0..3 {
            for j in 0..3 {
                let scale = (covariance[4 * i] * covariance[4 * j]).sqrt();
                let error = (found[3 * j + i] - covariance[3 * j + i]).abs() / scale;
                assert!(error < 0.07, "{dynamics:?} {i} {j}: {error}");
            }
        }
        if kind == 0 {
            assert!((kinetic - 1.0).abs() < 0.03, "{dynamics:?}: {kinetic}");
        }
    }
}

/// One weight and one bias; means and variances by quadrature. The bias of a step is linear in it to leading order:
/// twice the covariance at half the step less that at the whole one.
#[test]
fn logistic_regression_with_every_preconditioner() {
    let rows = 10;
    let x = normals(rows, 5);
    let y: Vec<f64> = x.iter().map(|&x| f64::from(u8::from(x > 0.3))).collect();
    let network = network(1, &[], 1);
    let make = || objective::<f64>(&network, &x, &y, Bernoulli, 1.0, 1);
    let (mut total, mut first, mut second) = (0.0, [0.0; 2], [0.0; 3]);
    let grid = || (-120..=120).map(|k| 0.05 * f64::from(k));
    for w in grid() {
        for b in grid() {
            let of_row = |(x, y): (&f64, &f64)| {
                let f = w * x + b;
                y * f - (1.0 + f.exp()).ln()
            };
            let log: f64 = x.iter().zip(&y).map(of_row).sum();
            let p = (log - 0.5 * (w * w + b * b)).exp();
            total += p;
            first = [first[0] + p * w, first[1] + p * b];
            second = [
                second[0] + p * w * w,
                second[1] + p * w * b,
                second[2] + p * b * b,
            ];
        }
    }
    let mean = first.map(|m| m / total);
    let expected = [
        second[0] / total - mean[0] * mean[0],
        second[1] / total - mean[0] * mean[1],
        second[2] / total - mean[1] * mean[1],
    ];
    // steps of the same speed: 1/C is about the mean square of a gradient for those that divide by it
    for (kind, step_size) in [
        (0, 1.0),
        (1, 0.3),
        (2, 0.06),
        (3, 0.06),
        (4, 0.06),
        (5, 0.06),
    ] {
        let covariance = |step_size: f64, updates| {
            let mut chain = at_rest(&make, kind, settings(step_size));
            let (found_mean, found, _) = settle(&mut chain, updates);
            (
                [found_mean[0], found_mean[1]],
                [found[0], found[1], found[3]],
            )
        };
        let (mean_whole, whole) = covariance(step_size, 150_000);
        let (mean_half, half) = covariance(0.5 * step_size, 300_000);
        for at in 0..3 {
            let scale = [expected[0], (expected[0] * expected[2]).sqrt(), expected[2]][at];
            let found = 2.0 * half[at] - whole[at];
            let error = (found - expected[at]).abs() / scale;
            assert!(
                error < 0.12,
                "{kind} {at}: {error}, {} {}",
                whole[at],
                half[at]
            );
        }
        for at in 0..2 {
            let found = 2.0 * mean_half[at] - mean_whole[at];
            assert!(
                (found - mean[at]).abs() < 0.1,
                "{kind}: {found} {}",
                mean[at]
            );
        }
    }
}
