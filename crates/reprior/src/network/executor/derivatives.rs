//! The executor's derivatives: each is a pass over all blocks, forward and (but for jvp) back.

use super::pass::{Pass, Reverse};
use super::workspace::{Along, DerivativeOrder, ReverseSums, Weights};
use super::{Executor, GradientMoments, Loss, OutputCurvature};
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
        let rows = inputs.nrows();
        assert!(direction.is_none_or(|direction| direction.len() == weights.len()));
        let fits = |other: Matrix<'_, R>| (other.nrows(), other.ncols()) == (rows, inputs.ncols());
        assert!(input_direction.is_none_or(fits));
        assert_eq!([out.nrows(), out.ncols()], [rows, self.outputs_count()]);
        let pass = Pass {
            along: Some(Along {
                weights: direction.map(Weights::plain),
                inputs: input_direction,
            }),
            ..self.plain_pass(weights, inputs)
        };
        self.run(pass, Some(out), |mut block| {
            block.differentiate(DerivativeOrder::First);
            if let Some(out) = block.out {
                block
                    .space
                    .copy_tangents(block.program, DerivativeOrder::First, out);
            }
        });
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
        assert_eq!(gradient.len(), self.parameters());
        let pass = self.plain_pass(weights, inputs);
        self.pull_back(pass, cotangent, gradient, input_gradient);
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
        let inner = self.parameters() - self.readout_parameters();
        assert_eq!(gradient.len(), inner);
        let pass = Pass {
            value: self.program.features,
            ..self.plain_pass(weights, inputs)
        };
        self.pull_back(pass, cotangent, gradient, input_gradient);
    }

    fn pull_back(
        &mut self,
        pass: Pass<'_, R>,
        cotangent: Matrix<'_, R>,
        gradient: &mut [R],
        input_gradient: Option<MatrixMut<'_, R>>,
    ) {
        let (rows, columns) = (pass.inputs.nrows(), self.program.values[pass.value]);
        assert_eq!([cotangent.nrows(), cotangent.ncols()], [rows, columns]);
        let to_inputs = input_gradient.is_some();
        if let Some(out) = &input_gradient {
            assert_eq!(out.ncols(), pass.inputs.ncols());
        }
        let reverse = match to_inputs {
            true => Reverse::ToInputs,
            false => Reverse::ToParameters,
        };
        let sums = gradient.len();
        let pass = Pass {
            reverse,
            sums,
            ..pass
        };
        let found = self.run(pass, input_gradient, |mut block| {
            block.differentiate(DerivativeOrder::First);
            block.load_cotangents(cotangent, DerivativeOrder::First);
            let sums = std::mem::take(&mut block.sums);
            block.reverse(ReverseSums::plain(sums), to_inputs);
            if let Some(out) = block.out {
                block.space.copy_input_cotangents(block.program, out);
            }
        });
        found.add_up(gradient, 0);
    }

    /// The sum over all samples of `loss`, and `gradient` ← its derivative in the parameters.
    pub fn gradient(
        &mut self,
        weights: &[R],
        inputs: Matrix<'_, R>,
        loss: &Loss<'_, R>,
        gradient: &mut [R],
    ) -> f64 {
        self.gradient_with_moments(weights, inputs, loss, gradient, GradientMoments::default())
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
        moments: GradientMoments<'_, R>,
    ) -> f64 {
        let parameters = self.parameters();
        assert_eq!(gradient.len(), parameters);
        let totals = [moments.squares, moments.cross, moments.kronecker];
        let wanted = totals.each_ref().map(|total| total.len());
        let lengths = [parameters, parameters, self.program.kronecker];
        for (wanted, length) in wanted.into_iter().zip(lengths) {
            assert!(wanted == 0 || wanted == length);
        }
        assert!(wanted[0] > 0 || wanted[1] == 0);
        let pass = Pass {
            reverse: Reverse::ToParameters,
            sums: parameters + wanted.iter().sum::<usize>(),
            ..self.plain_pass(weights, inputs)
        };
        let found = self.run(pass, None, |mut block| {
            block.differentiate(DerivativeOrder::First);
            block.add_loss(loss);
            let sums = std::mem::take(&mut block.sums);
            let (gradient, rest) = sums.split_at_mut(parameters);
            let (squares, rest) = rest.split_at_mut(wanted[0]);
            let (cross, kronecker) = rest.split_at_mut(wanted[1]);
            let sums = ReverseSums {
                squares,
                cross,
                kronecker,
                ..ReverseSums::plain(gradient)
            };
            block.reverse(sums, false);
        });
        found.add_up(gradient, 0);
        let mut from = parameters;
        for total in totals {
            found.add_up(total, from);
            from += total.len();
        }
        found.total
    }

    /// `out` ← Jᵀ·H·J·`direction`, summed over all samples, with the H of each that `curvature` multiplies by: the
    /// generalised Gauss-Newton matrix times a vector.
    pub fn gauss_newton_product(
        &mut self,
        weights: &[R],
        inputs: Matrix<'_, R>,
        curvature: &OutputCurvature<'_, R>,
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
        assert_eq!([direction.len(), out.len()], [weights.len(); 2]);
        self.check_cotangent(cotangent, inputs);
        let pass = Pass {
            along: Some(Along::weights(direction)),
            reverse: Reverse::ToParameters,
            sums: out.len(),
            ..self.plain_pass(weights, inputs)
        };
        let found = self.run(pass, None, |mut block| {
            block.differentiate(DerivativeOrder::Second);
            block.load_cotangents(cotangent, DerivativeOrder::Second);
            let (program, weights) = (block.program, block.weights);
            if let Some(along) = block.along {
                block
                    .space
                    .reverse_tangent(program, weights, along, false, block.sums);
            }
        });
        found.add_up(out, 0);
    }

    /// The cotangents of the outputs at these inputs are n × C.
    pub(super) fn check_cotangent(&self, cotangent: Matrix<'_, R>, inputs: Matrix<'_, R>) {
        let expected = [inputs.nrows(), self.outputs_count()];
        assert_eq!([cotangent.nrows(), cotangent.ncols()], expected);
    }
}
