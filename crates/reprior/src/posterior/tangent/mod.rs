//! Tangent coordinates: all weights repriorised with the network linearised at them (after Hron, Novak, Pennington,
//! Sohl-Dickstein 2022, Appendix E.2). Gaussian likelihood with known noise.
//!
//! With outputs and targets in units of σ, J = J(φ) the nC × D Jacobian, b = Jφ, K = I + JJᵀ, the network linearised at φ has
//! the Gaussian posterior N(μ, Σ), Σ = (I + JᵀJ)⁻¹, μ = JᵀK⁻¹(y − f(φ) + b), and θ is its map of φ:
//! * R(φ) = μ + Σ^{1/2}φ = φ + Jᵀv, v = K⁻¹(y − f(φ) + b) − F·b, F = Qf(Λ)Qᵀ, f(x) = 1/(x + √x), K = QΛQᵀ,
//! * ℓ(φ) = log p(y | R(φ)) − ½‖R(φ)‖² + ½‖φ‖² + log det dR/dφ.
//!
//! For a network linear in its parameters R is the map T of data space with the symmetric root, and ℓ is constant. In general
//! dR = Σ^{1/2} + the terms with the derivative of J; with A = dJ\[u], dK = AJᵀ + JAᵀ,
//! * (dR − Σ^{1/2})u = Aᵀv + Jᵀ(−K⁻¹·dK·K⁻¹(y − f + b) + (K⁻¹ − F)Aφ − dF·b),
//! * dF = Q(Δ∘QᵀdKQ)Qᵀ with the divided differences Δ_ij = −(1 + 1/(√x_i + √x_j))f(x_i)f(x_j) (Daleckii & Krein 1965).
//!
//! [`TangentDeterminant`] says how log det dR is computed. **R is a change of coordinates only where it does not fold.**
//! Where det dR ≤ 0 the evaluation fails (the exact determinant sees it, the series does not); a chain that meets such places
//! with more than negligible frequency does not sample the posterior: a θ with several φ is counted as often. Narrow networks
//! with little noise do fold (R is a Newton step there); as the width grows E = Σ^{−1/2}(dR − Σ^{1/2}) vanishes.
//!
//! All of it runs in double precision. Cost of an evaluation: C Jacobian rows of all data (3C forward passes), n²C²D + 9(nC)³
//! operations and two forward passes, besides the determinant. Memory: 2nC·D numbers.

mod determinant;
mod linearisation;

use std::sync::Arc;

use super::{EvaluationError, PosteriorError};
use crate::compute::{Real, difference_dot};
use crate::model::Model;

use determinant::TraceSeries;
pub use determinant::{LogDeterminant, TangentDeterminant};
use linearisation::Linearisation;

/// R of one model: from tangent coordinates φ to the network's own weights θ.
///
/// Positions have the layout of θ in `standard` coordinates.
pub struct TangentMap<R> {
    model: Arc<Model<R>>,
    determinant: TangentDeterminant,
    linearisation: Linearisation,
    series: TraceSeries,
    phi: Vec<f64>,
    outputs: Vec<f64>,
    scales: Vec<f64>,
    weights: Vec<R>,
}

impl<R: Real> TangentMap<R> {
    /// R of `model`, with log det dR/dφ by `determinant` or the default one for so many parameters; `seed` is of its probes.
    ///
    /// # Errors
    /// [`PosteriorError`] says what tangent coordinates are not for.
    pub fn new(
        model: Arc<Model<R>>,
        determinant: Option<TangentDeterminant>,
        seed: u64,
    ) -> Result<Self, PosteriorError> {
        if !model.likelihood.is_gaussian() {
            return Err(PosteriorError::TangentLikelihood);
        }
        if model.noise_coordinates() > 0 {
            return Err(PosteriorError::TangentNoise);
        }
        let linearisation = Linearisation::new(&model)?;
        let dim = linearisation.dim();
        let determinant = determinant.unwrap_or_else(|| TangentDeterminant::for_parameters(dim));
        let series = match determinant {
            TangentDeterminant::Exact => TraceSeries::default(),
            TangentDeterminant::Series { terms, probes } if terms == 0 || probes == 0 => {
                return Err(PosteriorError::Series);
            }
            TangentDeterminant::Series { probes, .. } => TraceSeries::new(dim, probes, seed),
        };
        Ok(Self {
            determinant,
            linearisation,
            series,
            phi: vec![0.0; dim],
            outputs: vec![0.0; model.targets.len()],
            scales: model.noise.typical(model.architecture.outputs),
            weights: vec![R::ZERO; dim],
            model,
        })
    }

    /// θ = R(φ), a position of the same model in `standard` coordinates.
    ///
    /// # Errors
    /// Recoverable, if the Jacobian at φ is not finite.
    pub fn weights(&mut self, phi: &[R]) -> Result<&[R], EvaluationError> {
        self.linearise(phi)?;
        for (to, &from) in self.weights.iter_mut().zip(self.linearisation.theta()) {
            *to = R::from_f64(from);
        }
        Ok(&self.weights)
    }

    /// log |det dR/dφ| at φ, with what is known of its error.
    ///
    /// # Errors
    /// As [`weights`](Self::weights).
    pub fn log_determinant(&mut self, phi: &[R]) -> Result<LogDeterminant, EvaluationError> {
        self.linearise(phi)?;
        Ok(match self.determinant {
            TangentDeterminant::Exact => determinant::exact(&mut self.linearisation, &self.phi),
            TangentDeterminant::Series { terms, .. } => {
                let Self { series, phi, .. } = self;
                series.evaluate(&mut self.linearisation, phi, terms)
            }
        })
    }

    fn linearise(&mut self, phi: &[R]) -> Result<(), EvaluationError> {
        for (to, from) in self.phi.iter_mut().zip(phi) {
            *to = from.to_f64();
        }
        self.linearisation.set(&self.phi)
    }

    /// ℓ(φ).
    pub(super) fn log_ratio(&mut self, phi: &[R]) -> Result<f64, EvaluationError> {
        let determinant = self.log_determinant(phi)?;
        if determinant.sign.is_some_and(|sign| sign <= 0.0) {
            let message =
                "tangent coordinates fold here: the determinant of their map is not positive";
            return Err(EvaluationError::Recoverable(message.to_owned()));
        }
        let Self { model, outputs, .. } = self;
        self.linearisation.outputs(outputs);
        let likelihood = &model.likelihood;
        let value = likelihood.log_density(&model.targets, outputs, &self.scales, None);
        Ok(value - difference_dot(self.linearisation.theta(), &self.phi) + determinant.value)
    }
}
