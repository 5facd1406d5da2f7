//! Derivatives of single samples: rows of Jacobians, and the derivatives of these along a direction of the parameters.
//!
//! Gradients of single samples are kept for one panel at a time.

use super::workspace::{Along, Order, Weights};
use super::{Executor, blocks, run, turn};
use crate::compute::{Matrix, MatrixMut, Real, panel_rows};

impl<R: Real> Executor<R> {
    /// `out` (n × parameters) ← the vjp of each sample by itself: row i is J_iᵀ·c_i for row c_i of `cotangent` (n × C). With
    /// the k-th unit vector in every row these are the k-th rows of all samples' Jacobians.
    pub fn vjp_of_samples(
        &mut self,
        weights: &[R],
        inputs: Matrix<'_, R>,
        cotangent: Matrix<'_, R>,
        out: MatrixMut<'_, R>,
    ) {
        self.check(weights, inputs);
        let (rows, block) = (inputs.nrows(), panel_rows::<R>());
        assert_eq!(
            [cotangent.nrows(), cotangent.ncols()],
            [rows, self.outputs_count()]
        );
        assert_eq!([out.nrows(), out.ncols()], [rows, weights.len()]);
        turn(&self.program, weights, false, &mut self.turned);
        let (program, value) = (&self.program, self.program.outputs);
        let weights = Weights {
            values: weights,
            turned: &self.turned,
        };
        let sizes = [rows, block, 0];
        run(
            &mut self.workspaces,
            &mut self.sums,
            sizes,
            Some(out),
            |space, part| {
                for rows in blocks(part.rows.clone(), block) {
                    let (own, order) = (rows.clone(), Order::First);
                    space.differentiate(program, value, weights, inputs, None, order, own);
                    space.load_cotangents(program, value, cotangent, order);
                    if let Some(out) = part.rows_of_out(&rows) {
                        space.reverse_split(program, weights, out);
                    }
                }
            },
        );
    }

    /// `out` (n × parameters) ← the [Hessian product](Self::hessian_product) of each sample by itself: row i is H_i·`direction`
    /// with the Hessian H_i of ⟨c_i, outputs of sample i⟩ for row c_i of `cotangent` (n × C). With the k-th unit vector in
    /// every row these are the derivatives along `direction` of the k-th rows of all samples' Jacobians.
    pub fn hessian_product_of_samples(
        &mut self,
        weights: &[R],
        inputs: Matrix<'_, R>,
        cotangent: Matrix<'_, R>,
        direction: &[R],
        out: MatrixMut<'_, R>,
    ) {
        self.check(weights, inputs);
        assert_eq!(direction.len(), weights.len());
        let (rows, block) = (inputs.nrows(), panel_rows::<R>());
        assert_eq!(
            [cotangent.nrows(), cotangent.ncols()],
            [rows, self.outputs_count()]
        );
        assert_eq!([out.nrows(), out.ncols()], [rows, weights.len()]);
        turn(&self.program, weights, false, &mut self.turned);
        turn(&self.program, direction, false, &mut self.turned_direction);
        let (program, value) = (&self.program, self.program.outputs);
        let weights = Weights {
            values: weights,
            turned: &self.turned,
        };
        let along = Along {
            weights: Some(Weights {
                values: direction,
                turned: &self.turned_direction,
            }),
            inputs: None,
        };
        let sizes = [rows, block, 0];
        run(
            &mut self.workspaces,
            &mut self.sums,
            sizes,
            Some(out),
            |space, part| {
                for rows in blocks(part.rows.clone(), block) {
                    let (own, order) = (rows.clone(), Order::Second);
                    space.differentiate(program, value, weights, inputs, Some(along), order, own);
                    space.load_cotangents(program, value, cotangent, order);
                    if let Some(out) = part.rows_of_out(&rows) {
                        space.reverse_tangent_split(program, weights, along, out);
                    }
                }
            },
        );
    }
}
