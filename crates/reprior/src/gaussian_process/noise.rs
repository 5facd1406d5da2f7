//! The noise σ that maximises the marginal likelihood, everything else given.
//!
//! With K = QΛQᵀ and B = QᵀY, ℓ(σ²) = −½ Σ_i [‖b_i‖²/(λ_i + σ²) + C log(λ_i + σ²)] − (nC/2) log 2π: one eigendecomposition
//! (9n³ operations), then n operations for a value. ℓ may have several maxima: a grid over all of the range, then golden
//! sections about its best point.

use super::{GaussianProcessError, outputs};
use crate::compute::{matrix, matrix_mut, multiply, symmetric_eigen};

/// The most likely noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NoiseFit {
    /// σ.
    pub noise: f64,
    /// ℓ there, in nats.
    pub log_marginal_likelihood: f64,
    /// Whether it is at an end of the range that was searched: the targets are as good as free of noise, or nothing but
    /// noise.
    pub is_at_limit: bool,
}

/// Range of σ, relative to the root mean square of the targets.
const RANGE: [f64; 2] = [1e-4, 1e1];
/// Points of the grid, in equal ratios.
const GRID: usize = 200;
/// ln σ is found to this.
const TOLERANCE: f64 = 1e-9;

/// The σ between 10⁻⁴ and 10 times the targets' root mean square that maximises ℓ, for a `kernel` (n × n, lower half) and
/// `targets` (n × C, column-major).
///
/// # Errors
/// As [`GaussianProcess::new`](super::GaussianProcess::new).
pub fn fit_noise(
    kernel: &[f64],
    n: usize,
    targets: &[f64],
) -> Result<NoiseFit, GaussianProcessError> {
    let outputs = outputs(kernel, n, targets)?;
    let (values, vectors) = symmetric_eigen(kernel, n).map_err(|_| GaussianProcessError::Kernel)?;
    let mut rotated = vec![0.0; n * outputs];
    multiply(
        matrix_mut(&mut rotated, n, outputs),
        false,
        1.0,
        matrix(&vectors, n, n).transpose(),
        matrix(targets, n, outputs),
    );
    let c = outputs as f64;
    let squares: Vec<f64> = (0..n)
        .map(|i| rotated.iter().skip(i).step_by(n).map(|b| b * b).sum())
        .collect();
    let likelihood = |log_noise: f64| {
        let variance = (2.0 * log_noise).exp();
        let terms = values.iter().zip(&squares).map(|(&value, square)| {
            // rounding makes small eigenvalues negative
            let total = value.max(0.0) + variance;
            square / total + c * total.ln()
        });
        -0.5 * terms.sum::<f64>() - 0.5 * n as f64 * c * std::f64::consts::TAU.ln()
    };
    let scale = (squares.iter().sum::<f64>() / (n as f64 * c)).sqrt();
    let scale = if scale > 0.0 { scale } else { 1.0 };
    let [low, high] = RANGE.map(|end| (end * scale).ln());
    let step = (high - low) / (GRID - 1) as f64;
    let grid = (0..GRID).map(|i| low + step * i as f64);
    let best = grid
        .max_by(|a, b| likelihood(*a).total_cmp(&likelihood(*b)))
        .unwrap_or(low);
    let mut ends = [(best - step).max(low), (best + step).min(high)];
    let ratio = 0.5 * (5.0_f64.sqrt() - 1.0);
    while ends[1] - ends[0] > TOLERANCE {
        let width = ratio * (ends[1] - ends[0]);
        let (left, right) = (ends[1] - width, ends[0] + width);
        if likelihood(left) < likelihood(right) {
            ends[0] = left;
        } else {
            ends[1] = right;
        }
    }
    let at = 0.5 * (ends[0] + ends[1]);
    Ok(NoiseFit {
        noise: at.exp(),
        log_marginal_likelihood: likelihood(at),
        is_at_limit: at - low < 1e-6 || high - at < 1e-6,
    })
}
