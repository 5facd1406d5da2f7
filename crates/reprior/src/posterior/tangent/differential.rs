//! Products with the derivative of R, with its transpose, and with Hessians of the network.
//!
//! A function of φ that is made of J has a cotangent J̄ (nC × D), and its gradient is Σ_i H_i·J̄_i with the Hessian H_i of output
//! i and row i of J̄.

use super::linearisation::{Linearisation, product, unit};
use crate::compute::{add_scaled, matrix, matrix_mut, multiply};

impl Linearisation {
    /// `out` ← (dR − S)u at the φ of the last [`set`](Self::set).
    pub fn remainder(&mut self, u: &[f64], out: &mut [f64]) {
        let (n, size, dim) = (self.rows, self.size, u.len());
        let inputs = matrix(&self.inputs, n, self.inputs.len() / n);
        let outputs = size / n;
        for output in 0..outputs {
            unit(&mut self.cotangent, &self.precisions, output, n);
            let cotangent = matrix(&self.cotangent, n, outputs);
            let out = matrix_mut(&mut self.derivative, size, dim).subrows_mut(output * n, n);
            self.executor
                .hessian_product_of_samples(&self.phi, inputs, cotangent, u, out);
        }
        let derivative = matrix(&self.derivative, size, dim);
        let jacobian = matrix(&self.jacobian, size, dim);
        let q = matrix(&self.eigenvectors, size, size);
        // Qᵀ(AJᵀ)Q; with its transpose that of dK
        let square = matrix_mut(&mut self.square, size, size);
        multiply(square, false, 1.0, derivative, jacobian.transpose());
        let work = matrix_mut(&mut self.work, size, size);
        let square = matrix(&self.square, size, size);
        multiply(work, false, 1.0, square, q);
        let square = matrix_mut(&mut self.square, size, size);
        let work = matrix(&self.work, size, size);
        multiply(square, false, 1.0, q.transpose(), work);
        // Qᵀ(Aφ)
        product(&mut self.small, derivative, &self.phi);
        product(&mut self.rotated, q.transpose(), &self.small);
        for i in 0..size {
            let (x, root) = (self.eigenvalues[i], self.root[i]);
            let mut sum = (1.0 / x - root) * self.rotated[i];
            for j in 0..size {
                let kernel = self.square[j * size + i] + self.square[i * size + j];
                let difference = self.root_difference(i, j);
                sum -= kernel * (self.kappa[j] / x + difference * self.b[j]);
            }
            self.small[i] = sum;
        }
        product(&mut self.rotated, q, &self.small);
        product(out, jacobian.transpose(), &self.rotated);
        multiply(
            matrix_mut(out, dim, 1),
            true,
            1.0,
            derivative.transpose(),
            matrix(&self.v, size, 1),
        );
    }

    /// `out` ← dRᵀ·`p`.
    pub fn pull_back(&mut self, p: &[f64], out: &mut [f64]) {
        self.rotate_product(p);
        out.copy_from_slice(p);
        self.add_pull_back_of_step(Some(p), out);
    }

    /// `out` ← dvᵀ·`w`, the gradient of ⟨w, v⟩.
    pub fn pull_back_of_residuals(&mut self, w: &[f64], out: &mut [f64]) {
        let q = matrix(&self.eigenvectors, self.size, self.size);
        product(&mut self.rotated, q.transpose(), w);
        out.fill(0.0);
        self.add_pull_back_of_step(None, out);
    }

    /// `out` (p, or zero for none) ← p + Σ v_i H_i·p + dvᵀw for `rotated` = Qᵀw.
    ///
    /// With ω = Qᵀw, u = K⁻¹w and κ = K⁻¹(y − f + b), ⟨w, dv⟩ = −wᵀF·J + ⟨J̄, dJ⟩ with
    /// J̄ = (K⁻¹ − F)w·φᵀ − YJ, QᵀYQ = QᵀuκᵀQ + its transpose + Δ∘(ωβᵀ + βωᵀ), β = Qᵀb; v·pᵀ is added to J̄ for p.
    fn add_pull_back_of_step(&mut self, p: Option<&[f64]>, out: &mut [f64]) {
        let omega = self.rotated.clone();
        for i in 0..self.size {
            self.rotated[i] *= self.root[i];
        }
        self.add_transpose(out, -1.0);
        if self.is_damped() {
            // b = 0 and F = K⁻¹: J̄ = v·(p − Jᵀu)ᵀ − u·(θ − φ)ᵀ
            let [u, v] = [self.small.clone(), self.v.clone()];
            let direction = out.to_vec();
            self.add_hessian_product(&v, &direction, 1.0, out);
            let mut step = self.theta().to_vec();
            add_scaled(&mut step, -1.0, &self.phi);
            self.add_hessian_product(&u, &step, -1.0, out);
        } else {
            self.add_pull_back_through_kernel(&omega, p, out);
        }
    }

    fn add_pull_back_through_kernel(&mut self, omega: &[f64], p: Option<&[f64]>, out: &mut [f64]) {
        let size = self.size;
        for i in 0..size {
            self.rotated[i] = (1.0 / self.eigenvalues[i] - self.root[i]) * omega[i];
            for j in 0..size {
                let [u_i, u_j] = [i, j].map(|i| omega[i] / self.eigenvalues[i]);
                let of_inverse = u_i * self.kappa[j] + u_j * self.kappa[i];
                let of_root = omega[i] * self.b[j] + omega[j] * self.b[i];
                self.square[j * size + i] = of_inverse + self.root_difference(i, j) * of_root;
            }
        }
        let mut cotangent = std::mem::take(&mut self.derivative);
        let square = std::mem::take(&mut self.square);
        self.rotated_times_jacobian(&square, -1.0, &mut cotangent);
        self.square = square;
        let q = matrix(&self.eigenvectors, size, size);
        product(&mut self.small, q, &self.rotated);
        let phi = &self.phi;
        for (left, right) in [(&self.small, Some(&phi[..])), (&self.v, p)] {
            if let Some(right) = right {
                add_outer(&mut cotangent, left, right);
            }
        }
        self.contract(&cotangent, out);
        self.derivative = cotangent;
    }

    /// `out` (nC × D) ← scale·Q·`square`·Qᵀ·J.
    pub fn rotated_times_jacobian(&self, square: &[f64], scale: f64, out: &mut [f64]) {
        let (size, dim) = (self.size, self.phi.len());
        let q = matrix(&self.eigenvectors, size, size);
        let mut work = vec![0.0; size * size];
        let mut both = vec![0.0; size * size];
        let square = matrix(square, size, size);
        multiply(matrix_mut(&mut work, size, size), false, scale, q, square);
        let both_mut = matrix_mut(&mut both, size, size);
        multiply(
            both_mut,
            false,
            1.0,
            matrix(&work, size, size),
            q.transpose(),
        );
        let jacobian = matrix(&self.jacobian, size, dim);
        let out = matrix_mut(out, size, dim);
        multiply(out, false, 1.0, matrix(&both, size, size), jacobian);
    }

    /// `out` ← `out` + Σ_i H_i·row i of `cotangent` (nC × D).
    pub fn contract(&mut self, cotangent: &[f64], out: &mut [f64]) {
        let (n, size) = (self.rows, self.size);
        let (outputs, columns) = (size / n, self.inputs.len() / n);
        let mut one = vec![0.0; outputs];
        for at in 0..size {
            let inputs = matrix(&self.inputs, n, columns).subrows(at % n, 1);
            let entries = self
                .row
                .iter_mut()
                .zip(cotangent[at..].iter().step_by(size));
            entries.for_each(|(to, from)| *to = *from);
            one.fill(0.0);
            one[at / n] = self.precisions[at];
            let (direction, product) = (&self.row, &mut self.product);
            let weights = matrix(&one, 1, outputs);
            self.executor
                .hessian_product(&self.phi, inputs, weights, direction, product);
            add_scaled(out, 1.0, product);
        }
    }

    /// `out` ← `out` + scale·Σ a_i H_i·`direction`.
    pub fn add_hessian_product(
        &mut self,
        a: &[f64],
        direction: &[f64],
        scale: f64,
        out: &mut [f64],
    ) {
        let phi = std::mem::take(&mut self.phi);
        self.hessian_product_at(&phi, a, direction);
        self.phi = phi;
        add_scaled(out, scale, &self.product);
    }

    /// `product` ← Σ a_i H_i·`direction` at other weights.
    pub fn hessian_product_at(&mut self, weights: &[f64], a: &[f64], direction: &[f64]) {
        let (n, columns) = (self.rows, self.inputs.len() / self.rows);
        let entries = self
            .cotangent
            .iter_mut()
            .zip(a.iter().zip(&self.precisions));
        entries.for_each(|(to, (a, precision))| *to = a * precision);
        let (inputs, cotangent) = (
            matrix(&self.inputs, n, columns),
            matrix(&self.cotangent, n, self.size / n),
        );
        self.executor
            .hessian_product(weights, inputs, cotangent, direction, &mut self.product);
    }

    /// `small` ← `small` + scale·J·`direction` at other weights.
    pub fn add_jacobian_product_at(&mut self, weights: &[f64], direction: &[f64], scale: f64) {
        let (n, columns) = (self.rows, self.inputs.len() / self.rows);
        let inputs = matrix(&self.inputs, n, columns);
        let out = matrix_mut(&mut self.cotangent, n, self.size / n);
        self.executor
            .jvp(weights, inputs, Some(direction), None, out);
        for at in 0..self.size {
            self.small[at] += scale * self.precisions[at] * self.cotangent[at];
        }
    }
}

/// a ← a + left·rightᵀ.
pub(super) fn add_outer(a: &mut [f64], left: &[f64], right: &[f64]) {
    for (column, &right) in a.chunks_exact_mut(left.len().max(1)).zip(right) {
        add_scaled(column, right, left);
    }
}
