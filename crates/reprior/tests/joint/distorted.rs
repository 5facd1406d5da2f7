//! Targets with a fault on purpose, to see that it is found.

use reprior::posterior::{EvaluationError, FeatureMap, NetworkPosterior, Recorder, Target};

use crate::inverse::{affine, solve, theta};
use crate::replicate::functions;

/// What is wrong with ℓ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distortion {
    /// Nothing.
    None,
    /// log|det ∂θ_out/∂φ_out| is missing.
    NoDeterminant,
    /// The densities of the targets lack their factor 1/σ.
    NoNormalisation,
    /// The log-likelihood of T(φ) alone (the code published with Hron et al. 2022): the data count twice.
    LikelihoodAlone,
}

/// A posterior with such a fault. Gradients are then taken by central differences.
pub struct Distorted {
    pub posterior: NetworkPosterior<f64>,
    pub recorder: Recorder<f64>,
    map: FeatureMap<f64>,
    distortion: Distortion,
}

impl Distorted {
    pub fn new(
        posterior: NetworkPosterior<f64>,
        recorder: Recorder<f64>,
        distortion: Distortion,
    ) -> Self {
        Self {
            map: FeatureMap::new(posterior.model()),
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
        let model = self.posterior.model().clone();
        let readout = z.len() - model.architecture.readout_parameters();
        match self.distortion {
            Distortion::None => self.posterior.log_ratio(z),
            Distortion::NoDeterminant => {
                let (_, maps) = affine(&mut self.posterior, &mut self.recorder, &z[..readout]);
                let p = model.architecture.readout_rows();
                let zeros = vec![0.0; p];
                let log_determinant: f64 = maps.iter().map(|a| solve(a, &zeros).1).sum();
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
                let inner = model.inner_parameters();
                let weights = theta(&mut self.posterior, &mut self.recorder, z);
                self.map.evaluate(&model, &z[..inner], false);
                let f = functions(&model.architecture, self.map.features(&model), &weights);
                let mut scales = vec![0.0; model.architecture.outputs];
                model.noise.scales(&z[inner..readout], &mut scales);
                Ok(model
                    .likelihood
                    .log_density(&model.targets, &f, &scales, None))
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
