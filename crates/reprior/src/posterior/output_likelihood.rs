//! Outputs of the training inputs for given readout weights, their likelihood, and the derivatives back.

use std::ops::Range;

use super::readout::narrow;
use crate::compute::{Matrix, MatrixMut, Real, matrix, matrix_mut, multiply};
use crate::model::Model;
use crate::model::likelihood::Derivatives;

/// Buffers for f = α·h̃·θ_out (n × C) and log p(y | f).
pub(super) struct OutputLikelihood<R> {
    factor: f64,
    narrow: Vec<R>,
    outputs: Vec<f64>,
    derivative: Vec<f64>,
}

impl<R: Real> OutputLikelihood<R> {
    pub fn new(model: &Model<R>) -> Self {
        let count = model.rows() * model.architecture.outputs;
        let p = model.architecture.readout_rows();
        Self {
            factor: model.architecture.readout_scale.factor(p - 1),
            narrow: vec![R::ZERO; count],
            outputs: vec![0.0; count],
            derivative: vec![0.0; count],
        }
    }

    /// log p(y | θ); where `by_log_scale` is given, the derivatives too.
    pub fn log_likelihood(
        &mut self,
        model: &Model<R>,
        features: Matrix<'_, R>,
        theta: &[R],
        scales: &[f64],
        by_log_scale: Option<&mut [f64]>,
    ) -> f64 {
        let (n, c) = (model.rows(), model.architecture.outputs);
        let p = features.ncols();
        let outputs = matrix_mut(&mut self.narrow, n, c);
        multiply(outputs, false, self.factor, features, matrix(theta, p, c));
        for (wide, f) in self.outputs.iter_mut().zip(&self.narrow) {
            *wide = f.to_f64();
        }
        let derivatives = by_log_scale.map(|log_scales| Derivatives {
            outputs: &mut self.derivative,
            log_scales,
        });
        let likelihood = &model.likelihood;
        likelihood.log_density(&model.targets, &self.outputs, scales, derivatives)
    }

    /// Writes ∂/∂θ = Ψᵀ∂f, after a gradient was asked for.
    pub fn readout_cotangent(&mut self, features: Matrix<'_, R>, out: &mut [R]) {
        let (n, p) = (features.nrows(), features.ncols());
        let c = out.len() / p;
        let derivative = matrix(narrow(&mut self.narrow, &self.derivative), n, c);
        let out = matrix_mut(out, p, c);
        multiply(out, false, self.factor, features.transpose(), derivative);
    }

    /// ∂f in the network's precision, n × C, after [`readout_cotangent`](Self::readout_cotangent).
    pub fn output_cotangent(&self) -> &[R] {
        &self.narrow
    }

    /// Writes some rows of ∂/∂h = α·∂f·θᵀ, after [`readout_cotangent`](Self::readout_cotangent).
    pub fn feature_cotangent(&self, out: MatrixMut<'_, R>, theta: &[R], rows: Range<usize>) {
        let p = out.ncols() + 1;
        let c = theta.len() / p;
        let derivative = matrix(&self.narrow, self.narrow.len() / c, c);
        let derivative = derivative.subrows(rows.start, rows.len());
        let theta = matrix(theta, p, c).subrows(0, p - 1).transpose();
        multiply(out, false, self.factor, derivative, theta);
    }
}
