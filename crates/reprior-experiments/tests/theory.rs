//! Tables by width against what is known: quadrature and Gaussian closed forms for divergences from the prior, their limits,
//! and the rate at which gradients vanish.

use std::f64::consts::TAU;

use reprior::compute::{Purpose, Stream};
use reprior::model::likelihood::StudentT;
use reprior::model::{InputReduction, Model};
use reprior::network::{Activation, Composition};
use reprior_experiments::width::{
    ExperimentError, PriorDraws, WidthProblem, divergences, gradient_gaps, limit_of_divergence,
};

fn noise(count: usize, index: u64) -> Vec<f64> {
    let mut values = vec![0.0; count];
    Stream::new(41, 0, Purpose::Initial, index).fill_normal(&mut values);
    values
}

/// Without hidden layers the prior is N(0, I) and the posterior N(μ, Σ): ½(tr Σ⁻¹ + μᵀΣ⁻¹μ − p + log det Σ) for each output,
/// here in two dimensions by hand. The limit's formula is exact then, with K = ΨΨᵀ.
#[test]
fn a_linear_network_has_the_divergence_of_two_gaussians() {
    let (n, c, sigma) = (4, 2, 0.4);
    let (x, y) = (noise(n, 0), noise(n * c, 1));
    let network = Composition::fully_connected(1, &[], c, Activation::Identity);
    let scale = network.readout_scale;
    let psi: Vec<[f64; 2]> = x.iter().map(|x| [scale.weight * x, scale.bias]).collect();
    let mut precision = [[1.0, 0.0], [0.0, 1.0]];
    for row in &psi {
        for i in 0..2 {
            for j in 0..2 {
                precision[i][j] += row[i] * row[j] / (sigma * sigma);
            }
        }
    }
    let determinant = precision[0][0] * precision[1][1] - precision[0][1].powi(2);
    let mut exact = 0.0;
    for y in y.chunks(n) {
        let b: [f64; 2] = std::array::from_fn(|i| {
            let terms = psi.iter().zip(y).map(|(row, y)| row[i] * y);
            terms.sum::<f64>() / (sigma * sigma)
        });
        // μᵀΣ⁻¹μ = bᵀΣb
        let fit = b[0] * b[0] * precision[1][1] + b[1] * b[1] * precision[0][0]
            - 2.0 * b[0] * b[1] * precision[0][1];
        let trace = precision[0][0] + precision[1][1];
        exact += 0.5 * (trace + fit / determinant - 2.0 - determinant.ln());
    }
    let problem = WidthProblem {
        inputs: &x,
        targets: &y,
        noise: sigma,
    };
    let draws = PriorDraws { count: 3, seed: 1 };
    let found = divergences(&problem.model(network).unwrap(), draws, 0).unwrap();
    assert!((found.standard.value - exact).abs() < 1e-10 * exact);
    assert!(found.standard.error < 1e-10 * exact);
    assert!(found.repriorised.value.abs() < 1e-10);
    let kernel: Vec<f64> = (0..n * n)
        .map(|at| (0..2).map(|i| psi[at % n][i] * psi[at / n][i]).sum())
        .collect();
    let limit = limit_of_divergence(&kernel, &y, n, sigma).unwrap();
    assert!((limit - exact).abs() < 1e-10 * exact);
}

/// One unit, one row, whose reduced weights are v and the readout's two: log Z and E log p by three-dimensional quadrature of
/// the likelihood itself, which knows nothing of kernels.
#[test]
fn a_tiny_network_agrees_with_quadrature() {
    let (sigma, y, x) = (0.5, 0.8, 1.3);
    let network = Composition::fully_connected(1, &[1], 1, Activation::Tanh);
    let hidden = network.hidden_scales()[0];
    let readout = network.readout_scale;
    // the first pre-activation is N(0, σ_w²x² + σ_b²) whatever its coordinates
    let spread = ((hidden.weight * x).powi(2) + hidden.bias.powi(2)).sqrt();
    let steps = 160;
    let grid: Vec<(f64, f64)> = (0..=steps)
        .map(|at| -8.0 + 16.0 * f64::from(at) / f64::from(steps))
        .map(|z| {
            (
                z,
                (-0.5 * z * z).exp() / TAU.sqrt() * 16.0 / f64::from(steps),
            )
        })
        .collect();
    let (mut evidence, mut expected, mut log_kernel, mut trace) = (0.0, 0.0, 0.0, 0.0);
    for &(v, p) in &grid {
        let h = (spread * v).tanh();
        let kernel = (readout.weight * h).powi(2) + readout.bias.powi(2);
        let total = kernel + sigma * sigma;
        log_kernel += p * (-0.5 * y * y / total - 0.5 * (TAU * total).ln());
        trace += p * kernel;
        for &(w, q) in &grid {
            for &(b, r) in &grid {
                let f = readout.weight * h * w + readout.bias * b;
                let log = -0.5 * ((y - f) / sigma).powi(2) - 0.5 * (TAU * sigma * sigma).ln();
                evidence += p * q * r * log.exp();
                expected += p * q * r * log;
            }
        }
    }
    assert!((expected + 0.5 * (y * y + trace) / 0.25 + 0.5 * (TAU * 0.25).ln()).abs() < 1e-9);
    let problem = WidthProblem {
        inputs: &[x],
        targets: &[y],
        noise: sigma,
    };
    let draws = PriorDraws {
        count: 100_000,
        seed: 2,
    };
    let found = divergences(&problem.model(network).unwrap(), draws, 1).unwrap();
    for (estimate, exact) in [
        (found.log_evidence, evidence.ln()),
        (found.standard, evidence.ln() - expected),
        (found.repriorised, evidence.ln() - log_kernel),
    ] {
        let z = (estimate.value - exact) / estimate.error;
        assert!(
            z.abs() < 4.0 && estimate.error < 0.01 * exact.abs(),
            "{estimate:?} {exact}"
        );
    }
}

/// K of one hidden layer of rectifiers (Cho & Saul 2009), the readout's bias included.
fn relu_kernel(x: &[f64], n: usize) -> Vec<f64> {
    let network = Composition::fully_connected(1, &[1], 1, Activation::Relu);
    let (hidden, readout) = (network.hidden_scales()[0], network.readout_scale);
    let d = x.len() / n;
    let inner = |i: usize, j: usize| {
        let products = (0..d).map(|k| x[i * d + k] * x[j * d + k]);
        hidden.weight.powi(2) / d as f64 * products.sum::<f64>() + hidden.bias.powi(2)
    };
    let entry = |i: usize, j: usize| {
        let root = (inner(i, i) * inner(j, j)).sqrt();
        let angle = (inner(i, j) / root).clamp(-1.0, 1.0).acos();
        let unit = root * (angle.sin() + (0.5 * TAU - angle) * angle.cos()) / TAU;
        readout.weight.powi(2) * unit + readout.bias.powi(2)
    };
    (0..n * n).map(|at| entry(at % n, at / n)).collect()
}

#[test]
fn divergences_tend_to_their_limits() {
    let (n, c, d, sigma) = (4, 2, 3, 0.5);
    let (x, y) = (noise(n * d, 3), noise(n * c, 4));
    let problem = WidthProblem {
        inputs: &x,
        targets: &y,
        noise: sigma,
    };
    let draws = PriorDraws {
        count: 4000,
        seed: 3,
    };
    let limit = limit_of_divergence(&relu_kernel(&x, n), &y, n, sigma).unwrap();
    let family = |width| Composition::fully_connected(d, &[width], c, Activation::Relu);
    let found = [16, 64, 256, 1024].map(|width| {
        let model = problem.model(family(width)).unwrap();
        divergences(&model, draws, width).unwrap()
    });
    for found in &found {
        assert!(found.effective_draws > 100.0);
        assert!(found.repriorised.value > 0.0);
    }
    // both distances are of order 1/width
    let far = (found[0].standard.value - limit).abs();
    let last = found[3].standard.clone();
    assert!(
        (last.value - limit).abs() < 3.0 * far / 64.0 + 4.0 * last.error,
        "{limit} {found:?}"
    );
    assert!(last.error < 0.01 * limit, "{limit} {last:?}");
    let slope = (found[3].repriorised.value / found[1].repriorised.value).ln() / 16.0_f64.ln();
    assert!((slope + 1.0).abs() < 0.1, "{slope} {found:?}");
}

#[test]
fn gradients_vanish_at_the_rate_of_the_square_root_of_the_width() {
    let (n, d) = (6, 4);
    let (x, y) = (noise(n * d, 5), noise(n, 6));
    let problem = WidthProblem {
        inputs: &x,
        targets: &y,
        noise: 0.5,
    };
    let draws = PriorDraws {
        count: 300,
        seed: 4,
    };
    for depth in [1, 2] {
        for activation in [Activation::Gelu, Activation::Erf] {
            let family =
                |width| Composition::fully_connected(d, &vec![width; depth], 1, activation);
            let widths = [64, 256, 1024 / depth];
            let found = widths.map(|width| {
                let model = problem.model(family(width)).unwrap();
                gradient_gaps(&model, draws, width).unwrap()
            });
            let (a, b) = (found[0].norm.clone(), found[2].norm.clone());
            let ratio = (widths[2] as f64 / widths[0] as f64).ln();
            let slope = (b.value / a.value).ln() / ratio;
            // two standard errors of either end, and of the corrections to the rate at width 64
            let error = 4.0 * (a.error / a.value + b.error / b.value) / ratio;
            assert!(
                (slope + 0.5).abs() < error + 0.03,
                "{activation} {depth}: {slope} ± {error}: {found:?}"
            );
            assert!(error < 0.12, "{error}");
            let squared = found[2].norm_squared.value;
            assert!(squared > b.value * b.value && squared < 1.5 * b.value * b.value);
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let network = Composition::fully_connected(1, &[3], 1, Activation::Relu);
    let problem = WidthProblem {
        inputs: &[0.1, 0.2],
        targets: &[0.5, 0.5],
        noise: 0.1,
    };
    let model = problem.model(network.clone()).unwrap();
    let one = PriorDraws { count: 1, seed: 0 };
    assert_eq!(divergences(&model, one, 3), Err(ExperimentError::Draws(1)));
    assert!(limit_of_divergence(&[1.0; 3], &[1.0; 2], 2, 0.1).is_err());
    assert!(limit_of_divergence(&[f64::NAN; 4], &[1.0; 2], 2, 0.1).is_err());
    let reduction = InputReduction::Auto;
    let other = Model::new(network, 0.1, &[0.1, 0.2], vec![0.5; 2], &[], reduction).unwrap();
    let other = other.with_likelihood(std::sync::Arc::new(StudentT::new(3.0).unwrap()));
    let two = PriorDraws { count: 2, seed: 0 };
    let refused = divergences(&std::sync::Arc::new(other), two, 3).unwrap_err();
    assert!(refused.to_string().contains("gaussian"));
}
