//! Linear and logistic regression, where closed forms are known.

use std::sync::Arc;

use reprior::compute::kernels::symmetric_eigen;
use reprior::compute::matrix;
use reprior::laplace::ascent::{LogPosterior, LogPrior};
use reprior::laplace::{
    FisherInformation, HessianStructure, Lanczos, Laplace, LaplaceData, Linearised, PrecisionPer,
    PriorPrecision, Subset,
};
use reprior::model::likelihood::{Bernoulli, Gaussian, Likelihood};
use reprior::network::parameters::ParameterLayout;
use reprior::network::{Composition, Executor};
use reprior::stochastic::Prior;
use reprior::stochastic::data::MinibatchData;

use super::{apply, close, dense_network, normals, stream, times};

const ROWS: usize = 30;
const COLUMNS: usize = 4;

fn lanczos() -> Lanczos {
    Lanczos {
        tolerance: 1e-12,
        ..Lanczos::of_rank(100)
    }
}

/// Ψ of a network without hidden layers, column-major with the bias last: its Jacobian for one output.
fn psi(network: &Composition, x: &[f64], rows: usize) -> Vec<f64> {
    let factor = network.readout_scale.factor(COLUMNS);
    let mut psi: Vec<f64> = x.iter().map(|x| factor * x).collect();
    psi.resize(rows * (COLUMNS + 1), network.readout_scale.bias);
    psi
}

/// ΨᵀWΨ + α·I.
fn precision(psi: &[f64], weights: &[f64], alpha: f64) -> Vec<f64> {
    let (rows, size) = (weights.len(), psi.len() / weights.len());
    let entry = |at: usize| {
        let (i, j) = (at % size, at / size);
        let sum: f64 = (0..rows)
            .map(|r| weights[r] * psi[i * rows + r] * psi[j * rows + r])
            .sum();
        sum + if i == j { alpha } else { 0.0 }
    };
    (0..size * size).map(entry).collect()
}

fn structures() -> Vec<(HessianStructure, Subset)> {
    vec![
        (HessianStructure::Full(u64::MAX), Subset::All),
        (HessianStructure::Kron, Subset::All),
        (HessianStructure::LowRank(lanczos()), Subset::All),
        (HessianStructure::Full(u64::MAX), Subset::LastLayer),
        (HessianStructure::Kron, Subset::LastLayer),
        (
            HessianStructure::Full(u64::MAX),
            Subset::Parameters((0..=COLUMNS).collect()),
        ),
    ]
}

struct Fitted {
    network: Composition,
    executor: Executor<f64>,
    x: Vec<f64>,
    y: Vec<f64>,
}

impl Fitted {
    fn new(y: impl Fn(f64, usize) -> f64) -> Self {
        let network = dense_network(COLUMNS, &[], 1);
        let x = normals(ROWS * COLUMNS, 1);
        let slope = |row: usize| x[row] - 0.5 * x[ROWS + row] + 0.3 * x[3 * ROWS + row];
        let y = (0..ROWS).map(|row| y(slope(row), row)).collect();
        Self {
            executor: Executor::new(&network).unwrap(),
            network,
            x,
            y,
        }
    }

    fn laplace(
        &mut self,
        weights: &[f64],
        likelihood: &dyn Likelihood,
        sigma: f64,
        curvature: &FisherInformation<'_>,
        (structure, subset): (HessianStructure, Subset),
        alpha: f64,
    ) -> Laplace<f64> {
        let data = LaplaceData {
            inputs: matrix(&self.x, ROWS, COLUMNS),
            targets: &self.y,
            likelihood,
            scales: &[sigma],
            curvature,
            scale: 1.0,
        };
        let layout = ParameterLayout::new(&self.network);
        let prior = PriorPrecision::Scalar(alpha);
        let executor = &mut self.executor;
        Laplace::fit(
            executor,
            &layout,
            weights,
            data,
            structure,
            subset,
            &prior,
            &mut stream(),
        )
        .unwrap()
    }
}

/// Bayesian linear regression: mean, covariance, evidence and predictions in closed form, for every structure that is exact there.
#[test]
fn linear_regression() {
    let noise = normals(ROWS, 2);
    let mut own = Fitted::new(|f, row| f + 0.3 * noise[row]);
    let (sigma, alpha) = (0.3_f64, 1.7);
    let psi_train = psi(&own.network, &own.x, ROWS);
    let precision = precision(&psi_train, &[sigma.powi(-2); ROWS], alpha);
    let size = COLUMNS + 1;
    let covariance = apply(&precision, size, |value| 1.0 / value);
    let projected: Vec<f64> = (0..size)
        .map(|i| {
            (0..ROWS)
                .map(|r| psi_train[i * ROWS + r] * own.y[r])
                .sum::<f64>()
                / sigma.powi(2)
        })
        .collect();
    let mode = times(&covariance, &projected);
    // log N(y; 0, σ²I + ΨΨᵀ/α)
    let mut marginal = vec![0.0; ROWS * ROWS];
    for i in 0..ROWS {
        for j in 0..ROWS {
            let sum: f64 = (0..size)
                .map(|k| psi_train[k * ROWS + i] * psi_train[k * ROWS + j])
                .sum();
            marginal[j * ROWS + i] = sum / alpha + if i == j { sigma.powi(2) } else { 0.0 };
        }
    }
    let (values, _) = symmetric_eigen(&marginal, ROWS).unwrap();
    let solved = times(&apply(&marginal, ROWS, |value| 1.0 / value), &own.y);
    let quadratic: f64 = solved.iter().zip(&own.y).map(|(a, b)| a * b).sum();
    let log_det: f64 = values.iter().map(|v| v.ln()).sum();
    let evidence = -0.5 * (quadratic + log_det + ROWS as f64 * std::f64::consts::TAU.ln());
    let new = normals(7 * COLUMNS, 3);
    let psi_new = psi(&own.network, &new, 7);
    for structure in structures() {
        let curvature = FisherInformation {
            likelihood: &Gaussian,
            scales: &[sigma],
        };
        let name = format!("{structure:?}");
        let laplace = own.laplace(&mode, &Gaussian, sigma, &curvature, structure, alpha);
        let diagonal: Vec<f64> = (0..size).map(|i| covariance[i * (size + 1)]).collect();
        close(&laplace.variances(), &diagonal, 1e-9);
        let found = laplace.log_marginal_likelihood();
        assert!(
            (found - evidence).abs() < 1e-8,
            "{name}: {found} {evidence}"
        );
        let Linearised {
            means, covariances, ..
        } = laplace.linearised(&mut own.executor, matrix(&new, 7, COLUMNS));
        for row in 0..7 {
            let own: Vec<f64> = (0..size).map(|k| psi_new[k * 7 + row]).collect();
            let mean: f64 = own.iter().zip(&mode).map(|(a, b)| a * b).sum();
            let spread = times(&covariance, &own);
            let variance: f64 = own.iter().zip(spread).map(|(a, b)| a * b).sum();
            assert!((means[row] - mean).abs() < 1e-12);
            assert!((covariances[row] - variance).abs() < 1e-10, "{name}");
        }
    }
}

/// From anywhere a linear network gets to its mode in one step, a network of tanh units in several: there is nothing left to rise by.
#[test]
fn an_ascent_ends_at_the_mode() {
    let noise = normals(ROWS, 2);
    let own = Fitted::new(|f, row| f.sin() + 0.3 * noise[row]);
    for (widths, structure, most) in [
        (&[][..], HessianStructure::Full(u64::MAX), 3),
        (&[], HessianStructure::Kron, 3),
        (&[6], HessianStructure::Full(u64::MAX), 500),
        (&[6], HessianStructure::Kron, 500),
        (&[6], HessianStructure::Diag, 1000),
    ] {
        let network = dense_network(COLUMNS, widths, 1);
        let layout = ParameterLayout::new(&network);
        let mut executor = Executor::new(&network).unwrap();
        let rows: Vec<f64> = (0..ROWS * COLUMNS)
            .map(|at| own.x[at % COLUMNS * ROWS + at / COLUMNS])
            .collect();
        let data = MinibatchData {
            inputs: Arc::new(rows),
            targets: own.y.clone().into(),
            likelihood: Arc::new(Gaussian),
            scales: vec![0.3],
        };
        let mut weights = normals(layout.len(), 6);
        let curvature = FisherInformation {
            likelihood: &Gaussian,
            scales: &[0.3],
        };
        let fit = |weights: &[f64]| {
            let data = LaplaceData {
                inputs: matrix(&own.x, ROWS, COLUMNS),
                targets: &own.y,
                likelihood: &Gaussian,
                scales: &[0.3],
                curvature: &curvature,
                scale: 1.0,
            };
            let mut executor = Executor::new(&network).unwrap();
            Laplace::fit(
                &mut executor,
                &layout,
                weights,
                data,
                structure,
                Subset::All,
                &PriorPrecision::Scalar(1.0),
                &mut stream(),
            )
            .unwrap()
        };
        let priors = [Prior::default()];
        let mut posterior = LogPosterior {
            executor: &mut executor,
            layout: &layout,
            data: &data,
            prior: LogPrior::Layers(&priors),
        };
        let mut gradient = vec![0.0; weights.len()];
        let start = posterior.evaluate(&weights, &mut gradient);
        let first = fit(&weights);
        assert!(first.nats_to_mode(&gradient) > 1.0);
        let ascent = posterior.ascend(&mut weights, &first, most, 1e-6);
        let end = posterior.evaluate(&weights, &mut gradient);
        assert!((end - start - ascent.rise).abs() < 1e-9 && ascent.rise > 1.0);
        assert!(ascent.evaluations <= most);
        let left = fit(&weights).nats_to_mode(&gradient);
        assert!(left < 1e-3, "{structure:?} {widths:?}: {left} {ascent:?}");
        // the same density with the prior's precisions, but for a constant
        let ones = vec![1.0; weights.len()];
        posterior.prior = LogPrior::Precisions(&ones);
        let mut same = gradient.clone();
        posterior.evaluate(&weights, &mut same);
        close(&same, &gradient, 1e-9);
    }
}

/// The precision that maximises the evidence: a stationary point by finite differences; layers and parameters do at least as well.
#[test]
fn prior_precisions_maximise_the_marginal_likelihood() {
    let noise = normals(ROWS, 2);
    let mut own = Fitted::new(|f, row| f + 0.3 * noise[row]);
    let weights = normals(COLUMNS + 1, 4);
    let curvature = FisherInformation {
        likelihood: &Gaussian,
        scales: &[0.3],
    };
    for structure in structures() {
        let mut laplace = own.laplace(&weights, &Gaussian, 0.3, &curvature, structure, 1.0);
        let best = laplace
            .maximise_marginal_likelihood(PrecisionPer::All)
            .unwrap();
        let alpha = laplace.precisions()[0];
        for factor in [0.9, 0.999, 1.001, 1.1] {
            laplace
                .set_prior_precision(&PriorPrecision::Scalar(alpha * factor))
                .unwrap();
            assert!(laplace.log_marginal_likelihood() <= best + 1e-10);
        }
        let layer = laplace
            .maximise_marginal_likelihood(PrecisionPer::Layer)
            .unwrap();
        assert!((layer - best).abs() < 1e-6, "one layer: {layer} {best}");
    }
    let mut laplace = own.laplace(
        &weights,
        &Gaussian,
        0.3,
        &curvature,
        (HessianStructure::Diag, Subset::All),
        1.0,
    );
    let best = laplace
        .maximise_marginal_likelihood(PrecisionPer::All)
        .unwrap();
    let each = laplace
        .maximise_marginal_likelihood(PrecisionPer::Parameter)
        .unwrap();
    assert!(each > best);
    let at = laplace.precisions().to_vec();
    for i in 0..at.len() {
        for factor in [0.9, 1.1] {
            let mut moved = at.clone();
            moved[i] *= factor;
            laplace
                .set_prior_precision(&PriorPrecision::PerParameter(moved))
                .unwrap();
            assert!(laplace.log_marginal_likelihood() < each + 1e-9);
        }
    }
}

/// σ and α together: no neighbour has a larger marginal likelihood, and data of noise 0.3 say about 0.3.
#[test]
fn noise_and_precision_maximise_the_marginal_likelihood() {
    let noise = normals(ROWS, 2);
    let mut own = Fitted::new(|f, row| f + 0.3 * noise[row]);
    let (fitted, size) = (0.5, COLUMNS + 1);
    let psi_train = psi(&own.network, &own.x, ROWS);
    let inverse = apply(&precision(&psi_train, &[1.0; ROWS], 1e-6), size, |v| {
        1.0 / v
    });
    let projected: Vec<f64> = (0..size)
        .map(|i| (0..ROWS).map(|r| psi_train[i * ROWS + r] * own.y[r]).sum())
        .collect();
    let weights = times(&inverse, &projected);
    let residual = |r: usize| {
        let f: f64 = (0..size)
            .map(|k| psi_train[k * ROWS + r] * weights[k])
            .sum();
        (own.y[r] - f).powi(2)
    };
    let residuals: f64 = (0..ROWS).map(residual).sum();
    let curvature = FisherInformation {
        likelihood: &Gaussian,
        scales: &[fitted],
    };
    let full = (HessianStructure::Full(u64::MAX), Subset::All);
    let mut laplace = own.laplace(&weights, &Gaussian, fitted, &curvature, full, 1.0);
    let sigma = laplace
        .maximise_with_noise(fitted, residuals, ROWS)
        .unwrap();
    assert!((0.2..0.4).contains(&sigma), "{sigma}");
    let (best, alpha) = (laplace.log_marginal_likelihood(), laplace.precisions()[0]);
    for [by_sigma, by_alpha] in [
        [1.03, 1.0],
        [0.97, 1.0],
        [1.0, 1.1],
        [1.0, 0.9],
        [1.02, 1.05],
    ] {
        let variance = (sigma * by_sigma).powi(2);
        let likelihood =
            -0.5 * (ROWS as f64 * (std::f64::consts::TAU * variance).ln() + residuals / variance);
        laplace
            .rescale(fitted * fitted / variance, likelihood)
            .unwrap();
        let moved = PriorPrecision::Scalar(alpha * by_alpha);
        laplace.set_prior_precision(&moved).unwrap();
        assert!(laplace.log_marginal_likelihood() < best);
    }
}

/// Logistic regression: the Hessian of −log p(y | θ) + ½α|θ|², by differences of its gradient, is the precision.
#[test]
fn logistic_regression() {
    let mut own = Fitted::new(|f, row| f64::from(u8::from(f + 0.2 * (row as f64).sin() > 0.0)));
    let (size, alpha) = (COLUMNS + 1, 0.8);
    let psi_train = psi(&own.network, &own.x, ROWS);
    let y = own.y.clone();
    let probability = |theta: &[f64], row: usize| {
        let f: f64 = (0..size)
            .map(|k| psi_train[k * ROWS + row] * theta[k])
            .sum();
        1.0 / (1.0 + (-f).exp())
    };
    let gradient = |theta: &[f64]| -> Vec<f64> {
        let part = |k: usize| {
            let sum: f64 = (0..ROWS)
                .map(|r| (probability(theta, r) - y[r]) * psi_train[k * ROWS + r])
                .sum();
            sum + alpha * theta[k]
        };
        (0..size).map(part).collect()
    };
    // Newton's method to the mode
    let mut theta = vec![0.0; size];
    for _ in 0..30 {
        let weights: Vec<f64> = (0..ROWS)
            .map(|r| probability(&theta, r) * (1.0 - probability(&theta, r)))
            .collect();
        let inverse = apply(&precision(&psi_train, &weights, alpha), size, |v| 1.0 / v);
        let step = times(&inverse, &gradient(&theta));
        theta.iter_mut().zip(step).for_each(|(t, s)| *t -= s);
    }
    let h = 1e-5;
    let mut hessian = vec![0.0; size * size];
    for j in 0..size {
        let at = |sign: f64| {
            let mut moved = theta.clone();
            moved[j] += sign * h;
            gradient(&moved)
        };
        let (up, down) = (at(1.0), at(-1.0));
        for i in 0..size {
            hessian[j * size + i] = (up[i] - down[i]) / (2.0 * h);
        }
    }
    let covariance = apply(&hessian, size, |value| 1.0 / value);
    for (structure, subset) in structures() {
        if structure == HessianStructure::Kron {
            continue;
        }
        let curvature = FisherInformation {
            likelihood: &Bernoulli,
            scales: &[1.0],
        };
        let at = (structure, subset);
        let laplace = own.laplace(&theta, &Bernoulli, 1.0, &curvature, at, alpha);
        let vector = normals(size, 9);
        let mut product = vector.clone();
        laplace.covariance_product(&mut product);
        close(&product, &times(&covariance, &vector), 1e-7);
    }
}
