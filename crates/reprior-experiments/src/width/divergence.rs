//! How far the posterior is from the prior: KL(prior ‖ posterior), of the network's own weights θ and of the repriorised φ.
//!
//! With ℓ(W) = log N(Y; 0, K_s(W)) given the inner weights W, up to −(nC/2) log 2π, and log Z = log E exp ℓ(W), both over
//! W ~ N(0, I), and since E[log p(Y | θ) | W] = −½σ⁻²(‖Y‖² + C·tr K̂(W)) − nC log σ:
//! * KL(N ‖ p(θ | D)) = log Z − E log p(Y | θ) = log Z + ½σ⁻²(‖Y‖² + C·E tr K̂) + nC log σ,
//! * KL(N ‖ p(φ | D)) = log Z − E ℓ(W): φ_out is N(0, I) under both.
//!
//! As the width grows K̂ tends to K: the second goes to zero, the first to
//! ½[C·tr K/σ² + Σ_j y_jᵀ(σ⁻²I − K_s⁻¹)y_j − C·log det(K_s/σ²)] (Hron, Novak, Pennington, Sohl-Dickstein 2022,
//! Proposition 2.3, for C outputs). Other than there W is integrated over at finite width, not conditioned on.
//!
//! Expectations are means over draws from the prior. log Z is the logarithm of the mean of exp ℓ: good where ℓ varies by a few
//! units, as it does for wide networks; `effective_draws` says where it is not. Cost: one evaluation of `marginal`
//! coordinates a draw.

use std::sync::Arc;

use super::{ExperimentError, PriorDraws};
use crate::Estimate;
use reprior::compute::kernels::{Cholesky, norm_squared};
use reprior::model::Model;
use reprior::posterior::features::FeatureMap;
use reprior::posterior::readout::Readout;
use reprior::posterior::{EvaluationError, Space};

/// The logarithm of the mean of exp of `logs`, of all of them and without each.
pub(crate) fn log_mean(logs: &[f64]) -> (f64, Vec<f64>) {
    let mean = LogMean::new(logs);
    (mean.all, mean.without)
}

/// KL divergences of one model, in nats.
#[derive(Debug, Clone, PartialEq)]
pub struct Divergences {
    /// KL(N(0, I) ‖ p(θ | D)) of the network's own weights.
    pub standard: Estimate,
    /// KL(N(0, I) ‖ p(φ | D)) of the repriorised ones at λ = σ².
    pub repriorised: Estimate,
    /// log p(Y), the −(nC/2) log 2π included.
    pub log_evidence: Estimate,
    /// (Σ w)²/Σ w² of the weights w = exp ℓ: with few of them neither the estimates nor their errors are to be relied on.
    pub effective_draws: f64,
}

/// The divergences of one model with a Gaussian likelihood and one known σ; `width` is part of the key of the draws' random
/// streams, nothing else.
///
/// # Errors
/// [`ExperimentError`] if there are fewer than 2 draws, no density at one of them, or another likelihood.
pub fn divergences(
    model: &Arc<Model<f64>>,
    draws: PriorDraws,
    width: usize,
) -> Result<Divergences, ExperimentError> {
    draws.check()?;
    let noise = known_noise(model)?;
    let (n, p) = (model.rows(), model.architecture.readout_rows());
    let c = model.architecture.outputs as f64;
    let mut features = FeatureMap::new(model);
    let mut readout = Readout::new(model, Space::cheaper(n, p));
    let factor = model.architecture.readout_scale.factor(p - 1);
    let mut z = vec![0.0; model.inner_parameters()];
    let (mut logs, mut expected) = (Vec::new(), Vec::new());
    for index in 0..draws.count {
        draws.fill(width, index, &mut z);
        features.evaluate(model, &z, false, |columns| readout.take(columns));
        let h = features.features(model);
        let squares: f64 = h.col_iter().flat_map(|h| h.iter()).map(|h| h * h).sum();
        let trace = factor * factor * squares;
        logs.push(readout.log_ratio(h)?);
        expected.push(-0.5 * (norm_squared(&model.targets) + c * trace) / (noise * noise));
    }
    let constant = n as f64 * c;
    let evidence = LogMean::new(&logs);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let less = |values: &[f64], shift: f64| {
        let (total, count) = (mean(values) * values.len() as f64, values.len() as f64);
        let without = evidence.without.iter().zip(values);
        let without = without.map(|(log, x)| log - (total - x) / (count - 1.0) + shift);
        let without: Vec<f64> = without.collect();
        Estimate::jackknife(evidence.all - mean(values) + shift, &without)
    };
    let mut log_evidence = Estimate::jackknife(evidence.all, &evidence.without);
    log_evidence.value -= 0.5 * constant * std::f64::consts::TAU.ln();
    Ok(Divergences {
        standard: less(&expected, constant * noise.ln()),
        repriorised: less(&logs, 0.0),
        log_evidence,
        effective_draws: evidence.effective_draws,
    })
}

/// The limit of `standard` as the width grows: n × n `kernel` K of the infinitely wide network (column-major, the readout's
/// σ_b² included), column-major `targets` n × C, σ. 0 is that of `repriorised`.
///
/// # Errors
/// [`ExperimentError::Kernel`] if the sizes do not fit, [`ExperimentError::Evaluation`] if K + σ²I is not positive definite.
pub fn limit_of_divergence(
    kernel: &[f64],
    targets: &[f64],
    rows: usize,
    noise: f64,
) -> Result<f64, ExperimentError> {
    if rows == 0 || kernel.len() != rows * rows || !targets.len().is_multiple_of(rows) {
        return Err(ExperimentError::Kernel {
            kernel: kernel.len(),
            targets: targets.len(),
            rows,
        });
    }
    let variance = noise * noise;
    // of K_s/σ²
    let mut cholesky = Cholesky::new(rows);
    cholesky
        .factorise(|i, j| kernel[j * rows + i] / variance + f64::from(u8::from(i == j)))
        .map_err(EvaluationError::from)?;
    let mut solved = targets.to_vec();
    let outputs = targets.len() / rows;
    cholesky.solve_lower(&mut solved, outputs);
    let trace: f64 = (0..rows).map(|i| kernel[i * rows + i]).sum::<f64>() / variance;
    let fit = (norm_squared(targets) - norm_squared(&solved)) / variance;
    Ok(0.5 * (outputs as f64 * (trace - cholesky.log_determinant()) + fit))
}

/// σ, if the likelihood is Gaussian with one that is known.
fn known_noise(model: &Model<f64>) -> Result<f64, EvaluationError> {
    let scales = model.noise.typical(model.architecture.outputs);
    let is_one = scales.iter().all(|&scale| scale == scales[0]);
    if model.likelihood.is_gaussian() && model.noise_coordinates() == 0 && is_one {
        return Ok(scales[0]);
    }
    let message = "divergences are for a gaussian likelihood with one known σ for all outputs";
    Err(EvaluationError::Fatal(message.to_owned()))
}

/// log of the mean of exp, of all values and without each of them.
struct LogMean {
    all: f64,
    without: Vec<f64>,
    effective_draws: f64,
}

impl LogMean {
    fn new(values: &[f64]) -> Self {
        let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = values.iter().map(|x| (x - largest).exp()).collect();
        let (total, count) = (weights.iter().sum::<f64>(), values.len() as f64);
        let at = weights.iter().position(|&weight| weight == 1.0);
        let without = weights.iter().enumerate().map(|(index, weight)| {
            // without the largest, what is left would be a difference of nearly equal numbers
            let rest = match Some(index) == at {
                true => sum_without(&weights, index),
                false => total - weight,
            };
            largest + (rest / (count - 1.0)).ln()
        });
        Self {
            all: largest + (total / count).ln(),
            without: without.collect(),
            effective_draws: total * total / norm_squared(&weights),
        }
    }
}

fn sum_without(weights: &[f64], index: usize) -> f64 {
    weights[..index].iter().chain(&weights[index + 1..]).sum()
}
