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
    Cholesky, Matrix, MatrixMut, NotPositiveDefinite, Real, Stream, add_scaled, gram_of_columns,
    gram_of_rows, matrix, matrix_mut, mirror_lower, multiply, norm_squared, symmetric_eigen,
};
use crate::model::Model;

/// Work space for the readout of one model.
pub struct Readout<R> {
    space: Space,
    rows: usize,
    p: usize,
    outputs: usize,
    /// α.
    factor: f64,
    noise: f64,
    targets: Vec<R>,
    targets_f64: Vec<f64>,
    /// n × n or p × p products in the network's precision.
    gram: Vec<R>,
    cholesky: Cholesky,
    /// A = K_s⁻¹Y (n × C).
    weighted_targets: Vec<f64>,
    /// μ (p × C); feature space only.
    mean: Vec<f64>,
    /// Small products in the network's precision, (n or p) × C.
    small: Vec<R>,
    small_f64: Vec<f64>,
    /// μ or A in the network's precision; feature space only.
    narrow: Vec<R>,
    /// K_s⁻¹ or M⁻¹ and C⁻¹; empty until gradients are asked for.
    inverse: Vec<f64>,
    inverse_factor: Vec<f64>,
    jitter_count: u64,
    clamp_count: u64,
}

/// Test rows that are predicted at a time, which bounds the work space.
const PREDICTION_BLOCK: usize = 256;

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
            narrow: match space {
                Space::Feature => vec![R::ZERO; rows.max(p) * outputs],
                Space::Data => Vec::new(),
            },
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
        let larger = rows.max(p);
        let vectors = (rows + larger) * (2 * 8 + R::BYTES) + larger * R::BYTES;
        size * size * matrices + outputs * vectors
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
        let mean = &mut self.narrow[..p * c];
        convert(mean, &self.mean);
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
                let weighted = &mut self.narrow[..n * c];
                convert(weighted, &self.weighted_targets);
                let weighted = matrix(weighted, n, c);
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

    /// Means (column-major n* × C) and variances (n*, without noise, the same for every output) of the functions at
    /// test features, after [`log_ratio`](Self::log_ratio) at the training features.
    pub fn predict(
        &mut self,
        test: Matrix<'_, R>,
        train: Matrix<'_, R>,
        mean: &mut [f64],
        variance: &mut [f64],
    ) {
        let (size, c, total) = (self.cholesky.size(), self.outputs, test.nrows());
        let squared_factor = self.factor * self.factor;
        let mut product = vec![R::ZERO; size * PREDICTION_BLOCK.min(total)];
        let mut cross = vec![0.0; product.len()];
        for start in (0..total).step_by(PREDICTION_BLOCK) {
            let count = PREDICTION_BLOCK.min(total - start);
            let (product, cross) = (&mut product[..size * count], &mut cross[..size * count]);
            let block = test.subrows(start, count);
            let coefficients = match self.space {
                Space::Data => {
                    // K(train, test), n × count
                    let into = matrix_mut(product, size, count);
                    multiply(into, false, squared_factor, train, block.transpose());
                    &self.weighted_targets
                }
                Space::Feature => {
                    for (j, column) in product.chunks_exact_mut(size).enumerate() {
                        for (value, &h) in column.iter_mut().zip(block.row(j).iter()) {
                            *value = R::from_f64(self.factor * h.to_f64());
                        }
                    }
                    &self.mean
                }
            };
            for (wide, &value) in cross.iter_mut().zip(product.iter()) {
                *wide = value.to_f64();
            }
            for output in 0..c {
                let coefficients = &coefficients[output * size..(output + 1) * size];
                for (j, column) in cross.chunks_exact(size).enumerate() {
                    mean[output * total + start + j] = crate::compute::dot(column, coefficients);
                }
            }
            self.cholesky.solve_lower(cross, count);
            for (j, column) in cross.chunks_exact(size).enumerate() {
                let norm = norm_squared(column);
                let value = match self.space {
                    Space::Feature => self.noise * self.noise * norm,
                    Space::Data => {
                        let prior = block.row(j).iter().map(|h| h.to_f64().powi(2)).sum::<f64>();
                        squared_factor * prior - norm
                    }
                };
                self.clamp_count += u64::from(value < 0.0);
                variance[start + j] = value.max(0.0);
            }
        }
    }

    /// An exact draw of the readout given the features, θ_out ~ N(μ, Σ) (column-major p × C), after
    /// [`log_ratio`](Self::log_ratio). In data space by pathwise conditioning:
    /// θ = θ₀ + ΨᵀK_s⁻¹(Y − Ψθ₀ − σε).
    pub fn draw(&mut self, features: Matrix<'_, R>, stream: &mut Stream, weights: &mut [R]) {
        stream.fill_normal(weights);
        match self.space {
            Space::Feature => self.transform_in_feature_space(weights),
            Space::Data => {
                let (n, p, c) = (self.rows, self.p, self.outputs);
                let fitted = &mut self.small[..n * c];
                multiply(
                    matrix_mut(fitted, n, c),
                    false,
                    self.factor,
                    features,
                    matrix(weights, p, c),
                );
                let residual = &mut self.small_f64[..n * c];
                stream.fill_normal(residual);
                for ((r, &y), &f) in residual
                    .iter_mut()
                    .zip(&self.targets_f64)
                    .zip(fitted.iter())
                {
                    *r = y - f.to_f64() - self.noise * *r;
                }
                self.cholesky.solve_lower(residual, c);
                self.cholesky.solve_upper(residual, c);
                self.add_projected(features, weights);
            }
        }
    }

    /// T: φ_out → θ_out at λ = σ², in place (column-major p × C), after [`log_ratio`](Self::log_ratio).
    /// Feature space: θ = μ + σ·C⁻ᵀφ with M = CCᵀ (Hron et al. 2022, Section 3.2). Data space: θ = μ + Σ^{1/2}φ with the
    /// symmetric root φ − ΨᵀQΛ^{-1/2}(σI + Λ^{1/2})⁻¹QᵀΨφ, K_s = QΛQᵀ (their Appendix B).
    ///
    /// # Errors
    /// Recoverable, if the eigenvalues of K_s cannot be found.
    pub fn transform(
        &mut self,
        features: Matrix<'_, R>,
        weights: &mut [R],
    ) -> Result<(), EvaluationError> {
        match self.space {
            Space::Feature => self.transform_in_feature_space(weights),
            Space::Data => {
                let (n, p, c) = (self.rows, self.p, self.outputs);
                let mut kernel = vec![R::ZERO; n * n];
                gram_of_rows(matrix_mut(&mut kernel, n, n), features);
                let scale = self.factor * self.factor;
                let mut kernel: Vec<f64> = kernel.iter().map(|k| scale * k.to_f64()).collect();
                for i in 0..n {
                    kernel[i * n + i] += self.noise * self.noise;
                }
                let (values, vectors) = symmetric_eigen(&kernel, n)
                    .map_err(|error| EvaluationError::Recoverable(error.to_string()))?;
                let q = matrix(&vectors, n, n);
                let fitted = &mut self.small[..n * c];
                multiply(
                    matrix_mut(fitted, n, c),
                    false,
                    self.factor,
                    features,
                    matrix(weights, p, c),
                );
                let fitted: Vec<f64> = fitted.iter().map(|f| f.to_f64()).collect();
                let mut rotated = vec![0.0; n * c];
                multiply(
                    matrix_mut(&mut rotated, n, c),
                    false,
                    1.0,
                    q.transpose(),
                    matrix(&fitted, n, c),
                );
                for (i, value) in rotated.iter_mut().enumerate() {
                    let root = values[i % n].max(self.noise * self.noise).sqrt();
                    *value /= -root * (self.noise + root);
                }
                let residual = &mut self.small_f64[..n * c];
                multiply(
                    matrix_mut(residual, n, c),
                    false,
                    1.0,
                    q,
                    matrix(&rotated, n, c),
                );
                add_scaled(residual, 1.0, &self.weighted_targets);
                self.add_projected(features, weights);
            }
        }
        Ok(())
    }

    fn transform_in_feature_space(&mut self, weights: &mut [R]) {
        let size = self.p * self.outputs;
        let work = &mut self.small_f64[..size];
        for (wide, &phi) in work.iter_mut().zip(weights.iter()) {
            *wide = self.noise * phi.to_f64();
        }
        self.cholesky.solve_upper(work, self.outputs);
        for ((theta, &noise), &mean) in weights.iter_mut().zip(work.iter()).zip(&self.mean) {
            *theta = R::from_f64(mean + noise);
        }
    }

    /// weights ← weights + Ψᵀ·small_f64.
    fn add_projected(&mut self, features: Matrix<'_, R>, weights: &mut [R]) {
        let (n, p, c) = (self.rows, self.p, self.outputs);
        convert(&mut self.small[..n * c], &self.small_f64[..n * c]);
        let small = matrix(&self.small[..n * c], n, c);
        multiply(
            matrix_mut(weights, p, c),
            true,
            self.factor,
            features.transpose(),
            small,
        );
    }
}

/// Rounds to the network's precision.
fn convert<R: Real>(narrow: &mut [R], wide: &[f64]) {
    for (narrow, &wide) in narrow.iter_mut().zip(wide) {
        *narrow = R::from_f64(wide);
    }
}
