//! A wide network's predictions agree with the posterior of its infinite-width Gaussian process (NNGP).
//!
//! **The limit.** Given the inner weights, predictions are those of Gaussian regression with the kernel
//! K_w = (σ_w²/N) Σ_u φ_uφ_uᵀ + σ_b², φ_u the activations of the N hidden units on all inputs. Over the prior its
//! mean is the NNGP kernel K, whatever N; as N → ∞ the posterior tends to Gaussian regression with K.
//!
//! **Finite width.** K_w − K is a mean of N independent D_u = σ_w²(φ_uφ_uᵀ − E φφᵀ). For a function g(K_w) the posterior
//! mean is E[g e^ℓ]/E[e^ℓ] over the prior, ℓ the log marginal likelihood. To second order in K_w − K it is
//! g(K) + c/N, c = Cov_u(Dg·D_u, Dℓ·D_u) + ½ E_u[D²g·(D_u, D_u)]; what follows is O(1/N²). See [`limit`].
//!
//! **Tolerance.** |c|/N for the finite width, plus ρ² times the largest value of the kind for the orders beyond, where
//! ρ is the largest |c|/N relative to a variance (1/128 at width 4096), plus 4.5 Monte-Carlo standard errors, from the
//! effective sample size. Over seeds, the 33 comparisons would fail by chance with probability 2e-4.

mod limit;
mod network;

use limit::Quantity;
use network::{Estimate, sampled};
use reprior::compute::{Purpose, Stream};
use reprior::network::Activation;

const TRAIN: usize = 20;
const TEST: usize = 8;
const INPUTS: usize = 10;
const OUTPUTS: usize = 2;
const NOISE: f64 = 0.3;
const STANDARD_ERRORS: f64 = 4.5;

/// Something per quantity: the means of the predictions, their variances (each output by output, TEST × OUTPUTS), ℓ.
type Kinds<T> = [Vec<T>; 3];

/// Inputs (row-major, training rows first) and targets (column-major), standardised.
struct Problem {
    inputs: Vec<f64>,
    targets: Vec<f64>,
}

impl Problem {
    fn new() -> Self {
        let rows = TRAIN + TEST;
        let mut stream = Stream::new(21, 0, Purpose::Initial, 0);
        let mut inputs = vec![0.0; rows * INPUTS];
        stream.fill_normal(&mut inputs);
        for column in 0..INPUTS {
            let values: Vec<f64> = (0..rows).map(|i| inputs[i * INPUTS + column]).collect();
            for (i, value) in standardised(&values).into_iter().enumerate() {
                inputs[i * INPUTS + column] = value;
            }
        }
        let mut targets = Vec::new();
        for function in [
            |x: &[f64]| (1.5 * x[0]).sin() + 0.5 * x[1] * x[2],
            |x: &[f64]| x[3].tanh() - 0.4 * x[4] * x[4] + 0.3 * x[0],
        ] {
            let observe = |x: &[f64]| function(x) + NOISE * stream.normal();
            let values: Vec<f64> = inputs.chunks(INPUTS).take(TRAIN).map(observe).collect();
            targets.extend(standardised(&values));
        }
        Self { inputs, targets }
    }
}

fn standardised(values: &[f64]) -> Vec<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let sd = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
    values.iter().map(|v| (v - mean) / sd).collect()
}

/// What is taken as the exact value at width N.
#[derive(Clone, Copy, PartialEq)]
enum Exact {
    /// The limit; the tolerance allows for the term in 1/N.
    Limit,
    /// The limit and the term in 1/N; the tolerance allows for what is beyond.
    Corrected,
}

/// The largest deviation from what is exact, in tolerances.
fn deviation(
    estimates: &Kinds<Estimate>,
    limit: &Kinds<Quantity>,
    width: f64,
    exact: Exact,
) -> f64 {
    let relative = limit[1]
        .iter()
        .map(|v| v.correction.abs() / (width * v.limit));
    let beyond = relative.fold(0.0, f64::max).powi(2);
    let mut worst = 0.0_f64;
    for (estimates, quantities) in estimates.iter().zip(limit) {
        let largest = quantities.iter().map(|q| q.limit.abs()).fold(0.0, f64::max);
        for (estimate, q) in estimates.iter().zip(quantities) {
            let shift = q.correction / width;
            let (expected, allowed) = match exact {
                Exact::Limit => (q.limit, shift.abs()),
                Exact::Corrected => (q.limit + shift, 0.0),
            };
            let tolerance = allowed + beyond * largest + STANDARD_ERRORS * estimate.error;
            worst = worst.max((estimate.value - expected).abs() / tolerance);
        }
    }
    worst
}

#[test]
fn a_network_of_width_4096_predicts_as_the_gaussian_process_does() {
    let problem = Problem::new();
    let gelu = limit::quantities(Activation::Gelu, &problem);
    let wide = sampled(4096, 1000, &problem, &gelu);
    let worst = deviation(&wide, &gelu, 4096.0, Exact::Limit);
    assert!(worst < 1.0, "{worst} tolerances");
    // the same tolerance tells another kernel and a narrow network apart
    let relu = limit::quantities(Activation::Relu, &problem);
    let other_kernel = deviation(&wide, &relu, 4096.0, Exact::Limit);
    assert!(other_kernel > 3.0, "{other_kernel} tolerances");
    let narrow = deviation(
        &sampled(8, 1000, &problem, &gelu),
        &gelu,
        4096.0,
        Exact::Limit,
    );
    assert!(narrow > 3.0, "{narrow} tolerances");
}

/// At infinite width the inner weights stay at their prior, so that the limit does not show whether the marginal
/// likelihood weighs them rightly. The terms in 1/N do, that of ℓ above all.
#[test]
fn the_leading_correction_to_the_infinite_width_is_there() {
    let problem = Problem::new();
    let gelu = limit::quantities(Activation::Gelu, &problem);
    let estimates = sampled(1024, 2000, &problem, &gelu);
    let worst = deviation(&estimates, &gelu, 1024.0, Exact::Corrected);
    assert!(worst < 1.0, "{worst} tolerances");
    // with inner weights from the prior, ℓ would lack this part
    let mut unweighted = gelu.clone();
    unweighted[2][0].correction -= gelu[2][0].weighing;
    let unweighted = deviation(&estimates, &unweighted, 1024.0, Exact::Corrected);
    assert!(unweighted > 3.0, "{unweighted} tolerances");
}
