//! Tangent coordinates: all weights repriorised with the network linearised at them (after Hron, Novak, Pennington,
//! Sohl-Dickstein 2022, Appendix E.2). Gaussian likelihood with known noise.
//!
//! With outputs and targets in units of σ, J = J(φ) the nC × D Jacobian, b = Jφ, K = I + JJᵀ, the network linearised at φ has
//! the Gaussian posterior N(μ, Σ), Σ = (I + JᵀJ)⁻¹, μ = JᵀK⁻¹(y − f(φ) + b), and θ is its map of φ:
//! * R(φ) = μ + Σ^{1/2}φ = φ + Jᵀv, v = K⁻¹(y − f(φ) + b) − F·b, F = Qf(Λ)Qᵀ, f(x) = 1/(x + √x), K = QΛQᵀ,
//! * ℓ(φ) = log p(y | R(φ)) − ½‖R(φ)‖² + ½‖φ‖² + log det dR/dφ.
//!
//! For a network linear in its parameters R is the map T of data space with the symmetric root, and ℓ is constant. In general
//! dR = S + the terms with the derivative of J, S = Σ^{1/2}; with A = dJ\[u], dK = AJᵀ + JAᵀ,
//! * (dR − S)u = Aᵀv + Jᵀ(−K⁻¹·dK·K⁻¹(y − f + b) + (K⁻¹ − F)Aφ − dF·b),
//! * dF = Q(Δ∘QᵀdKQ)Qᵀ with the divided differences Δ_ij = −(1 + 1/(√x_i + √x_j))f(x_i)f(x_j) (Daleckii & Krein 1965).
//!
//! With a regulariser λ the map is the paper's own (eq. 10), a step of Levenberg & Marquardt: outputs and targets in their own units,
//! K = λI + JJᵀ,
//! * R(φ) = φ + Jᵀv, v = K⁻¹(y − f(φ)), S = I − JᵀK⁻¹J.
//!
//! The two are different for each λ: of a network linear in its parameters the first has the derivative (I + JᵀJ)^{−1/2}, the
//! second λ(λI + JᵀJ)⁻¹. In the formulas above the second is the first with b = 0.
//!
//! ∇ℓ = dRᵀ(∇log p − θ) + φ + ∇log det dR: the first is exact, by Hessian products; the last has third derivatives of the
//! network, by central differences (see `gradient.rs`). Where an activation has no second derivative they are those of its pieces.
//!
//! [`TangentDeterminant`] says how log det dR is computed. **R is a change of coordinates only where it does not fold.**
//! Where det dR ≤ 0 the evaluation fails (the exact determinant sees it, the series does not); a chain that meets such places
//! with more than negligible frequency does not sample the posterior: a θ with several φ is counted as often. Narrow networks
//! with little noise do fold (R is a Newton step there), and so does the map with a small λ; as the width grows
//! E = S⁻¹(dR − S) vanishes.
//!
//! All of it runs in double precision. Cost of an evaluation: C Jacobian rows of all data (3C forward passes), n²C²D + 9(nC)³
//! operations and two forward passes, besides the determinant. Memory: 2nC·D numbers, with gradients 6nC·D.

mod determinant;
mod differential;
mod gradient;
mod linearisation;

use std::sync::Arc;

use super::{EvaluationError, PosteriorError, PosteriorSettings, Regulariser};
use crate::compute::{Real, add_scaled, difference_dot};
use crate::model::Model;

use determinant::TraceSeries;
pub use determinant::{LogDeterminant, TangentDeterminant};
use gradient::DeterminantGradient;
use linearisation::Linearisation;

/// R of one model: from tangent coordinates φ to the network's own weights θ.
///
/// Positions have the layout of θ in `standard` coordinates.
pub struct TangentMap<R> {
    model: Arc<Model<R>>,
    determinant: TangentDeterminant,
    linearisation: Linearisation,
    series: TraceSeries,
    /// dR/dφ at the last φ, if its determinant is exact.
    jacobian: Vec<f64>,
    /// λ of eq. 10.
    damping: Option<f64>,
    /// Of the determinant, once a gradient was asked for.
    gradient: Option<DeterminantGradient>,
    phi: Vec<f64>,
    outputs: Vec<f64>,
    scales: Vec<f64>,
    weights: Vec<R>,
}

impl<R: Real> TangentMap<R> {
    /// R of `model`: what of `settings` is the regulariser, the determinant (the default one for so many parameters if
    /// `None`) and the seed of its probes.
    ///
    /// # Errors
    /// [`PosteriorError`] says what tangent coordinates are not for.
    pub fn new(model: Arc<Model<R>>, settings: PosteriorSettings) -> Result<Self, PosteriorError> {
        if !model.likelihood.is_gaussian() {
            return Err(PosteriorError::TangentLikelihood);
        }
        if model.noise_coordinates() > 0 {
            return Err(PosteriorError::TangentNoise);
        }
        if model.scales.is_some() {
            return Err(PosteriorError::TangentScales);
        }
        let scales = model.noise.typical(model.architecture.outputs);
        let damping = match settings.regulariser {
            Regulariser::Matched => None,
            other => {
                let approximation = model.likelihood.approximation(&model.targets, &scales);
                // the gaussian likelihood has one for all outputs
                Some(other.value(model.rows(), approximation.variances[0]))
            }
        };
        if damping.is_some_and(|lambda| !lambda.is_normal() || lambda <= 0.0) {
            return Err(PosteriorError::Regulariser);
        }
        let linearisation = Linearisation::new(&model, damping)?;
        let dim = linearisation.dim();
        let determinant = settings
            .determinant
            .unwrap_or_else(|| TangentDeterminant::for_parameters(dim));
        if determinant
            .terms_and_probes()
            .is_some_and(|both| both.contains(&0))
        {
            return Err(PosteriorError::Series);
        }
        if matches!(determinant, TangentDeterminant::Hessian { .. }) && damping.is_none() {
            return Err(PosteriorError::HessianDeterminant);
        }
        Ok(Self {
            determinant,
            linearisation,
            series: TraceSeries::new(dim, determinant, settings.seed),
            jacobian: Vec::new(),
            damping,
            gradient: None,
            phi: vec![0.0; dim],
            outputs: vec![0.0; model.targets.len()],
            scales,
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
            TangentDeterminant::Exact => {
                determinant::exact(&mut self.linearisation, &mut self.jacobian)
            }
            _ => self.series.evaluate(&mut self.linearisation),
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
    /// ℓ(φ), with its gradient in φ written to `out`.
    pub(super) fn log_ratio_and_gradient(
        &mut self,
        phi: &[R],
        out: &mut [R],
    ) -> Result<f64, EvaluationError> {
        let value = self.log_ratio(phi)?;
        let dim = self.phi.len();
        // ∂/∂θ of log p − ½‖θ‖²
        let rows = self.model.rows();
        let entries = self.outputs.iter_mut().zip(&self.model.targets);
        for (at, (output, target)) in entries.enumerate() {
            *output = (target - *output) / self.scales[at / rows].powi(2);
        }
        let mut by_theta = vec![0.0; dim];
        let Self { linearisation, .. } = self;
        linearisation.gradient_at_weights(&self.outputs, &mut by_theta);
        add_scaled(&mut by_theta, -1.0, linearisation.theta());
        let mut gradient = vec![0.0; dim];
        linearisation.pull_back(&by_theta, &mut gradient);
        add_scaled(&mut gradient, 1.0, &self.phi);
        self.add_determinant_gradient(&mut gradient)?;
        for (to, from) in out.iter_mut().zip(gradient) {
            *to = R::from_f64(from);
        }
        Ok(value)
    }

    fn add_determinant_gradient(&mut self, gradient: &mut [f64]) -> Result<(), EvaluationError> {
        let own = match &mut self.gradient {
            Some(own) => own,
            none => {
                let shifted = Linearisation::new(&self.model, self.damping)
                    .map_err(|error| EvaluationError::Fatal(error.to_string()))?;
                none.insert(DeterminantGradient::new(shifted))
            }
        };
        let (at, series) = (&mut self.linearisation, &mut self.series);
        match self.determinant {
            TangentDeterminant::Exact => own.add_exact(&self.phi, &self.jacobian, gradient),
            TangentDeterminant::Series { .. } => own.add_series(at, series, gradient),
            TangentDeterminant::Hessian { .. } => {
                own.add_series_of_hessians(at, series, gradient);
                Ok(())
            }
        }
    }
}
