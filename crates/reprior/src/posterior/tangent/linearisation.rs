//! The network linearised at φ: Jacobian, eigenvalues of its kernel, θ = R(φ), and products with the derivative of R.
//! Formulas are the module's above; everything is in units of σ, so that λ = 1.

use super::super::EvaluationError;
use crate::compute::{
    Matrix, Real, add_scaled, gram_of_rows, matrix, matrix_mut, multiply, symmetric_eigen,
};
use crate::model::Model;
use crate::network::Executor;
use crate::network::layer::ShapeError;

pub(super) struct Linearisation {
    executor: Executor<f64>,
    /// n × columns.
    inputs: Vec<f64>,
    rows: usize,
    /// nC.
    size: usize,
    /// y/σ, and 1/σ of every entry.
    targets: Vec<f64>,
    precisions: Vec<f64>,
    /// 1/σ of one output in its column, zeros in the others: n × C.
    cotangent: Vec<f64>,
    /// J and A, nC × D.
    jacobian: Vec<f64>,
    derivative: Vec<f64>,
    /// K, later QᵀdKQ, and work of its size.
    square: Vec<f64>,
    work: Vec<f64>,
    eigenvalues: Vec<f64>,
    eigenvectors: Vec<f64>,
    /// f(Λ).
    root: Vec<f64>,
    /// Qᵀ times K⁻¹(y − f + b) and b.
    kappa: Vec<f64>,
    b: Vec<f64>,
    /// v, not rotated.
    v: Vec<f64>,
    small: Vec<f64>,
    rotated: Vec<f64>,
    theta: Vec<f64>,
}

impl Linearisation {
    pub fn new<R: Real>(model: &Model<R>) -> Result<Self, ShapeError> {
        let network = model.reduced_network();
        let executor = Executor::new(&network)?;
        let (rows, c, dim) = (model.rows(), network.outputs, executor.parameters());
        let (size, columns) = (rows * c, network.input.features());
        let design = model.design.matrix().subcols(0, columns);
        let inputs = design.col_iter().flat_map(|x| x.iter().map(|x| x.to_f64()));
        let scales = model.noise.typical(c);
        let precisions: Vec<f64> = (0..size).map(|at| 1.0 / scales[at / rows]).collect();
        let targets = model.targets.iter().zip(&precisions).map(|(y, p)| y * p);
        Ok(Self {
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
            kappa: vec![0.0; size],
            b: vec![0.0; size],
            v: vec![0.0; size],
            small: vec![0.0; size],
            rotated: vec![0.0; size],
            theta: vec![0.0; dim],
            executor,
        })
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

    /// Linearises at φ, and finds θ.
    pub fn set(&mut self, phi: &[f64]) -> Result<(), EvaluationError> {
        let (n, size, dim) = (self.rows, self.size, phi.len());
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
        gram_of_rows(matrix_mut(&mut self.square, size, size), false, jacobian);
        for i in 0..size {
            self.square[i * (size + 1)] += 1.0;
        }
        (self.eigenvalues, self.eigenvectors) = symmetric_eigen(&self.square, size)
            .map_err(|error| EvaluationError::Recoverable(error.to_string()))?;
        // rounding may take an eigenvalue below λ, never far
        self.eigenvalues.iter_mut().for_each(|x| *x = x.max(1.0));
        self.root.clear();
        self.root
            .extend(self.eigenvalues.iter().map(|x| 1.0 / (x + x.sqrt())));
        product(&mut self.rotated, jacobian, phi);
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

    /// log det Σ^{1/2} = −½ log det K.
    pub fn log_determinant_of_root(&self) -> f64 {
        -0.5 * self.eigenvalues.iter().map(|x| x.ln()).sum::<f64>()
    }

    /// `out` ← (dR − Σ^{1/2})u at the φ of the last [`set`](Self::set).
    pub fn remainder(&mut self, phi: &[f64], u: &[f64], out: &mut [f64]) {
        let (n, size, dim) = (self.rows, self.size, u.len());
        let inputs = matrix(&self.inputs, n, self.inputs.len() / n);
        let outputs = size / n;
        for output in 0..outputs {
            unit(&mut self.cotangent, &self.precisions, output, n);
            let cotangent = matrix(&self.cotangent, n, outputs);
            let out = matrix_mut(&mut self.derivative, size, dim).subrows_mut(output * n, n);
            self.executor
                .hessian_product_of_samples(phi, inputs, cotangent, u, out);
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
        product(&mut self.small, derivative, phi);
        product(&mut self.rotated, q.transpose(), &self.small);
        for i in 0..size {
            let (x, root) = (self.eigenvalues[i], self.root[i]);
            let mut sum = (1.0 / x - root) * self.rotated[i];
            for j in 0..size {
                let kernel = self.square[j * size + i] + self.square[i * size + j];
                let pair = x.sqrt() + self.eigenvalues[j].sqrt();
                let difference = -(1.0 + 1.0 / pair) * root * self.root[j];
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

    /// u ← Σ^{−1/2}u = u + Jᵀ·Q(1 + Λ^{1/2})⁻¹Qᵀ·Ju.
    pub fn divide_by_root(&mut self, u: &mut [f64]) {
        self.add_function(u, |x| 1.0 / (1.0 + x.sqrt()));
    }

    /// u ← Σ^{1/2}u = u − JᵀF·Ju.
    pub fn multiply_by_root(&mut self, u: &mut [f64]) {
        self.add_function(u, |x| -1.0 / (x + x.sqrt()));
    }

    /// u ← u + Jᵀ·Qg(Λ)Qᵀ·Ju.
    fn add_function(&mut self, u: &mut [f64], g: impl Fn(f64) -> f64) {
        let jacobian = matrix(&self.jacobian, self.size, u.len());
        let q = matrix(&self.eigenvectors, self.size, self.size);
        product(&mut self.small, jacobian, u);
        product(&mut self.rotated, q.transpose(), &self.small);
        for (value, &x) in self.rotated.iter_mut().zip(&self.eigenvalues) {
            *value *= g(x);
        }
        product(&mut self.small, q, &self.rotated);
        let small = matrix(&self.small, self.size, 1);
        let u = matrix_mut(u, jacobian.ncols(), 1);
        multiply(u, true, 1.0, jacobian.transpose(), small);
    }
}

/// out ← a·x.
fn product(out: &mut [f64], a: Matrix<'_, f64>, x: &[f64]) {
    let out = matrix_mut(out, a.nrows(), 1);
    multiply(out, false, 1.0, a, matrix(x, a.ncols(), 1));
}

/// 1/σ in one output's rows, zeros in the others'.
fn unit(cotangent: &mut [f64], precisions: &[f64], output: usize, rows: usize) {
    let own = output * rows..(output + 1) * rows;
    cotangent.fill(0.0);
    cotangent[own.clone()].copy_from_slice(&precisions[own]);
}
