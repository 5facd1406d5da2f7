//! ℓ of `repriorised` coordinates where φ_out is not N(0, I) exactly:
//! ℓ = log p(y | T(φ)) − ½‖θ_out‖² + ½‖φ_out‖² + log|det ∂θ_out/∂φ_out|, θ_out = T(φ_out).

use super::output_likelihood::OutputLikelihood;
use super::repriorisation::Repriorisation;
use super::{EvaluationError, PosteriorError, Regulariser, Space};
use crate::compute::{Matrix, MatrixMut, Real, difference_dot};
use crate::model::Model;

/// ℓ given the features, and its derivatives by them and by φ_out.
pub(super) struct Repriorised<R> {
    likelihood: OutputLikelihood<R>,
    map: Repriorisation<R>,
    theta: Vec<R>,
    theta_narrow: Vec<R>,
    theta_cotangent: Vec<f64>,
}

impl<R: Real> Repriorised<R> {
    /// With the likelihood approximated as it says itself, at noise `scales`.
    ///
    /// # Errors
    /// [`PosteriorError::Regulariser`], [`PosteriorError::Approximation`].
    pub fn new(
        model: &Model<R>,
        space: Space,
        regulariser: Regulariser,
        scales: &[f64],
    ) -> Result<Self, PosteriorError> {
        let approximation = model.likelihood.approximation(&model.targets, scales);
        let (found, expected) = (approximation.variances.len(), model.architecture.outputs);
        if found != expected {
            return Err(PosteriorError::Approximation { found, expected });
        }
        let variances = approximation.variances.iter();
        let lambdas: Vec<f64> = variances
            .map(|variance| regulariser.value(model.rows(), *variance))
            .collect();
        if lambdas.iter().any(|x| !x.is_normal() || *x <= 0.0) {
            return Err(PosteriorError::Regulariser);
        }
        let size = model.architecture.readout_parameters();
        Ok(Self {
            likelihood: OutputLikelihood::new(model),
            map: Repriorisation::new(model, space, &lambdas, approximation.targets),
            theta: vec![R::ZERO; size],
            theta_narrow: vec![R::ZERO; size],
            theta_cotangent: vec![0.0; size],
        })
    }

    /// ℓ. The order of the sum, which is another one [with derivatives](Self::evaluate_with_derivatives), is part of the draws.
    pub fn evaluate(
        &mut self,
        model: &Model<R>,
        features: Matrix<'_, R>,
        phi: &[R],
        scales: &[f64],
    ) -> Result<f64, EvaluationError> {
        let [value, difference, log_determinant] =
            self.terms(model, features, phi, scales, None)?;
        Ok(value - difference + log_determinant)
    }

    /// ℓ with what its derivatives are made of.
    pub fn evaluate_with_derivatives(
        &mut self,
        model: &Model<R>,
        features: Matrix<'_, R>,
        phi: &[R],
        scales: &[f64],
        by_log_scale: &mut [f64],
    ) -> Result<f64, EvaluationError> {
        let [value, difference, log_determinant] =
            self.terms(model, features, phi, scales, Some(by_log_scale))?;
        self.likelihood
            .readout_cotangent(features, &mut self.theta_narrow);
        // ∂/∂θ of log p − ½‖θ‖²
        let pairs = self.theta_narrow.iter().zip(&self.theta);
        for (out, (derivative, theta)) in self.theta_cotangent.iter_mut().zip(pairs) {
            *out = derivative.to_f64() - theta.to_f64();
        }
        Ok(value + (log_determinant - difference))
    }

    /// log p(y | θ), ½‖θ‖² − ½‖φ‖², log|det|.
    fn terms(
        &mut self,
        model: &Model<R>,
        features: Matrix<'_, R>,
        phi: &[R],
        scales: &[f64],
        by_log_scale: Option<&mut [f64]>,
    ) -> Result<[f64; 3], EvaluationError> {
        let theta = &mut self.theta;
        let log_determinant = self.map.map(features, phi, theta)?;
        let likelihood = &mut self.likelihood;
        let value = likelihood.log_likelihood(model, features, theta, scales, by_log_scale);
        Ok([value, difference_dot(theta, phi), log_determinant])
    }

    /// Writes the cotangents of the features (n × d_L) and of φ_out, after
    /// [`evaluate_with_derivatives`](Self::evaluate_with_derivatives).
    pub fn pull_back(
        &mut self,
        out: MatrixMut<'_, R>,
        features: Matrix<'_, R>,
        phi: &[R],
        phi_cotangent: &mut [R],
    ) {
        let (left, right) = self.map.own_term();
        left.copy_from_slice(self.likelihood.output_cotangent());
        right.copy_from_slice(&self.theta);
        let theta_cotangent = &self.theta_cotangent;
        self.map
            .pull_back(out, features, phi, theta_cotangent, phi_cotangent);
        // and of ½‖φ‖²
        for (out, phi) in phi_cotangent.iter_mut().zip(phi) {
            *out += *phi;
        }
    }

    /// θ_out in place of φ_out.
    pub fn transform(
        &mut self,
        features: Matrix<'_, R>,
        weights: &mut [R],
    ) -> Result<(), EvaluationError> {
        self.map.map(features, weights, &mut self.theta)?;
        weights.copy_from_slice(&self.theta);
        Ok(())
    }

    /// How often a factorisation needed its diagonal raised.
    pub fn jitter_count(&self) -> u64 {
        self.map.jitter_count()
    }
}
