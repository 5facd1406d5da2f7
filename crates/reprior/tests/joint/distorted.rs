//! Targets with a fault on purpose, to see that it is found.

use std::sync::Arc;

use reprior::posterior::features::FeatureMap;
use reprior::posterior::{Coordinates, EvaluationError, Posterior, Recorder, Target};

use super::experiment::log_determinant;
use super::inverse::theta;

/// What is wrong with ℓ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distortion {
    /// Nothing.
    None,
    /// log|det ∂θ_out/∂φ_out| is missing (λ matched).
    NoDeterminant,
    /// The densities of the targets lack their factor 1/σ.
    NoNormalisation,
    /// The log-likelihood of T(φ) alone (pCNL in the code published with Pezzetti et al. 2025): the data count twice.
    LikelihoodAlone,
}

/// A posterior with such a fault. Gradients are then taken by central differences.
pub struct Distorted {
    pub posterior: Posterior<f64>,
    pub recorder: Recorder<f64>,
    features: FeatureMap<f64>,
    /// The log-likelihood of weights.
    likelihood: Posterior<f64>,
    distortion: Distortion,
}

impl Distorted {
    pub fn new(posterior: Posterior<f64>, recorder: Recorder<f64>, distortion: Distortion) -> Self {
        let model = Arc::clone(posterior.model());
        Self {
            likelihood: Posterior::new(model, Coordinates::Standard).unwrap(),
            features: FeatureMap::new(posterior.model()),
            posterior,
            recorder,
            distortion,
        }
    }
}

impl Target for Distorted {
    type Real = f64;

    fn dim(&self) -> usize {
        self.posterior.dim()
    }

    fn log_ratio(&mut self, z: &[f64]) -> Result<f64, EvaluationError> {
        let model = Arc::clone(self.posterior.model());
        match self.distortion {
            Distortion::None => self.posterior.log_ratio(z),
            Distortion::NoDeterminant => {
                // of A with AAᵀ = (I + ΨᵀΨ/λ)⁻¹
                self.features
                    .evaluate(&model, &z[..model.inner_parameters()], false, |_| {});
                let h = self.features.features(&model);
                let architecture = &model.architecture;
                let (p, outputs) = (h.ncols(), architecture.outputs);
                let scales = model.noise.typical(outputs);
                let approximation = model.likelihood.approximation(&model.targets, &scales);
                let scale = architecture.readout_scale.factor(p - 1).powi(2);
                let of_outputs = approximation.variances.iter();
                let log_determinant: f64 = of_outputs
                    .map(|lambda| -0.5 * log_determinant(h, scale / lambda))
                    .sum();
                Ok(self.posterior.log_ratio(z)? - log_determinant)
            }
            Distortion::NoNormalisation => {
                let mut scales = vec![0.0; model.architecture.outputs];
                model
                    .noise
                    .scales(&z[model.inner_parameters()..], &mut scales);
                let logarithms: f64 = scales.iter().map(|scale| scale.ln()).sum();
                Ok(self.posterior.log_ratio(z)? + model.rows() as f64 * logarithms)
            }
            Distortion::LikelihoodAlone => {
                let theta = theta(&mut self.posterior, &mut self.recorder, z);
                let start = z.len() - theta.len();
                self.likelihood.log_ratio(&[&z[..start], &theta].concat())
            }
        }
    }

    fn log_ratio_and_gradient(
        &mut self,
        z: &[f64],
        gradient: &mut [f64],
    ) -> Result<f64, EvaluationError> {
        if self.distortion == Distortion::None {
            return self.posterior.log_ratio_and_gradient(z, gradient);
        }
        let (h, mut moved) = (1e-5, z.to_vec());
        for (i, out) in gradient.iter_mut().enumerate() {
            moved[i] = z[i] + h;
            let up = self.log_ratio(&moved)?;
            moved[i] = z[i] - h;
            *out = (up - self.log_ratio(&moved)?) / (2.0 * h);
            moved[i] = z[i];
        }
        self.log_ratio(z)
    }
}
