//! The readout integrated out: log marginal likelihood given features, its gradient, predictions, exact draws.
//!
//! With Ψ = α·h̃, α = σ_w/√d_L, the features h̃ (n × p) extended by the constant column, K = ΨΨᵀ, K_s = σ²I + K:
//! * ℓ = −½ Σⱼ yⱼᵀK_s⁻¹yⱼ − (C/2) log det K_s (Hron et al. 2022, eq. 5 with its sign mended; −(nC/2) log 2π left out),
//! * ∂ℓ/∂Ψ = A(AᵀΨ) − C·K_s⁻¹Ψ with A = K_s⁻¹Y,
//! * readout | features ~ N(μ, Σ), Σ = (I + σ⁻²ΨᵀΨ)⁻¹, μ = σ⁻²ΣΨᵀY.
//!
//! `Data` space factorises K_s (n × n), `Feature` space M = σ²I + ΨᵀΨ (p × p). There yᵀK_s⁻¹y is taken as the minimum
//! of the ridge regression (‖Y − Ψμ‖² + σ²‖μ‖²)/σ², which errors in μ change in second order only (the textbook form
//! YᵀY − SᵀS cancels). Products run in the network's precision, factorisations in double precision.
//!
//! Cost of ℓ: n²p + n³/3 or np² + p³/3 operations; the gradient adds 2n²p + 2n³/3 or 2np² + 2p³/3.

use super::{EvaluationError, Space};
use crate::compute::{
    Cholesky, Matrix, MatrixMut, NotPositiveDefinite, Real, gram_of_columns, gram_of_rows, matrix,
    matrix_mut, mirror_lower, multiply, norm_squared,
};
use crate::model::Model;

/// Work space for the readout of one model.
pub struct Readout<R> {
    pub(super) space: Space,
    pub(super) rows: usize,
    pub(super) p: usize,
    pub(super) outputs: usize,
    /// α.
    pub(super) factor: f64,
    pub(super) noise: f64,
    pub(super) targets: Vec<R>,
    pub(super) targets_f64: Vec<f64>,
    /// n × n or p × p products in the network's precision.
    pub(super) gram: Vec<R>,
    pub(super) cholesky: Cholesky,
    /// A = K_s⁻¹Y (n × C).
    pub(super) weighted_targets: Vec<f64>,
    /// μ (p × C); feature space only.
    pub(super) mean: Vec<f64>,
    /// Small products in the network's precision, (n or p) × C.
    pub(super) small: Vec<R>,
    pub(super) small_f64: Vec<f64>,
    /// Double-precision results in the network's precision, (n or p) × C.
    pub(super) narrow: Vec<R>,
    /// K_s⁻¹ or M⁻¹ and C⁻¹; empty until gradients are asked for.
    pub(super) inverse: Vec<f64>,
    pub(super) inverse_factor: Vec<f64>,
    pub(super) jitter_count: u64,
    pub(super) clamp_count: u64,
}

impl<R: Real> Readout<R> {
    /// Buffers for the readout of `model` in the given space.
    pub fn new(model: &Model<R>, space: Space) -> Self {
        let (rows, p) = (model.rows(), model.architecture.readout_rows());
        let outputs = model.architecture.outputs;
        let size = if space == Space::Data { rows } else { p };
        Self {
            space,
            rows,
            p,
            outputs,
            factor: model.architecture.readout_scale.factor(p - 1),
            noise: model.noise,
            targets: model.targets.iter().map(|&y| R::from_f64(y)).collect(),
            targets_f64: model.targets.clone(),
            gram: vec![R::ZERO; size * size],
            cholesky: Cholesky::new(size),
            weighted_targets: vec![0.0; rows * outputs],
            mean: vec![
                0.0;
                if space == Space::Feature {
                    p * outputs
                } else {
                    0
                }
            ],
            small: vec![R::ZERO; rows.max(p) * outputs],
            small_f64: vec![0.0; rows.max(p) * outputs],
            narrow: vec![R::ZERO; rows.max(p) * outputs],
            inverse: Vec::new(),
            inverse_factor: Vec::new(),
            jitter_count: 0,
            clamp_count: 0,
        }
    }

    /// Where the linear algebra happens.
    pub fn space(&self) -> Space {
        self.space
    }

    /// How often a factorisation needed its diagonal raised.
    pub fn jitter_count(&self) -> u64 {
        self.jitter_count
    }

    /// How many predictive variances came out below zero by rounding and were set to zero.
    pub fn clamp_count(&self) -> u64 {
        self.clamp_count
    }

    /// Bytes of the work space.
    pub fn bytes(
        rows: usize,
        p: usize,
        outputs: usize,
        space: Space,
        with_gradients: bool,
    ) -> usize {
        let size = if space == Space::Data { rows } else { p };
        let matrices = R::BYTES + 16 + if with_gradients { 16 } else { 0 };
        size * size * matrices + (rows + rows.max(p)) * outputs * (2 * 8 + R::BYTES)
    }

    /// ℓ at the given features.
    ///
    /// # Errors
    /// Recoverable, if the kernel matrix cannot be factorised (features not finite).
    pub fn log_ratio(&mut self, features: Matrix<'_, R>) -> Result<f64, EvaluationError> {
        let (n, p, c) = (self.rows, self.p, self.outputs);
        let noise_variance = self.noise * self.noise;
        let (quadratic, log_determinant) = match self.space {
            Space::Data => {
                gram_of_rows(matrix_mut(&mut self.gram, n, n), features);
                self.factorise(n)?;
                self.weighted_targets.copy_from_slice(&self.targets_f64);
                self.cholesky.solve_lower(&mut self.weighted_targets, c);
                let quadratic = norm_squared(&self.weighted_targets);
                self.cholesky.solve_upper(&mut self.weighted_targets, c);
                (quadratic, self.cholesky.log_determinant())
            }
            Space::Feature => {
                gram_of_columns(matrix_mut(&mut self.gram, p, p), features);
                self.factorise(p)?;
                // μ = M⁻¹ΨᵀY
                let small = &mut self.small[..p * c];
                let targets = matrix(&self.targets, n, c);
                multiply(
                    matrix_mut(small, p, c),
                    false,
                    self.factor,
                    features.transpose(),
                    targets,
                );
                for (mean, &b) in self.mean.iter_mut().zip(small.iter()) {
                    *mean = b.to_f64();
                }
                self.cholesky.solve_lower(&mut self.mean, c);
                self.cholesky.solve_upper(&mut self.mean, c);
                self.residual_of_mean(features);
                let residual =
                    norm_squared(&self.weighted_targets) * noise_variance * noise_variance;
                let quadratic = residual / noise_variance + norm_squared(&self.mean);
                let rest = (n as f64 - p as f64) * noise_variance.ln();
                (quadratic, self.cholesky.log_determinant() + rest)
            }
        };
        Ok(-0.5 * quadratic - 0.5 * c as f64 * log_determinant)
    }

    /// Factorises α²·gram + σ²I.
    fn factorise(&mut self, size: usize) -> Result<(), NotPositiveDefinite> {
        let (scale, noise_variance) = (self.factor * self.factor, self.noise * self.noise);
        let gram = &self.gram;
        let tries = self.cholesky.factorise(|row, column| {
            let ridge = if row == column { noise_variance } else { 0.0 };
            scale * gram[column * size + row].to_f64() + ridge
        })?;
        self.jitter_count += u64::from(tries);
        Ok(())
    }

    /// A = (Y − Ψμ)/σ².
    fn residual_of_mean(&mut self, features: Matrix<'_, R>) {
        let (n, p, c) = (self.rows, self.p, self.outputs);
        let mean = narrow(&mut self.narrow, &self.mean);
        let fitted = &mut self.small[..n * c];
        multiply(
            matrix_mut(fitted, n, c),
            false,
            self.factor,
            features,
            matrix(mean, p, c),
        );
        let precision = 1.0 / (self.noise * self.noise);
        for ((a, &y), &f) in self
            .weighted_targets
            .iter_mut()
            .zip(&self.targets_f64)
            .zip(fitted.iter())
        {
            *a = (y - f.to_f64()) * precision;
        }
    }

    /// Writes ∂ℓ/∂h (n × d_L), after [`log_ratio`](Self::log_ratio) at the same features.
    pub fn cotangent(&mut self, mut out: MatrixMut<'_, R>, features: Matrix<'_, R>) {
        let (n, p, c) = (self.rows, self.p, self.outputs);
        let size = self.cholesky.size();
        self.inverse.resize(size * size, 0.0);
        self.inverse_factor.resize(size * size, 0.0);
        self.cholesky
            .inverse(&mut self.inverse, &mut self.inverse_factor);
        let squared_factor = self.factor * self.factor;
        let count = c as f64;
        match self.space {
            Space::Data => {
                // one symmetric matrix S = AAᵀ − C·K_s⁻¹, then ∂ℓ/∂h = α²·S·h
                let a = matrix(&self.weighted_targets, n, c);
                multiply(
                    matrix_mut(&mut self.inverse_factor, n, n),
                    false,
                    1.0,
                    a,
                    a.transpose(),
                );
                for column in 0..n {
                    for at in column * n + column..(column + 1) * n {
                        self.gram[at] =
                            R::from_f64(self.inverse_factor[at] - count * self.inverse[at]);
                    }
                }
                mirror_lower(&mut self.gram, n);
                let features = features.subcols(0, p - 1);
                multiply(
                    out,
                    false,
                    squared_factor,
                    matrix(&self.gram, n, n),
                    features,
                );
            }
            Space::Feature => {
                // K_s⁻¹Ψ = ΨM⁻¹
                for column in 0..p {
                    for at in column * p + column..(column + 1) * p {
                        self.gram[at] = R::from_f64(self.inverse[at]);
                    }
                }
                mirror_lower(&mut self.gram, p);
                let inverse = matrix(&self.gram, p, p).subcols(0, p - 1);
                multiply(
                    out.as_mut(),
                    false,
                    -count * squared_factor,
                    features,
                    inverse,
                );
                let weighted = matrix(narrow(&mut self.narrow, &self.weighted_targets), n, c);
                let small = &mut self.small[..(p - 1) * c];
                let features = features.subcols(0, p - 1);
                multiply(
                    matrix_mut(small, p - 1, c),
                    false,
                    1.0,
                    features.transpose(),
                    weighted,
                );
                let small = matrix(&self.small[..(p - 1) * c], p - 1, c);
                multiply(out, true, squared_factor, weighted, small.transpose());
            }
        }
    }
}

/// `values` in the network's precision, in a buffer that is at least as long.
fn narrow<'a, R: Real>(buffer: &'a mut [R], values: &[f64]) -> &'a [R] {
    let buffer = &mut buffer[..values.len()];
    for (narrow, &wide) in buffer.iter_mut().zip(values) {
        *narrow = R::from_f64(wide);
    }
    buffer
}
