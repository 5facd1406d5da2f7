//! Several derivatives at one point, for which the forward pass is made once: products with several directions, and what needs
//! several cotangents of each sample at once.
//!
//! Cost, in units of a forward pass: 2 for a jvp, 3.5 for a Gauss-Newton product, about 1 for a cotangent down to the inputs of
//! the first layer. Memory: the sums of all directions for each share of the rows.

use super::pass::{Pass, Reverse};
use super::workspace::{DerivativeOrder, ReverseSums};
use super::{Executor, OutputCurvature};
use crate::compute::{Matrix, MatrixMut, Real};
use crate::network::operation::MatrixGaussian;

/// Writes one of a sample's s_c: (sample, outputs, c, s_c).
pub type Factor<'a, R> = dyn Fn(usize, &[R], usize, &mut [R]) + Sync + 'a;

/// The H = Σ_c s_c·s_cᵀ of each sample: how many s_c there are, and what writes one.
pub struct CurvatureFactors<'a, R> {
    /// How many.
    pub count: usize,
    /// Writes one.
    pub write: &'a Factor<'a, R>,
}

impl<R: Real> Executor<R> {
    /// `out` (n × C·k) ← the [jvp](Self::jvp) of each column of `directions` (parameters × k), C columns for each.
    pub fn jvps(
        &mut self,
        weights: &[R],
        inputs: Matrix<'_, R>,
        directions: Matrix<'_, R>,
        out: MatrixMut<'_, R>,
    ) {
        let (count, outputs) = (directions.ncols(), self.outputs_count());
        assert_eq!(directions.nrows(), weights.len());
        assert_eq!(out.ncols(), outputs * count);
        let pass = self.plain_pass(weights, inputs);
        self.run(pass, Some(out), |mut block| {
            block.differentiate(DerivativeOrder::First);
            let (program, weights) = (block.program, block.weights);
            for index in 0..count {
                let direction = column(directions, index);
                block.space.carry(program, weights, direction);
                if let Some(out) = &mut block.out {
                    let out = out.as_mut().subcols_mut(index * outputs, outputs);
                    block
                        .space
                        .copy_tangents(program, DerivativeOrder::First, out);
                }
            }
        });
    }

    /// `out` (parameters × k) ← the [Gauss-Newton product](Self::gauss_newton_product) with each column of `directions`
    /// (parameters × k); both with columns of consecutive numbers.
    pub fn gauss_newton_products(
        &mut self,
        weights: &[R],
        inputs: Matrix<'_, R>,
        curvature: &OutputCurvature<'_, R>,
        directions: Matrix<'_, R>,
        mut out: MatrixMut<'_, R>,
    ) {
        let (parameters, count) = (weights.len(), directions.ncols());
        assert_eq!([directions.nrows(), out.nrows()], [parameters; 2]);
        assert_eq!(out.ncols(), count);
        let pass = Pass {
            reverse: Reverse::ToParameters,
            sums: parameters * count,
            ..self.plain_pass(weights, inputs)
        };
        let found = self.run(pass, None, |mut block| {
            block.differentiate(DerivativeOrder::First);
            let (program, weights) = (block.program, block.weights);
            let sums = std::mem::take(&mut block.sums);
            for (index, sums) in sums.chunks_exact_mut(parameters).enumerate() {
                let direction = column(directions, index);
                block.space.carry(program, weights, direction);
                let mut visit = |sample, y: &[R], tangent: &[R], out: &mut [R], _: &mut [R]| {
                    out.copy_from_slice(tangent);
                    curvature(sample, y, out);
                };
                let order = DerivativeOrder::First;
                block.space.visit_outputs(program, true, order, &mut visit);
                block.reverse(ReverseSums::plain(sums), false);
            }
        });
        for (index, out) in out.as_mut().col_iter_mut().enumerate() {
            if let Some(out) = out.try_as_col_major_mut() {
                found.add_up(out.as_slice_mut(), index * parameters);
            }
        }
    }

    /// Sums over samples and their `factors`: `squares` (parameters) ← the diagonal of Σ JᵀHJ, and `kronecker` ← matrices of its
    /// Kronecker factors, as in [`GradientMoments`](super::GradientMoments) but for outer products of inputs, which are added up once for each
    /// sample. Either may be empty.
    pub fn curvature_moments(
        &mut self,
        weights: &[R],
        inputs: Matrix<'_, R>,
        factors: &CurvatureFactors<'_, R>,
        squares: &mut [R],
        kronecker: &mut [R],
    ) {
        let lengths = [squares.len(), kronecker.len()];
        for (length, whole) in lengths.iter().zip([weights.len(), self.program.kronecker]) {
            assert!(*length == 0 || *length == whole);
        }
        let pass = Pass {
            reverse: Reverse::ToParameters,
            sums: lengths[0] + lengths[1],
            ..self.plain_pass(weights, inputs)
        };
        let found = self.run(pass, None, |mut block| {
            block.differentiate(DerivativeOrder::First);
            let (program, weights, samples) = (block.program, block.weights, block.rows.len());
            block.space.load_sets(program, factors.count, factors.write);
            let (squares, kronecker) = block.sums.split_at_mut(lengths[0]);
            block
                .space
                .reverse_sets(program, weights, |step, _, point, cotangents, scratch| {
                    let operation = &step.operation;
                    if let Some(squares) = squares.get_mut(step.weights.clone()) {
                        operation.squares(point, cotangents, scratch, squares);
                    }
                    if let Some(own) = kronecker.get_mut(step.kronecker.clone()) {
                        operation.kronecker_inputs(point, samples, scratch, own);
                        for cotangent in cotangents.iter() {
                            operation.kronecker_outputs(point, cotangent, scratch, own);
                        }
                    }
                });
        });
        found.add_up(squares, 0);
        found.add_up(kronecker, lengths[0]);
    }

    /// `out` (n × C²) ← JΣJᵀ of each sample, C × C column-major, for parameters of covariance Σ that are independent from layer
    /// to layer: one of `spreads` for each layer with parameters.
    ///
    /// Cost: C reverse passes, and of a dense layer rows² + C·units² products for each sample if there are rotations; of a
    /// convolution C times (rows + units)·rows·units.
    pub fn covariances(
        &mut self,
        weights: &[R],
        inputs: Matrix<'_, R>,
        spreads: &[MatrixGaussian<'_, R>],
        out: MatrixMut<'_, R>,
    ) {
        let outputs = self.outputs_count();
        assert_eq!(out.ncols(), outputs * outputs);
        let unit = |_: usize, _: &[R], which: usize, cotangent: &mut [R]| {
            cotangent.fill(R::ZERO);
            cotangent[which] = R::ONE;
        };
        let pass = Pass {
            reverse: Reverse::ToParameters,
            ..self.pass_of_panels(weights, inputs)
        };
        let height = pass.block;
        self.run(pass, Some(out), |mut block| {
            block.differentiate(DerivativeOrder::First);
            let (program, weights) = (block.program, block.weights);
            block.space.load_sets(program, outputs, &unit);
            let mut sums = std::mem::take(&mut block.space.products);
            sums.clear();
            sums.resize(outputs * outputs * height, R::ZERO);
            block
                .space
                .reverse_sets(program, weights, |step, layer, at, cotangents, scratch| {
                    let (spread, operation) = (spreads[layer], &step.operation);
                    operation.covariance(at, cotangents, spread, scratch, &mut sums);
                });
            for column in 0..outputs {
                for row in 0..outputs {
                    // only the lower half was made
                    let from = column.min(row) * outputs + column.max(row);
                    let from = &sums[from * height..][..block.rows.len()];
                    if let Some(out) = &mut block.out {
                        let to = out.as_mut().col_mut(column * outputs + row);
                        for (to, &value) in to.iter_mut().zip(from) {
                            *to = value;
                        }
                    }
                }
            }
            block.space.products = sums;
        });
    }
}

fn column<R: Real>(matrix: Matrix<'_, R>, index: usize) -> &[R] {
    let column = matrix.col(index).try_as_col_major();
    column.map_or(&[], |column| column.as_slice())
}
