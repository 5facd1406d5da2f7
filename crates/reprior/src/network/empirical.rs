//! Kernels of a network of finite width at given weights: K̂ of its features and Θ̂ of its derivatives.
//!
//! * K̂(x, x') = Ψ(x)Ψ(x')ᵀ with Ψ = [σ_w h/√d_L, σ_b], the covariance of one output given the inner weights (Neal 1996);
//! * Θ̂_jk(x, x') = Σ_θ ∂f_j(x)/∂θ · ∂f_k(x')/∂θ over all parameters, the readout's included (Jacot, Gabriel, Hongler 2018,
//!   in the NTK parametrisation).
//!
//! Under the prior N(0, I) both tend to the kernels of the infinitely wide network, at the rate width^(−1/2).
//!
//! Cost for n and m inputs: K̂ one forward pass of each and 2nm·d_L operations; Θ̂ the Jacobian rows of one output (three
//! forward passes) and 2nm·D operations for D parameters. Rows of Jacobians are made block by block, of which two are kept,
//! so that memory does not grow with n; where not all inputs fit in one block, rows of the second argument are made once for
//! each block of the first. K̂ keeps all features.

use super::layer::ShapeError;
use super::{Composition, Executor, LayerScale};
use crate::compute::{Matrix, MatrixMut, Real, matrix, matrix_mut, multiply, panel_rows};

/// A network with what its empirical kernels take.
#[derive(Debug)]
pub struct EmpiricalKernels<R> {
    executor: Executor<R>,
    readout_scale: LayerScale,
    /// Rows of Jacobians at a time.
    block: usize,
    /// Blocks of rows of Jacobians, or all features, of both arguments.
    left: Vec<R>,
    right: Vec<R>,
    cotangent: Vec<R>,
}

impl<R: Real> EmpiricalKernels<R> {
    /// For `network`, with at most `memory` bytes for two blocks of Jacobian rows; but no block is smaller than the 8 to 64
    /// inputs that go through the network together.
    ///
    /// # Errors
    /// The first layer that does not fit.
    pub fn new(network: &Composition, memory: usize) -> Result<Self, ShapeError> {
        let executor = Executor::new(network)?;
        let row = executor.parameters() * R::BYTES;
        let panels = memory / (2 * row * panel_rows::<R>()).max(1);
        Ok(Self {
            executor,
            readout_scale: network.readout_scale,
            block: panels.max(1) * panel_rows::<R>(),
            left: Vec::new(),
            right: Vec::new(),
            cotangent: Vec::new(),
        })
    }

    /// With `threads` threads (0 counts as 1) for the passes through the network. Results do not depend on it.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.executor = self.executor.with_threads(threads);
        self
    }

    /// The network's executor, whose parameters the weights are.
    pub fn executor(&mut self) -> &mut Executor<R> {
        &mut self.executor
    }

    /// Inputs whose Jacobian rows are kept at a time.
    pub fn block_rows(&self) -> usize {
        self.block
    }

    /// `out` (n × m) ← K̂ of `inputs` (n × d₀) and `others` (m × d₀); of the inputs among themselves without others. The
    /// readout's part of `weights` may be left out, on which K̂ does not depend.
    pub fn features(
        &mut self,
        weights: &[R],
        inputs: Matrix<'_, R>,
        others: Option<Matrix<'_, R>>,
        mut out: MatrixMut<'_, R>,
    ) {
        let columns = self.executor.features_count();
        let (rows, other_rows) = sizes(inputs, others);
        assert_eq!([out.nrows(), out.ncols()], [rows, other_rows]);
        let executor = &mut self.executor;
        let mut evaluate = |buffer: &mut Vec<R>, inputs: Matrix<'_, R>| {
            buffer.resize(inputs.nrows() * columns, R::ZERO);
            let features = matrix_mut(buffer, inputs.nrows(), columns);
            executor.features(weights, inputs, features);
        };
        evaluate(&mut self.left, inputs);
        if let Some(others) = others {
            evaluate(&mut self.right, others);
        }
        let left = matrix(&self.left, rows, columns);
        let right = match others {
            Some(_) => matrix(&self.right, other_rows, columns),
            None => left,
        };
        let scale = self.readout_scale.factor(columns).powi(2);
        let bias = R::from_f64(self.readout_scale.bias.powi(2));
        multiply(out.as_mut(), false, scale, left, right.transpose());
        for column in out.col_iter_mut() {
            column.iter_mut().for_each(|value| *value += bias);
        }
    }

    /// `out` (n × m) ← Θ̂_jk of `inputs` (n × d₀) and `others` (m × d₀) for the `outputs` [j, k]; of the inputs among
    /// themselves without others.
    pub fn tangent(
        &mut self,
        weights: &[R],
        inputs: Matrix<'_, R>,
        others: Option<Matrix<'_, R>>,
        outputs: [usize; 2],
        mut out: MatrixMut<'_, R>,
    ) {
        let (rows, other_rows) = sizes(inputs, others);
        assert_eq!([out.nrows(), out.ncols()], [rows, other_rows]);
        let parameters = self.executor.parameters();
        // what lies below the diagonal is enough
        let is_symmetric = others.is_none() && outputs[0] == outputs[1];
        let others = others.unwrap_or(inputs);
        for start in (0..rows).step_by(self.block) {
            let count = self.block.min(rows - start);
            let own = inputs.subrows(start, count);
            self.rows_of_jacobian(weights, own, outputs[0], true);
            let end = if is_symmetric {
                start + count
            } else {
                other_rows
            };
            for other_start in (0..end).step_by(self.block) {
                let other_count = self.block.min(end - other_start);
                let is_same = is_symmetric && other_start == start;
                if !is_same {
                    let own = others.subrows(other_start, other_count);
                    self.rows_of_jacobian(weights, own, outputs[1], false);
                }
                let left = matrix(&self.left, count, parameters);
                let right = match is_same {
                    true => left,
                    false => matrix(&self.right, other_count, parameters),
                };
                let mut lower = out
                    .as_mut()
                    .submatrix_mut(start, other_start, count, other_count);
                multiply(lower.as_mut(), false, 1.0, left, right.transpose());
                if is_symmetric && !is_same {
                    for i in 0..count {
                        for j in 0..other_count {
                            out[(other_start + j, start + i)] = out[(start + i, other_start + j)];
                        }
                    }
                }
            }
        }
    }

    /// Writes ∂f_output/∂θ of the inputs to the left or the right block.
    fn rows_of_jacobian(
        &mut self,
        weights: &[R],
        inputs: Matrix<'_, R>,
        output: usize,
        is_left: bool,
    ) {
        let (rows, parameters) = (inputs.nrows(), self.executor.parameters());
        let buffer = if is_left {
            &mut self.left
        } else {
            &mut self.right
        };
        buffer.resize(rows * parameters, R::ZERO);
        let outputs = self.executor.outputs_count();
        self.cotangent.clear();
        self.cotangent.resize(rows * outputs, R::ZERO);
        self.cotangent[output * rows..(output + 1) * rows].fill(R::ONE);
        let cotangent = matrix(&self.cotangent, rows, outputs);
        let out = matrix_mut(buffer, rows, parameters);
        self.executor
            .vjp_of_samples(weights, inputs, cotangent, out);
    }
}

/// Rows of `inputs` and `others`.
fn sizes<R: Real>(inputs: Matrix<'_, R>, others: Option<Matrix<'_, R>>) -> (usize, usize) {
    let rows = inputs.nrows();
    (rows, others.map_or(rows, |others| others.nrows()))
}
