//! Several derivatives at one point, for which the forward pass is made once: products with several directions, and what needs
//! several cotangents of each sample at once.
//!
//! Cost, in units of a forward pass: 2 for a jvp, 3.5 for a Gauss-Newton product, about 1 for a cotangent down to the inputs of
//! the first layer. Memory: the sums of all directions for each share of the rows.

use super::workspace::{Order, Sums, Weights};
use super::{Curvature, Executor, add_up, blocks, run, turn};
use crate::compute::{Matrix, MatrixMut, Real, panel_rows};
use crate::network::operation::Spread;

/// Writes one of a sample's s_c: (sample, outputs, c, s_c).
pub type Factor<'a, R> = dyn Fn(usize, &[R], usize, &mut [R]) + Sync + 'a;

/// The H = Σ_c s_c·s_cᵀ of each sample: how many s_c there are, and what writes one.
pub struct Factors<'a, R> {
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
        let (rows, block) = (inputs.nrows(), self.block_rows());
        let (count, outputs) = (directions.ncols(), self.outputs_count());
        self.check(weights, inputs);
        assert_eq!(directions.nrows(), weights.len());
        assert_eq!([out.nrows(), out.ncols()], [rows, outputs * count]);
        let (program, value) = (&self.program, self.program.outputs);
        let weights = Weights::plain(weights);
        run(
            &mut self.workspaces,
            &mut self.sums,
            [rows, block, 0],
            Some(out),
            |space, part| {
                for rows in blocks(part.rows.clone(), block) {
                    let (own, order) = (rows.clone(), Order::First);
                    space.differentiate(program, value, weights, inputs, None, order, own);
                    for index in 0..count {
                        space.carry(program, weights, column(directions, index));
                        if let Some(out) = part.rows_of_out(&rows) {
                            let out = out.subcols_mut(index * outputs, outputs);
                            space.copy_tangents(program, order, out);
                        }
                    }
                }
            },
        );
    }

    /// `out` (parameters × k) ← the [Gauss-Newton product](Self::gauss_newton_product) with each column of `directions`
    /// (parameters × k); both with columns of consecutive numbers.
    pub fn gauss_newton_products(
        &mut self,
        weights: &[R],
        inputs: Matrix<'_, R>,
        curvature: &Curvature<'_, R>,
        directions: Matrix<'_, R>,
        mut out: MatrixMut<'_, R>,
    ) {
        self.check(weights, inputs);
        let (parameters, count) = (weights.len(), directions.ncols());
        assert_eq!([directions.nrows(), out.nrows()], [parameters; 2]);
        assert_eq!(out.ncols(), count);
        let (rows, block) = (inputs.nrows(), self.block_rows());
        turn(&self.program, weights, false, &mut self.turned);
        let (program, value) = (&self.program, self.program.outputs);
        let weights = Weights {
            values: weights,
            turned: &self.turned,
        };
        let sizes = [rows, block, parameters * count];
        run(
            &mut self.workspaces,
            &mut self.sums,
            sizes,
            None,
            |space, part| {
                for rows in blocks(part.rows.clone(), block) {
                    let order = Order::First;
                    space.differentiate(program, value, weights, inputs, None, order, rows);
                    let sums = part.sums.chunks_exact_mut(parameters);
                    for (index, sums) in sums.enumerate() {
                        space.carry(program, weights, column(directions, index));
                        space.visit_outputs(
                            program,
                            true,
                            order,
                            &mut |sample, y, tangent, out, _| {
                                out.copy_from_slice(tangent);
                                curvature(sample, y, out);
                            },
                        );
                        space.reverse(program, weights, value, Sums::plain(sums), false);
                    }
                }
            },
        );
        for (index, out) in out.as_mut().col_iter_mut().enumerate() {
            if let Some(out) = out.try_as_col_major_mut() {
                add_up(out.as_slice_mut(), &self.sums, index * parameters, sizes);
            }
        }
    }

    /// Sums over samples and their `factors`: `squares` (parameters) ← the diagonal of Σ JᵀHJ, and `kronecker` ← matrices of its
    /// Kronecker factors, as in [`Moments`](super::Moments) but for outer products of inputs, which are added up once for each
    /// sample. Either may be empty.
    pub fn curvature_moments(
        &mut self,
        weights: &[R],
        inputs: Matrix<'_, R>,
        factors: &Factors<'_, R>,
        squares: &mut [R],
        kronecker: &mut [R],
    ) {
        self.check(weights, inputs);
        let lengths = [squares.len(), kronecker.len()];
        for (length, whole) in lengths.iter().zip([weights.len(), self.program.kronecker]) {
            assert!(*length == 0 || *length == whole);
        }
        let (rows, block) = (inputs.nrows(), self.block_rows());
        turn(&self.program, weights, false, &mut self.turned);
        let (program, value) = (&self.program, self.program.outputs);
        let weights = Weights {
            values: weights,
            turned: &self.turned,
        };
        let sizes = [rows, block, lengths[0] + lengths[1]];
        run(
            &mut self.workspaces,
            &mut self.sums,
            sizes,
            None,
            |space, part| {
                for rows in blocks(part.rows.clone(), block) {
                    let (order, samples) = (Order::First, rows.len());
                    space.differentiate(program, value, weights, inputs, None, order, rows);
                    space.load_sets(program, factors.count, factors.write);
                    let (squares, kronecker) = part.sums.split_at_mut(lengths[0]);
                    space.reverse_sets(program, weights, |step, _, point, cotangents, split| {
                        if let Some(squares) = squares.get_mut(step.weights.clone()) {
                            let operation = &step.operation;
                            operation.squares(point, cotangents, split, squares);
                        }
                        if let Some(own) = kronecker.get_mut(step.kronecker.clone()) {
                            step.operation.kronecker_inputs(point, samples, split, own);
                            for cotangent in cotangents.iter() {
                                let operation = &step.operation;
                                operation.kronecker_outputs(point, cotangent, split, own);
                            }
                        }
                    });
                }
            },
        );
        add_up(squares, &self.sums, 0, sizes);
        add_up(kronecker, &self.sums, lengths[0], sizes);
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
        spreads: &[Spread<'_, R>],
        out: MatrixMut<'_, R>,
    ) {
        self.check(weights, inputs);
        let (rows, block, outputs) = (inputs.nrows(), panel_rows::<R>(), self.outputs_count());
        assert_eq!([out.nrows(), out.ncols()], [rows, outputs * outputs]);
        turn(&self.program, weights, false, &mut self.turned);
        let (program, value) = (&self.program, self.program.outputs);
        let weights = Weights {
            values: weights,
            turned: &self.turned,
        };
        let unit = |_: usize, _: &[R], which: usize, cotangent: &mut [R]| {
            cotangent.fill(R::ZERO);
            cotangent[which] = R::ONE;
        };
        run(
            &mut self.workspaces,
            &mut self.sums,
            [rows, block, 0],
            Some(out),
            |space, part| {
                let mut sums = vec![R::ZERO; outputs * outputs * block];
                for rows in blocks(part.rows.clone(), block) {
                    let (own, order) = (rows.clone(), Order::First);
                    space.differentiate(program, value, weights, inputs, None, order, own);
                    space.load_sets(program, outputs, &unit);
                    sums.fill(R::ZERO);
                    space.reverse_sets(program, weights, |step, layer, at, cotangents, split| {
                        let spread = spreads[layer];
                        let operation = &step.operation;
                        operation.covariance(at, cotangents, spread, split, &mut sums);
                    });
                    if let Some(mut out) = part.rows_of_out(&rows) {
                        for column in 0..outputs {
                            for row in 0..outputs {
                                // only the lower half was made
                                let from = column.min(row) * outputs + column.max(row);
                                let from = &sums[from * block..][..rows.len()];
                                let to = out.as_mut().col_mut(column * outputs + row);
                                for (to, &value) in to.iter_mut().zip(from) {
                                    *to = value;
                                }
                            }
                        }
                    }
                }
            },
        );
    }
}

fn column<R: Real>(matrix: Matrix<'_, R>, index: usize) -> &[R] {
    let column = matrix.col(index).try_as_col_major();
    column.map_or(&[], |column| column.as_slice())
}
