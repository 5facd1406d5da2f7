//! T in data space: λI + ΨΨᵀ = K (n × n), θ = φ + Ψᵀ(κ − F·Ψφ), κ = K⁻¹Ỹ, log|det| = ½C(n log λ − log det K).
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
use super::{MapSizes, Terms, by_rows, narrow, narrow_symmetric};
use crate::compute::{
    Cholesky, Matrix, MatrixMut, Real, Semiseparable, add_symmetric_product, gram_of_rows, matrix,
    matrix_mut, multiply, symmetric_eigen,
};

pub(in crate::posterior) struct DataMap<R> {
    pub(super) sizes: MapSizes,
    /// The caller's, (κ − Fb)Gᵀ and b̄φᵀ.
    pub(super) terms: Terms<R>,
    is_symmetric: bool,
    pseudo_targets: Vec<f64>,
    gram: Vec<R>,
    cholesky: Cholesky,
    /// Λ and Q of the symmetric root.
    eigenvalues: Vec<f64>,
    eigenvectors: Vec<f64>,
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
    left: Vec<f64>,
    right: Vec<f64>,
    sums: Vec<f64>,
    pub(super) jitter_count: u64,
}

impl<R: Real> DataMap<R> {
    pub(super) fn new(sizes: MapSizes, pseudo_targets: Vec<f64>, is_symmetric: bool) -> Self {
        let (n, c) = (sizes.rows, sizes.outputs);
        let small = || vec![0.0; n * c];
        Self {
            terms: Terms::new(&sizes, 2),
            sizes,
            is_symmetric,
            pseudo_targets,
            gram: vec![R::ZERO; n * n],
            cholesky: Cholesky::new(if is_symmetric { 0 } else { n }),
            eigenvalues: Vec::new(),
            eigenvectors: Vec::new(),
            kappa: small(),
            b: small(),
            u: small(),
            fb: small(),
            q: small(),
            b_cotangent: small(),
            h: small(),
            narrow: vec![R::ZERO; n * c],
            squares: [Vec::new(), Vec::new(), Vec::new()],
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
            lambda,
        } = self.sizes;
        gram_of_rows(matrix_mut(&mut self.gram, n, n), false, features);
        let b = matrix_mut(&mut self.narrow, n, c);
        multiply(b, false, factor, features, matrix(phi, p, c));
        widen(&mut self.b, &self.narrow);
        let log_determinant = if self.is_symmetric {
            self.decompose()?
        } else {
            self.factorise()?
        };
        for ((narrow, kappa), fb) in self.narrow.iter_mut().zip(&self.kappa).zip(&self.fb) {
            *narrow = R::from_f64(kappa - fb);
        }
        theta.copy_from_slice(phi);
        let correction = matrix(&self.narrow, n, c);
        let theta = matrix_mut(theta, p, c);
        multiply(theta, true, factor, features.transpose(), correction);
        Ok(0.5 * c as f64 * (n as f64 * lambda.ln() - log_determinant))
    }

    /// K at row and column, without λ.
    fn kernel(gram: &[R], scale: f64, n: usize, row: usize, column: usize) -> f64 {
        scale * gram[column * n + row].to_f64()
    }

    /// L, κ, u, F·b; returns log det K.
    fn factorise(&mut self) -> Result<f64, EvaluationError> {
        let MapSizes {
            rows: n,
            outputs: c,
            factor,
            lambda,
            ..
        } = self.sizes;
        let gram = &self.gram;
        let tries = self.cholesky.factorise(|row, column| {
            let ridge = if row == column { lambda } else { 0.0 };
            Self::kernel(gram, factor * factor, n, row, column) + ridge
        })?;
        self.jitter_count += u64::from(tries);
        self.kappa.copy_from_slice(&self.pseudo_targets);
        self.cholesky.solve_lower(&mut self.kappa, c);
        self.cholesky.solve_upper(&mut self.kappa, c);
        self.u.copy_from_slice(&self.b);
        self.cholesky
            .solve_shifted_lower(&mut self.u, lambda.sqrt());
        self.fb.copy_from_slice(&self.u);
        self.cholesky.solve_upper(&mut self.fb, c);
        Ok(self.cholesky.log_determinant())
    }

    /// Λ, Q, κ, F·b; returns log det K. κ, b and u (F·b) are kept in the eigenbasis.
    fn decompose(&mut self) -> Result<f64, EvaluationError> {
        let MapSizes {
            rows: n,
            factor,
            lambda,
            ..
        } = self.sizes;
        let kernel = &mut self.squares[0];
        kernel.resize(n * n, 0.0);
        for column in 0..n {
            for row in column..n {
                let ridge = if row == column { lambda } else { 0.0 };
                kernel[column * n + row] =
                    Self::kernel(&self.gram, factor * factor, n, row, column) + ridge;
            }
        }
        (self.eigenvalues, self.eigenvectors) = symmetric_eigen(kernel, n)
            .map_err(|error| EvaluationError::Recoverable(error.to_string()))?;
        // rounding may take an eigenvalue below λ, never far
        self.eigenvalues.iter_mut().for_each(|x| *x = x.max(lambda));
        let function = root_function(&self.eigenvalues, lambda);
        rotate(
            &mut self.q,
            &self.eigenvectors,
            &self.pseudo_targets,
            n,
            true,
        );
        scale_rows(&mut self.q, &self.eigenvalues, |x| 1.0 / x);
        rotate(&mut self.kappa, &self.eigenvectors, &self.q, n, false);
        rotate(&mut self.u, &self.eigenvectors, &self.b, n, true);
        self.b.copy_from_slice(&self.u);
        scale_rows(&mut self.u, &function, |f| f);
        rotate(&mut self.fb, &self.eigenvectors, &self.u, n, false);
        Ok(self.eigenvalues.iter().map(|x| x.ln()).sum())
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
            ..
        } = self.sizes;
        let (_, g) = self.terms.term(1, &self.sizes);
        narrow(g, theta_cotangent);
        let a = matrix_mut(&mut self.narrow, n, c);
        multiply(a, false, factor, features, matrix(g, p, c));
        widen(&mut self.q, &self.narrow);
        self.squares.iter_mut().for_each(|s| s.resize(n * n, 0.0));
        if self.is_symmetric {
            self.pull_back_symmetric();
        } else {
            self.pull_back_triangular();
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

    /// From a in `q`: b̄, and 2K̄ in the lower half of the first square.
    fn pull_back_triangular(&mut self) {
        let MapSizes {
            rows: n,
            outputs: c,
            lambda,
            ..
        } = self.sizes;
        let [twice, first, second] = &mut self.squares;
        let root = lambda.sqrt();
        self.cholesky.solve_lower(&mut self.q, c);
        self.h.copy_from_slice(&self.q);
        self.cholesky.solve_upper(&mut self.h, c);
        for (b, q) in self.b_cotangent.iter_mut().zip(&self.q) {
            *b = -q;
        }
        self.cholesky
            .solve_shifted_upper(&mut self.b_cotangent, root);
        by_rows(&mut self.left, 2 * c, 0, &self.u, n, 1.0);
        by_rows(&mut self.right, 2 * c, 0, &self.q, n, 1.0);
        by_rows(&mut self.right, 2 * c, c, &self.u, n, 1.0);
        for (q, b) in self.q.iter_mut().zip(&self.b_cotangent) {
            *q += root * b;
        }
        by_rows(&mut self.left, 2 * c, c, &self.q, n, 1.0);
        let cotangent = Semiseparable {
            left: &self.left,
            right: &self.right,
            rank: 2 * c,
            shift: -(c as f64),
        };
        self.cholesky
            .pull_back(twice, first, second, &mut self.sums, cotangent);
        let (h, kappa) = (matrix(&self.h, n, c), matrix(&self.kappa, n, c));
        add_symmetric_product(matrix_mut(twice, n, n), -1.0, h, kappa);
    }

    /// The same for the symmetric root.
    fn pull_back_symmetric(&mut self) {
        let MapSizes {
            rows: n,
            outputs: c,
            lambda,
            ..
        } = self.sizes;
        let (values, vectors) = (&self.eigenvalues, &self.eigenvectors);
        let function = root_function(values, lambda);
        let rotated = &mut self.h;
        rotate(rotated, vectors, &self.q, n, true);
        let a = rotated.clone();
        // b̄ = −Fa
        scale_rows(rotated, &function, |f| -f);
        rotate(&mut self.b_cotangent, vectors, rotated, n, false);
        let kappa = {
            let mut kappa = vec![0.0; n * c];
            rotate(&mut kappa, vectors, &self.kappa, n, true);
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
                    sum -= difference * (a[at_i] * self.b[at_j] + self.b[at_i] * a[at_j]);
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
