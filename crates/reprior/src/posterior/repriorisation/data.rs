//! T in data space, for outputs of one λ (over groups of outputs K̄ adds up): λI + ΨΨᵀ = K (n × n), θ = φ + Ψᵀ(κ − F·Ψφ), κ = K⁻¹Ỹ, log|det| = ½C(n log λ − log det K).
//!
//! F = L⁻ᵀ(L + √λI)⁻¹ with K = LLᵀ, or F = Qf(Λ)Qᵀ with f(x) = 1/(x + √(λx)) and K = QΛQᵀ. That the first is a root:
//! with N = (L + √λI)⁻¹, NL = I − √λN and LLᵀ − λI = N⁻¹N⁻ᵀ − √λ(N⁻¹ + N⁻ᵀ), so that F + Fᵀ − FΨΨᵀFᵀ = K⁻¹.
//!
//! Pull-back of G = ∂/∂θ with a = ΨG, b = Ψφ, h = K⁻¹a: φ̄ = G + Ψᵀb̄, Ψ̄ = (κ − Fb)Gᵀ + b̄φᵀ + 2K̄Ψ and
//! * triangular: q = L⁻¹a, u = Nb, b̄ = −Nᵀq; 2K̄ = L⁻ᵀSL⁻¹ − hκᵀ − κhᵀ with the lower half of S that of
//!   uqᵀ + (q + √λb̄)uᵀ, less C on the diagonal,
//! * symmetric: b̄ = −Fa; in the eigenbasis 2K̄ = −D∘(abᵀ + baᵀ) − C·Λ⁻¹ − hκᵀ − κhᵀ with D the divided differences of
//!   f (Daleckii & Krein 1965).

use super::super::EvaluationError;
use super::super::ridge::RidgeGroup;
use super::{MapSizes, Terms, add_group, by_rows, groups, narrow, narrow_symmetric};
use crate::compute::{
    Matrix, MatrixMut, Real, Semiseparable, add_symmetric_product, gram_of_rows, matrix,
    matrix_mut, multiply, symmetric_eigen,
};

pub(in crate::posterior) struct DataMap<R> {
    pub(super) sizes: MapSizes,
    /// The caller's, (κ − Fb)Gᵀ and b̄φᵀ.
    pub(super) terms: Terms<R>,
    is_symmetric: bool,
    pseudo_targets: Vec<f64>,
    gram: Vec<R>,
    groups: Vec<DataGroup>,
    /// κ, b, (L + √λI)⁻¹b, F·b, a and two more, n × C.
    kappa: Vec<f64>,
    b: Vec<f64>,
    u: Vec<f64>,
    fb: Vec<f64>,
    q: Vec<f64>,
    b_cotangent: Vec<f64>,
    h: Vec<f64>,
    narrow: Vec<R>,
    /// n × n work space; empty until needed.
    squares: [Vec<f64>; 3],
    /// 2K̄ of the groups so far, where there are several.
    sum: Vec<f64>,
    left: Vec<f64>,
    right: Vec<f64>,
    sums: Vec<f64>,
    pub(super) jitter_count: u64,
}

/// Some outputs, and the decomposition of K at their λ.
struct DataGroup {
    group: RidgeGroup,
    /// Λ and Q of the symmetric root.
    eigenvalues: Vec<f64>,
    eigenvectors: Vec<f64>,
}

impl<R: Real> DataMap<R> {
    pub(super) fn new(
        sizes: MapSizes,
        lambdas: &[f64],
        pseudo_targets: Vec<f64>,
        is_symmetric: bool,
    ) -> Self {
        let (n, c) = (sizes.rows, sizes.outputs);
        let size = if is_symmetric { 0 } else { n };
        let groups = groups(lambdas, size).map(|group| DataGroup {
            group,
            eigenvalues: Vec::new(),
            eigenvectors: Vec::new(),
        });
        let small = || vec![0.0; n * c];
        Self {
            terms: Terms::new(&sizes, 2),
            sizes,
            is_symmetric,
            pseudo_targets,
            gram: vec![R::ZERO; n * n],
            groups: groups.collect(),
            kappa: small(),
            b: small(),
            u: small(),
            fb: small(),
            q: small(),
            b_cotangent: small(),
            h: small(),
            narrow: vec![R::ZERO; n * c],
            squares: [Vec::new(), Vec::new(), Vec::new()],
            sum: Vec::new(),
            left: vec![0.0; 2 * n * c],
            right: vec![0.0; 2 * n * c],
            sums: vec![0.0; 2 * n * c],
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
        gram_of_rows(matrix_mut(&mut self.gram, n, n), false, features);
        let b = matrix_mut(&mut self.narrow, n, c);
        multiply(b, false, factor, features, matrix(phi, p, c));
        widen(&mut self.b, &self.narrow);
        let mut log_determinant = 0.0;
        for index in 0..self.groups.len() {
            let own = match self.is_symmetric {
                true => self.decompose(index)?,
                false => self.factorise(index)?,
            };
            let RidgeGroup { ridge, outputs, .. } = &self.groups[index].group;
            log_determinant += 0.5 * outputs.len() as f64 * (n as f64 * ridge.ln() - own);
        }
        for ((narrow, kappa), fb) in self.narrow.iter_mut().zip(&self.kappa).zip(&self.fb) {
            *narrow = R::from_f64(kappa - fb);
        }
        theta.copy_from_slice(phi);
        let correction = matrix(&self.narrow, n, c);
        let theta = matrix_mut(theta, p, c);
        multiply(theta, true, factor, features.transpose(), correction);
        Ok(log_determinant)
    }

    /// L, κ, u, F·b of a group; returns log det K.
    fn factorise(&mut self, index: usize) -> Result<f64, EvaluationError> {
        let MapSizes {
            rows: n, factor, ..
        } = self.sizes;
        let group = &mut self.groups[index].group;
        let (own, c) = (group.columns(n), group.count());
        self.jitter_count += group.factorise(factor, &self.gram)?;
        let cholesky = &group.cholesky;
        let kappa = &mut self.kappa[own.clone()];
        kappa.copy_from_slice(&self.pseudo_targets[own.clone()]);
        cholesky.solve_lower(kappa, c);
        cholesky.solve_upper(kappa, c);
        let u = &mut self.u[own.clone()];
        u.copy_from_slice(&self.b[own.clone()]);
        cholesky.solve_shifted_lower(u, group.root);
        let fb = &mut self.fb[own];
        fb.copy_from_slice(u);
        cholesky.solve_upper(fb, c);
        Ok(cholesky.log_determinant())
    }

    /// Λ, Q, κ, F·b of a group; returns log det K. κ, b and u (F·b) are kept in the eigenbasis.
    fn decompose(&mut self, index: usize) -> Result<f64, EvaluationError> {
        let MapSizes {
            rows: n, factor, ..
        } = self.sizes;
        let own = &mut self.groups[index];
        let (columns, lambda) = (own.group.columns(n), own.group.ridge);
        let kernel = &mut self.squares[0];
        kernel.resize(n * n, 0.0);
        for column in 0..n {
            for row in column..n {
                let ridge = if row == column { lambda } else { 0.0 };
                kernel[column * n + row] =
                    factor * factor * self.gram[column * n + row].to_f64() + ridge;
            }
        }
        (own.eigenvalues, own.eigenvectors) = symmetric_eigen(kernel, n)
            .map_err(|error| EvaluationError::Recoverable(error.to_string()))?;
        let (values, vectors) = (&mut own.eigenvalues, &own.eigenvectors);
        // rounding may take an eigenvalue below λ, never far
        values.iter_mut().for_each(|x| *x = x.max(lambda));
        let function = root_function(values, lambda);
        let q = &mut self.q[columns.clone()];
        let targets = &self.pseudo_targets[columns.clone()];
        rotate(q, vectors, targets, n, true);
        scale_rows(q, values, |x| 1.0 / x);
        rotate(&mut self.kappa[columns.clone()], vectors, q, n, false);
        let (u, b) = (&mut self.u[columns.clone()], &mut self.b[columns.clone()]);
        rotate(u, vectors, b, n, true);
        b.copy_from_slice(u);
        scale_rows(u, &function, |f| f);
        rotate(&mut self.fb[columns], vectors, u, n, false);
        Ok(values.iter().map(|x| x.ln()).sum())
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
            rows: n,
            p,
            outputs: c,
            factor,
        } = self.sizes;
        let (_, g) = self.terms.term(1, &self.sizes);
        narrow(g, theta_cotangent);
        let a = matrix_mut(&mut self.narrow, n, c);
        multiply(a, false, factor, features, matrix(g, p, c));
        widen(&mut self.q, &self.narrow);
        self.squares.iter_mut().for_each(|s| s.resize(n * n, 0.0));
        let count = self.groups.len();
        for index in 0..count {
            match self.is_symmetric {
                true => self.pull_back_symmetric(index),
                false => self.pull_back_triangular(index),
            }
            add_group(&mut self.sum, &mut self.squares[0], index, count);
        }
        narrow_symmetric(&mut self.gram, &self.squares[0], n);
        let h = features.subcols(0, p - 1);
        let kernel = matrix(&self.gram, n, n);
        multiply(out.as_mut(), false, factor * factor, kernel, h);
        let (correction, _) = self.terms.term(1, &self.sizes);
        for ((narrow, kappa), fb) in correction.iter_mut().zip(&self.kappa).zip(&self.fb) {
            *narrow = R::from_f64(kappa - fb);
        }
        // b̄, and φ̄ = G + Ψᵀb̄
        let (b, right) = self.terms.term(2, &self.sizes);
        narrow(b, &self.b_cotangent);
        right.copy_from_slice(phi);
        narrow(phi_cotangent, theta_cotangent);
        let into = matrix_mut(phi_cotangent, p, c);
        multiply(into, true, factor, features.transpose(), matrix(b, n, c));
        self.terms.add_to(out, &self.sizes);
    }

    /// From a in `q`: b̄ of a group, and its 2K̄ in the lower half of the first square.
    fn pull_back_triangular(&mut self, index: usize) {
        let n = self.sizes.rows;
        let group = &self.groups[index].group;
        let (own, c, root) = (group.columns(n), group.count(), group.root);
        let cholesky = &group.cholesky;
        let [twice, first, second] = &mut self.squares;
        let (q, h) = (&mut self.q[own.clone()], &mut self.h[own.clone()]);
        let b_cotangent = &mut self.b_cotangent[own.clone()];
        let u = &self.u[own.clone()];
        let [left, right, sums] =
            [&mut self.left, &mut self.right, &mut self.sums].map(|all| &mut all[..2 * n * c]);
        cholesky.solve_lower(q, c);
        h.copy_from_slice(q);
        cholesky.solve_upper(h, c);
        for (b, q) in b_cotangent.iter_mut().zip(&*q) {
            *b = -q;
        }
        cholesky.solve_shifted_upper(b_cotangent, root);
        by_rows(left, 2 * c, 0, u, n, 1.0);
        by_rows(right, 2 * c, 0, q, n, 1.0);
        by_rows(right, 2 * c, c, u, n, 1.0);
        for (q, b) in q.iter_mut().zip(&*b_cotangent) {
            *q += root * b;
        }
        by_rows(left, 2 * c, c, q, n, 1.0);
        let cotangent = Semiseparable {
            left,
            right,
            rank: 2 * c,
            shift: -(c as f64),
        };
        cholesky.pull_back(twice, first, second, sums, cotangent);
        let (h, kappa) = (matrix(h, n, c), matrix(&self.kappa[own], n, c));
        add_symmetric_product(matrix_mut(twice, n, n), -1.0, h, kappa);
    }

    /// The same for the symmetric root.
    fn pull_back_symmetric(&mut self, index: usize) {
        let n = self.sizes.rows;
        let DataGroup {
            group,
            eigenvalues: values,
            eigenvectors: vectors,
        } = &self.groups[index];
        let (own, c, lambda) = (group.columns(n), group.count(), group.ridge);
        let function = root_function(values, lambda);
        let (rotated, b) = (&mut self.h[own.clone()], &self.b[own.clone()]);
        rotate(rotated, vectors, &self.q[own.clone()], n, true);
        let a = rotated.to_vec();
        // b̄ = −Fa
        scale_rows(rotated, &function, |f| -f);
        rotate(
            &mut self.b_cotangent[own.clone()],
            vectors,
            rotated,
            n,
            false,
        );
        let kappa = {
            let mut kappa = vec![0.0; n * c];
            rotate(&mut kappa, vectors, &self.kappa[own], n, true);
            kappa
        };
        let [twice, first, second] = &mut self.squares;
        let root = lambda.sqrt();
        for j in 0..n {
            for i in 0..n {
                let (x, y) = (values[i], values[j]);
                // (f(x) − f(y))/(x − y) = −(1 + √λ/(√x + √y))·f(x)·f(y)
                let difference = -(1.0 + root / (x.sqrt() + y.sqrt())) * function[i] * function[j];
                let mut sum = if i == j { -(c as f64) / x } else { 0.0 };
                for column in 0..c {
                    let (at_i, at_j) = (column * n + i, column * n + j);
                    sum -= difference * (a[at_i] * b[at_j] + b[at_i] * a[at_j]);
                    sum -= a[at_i] / x * kappa[at_j] + kappa[at_i] * a[at_j] / y;
                }
                first[j * n + i] = sum;
            }
        }
        let q = matrix(vectors, n, n);
        multiply(matrix_mut(second, n, n), false, 1.0, q, matrix(first, n, n));
        multiply(
            matrix_mut(twice, n, n),
            false,
            1.0,
            matrix(second, n, n),
            q.transpose(),
        );
    }
}

/// f(x) = 1/(x + √(λx)).
fn root_function(values: &[f64], lambda: f64) -> Vec<f64> {
    let f = |x: &f64| 1.0 / (x + (lambda * x).sqrt());
    values.iter().map(f).collect()
}

/// out ← Qᵀ·values or Q·values, n × C.
fn rotate(out: &mut [f64], vectors: &[f64], values: &[f64], n: usize, transposed: bool) {
    let (q, columns) = (matrix(vectors, n, n), values.len() / n.max(1));
    let q = if transposed { q.transpose() } else { q };
    let out = matrix_mut(out, n, columns);
    multiply(out, false, 1.0, q, matrix(values, n, columns));
}

/// Row i of a column-major matrix times factor(xᵢ).
fn scale_rows(values: &mut [f64], x: &[f64], factor: impl Fn(f64) -> f64) {
    for column in values.chunks_exact_mut(x.len().max(1)) {
        for (value, x) in column.iter_mut().zip(x) {
            *value *= factor(*x);
        }
    }
}

fn widen<R: Real>(out: &mut [f64], values: &[R]) {
    for (wide, value) in out.iter_mut().zip(values) {
        *wide = value.to_f64();
    }
}
