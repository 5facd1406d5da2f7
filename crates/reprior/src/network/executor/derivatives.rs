//! The executor's derivatives: each is a pass over all blocks, forward and (but for jvp) back.

use super::workspace::{Along, Order, Sums, Weights};
use super::{Curvature, Executor, Loss, Moments, add_up, blocks, run, turn};
use crate::compute::{Matrix, MatrixMut, Real, matrix, matrix_mut};

impl<R: Real> Executor<R> {
    /// `out` (n × C) ← J·v: the derivative of the outputs along a direction of the parameters and one of the inputs.
    pub fn jvp(
        &mut self,
        weights: &[R],
        inputs: Matrix<'_, R>,
        direction: Option<&[R]>,
        input_direction: Option<Matrix<'_, R>>,
        out: MatrixMut<'_, R>,
    ) {
        let (rows, block) = (inputs.nrows(), self.block_rows());
        self.check(weights, inputs);
        assert!(direction.is_none_or(|direction| direction.len() == weights.len()));
        let fits = |other: Matrix<'_, R>| (other.nrows(), other.ncols()) == (rows, inputs.ncols());
        assert!(input_direction.is_none_or(fits));
        assert_eq!([out.nrows(), out.ncols()], [rows, self.outputs_count()]);
        let (program, value) = (&self.program, self.program.outputs);
        let along = Along {
            weights: direction.map(Weights::plain),
            inputs: input_direction,
        };
        let (weights, sizes) = (Weights::plain(weights), [rows, block, 0]);
        run(
            &mut self.workspaces,
            &mut self.sums,
            sizes,
            Some(out),
            |space, part| {
                for rows in blocks(part.rows.clone(), block) {
                    let own = rows.clone();
                    let (along, order) = (Some(along), Order::First);
                    space.differentiate(program, value, weights, inputs, along, order, own);
                    if let Some(out) = part.rows_of_out(&rows) {
                        space.copy_tangents(program, order, out);
                    }
                }
            },
        );
    }

    /// `gradient` ← Jᵀ·`cotangent` for the cotangents (n × C) of the outputs, and `input_gradient` (n × inputs) ← the
    /// cotangents of the inputs.
    pub fn vjp(
        &mut self,
        weights: &[R],
        inputs: Matrix<'_, R>,
        cotangent: Matrix<'_, R>,
        gradient: &mut [R],
        input_gradient: Option<MatrixMut<'_, R>>,
    ) {
        self.check(weights, inputs);
        assert_eq!(gradient.len(), weights.len());
        let value = self.program.outputs;
        self.pull_back(weights, inputs, value, cotangent, gradient, input_gradient);
    }

    /// As [`vjp`](Self::vjp), for the cotangents (n × d_L) of the features: `gradient` has no entries for the readout. Of
    /// `weights` the readout's may be left out.
    pub fn vjp_features(
        &mut self,
        weights: &[R],
        inputs: Matrix<'_, R>,
        cotangent: Matrix<'_, R>,
        gradient: &mut [R],
        input_gradient: Option<MatrixMut<'_, R>>,
    ) {
        let readout = self.readout_parameters();
        assert!([0, readout].contains(&(self.parameters() - weights.len())));
        assert_eq!(inputs.ncols(), self.inputs_count());
        assert_eq!(gradient.len(), self.parameters() - readout);
        let value = self.program.features;
        self.pull_back(weights, inputs, value, cotangent, gradient, input_gradient);
    }

    fn pull_back(
        &mut self,
        weights: &[R],
        inputs: Matrix<'_, R>,
        from: usize,
        cotangent: Matrix<'_, R>,
        gradient: &mut [R],
        input_gradient: Option<MatrixMut<'_, R>>,
    ) {
        let (rows, block) = (inputs.nrows(), self.block_rows());
        assert_eq!(
            [cotangent.nrows(), cotangent.ncols()],
            [rows, self.program.values[from]]
        );
        if let Some(out) = &input_gradient {
            assert_eq!([out.nrows(), out.ncols()], [rows, inputs.ncols()]);
        }
        let to_inputs = input_gradient.is_some();
        turn(&self.program, weights, to_inputs, &mut self.turned);
        let program = &self.program;
        let weights = Weights {
            values: weights,
            turned: &self.turned,
        };
        let (sizes, out) = ([rows, block, gradient.len()], input_gradient);
        run(
            &mut self.workspaces,
            &mut self.sums,
            sizes,
            out,
            |space, part| {
                for rows in blocks(part.rows.clone(), block) {
                    let (own, order) = (rows.clone(), Order::First);
                    space.differentiate(program, from, weights, inputs, None, order, own);
                    space.load_cotangents(program, from, cotangent, order);
                    space.reverse(program, weights, from, Sums::plain(part.sums), to_inputs);
                    if let Some(out) = part.rows_of_out(&rows) {
                        space.copy_input_cotangents(program, out);
                    }
                }
            },
        );
        add_up(gradient, &self.sums, 0, sizes);
    }

    /// The sum over all samples of `loss`, and `gradient` ← its derivative in the parameters.
    pub fn gradient(
        &mut self,
        weights: &[R],
        inputs: Matrix<'_, R>,
        loss: &Loss<'_, R>,
        gradient: &mut [R],
    ) -> f64 {
        self.gradient_with_moments(weights, inputs, loss, gradient, Moments::default())
    }

    /// As [`gradient`](Self::gradient), and `moments` ← sums over samples of products of their gradients.
    ///
    /// For the squares and products with the bias dense layers take a product more each, of squared cotangents with squared and
    /// with plain inputs; other layers differentiate panel by panel.
    pub fn gradient_with_moments(
        &mut self,
        weights: &[R],
        inputs: Matrix<'_, R>,
        loss: &Loss<'_, R>,
        gradient: &mut [R],
        moments: Moments<'_, R>,
    ) -> f64 {
        self.check(weights, inputs);
        let parameters = weights.len();
        assert_eq!(gradient.len(), parameters);
        let Moments {
            squares,
            cross,
            kronecker,
        } = moments;
        let wanted = [squares.len(), cross.len(), kronecker.len()];
        let lengths = [parameters, parameters, self.program.kronecker];
        for (wanted, length) in wanted.into_iter().zip(lengths) {
            assert!(wanted == 0 || wanted == length);
        }
        assert!(wanted[0] > 0 || wanted[1] == 0);
        let (rows, block) = (inputs.nrows(), self.block_rows());
        turn(&self.program, weights, false, &mut self.turned);
        let (program, value) = (&self.program, self.program.outputs);
        let weights = Weights {
            values: weights,
            turned: &self.turned,
        };
        let sizes = [rows, block, parameters + wanted.iter().sum::<usize>()];
        let total = run(
            &mut self.workspaces,
            &mut self.sums,
            sizes,
            None,
            |space, part| {
                for rows in blocks(part.rows.clone(), block) {
                    let order = Order::First;
                    space.differentiate(program, value, weights, inputs, None, order, rows);
                    let total = &mut *part.value;
                    space.visit_outputs(
                        program,
                        false,
                        order,
                        &mut |sample, y, _, cotangent, _| {
                            *total += loss(sample, y, cotangent);
                        },
                    );
                    let (gradient, rest) = part.sums.split_at_mut(parameters);
                    let (squares, rest) = rest.split_at_mut(wanted[0]);
                    let (cross, kronecker) = rest.split_at_mut(wanted[1]);
                    let sums = Sums {
                        squares,
                        cross,
                        kronecker,
                        ..Sums::plain(gradient)
                    };
                    space.reverse(program, weights, value, sums, false);
                }
            },
        );
        add_up(gradient, &self.sums, 0, sizes);
        let mut from = parameters;
        for total in [squares, cross, kronecker] {
            add_up(total, &self.sums, from, sizes);
            from += total.len();
        }
        total
    }

    /// `out` ← Jᵀ·H·J·`direction`, summed over all samples, with the H of each that `curvature` multiplies by: the
    /// generalised Gauss-Newton matrix times a vector.
    pub fn gauss_newton_product(
        &mut self,
        weights: &[R],
        inputs: Matrix<'_, R>,
        curvature: &Curvature<'_, R>,
        direction: &[R],
        out: &mut [R],
    ) {
        let size = weights.len();
        let direction = matrix(direction, size, 1);
        let out = matrix_mut(out, size, 1);
        self.gauss_newton_products(weights, inputs, curvature, direction, out);
    }

    /// `out` ← H·`direction` with the Hessian H in the parameters of ⟨`cotangent`, outputs⟩ (both n × C).
    pub fn hessian_product(
        &mut self,
        weights: &[R],
        inputs: Matrix<'_, R>,
        cotangent: Matrix<'_, R>,
        direction: &[R],
        out: &mut [R],
    ) {
        self.check(weights, inputs);
        assert_eq!([direction.len(), out.len()], [weights.len(); 2]);
        let (rows, block) = (inputs.nrows(), self.block_rows());
        assert_eq!(
            [cotangent.nrows(), cotangent.ncols()],
            [rows, self.outputs_count()]
        );
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
        let sizes = [rows, block, out.len()];
        run(
            &mut self.workspaces,
            &mut self.sums,
            sizes,
            None,
            |space, part| {
                for rows in blocks(part.rows.clone(), block) {
                    let order = Order::Second;
                    space.differentiate(program, value, weights, inputs, Some(along), order, rows);
                    space.load_cotangents(program, value, cotangent, order);
                    space.reverse_tangent(program, weights, along, false, part.sums);
                }
            },
        );
        add_up(out, &self.sums, 0, sizes);
    }
}
