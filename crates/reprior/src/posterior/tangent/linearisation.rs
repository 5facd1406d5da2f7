//! The network linearised at φ: Jacobian, eigenvalues of its kernel, θ = R(φ), and the root S. Formulas are the module's above.
//!
//! The map of eq. 10 is that of the posterior with b = 0 and F = K⁻¹.

use super::super::EvaluationError;
use crate::compute::{
    Matrix, Real, add_scaled, gram_of_rows, matrix, matrix_mut, multiply, symmetric_eigen,
};
use crate::model::Model;
use crate::network::Executor;
use crate::network::layer::ShapeError;

pub(super) struct Linearisation {
    pub(super) executor: Executor<f64>,
    /// λ of eq. 10; none for the map of the linearised network's posterior.
    damping: Option<f64>,
    /// n × columns.
    pub(super) inputs: Vec<f64>,
    pub(super) rows: usize,
    /// nC.
    pub(super) size: usize,
    /// y and 1 of every entry, in units of σ: y/σ and 1/σ. The map of eq. 10 has its own units, that of y.
    targets: Vec<f64>,
    pub(super) precisions: Vec<f64>,
    /// The precisions of one output in its column, zeros in the others: n × C.
    pub(super) cotangent: Vec<f64>,
    /// J and A, nC × D.
    pub(super) jacobian: Vec<f64>,
    pub(super) derivative: Vec<f64>,
    /// K, later QᵀdKQ, and work of its size.
    pub(super) square: Vec<f64>,
    pub(super) work: Vec<f64>,
    pub(super) eigenvalues: Vec<f64>,
    pub(super) eigenvectors: Vec<f64>,
    /// S = I − Jᵀ·Q`root`Qᵀ·J: f(Λ), or Λ⁻¹. S⁻¹ = I + Jᵀ·Q`inverse_root`Qᵀ·J.
    pub(super) root: Vec<f64>,
    pub(super) inverse_root: Vec<f64>,
    /// Qᵀ times K⁻¹(y − f + b) and b.
    pub(super) kappa: Vec<f64>,
    pub(super) b: Vec<f64>,
    /// v, not rotated.
    pub(super) v: Vec<f64>,
    pub(super) small: Vec<f64>,
    pub(super) rotated: Vec<f64>,
    pub(super) phi: Vec<f64>,
    theta: Vec<f64>,
    /// D numbers of work.
    pub(super) row: Vec<f64>,
    pub(super) product: Vec<f64>,
}

impl Linearisation {
    /// Of the map of eq. 10 with λ = `damping`, in units of squared targets, or of that of the linearised network's posterior.
    pub fn new<R: Real>(model: &Model<R>, damping: Option<f64>) -> Result<Self, ShapeError> {
        let network = model.reduced_network();
        let executor = Executor::new(&network)?;
        let (rows, c, dim) = (model.rows(), network.outputs, executor.parameters());
        let (size, columns) = (rows * c, network.input.features());
        let design = model.design.matrix().subcols(0, columns);
        let inputs = design.col_iter().flat_map(|x| x.iter().map(|x| x.to_f64()));
        let scales = model.noise.typical(c);
        let precision = |at: usize| damping.map_or(1.0 / scales[at / rows], |_| 1.0);
        let precisions: Vec<f64> = (0..size).map(precision).collect();
        let targets = model.targets.iter().zip(&precisions).map(|(y, p)| y * p);
        Ok(Self {
            damping,
            inputs: inputs.collect(),
            rows,
            size,
            targets: targets.collect(),
            precisions,
            cotangent: vec![0.0; size],
            jacobian: vec![0.0; size * dim],
            derivative: vec![0.0; size * dim],
            square: vec![0.0; size * size],
            work: vec![0.0; size * size],
            eigenvalues: Vec::new(),
            eigenvectors: Vec::new(),
            root: Vec::new(),
            inverse_root: Vec::new(),
            kappa: vec![0.0; size],
            b: vec![0.0; size],
            v: vec![0.0; size],
            small: vec![0.0; size],
            rotated: vec![0.0; size],
            phi: vec![0.0; dim],
            theta: vec![0.0; dim],
            row: vec![0.0; dim],
            product: vec![0.0; dim],
            executor,
        })
    }

    /// Whether the map is that of eq. 10.
    pub fn is_damped(&self) -> bool {
        self.damping.is_some()
    }

    /// D.
    pub fn dim(&self) -> usize {
        self.theta.len()
    }

    /// θ.
    pub fn theta(&self) -> &[f64] {
        &self.theta
    }

    /// `out` (n × C) ← f(θ), in the model's own units.
    pub fn outputs(&mut self, out: &mut [f64]) {
        let inputs = matrix(&self.inputs, self.rows, self.inputs.len() / self.rows);
        let out = matrix_mut(out, self.rows, self.size / self.rows);
        self.executor.outputs(&self.theta, inputs, out);
    }

    /// `out` ← the derivative in θ of ⟨`cotangent`, f(θ)⟩ (n × C, in the model's own units).
    pub fn gradient_at_weights(&mut self, cotangent: &[f64], out: &mut [f64]) {
        let inputs = matrix(&self.inputs, self.rows, self.inputs.len() / self.rows);
        let cotangent = matrix(cotangent, self.rows, self.size / self.rows);
        self.executor.vjp(&self.theta, inputs, cotangent, out, None);
    }

    /// Linearises at φ, and finds θ.
    pub fn set(&mut self, phi: &[f64]) -> Result<(), EvaluationError> {
        let (n, size, dim) = (self.rows, self.size, phi.len());
        self.phi.copy_from_slice(phi);
        let inputs = matrix(&self.inputs, n, self.inputs.len() / n);
        let outputs = size / n;
        let small = matrix_mut(&mut self.small, n, outputs);
        self.executor.outputs(phi, inputs, small);
        for output in 0..outputs {
            unit(&mut self.cotangent, &self.precisions, output, n);
            let cotangent = matrix(&self.cotangent, n, outputs);
            let out = matrix_mut(&mut self.jacobian, size, dim).subrows_mut(output * n, n);
            self.executor.vjp_of_samples(phi, inputs, cotangent, out);
        }
        let jacobian = matrix(&self.jacobian, size, dim);
        let lambda = self.damping.unwrap_or(1.0);
        gram_of_rows(matrix_mut(&mut self.square, size, size), false, jacobian);
        for i in 0..size {
            self.square[i * (size + 1)] += lambda;
        }
        (self.eigenvalues, self.eigenvectors) = symmetric_eigen(&self.square, size)
            .map_err(|error| EvaluationError::Recoverable(error.to_string()))?;
        // rounding may take an eigenvalue below λ, never far
        self.eigenvalues.iter_mut().for_each(|x| *x = x.max(lambda));
        let (eigenvalues, damping) = (self.eigenvalues.iter(), self.damping);
        let roots = eigenvalues.map(|x| match damping {
            None => (1.0 / (x + x.sqrt()), 1.0 / (1.0 + x.sqrt())),
            Some(lambda) => (1.0 / x, 1.0 / lambda),
        });
        (self.root, self.inverse_root) = roots.unzip();
        match damping {
            None => product(&mut self.rotated, jacobian, phi),
            Some(_) => self.rotated.fill(0.0),
        }
        for (at, residual) in self.small.iter_mut().enumerate() {
            *residual = self.targets[at] - *residual * self.precisions[at] + self.rotated[at];
        }
        let q = matrix(&self.eigenvectors, size, size);
        product(&mut self.b, q.transpose(), &self.rotated);
        product(&mut self.kappa, q.transpose(), &self.small);
        for i in 0..size {
            self.kappa[i] /= self.eigenvalues[i];
            self.small[i] = self.kappa[i] - self.root[i] * self.b[i];
        }
        product(&mut self.v, q, &self.small);
        product(&mut self.theta, jacobian.transpose(), &self.v);
        add_scaled(&mut self.theta, 1.0, phi);
        Ok(())
    }

    /// log det S: −½ log det K, or log det(λK⁻¹).
    pub fn log_determinant_of_root(&self) -> f64 {
        match self.damping {
            None => -0.5 * self.eigenvalues.iter().map(|x| x.ln()).sum::<f64>(),
            Some(lambda) => self.eigenvalues.iter().map(|x| (lambda / x).ln()).sum(),
        }
    }

    /// The derivative of log det S by an eigenvalue of K, times the eigenvalue.
    pub fn elasticity_of_root(&self) -> f64 {
        self.damping.map_or(-0.5, |_| -1.0)
    }

    /// The divided difference of `inverse_root` between two eigenvalues of K.
    pub fn inverse_root_difference(&self, i: usize, j: usize) -> f64 {
        let pair = self.eigenvalues[i].sqrt() + self.eigenvalues[j].sqrt();
        match self.damping {
            None => -self.inverse_root[i] * self.inverse_root[j] / pair,
            Some(_) => 0.0,
        }
    }

    /// That of `root`, where b is not zero.
    pub fn root_difference(&self, i: usize, j: usize) -> f64 {
        let pair = self.eigenvalues[i].sqrt() + self.eigenvalues[j].sqrt();
        -(1.0 + 1.0 / pair) * self.root[i] * self.root[j]
    }

    /// u ← S⁻¹u.
    pub fn divide_by_root(&mut self, u: &mut [f64]) {
        self.add_function(u, |own, i| own.inverse_root[i]);
    }

    /// u ← Su.
    pub fn multiply_by_root(&mut self, u: &mut [f64]) {
        self.add_function(u, |own, i| -own.root[i]);
    }

    /// u ← u + Jᵀ·Qg(Λ)Qᵀ·Ju.
    fn add_function(&mut self, u: &mut [f64], g: impl Fn(&Self, usize) -> f64) {
        self.rotate_product(u);
        for i in 0..self.size {
            self.rotated[i] *= g(self, i);
        }
        self.add_transpose(u, 1.0);
    }

    /// `rotated` ← Qᵀ·Ju.
    pub fn rotate_product(&mut self, u: &[f64]) {
        let jacobian = matrix(&self.jacobian, self.size, u.len());
        let q = matrix(&self.eigenvectors, self.size, self.size);
        product(&mut self.small, jacobian, u);
        product(&mut self.rotated, q.transpose(), &self.small);
    }

    /// `small` ← Q·`rotated`.
    pub fn rotate_back(&mut self) -> &[f64] {
        let q = matrix(&self.eigenvectors, self.size, self.size);
        product(&mut self.small, q, &self.rotated);
        &self.small
    }

    /// `small` ← Q·`rotated`, u ← u + scale·Jᵀ·`small`.
    pub fn add_transpose(&mut self, u: &mut [f64], scale: f64) {
        self.rotate_back();
        let jacobian = matrix(&self.jacobian, self.size, u.len());
        let small = matrix(&self.small, self.size, 1);
        let u = matrix_mut(u, jacobian.ncols(), 1);
        multiply(u, true, scale, jacobian.transpose(), small);
    }
}

/// out ← a·x.
pub(super) fn product(out: &mut [f64], a: Matrix<'_, f64>, x: &[f64]) {
    let out = matrix_mut(out, a.nrows(), 1);
    multiply(out, false, 1.0, a, matrix(x, a.ncols(), 1));
}

/// The precisions in one output's rows, zeros in the others'.
pub(super) fn unit(cotangent: &mut [f64], precisions: &[f64], output: usize, rows: usize) {
    let own = output * rows..(output + 1) * rows;
    cotangent.fill(0.0);
    cotangent[own.clone()].copy_from_slice(&precisions[own]);
}
