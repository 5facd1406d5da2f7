//! log p of every training row, at the draw at hand: given the other rows where the readout is integrated out, given θ elsewhere.
//!
//! Given the features and σ, outputs are Gaussian processes with K_s = σ²I + ΨΨᵀ, and row i is predicted from the others by
//! N(y_i − α_i/κ_i, 1/κ_i) with α = K_s⁻¹y and κ_i = (K_s⁻¹)_ii (Rasmussen & Williams 2006, eqs. 5.10-5.12; Sundararajan & Keerthi 2001):
//! log p(y_i | y_−i, W, σ) = ½ log κ_i − ½ α_i²/κ_i − ½ log 2π for each output, and outputs are independent given W.
//!
//! `Data` space: κ_i is the squared norm of a column of C⁻¹, K_s = CCᵀ; n³/3 operations. `Feature` space: σ²κ_i = 1 − ‖C⁻¹ψ_i‖², M = CCᵀ; p²
//! operations a row. As a draw of W, σ of the posterior has the density p(W, σ | y) ∝ p(W, σ | y_−i)·p(y_i | y_−i, W, σ), the ratios of leave-one-out
//! cross-validation are 1/p(y_i | y_−i, W, σ), as they are 1/p(y_i | θ) where a draw has all of θ ([`crate::diagnostics::LeaveOneOut`]).

use super::Space;
use super::readout::Readout;
use crate::compute::{Matrix, Real, matrix, matrix_mut, multiply, norm_squared};
use crate::gaussian_process::log_density;
use crate::model::Model;

/// Rows that are solved for at a time in feature space, which bounds the work space.
const BLOCK: usize = 256;

/// Training rows whose log-likelihood is recorded, and buffers for it.
pub struct LogLikelihoodRows<R> {
    rows: Vec<usize>,
    /// n × C outputs, where there is no closed form.
    outputs: Vec<R>,
    /// Targets and outputs of one row.
    target: Vec<f64>,
    output: Vec<f64>,
}

impl<R: Real> LogLikelihoodRows<R> {
    /// Of these rows.
    pub(super) fn new(model: &Model<R>, rows: Vec<usize>) -> Self {
        let c = model.architecture.outputs;
        let outputs = match model.likelihood.is_gaussian() || rows.is_empty() {
            true => 0,
            false => model.rows() * c,
        };
        Self {
            rows,
            outputs: vec![R::ZERO; outputs],
            target: vec![0.0; c],
            output: vec![0.0; c],
        }
    }

    pub(super) fn count(&self) -> usize {
        self.rows.len()
    }

    /// log p(y_i | y_−i, W, σ), after [`Readout::log_ratio`] at the training `features`.
    pub(super) fn given_others(
        &self,
        readout: &mut Readout<R>,
        features: Matrix<'_, R>,
        out: &mut [f64],
    ) {
        readout.leave_one_out(features, &self.rows, out);
    }

    /// log p(y_i | θ) at the training `features` and the readout's weights (p × C).
    pub(super) fn given_weights(
        &mut self,
        model: &Model<R>,
        features: Matrix<'_, R>,
        weights: &[R],
        scales: &[f64],
        out: &mut [f64],
    ) {
        if self.rows.is_empty() {
            return;
        }
        let (n, p, c) = (model.rows(), features.ncols(), model.architecture.outputs);
        let factor = model.architecture.readout_scale.factor(p - 1);
        let to = matrix_mut(&mut self.outputs, n, c);
        multiply(to, false, factor, features, matrix(weights, p, c));
        let likelihood = &model.likelihood;
        for (out, &row) in out.iter_mut().zip(&self.rows) {
            for output in 0..c {
                self.target[output] = model.targets[output * n + row];
                self.output[output] = self.outputs[output * n + row].to_f64();
            }
            *out = likelihood.log_density(&self.target, &self.output, scales, None)
                + likelihood.left_out(c);
        }
    }
}

impl<R: Real> Readout<R> {
    /// log p(y_i | y_−i) of these rows given the features, all outputs together, after [`log_ratio`](Self::log_ratio).
    pub fn leave_one_out(&mut self, features: Matrix<'_, R>, rows: &[usize], out: &mut [f64]) {
        out.fill(0.0);
        if rows.is_empty() {
            return;
        }
        let (n, p) = (self.rows, self.p);
        let block = BLOCK.min(rows.len());
        let work = &mut self.inverse_factor;
        for group in &self.groups {
            let mut add = |at: usize, kappa: f64| {
                for output in group.outputs.clone() {
                    let alpha = self.weighted_targets[output * n + rows[at]];
                    out[at] += log_density(alpha, kappa);
                }
            };
            if self.space != Space::Feature {
                work.resize(n * n, 0.0);
                group.cholesky.invert_factor(work);
                for (at, &row) in rows.iter().enumerate() {
                    add(at, norm_squared(&work[row * n + row..(row + 1) * n]));
                }
                continue;
            }
            work.resize(p * block, 0.0);
            let variance = group.ridge;
            for (start, rows) in rows.chunks(block).enumerate() {
                let work = &mut work[..p * rows.len()];
                for (column, &row) in work.chunks_exact_mut(p).zip(rows) {
                    for (wide, h) in column.iter_mut().zip(features.row(row).iter()) {
                        *wide = self.factor * h.to_f64();
                    }
                }
                // κ_i ≥ 1/(K_s)_ii, which rounding may miss
                let mut least = [0.0; BLOCK];
                for (least, psi) in least.iter_mut().zip(work.chunks_exact(p)) {
                    *least = variance / (variance + norm_squared(psi));
                }
                group.cholesky.solve_lower(work, rows.len());
                let columns = work.chunks_exact(p).zip(least);
                for ((column, least), at) in columns.zip(start * block..) {
                    add(at, (1.0 - norm_squared(column)).max(least) / variance);
                }
            }
        }
    }
}
