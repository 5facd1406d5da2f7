//! T in feature space, for outputs of one λ (over groups of outputs M̄ adds up): λI + ΨᵀΨ = M = CCᵀ (p × p), θ = μ + √λ C⁻ᵀφ, log|det| = C_out(½p log λ − Σ log Cᵢᵢ).
//!
//! Pull-back of G = ∂/∂θ: with v = C⁻¹G and H = C⁻ᵀv,
//! * φ̄ = √λ v,
//! * M̄ = ½C⁻ᵀSC⁻¹ − ½(Hμᵀ + μHᵀ), S symmetric with lower half −√λ φvᵀ, less C_out on the diagonal for log|det|,
//! * Ψ̄ = ỸHᵀ + 2ΨM̄.

use super::super::EvaluationError;
use super::super::ridge::RidgeGroup;
use super::{MapSizes, Terms, add_group, by_rows, groups, narrow, narrow_symmetric};
use crate::compute::{
    Matrix, MatrixMut, Real, Semiseparable, add_symmetric_product, gram_of_columns, matrix,
    matrix_mut, multiply,
};

pub(in crate::posterior) struct FeatureSpaceMap<R> {
    pub(super) sizes: MapSizes,
    /// The caller's, and ỸHᵀ; the pseudo-targets Ỹ stay where they are.
    pub(super) terms: Terms<R>,
    gram: Vec<R>,
    groups: Vec<RidgeGroup>,
    /// μ and work of its size, p × C.
    mean: Vec<f64>,
    work: Vec<f64>,
    narrow: Vec<R>,
    /// p × p work space; empty until gradients are asked for.
    squares: [Vec<f64>; 3],
    /// 2M̄ of the groups so far, where there are several.
    sum: Vec<f64>,
    left: Vec<f64>,
    right: Vec<f64>,
    sums: Vec<f64>,
    pub(super) jitter_count: u64,
}

impl<R: Real> FeatureSpaceMap<R> {
    pub(super) fn new(sizes: MapSizes, lambdas: &[f64], pseudo_targets: &[f64]) -> Self {
        let (p, c) = (sizes.p, sizes.outputs);
        let mut terms = Terms::new(&sizes, 1);
        narrow(terms.term(1, &sizes).0, pseudo_targets);
        Self {
            sizes,
            terms,
            gram: vec![R::ZERO; p * p],
            groups: groups(lambdas, p).collect(),
            mean: vec![0.0; p * c],
            work: vec![0.0; p * c],
            narrow: vec![R::ZERO; p * c],
            squares: [Vec::new(), Vec::new(), Vec::new()],
            sum: Vec::new(),
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
        } = self.sizes;
        gram_of_columns(matrix_mut(&mut self.gram, p, p), features);
        let targets = matrix(&self.terms.left[n * c..], n, c);
        let projected = matrix_mut(&mut self.narrow, p, c);
        multiply(projected, false, factor, features.transpose(), targets);
        for (mean, b) in self.mean.iter_mut().zip(&self.narrow) {
            *mean = b.to_f64();
        }
        let gram = &self.gram;
        let mut log_determinant = 0.0;
        for group in &mut self.groups {
            let (own, count) = (group.columns(p), group.count());
            self.jitter_count += group.factorise(factor, gram)?;
            let cholesky = &group.cholesky;
            let mean = &mut self.mean[own.clone()];
            cholesky.solve_lower(mean, count);
            cholesky.solve_upper(mean, count);
            let work = &mut self.work[own.clone()];
            for (work, phi) in work.iter_mut().zip(&phi[own]) {
                *work = group.root * phi.to_f64();
            }
            cholesky.solve_upper(work, count);
            let own = p as f64 * group.ridge.ln() - cholesky.log_determinant();
            log_determinant += 0.5 * count as f64 * own;
        }
        for ((theta, mean), noise) in theta.iter_mut().zip(&self.mean).zip(&self.work) {
            *theta = R::from_f64(mean + noise);
        }
        Ok(log_determinant)
    }

    pub(super) fn pull_back(
        &mut self,
        mut out: MatrixMut<'_, R>,
        features: Matrix<'_, R>,
        theta_cotangent: &[f64],
        phi: &[R],
        phi_cotangent: &mut [R],
    ) {
        let MapSizes { p, factor, .. } = self.sizes;
        self.squares.iter_mut().for_each(|s| s.resize(p * p, 0.0));
        let [twice, first, second] = &mut self.squares;
        self.work.copy_from_slice(theta_cotangent);
        let count = self.groups.len();
        for (index, group) in self.groups.iter().enumerate() {
            let (own, c, root) = (group.columns(p), group.count(), group.root);
            let cholesky = &group.cholesky;
            // v = C⁻¹G
            let work = &mut self.work[own.clone()];
            cholesky.solve_lower(work, c);
            for (out, v) in phi_cotangent[own.clone()].iter_mut().zip(&*work) {
                *out = R::from_f64(root * v);
            }
            let (left, right) = (&mut self.left[..p * c], &mut self.right[..p * c]);
            by_rows(right, c, 0, work, p, 1.0);
            for (at, phi) in phi[own.clone()].iter().enumerate() {
                left[at % p * c + at / p] = -root * phi.to_f64();
            }
            let cotangent = Semiseparable {
                left,
                right,
                rank: c,
                shift: -(c as f64),
            };
            cholesky.pull_back(twice, first, second, &mut self.sums[..p * c], cotangent);
            // H = C⁻ᵀv
            cholesky.solve_upper(work, c);
            let (h, mean) = (matrix(work, p, c), matrix(&self.mean[own], p, c));
            add_symmetric_product(matrix_mut(twice, p, p), -1.0, h, mean);
            add_group(&mut self.sum, twice, index, count);
        }
        narrow_symmetric(&mut self.gram, twice, p);
        let twice = matrix(&self.gram, p, p).subcols(0, p - 1);
        multiply(out.as_mut(), false, factor * factor, features, twice);
        narrow(self.terms.term(1, &self.sizes).1, &self.work);
        self.terms.add_to(out, &self.sizes);
    }
}
