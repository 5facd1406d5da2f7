//! The readout given the features: predictions, exact draws, and the map T of Hron et al. (2022).
//!
//! All of it uses the factorisation that the last [`Readout::log_ratio`] at the training features left.

use super::{EvaluationError, Readout, Space};
use crate::compute::{
    Matrix, Real, Stream, add_scaled, dot, gram_of_rows, matrix, matrix_mut, multiply,
    norm_squared, symmetric_eigen,
};

/// Test rows that are predicted at a time, which bounds the work space.
const PREDICTION_BLOCK: usize = 256;

impl<R: Real> Readout<R> {
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
                    mean[output * total + start + j] = dot(column, coefficients);
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
        for (value, &wide) in self.small.iter_mut().zip(&self.small_f64[..n * c]) {
            *value = R::from_f64(wide);
        }
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
