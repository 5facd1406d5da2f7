//! Derivatives of single samples: rows of Jacobians, and the derivatives of these along a direction of the parameters.
//!
//! Gradients of single samples are kept for one panel at a time.

use super::Executor;
use super::pass::{Pass, Reverse};
use super::workspace::{Along, DerivativeOrder};
use crate::compute::{Matrix, MatrixMut, Real};

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
        self.check_cotangent(cotangent, inputs);
        assert_eq!(out.ncols(), weights.len());
        let pass = Pass {
            reverse: Reverse::ToParameters,
            ..self.pass_of_panels(weights, inputs)
        };
        self.run(pass, Some(out), |mut block| {
            block.differentiate(DerivativeOrder::First);
            block.load_cotangents(cotangent, DerivativeOrder::First);
            let (program, weights) = (block.program, block.weights);
            if let Some(out) = block.out {
                block.space.reverse_per_sample(program, weights, out);
            }
        });
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
        self.check_cotangent(cotangent, inputs);
        assert_eq!([direction.len(), out.ncols()], [weights.len(); 2]);
        let pass = Pass {
            along: Some(Along::weights(direction)),
            reverse: Reverse::ToParameters,
            ..self.pass_of_panels(weights, inputs)
        };
        self.run(pass, Some(out), |mut block| {
            block.differentiate(DerivativeOrder::Second);
            block.load_cotangents(cotangent, DerivativeOrder::Second);
            let (program, weights) = (block.program, block.weights);
            if let (Some(out), Some(along)) = (block.out, block.along) {
                block
                    .space
                    .reverse_tangent_per_sample(program, weights, along, out);
            }
        });
    }
}
