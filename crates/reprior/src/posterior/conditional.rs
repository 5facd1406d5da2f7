//! The readout given the features: predictions, exact draws, and the map T of Hron et al. (2022) at λ = σ².
//!
//! All of it uses the factorisations that the last [`Readout::log_ratio`] at the training features left.

use super::Space;
use super::readout::Readout;
use crate::compute::{Matrix, Real, Stream, dot, matrix, matrix_mut, multiply, norm_squared};

/// Test rows that are predicted at a time, which bounds the work space.
const PREDICTION_BLOCK: usize = 256;

impl<R: Real> Readout<R> {
    /// Means and variances (without noise) of the functions at test features, both column-major n* × C, after
    /// [`log_ratio`](Self::log_ratio) at the training features.
    pub fn predict(
        &mut self,
        test: Matrix<'_, R>,
        train: Matrix<'_, R>,
        mean: &mut [f64],
        variance: &mut [f64],
    ) {
        let (size, total) = (self.size(), test.nrows());
        let squared_factor = self.factor * self.factor;
        let mut product = vec![R::ZERO; size * PREDICTION_BLOCK.min(total)];
        let mut cross = vec![0.0; product.len()];
        for start in (0..total).step_by(PREDICTION_BLOCK) {
            let count = PREDICTION_BLOCK.min(total - start);
            let (product, cross) = (&mut product[..size * count], &mut cross[..size * count]);
            let block = test.subrows(start, count);
            let coefficients = match self.space {
                Space::Feature => {
                    for (j, column) in product.chunks_exact_mut(size).enumerate() {
                        for (value, &h) in column.iter_mut().zip(block.row(j).iter()) {
                            *value = R::from_f64(self.factor * h.to_f64());
                        }
                    }
                    &self.mean
                }
                _ => {
                    // K(train, test), n × count
                    let into = matrix_mut(product, size, count);
                    multiply(into, false, squared_factor, train, block.transpose());
                    &self.weighted_targets
                }
            };
            for group in &self.groups {
                for (wide, &value) in cross.iter_mut().zip(product.iter()) {
                    *wide = value.to_f64();
                }
                for output in group.outputs.clone() {
                    let coefficients = &coefficients[output * size..(output + 1) * size];
                    for (j, column) in cross.chunks_exact(size).enumerate() {
                        mean[output * total + start + j] = dot(column, coefficients);
                    }
                }
                group.cholesky.solve_lower(cross, count);
                for (j, column) in cross.chunks_exact(size).enumerate() {
                    let norm = norm_squared(column);
                    let value = match self.space {
                        Space::Feature => group.ridge * norm,
                        _ => {
                            let prior =
                                block.row(j).iter().map(|h| h.to_f64().powi(2)).sum::<f64>();
                            squared_factor * prior - norm
                        }
                    };
                    self.clamp_count += u64::from(value < 0.0);
                    for output in group.outputs.clone() {
                        variance[output * total + start + j] = value.max(0.0);
                    }
                }
            }
        }
    }

    /// Rows of the matrix that is factorised.
    fn size(&self) -> usize {
        match self.space {
            Space::Feature => self.p,
            _ => self.rows,
        }
    }

    /// An exact draw of the readout given the features, θ_out ~ N(μ, Σ) (column-major p × C), after
    /// [`log_ratio`](Self::log_ratio). In data space by pathwise conditioning:
    /// θ = θ₀ + ΨᵀK_s⁻¹(Y − Ψθ₀ − σε).
    pub fn draw(&mut self, features: Matrix<'_, R>, stream: &mut Stream, weights: &mut [R]) {
        stream.fill_normal(weights);
        if self.space == Space::Feature {
            self.transform_in_feature_space(weights);
            return;
        }
        let n = self.rows;
        self.fit(features, weights);
        stream.fill_normal(&mut self.small_f64[..n * self.outputs]);
        for group in &self.groups {
            let columns = group.columns(n);
            for at in columns.clone() {
                let noise = group.root * self.small_f64[at];
                self.small_f64[at] = self.targets_f64[at] - self.small[at].to_f64() - noise;
            }
            let residual = &mut self.small_f64[columns];
            group.cholesky.solve_lower(residual, group.count());
            group.cholesky.solve_upper(residual, group.count());
        }
        self.add_projected(features, weights);
    }

    /// T: φ_out → θ_out at λ = σ², in place (column-major p × C), after [`log_ratio`](Self::log_ratio).
    /// Feature space: θ = μ + σ·C⁻ᵀφ with M = CCᵀ (Hron et al. 2022, Section 3.2). Data space: θ = μ + Aφ with the
    /// triangular root A = I − ΨᵀL⁻ᵀ(L + σI)⁻¹Ψ, K_s = LLᵀ, which satisfies AAᵀ = Σ (Andrews 1968).
    pub fn transform(&mut self, features: Matrix<'_, R>, weights: &mut [R]) {
        if self.space == Space::Feature {
            self.transform_in_feature_space(weights);
            return;
        }
        let n = self.rows;
        self.fit(features, weights);
        for group in &self.groups {
            let columns = group.columns(n);
            for at in columns.clone() {
                self.small_f64[at] = self.small[at].to_f64();
            }
            let rotated = &mut self.small_f64[columns.clone()];
            group.cholesky.solve_shifted_lower(rotated, group.root);
            group.cholesky.solve_upper(rotated, group.count());
            for (value, weighted) in rotated.iter_mut().zip(&self.weighted_targets[columns]) {
                *value = weighted - *value;
            }
        }
        self.add_projected(features, weights);
    }

    fn transform_in_feature_space(&mut self, weights: &mut [R]) {
        let p = self.p;
        for group in &self.groups {
            let work = &mut self.small_f64[group.columns(p)];
            for (wide, &phi) in work.iter_mut().zip(&weights[group.columns(p)]) {
                *wide = group.root * phi.to_f64();
            }
            group.cholesky.solve_upper(work, group.count());
        }
        for ((theta, &noise), &mean) in weights.iter_mut().zip(&self.small_f64).zip(&self.mean) {
            *theta = R::from_f64(mean + noise);
        }
    }

    /// small ← Ψ·weights (n × C).
    fn fit(&mut self, features: Matrix<'_, R>, weights: &[R]) {
        let (n, p, c) = (self.rows, self.p, self.outputs);
        let fitted = matrix_mut(&mut self.small[..n * c], n, c);
        multiply(fitted, false, self.factor, features, matrix(weights, p, c));
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
