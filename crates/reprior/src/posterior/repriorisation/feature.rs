//! T in feature space: λI + ΨᵀΨ = M = CCᵀ (p × p), θ = μ + √λ C⁻ᵀφ, log|det| = C_out(½p log λ − Σ log Cᵢᵢ).
//!
//! Pull-back of G = ∂/∂θ: with v = C⁻¹G and H = C⁻ᵀv,
//! * φ̄ = √λ v,
//! * M̄ = ½C⁻ᵀSC⁻¹ − ½(Hμᵀ + μHᵀ), S symmetric with lower half −√λ φvᵀ, less C_out on the diagonal for log|det|,
//! * Ψ̄ = ỸHᵀ + 2ΨM̄.

use super::super::EvaluationError;
use super::{MapSizes, Terms, by_rows, narrow, narrow_symmetric};
use crate::compute::{
    Cholesky, Matrix, MatrixMut, Real, Semiseparable, add_symmetric_product, gram_of_columns,
    matrix, matrix_mut, multiply,
};

pub(in crate::posterior) struct FeatureSpaceMap<R> {
    pub(super) sizes: MapSizes,
    /// The caller's, and ỸHᵀ; the pseudo-targets Ỹ stay where they are.
    pub(super) terms: Terms<R>,
    gram: Vec<R>,
    cholesky: Cholesky,
    /// μ and work of its size, p × C.
    mean: Vec<f64>,
    work: Vec<f64>,
    narrow: Vec<R>,
    /// p × p work space; empty until gradients are asked for.
    squares: [Vec<f64>; 3],
    left: Vec<f64>,
    right: Vec<f64>,
    sums: Vec<f64>,
    pub(super) jitter_count: u64,
}

impl<R: Real> FeatureSpaceMap<R> {
    pub(super) fn new(sizes: MapSizes, pseudo_targets: &[f64]) -> Self {
        let (p, c) = (sizes.p, sizes.outputs);
        let mut terms = Terms::new(&sizes, 1);
        narrow(terms.term(1, &sizes).0, pseudo_targets);
        Self {
            sizes,
            terms,
            gram: vec![R::ZERO; p * p],
            cholesky: Cholesky::new(p),
            mean: vec![0.0; p * c],
            work: vec![0.0; p * c],
            narrow: vec![R::ZERO; p * c],
            squares: [Vec::new(), Vec::new(), Vec::new()],
            left: vec![0.0; p * c],
            right: vec![0.0; p * c],
            sums: vec![0.0; p * c],
            jitter_count: 0,
        }
    }

    pub(super) fn map(
        &mut self,
        features: Matrix<'_, R>,
        phi: &[R],
        theta: &mut [R],
    ) -> Result<f64, EvaluationError> {
        let MapSizes {
            rows: n,
            p,
            outputs: c,
            factor,
            lambda,
        } = self.sizes;
        gram_of_columns(matrix_mut(&mut self.gram, p, p), features);
        let (gram, scale) = (&self.gram, factor * factor);
        let tries = self.cholesky.factorise(|row, column| {
            let ridge = if row == column { lambda } else { 0.0 };
            scale * gram[column * p + row].to_f64() + ridge
        })?;
        self.jitter_count += u64::from(tries);
        let targets = matrix(&self.terms.left[n * c..], n, c);
        let projected = matrix_mut(&mut self.narrow, p, c);
        multiply(projected, false, factor, features.transpose(), targets);
        for (mean, b) in self.mean.iter_mut().zip(&self.narrow) {
            *mean = b.to_f64();
        }
        self.cholesky.solve_lower(&mut self.mean, c);
        self.cholesky.solve_upper(&mut self.mean, c);
        let root = lambda.sqrt();
        for (work, phi) in self.work.iter_mut().zip(phi) {
            *work = root * phi.to_f64();
        }
        self.cholesky.solve_upper(&mut self.work, c);
        for ((theta, mean), noise) in theta.iter_mut().zip(&self.mean).zip(&self.work) {
            *theta = R::from_f64(mean + noise);
        }
        Ok(0.5 * c as f64 * (p as f64 * lambda.ln() - self.cholesky.log_determinant()))
    }

    pub(super) fn pull_back(
        &mut self,
        mut out: MatrixMut<'_, R>,
        features: Matrix<'_, R>,
        theta_cotangent: &[f64],
        phi: &[R],
        phi_cotangent: &mut [R],
    ) {
        let MapSizes {
            p,
            outputs: c,
            factor,
            lambda,
            ..
        } = self.sizes;
        self.squares.iter_mut().for_each(|s| s.resize(p * p, 0.0));
        let [twice, first, second] = &mut self.squares;
        let root = lambda.sqrt();
        // v = C⁻¹G
        self.work.copy_from_slice(theta_cotangent);
        self.cholesky.solve_lower(&mut self.work, c);
        for (out, v) in phi_cotangent.iter_mut().zip(&self.work) {
            *out = R::from_f64(root * v);
        }
        by_rows(&mut self.right, c, 0, &self.work, p, 1.0);
        for (at, phi) in phi.iter().enumerate() {
            self.left[at % p * c + at / p] = -root * phi.to_f64();
        }
        let cotangent = Semiseparable {
            left: &self.left,
            right: &self.right,
            rank: c,
            shift: -(c as f64),
        };
        self.cholesky
            .pull_back(twice, first, second, &mut self.sums, cotangent);
        // H = C⁻ᵀv
        self.cholesky.solve_upper(&mut self.work, c);
        let (h, mean) = (matrix(&self.work, p, c), matrix(&self.mean, p, c));
        add_symmetric_product(matrix_mut(twice, p, p), -1.0, h, mean);
        narrow_symmetric(&mut self.gram, twice, p);
        let twice = matrix(&self.gram, p, p).subcols(0, p - 1);
        multiply(out.as_mut(), false, factor * factor, features, twice);
        narrow(self.terms.term(1, &self.sizes).1, &self.work);
        self.terms.add_to(out, &self.sizes);
    }
}
