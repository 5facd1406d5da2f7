//! The scale σ of the observation noise: known, or learned along with the weights.
//!
//! A learned scale has the prior log σ ~ N(log m, s²): one more coordinate u ~ N(0, 1) of the chain's position with
//! σ = m·exp(s·u), so that the posterior stays a density against the standard normal. With the defaults m = 0.3, s = 1
//! (in units of the standardised target) σ lies between 0.04 and 2.1 with prior probability 95 %.

use crate::compute::Real;

/// Scales of the observation noise, in units of the standardised targets.
#[derive(Debug, Clone, PartialEq)]
pub enum Noise {
    /// Known: one σ for all outputs, or one per output.
    Known(Vec<f64>),
    /// Learned, with a log-normal prior.
    Learned(NoisePrior),
}

/// Prior of a learned scale: log σ ~ N(log `median`, `spread`²).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NoisePrior {
    /// Prior median of σ, positive.
    pub median: f64,
    /// Prior standard deviation of log σ, positive.
    pub spread: f64,
    /// Whether every output has a scale of its own, independent a priori.
    pub per_output: bool,
}

impl Default for NoisePrior {
    fn default() -> Self {
        Self {
            median: 0.3,
            spread: 1.0,
            per_output: false,
        }
    }
}

impl From<f64> for Noise {
    fn from(scale: f64) -> Self {
        Self::Known(vec![scale])
    }
}

/// Whether a scale can be used: positive and finite, and so its square.
pub(super) fn is_scale(value: f64) -> bool {
    value > 0.0 && (value * value).is_normal()
}

impl Noise {
    /// Coordinates of a position that scales take: 0 if they are known.
    pub fn coordinates(&self, outputs: usize) -> usize {
        match self {
            Self::Known(_) => 0,
            Self::Learned(prior) if prior.per_output => outputs,
            Self::Learned(_) => 1,
        }
    }

    /// Number of scales that may differ: coordinates where they are learned, scales where they are known.
    pub fn count(&self, outputs: usize) -> usize {
        match self {
            Self::Known(scales) => scales.len(),
            Self::Learned(_) => self.coordinates(outputs),
        }
    }

    /// Writes the scale of every output, given the position's noise coordinates.
    pub fn scales<R: Real>(&self, coordinates: &[R], out: &mut [f64]) {
        match self {
            Self::Known(scales) => {
                for (output, scale) in out.iter_mut().enumerate() {
                    *scale = scales[output.min(scales.len() - 1)];
                }
            }
            Self::Learned(prior) => {
                for (output, scale) in out.iter_mut().enumerate() {
                    let u = coordinates[output.min(coordinates.len() - 1)].to_f64();
                    *scale = prior.median * (prior.spread * u).exp();
                }
            }
        }
    }

    /// Writes ∂ℓ/∂u, given ∂ℓ/∂ log σ of every output.
    pub fn pull_back<R: Real>(&self, by_log_scale: &[f64], out: &mut [R]) {
        if let Self::Learned(prior) = self {
            if prior.per_output {
                for (out, derivative) in out.iter_mut().zip(by_log_scale) {
                    *out = R::from_f64(prior.spread * derivative);
                }
            } else {
                out[0] = R::from_f64(prior.spread * by_log_scale.iter().sum::<f64>());
            }
        }
    }

    /// Which scales residuals say are less than half of what they are: σ² = RSS/(N − D), as in linear models, of N targets and D parameters,
    /// from ∂ℓ/∂u alone, as ∂ℓ/∂ log σ = RSS/σ² − N of a Gaussian likelihood (with the readout integrated out a little more). None where
    /// there are fewer than two targets for each parameter: residuals then say little of the noise.
    pub(crate) fn told_by_residuals<R: Real>(
        &self,
        gradient: &[R],
        targets: usize,
        parameters: usize,
    ) -> Vec<bool> {
        let Self::Learned(prior) = self else {
            return Vec::new();
        };
        let [targets, parameters] =
            [targets, parameters].map(|all| all as f64 / gradient.len() as f64);
        let is_told = |slope: &R| {
            let squares = targets + slope.to_f64() / prior.spread;
            let ratio = squares / (targets - parameters);
            targets >= 2.0 * parameters && ratio > 0.0 && ratio < 0.25
        };
        gradient.iter().map(is_told).collect()
    }

    /// What log σ gains ℓ in each noise coordinate u if D parameters' widths are in proportion to σ, D·∂ log σ/∂u: the mode of ℓ with it has
    /// σ² = RSS/(N − D), where that of ℓ alone has RSS/N. Outputs with scales of their own share the parameters.
    pub(crate) fn gain(&self, parameters: usize, outputs: usize) -> f64 {
        match self {
            Self::Known(_) => 0.0,
            Self::Learned(prior) => {
                prior.spread * parameters as f64 / self.coordinates(outputs) as f64
            }
        }
    }

    /// The value of every output that is known before sampling: the scale itself, or its prior median.
    pub fn typical(&self, outputs: usize) -> Vec<f64> {
        let mut scales = vec![0.0; outputs];
        let zeros = vec![0.0_f64; self.coordinates(outputs)];
        self.scales(&zeros, &mut scales);
        scales
    }

    /// What is out of range, if anything is.
    pub(super) fn wrong_value(&self) -> Option<f64> {
        match self {
            Self::Known(scales) => scales.iter().copied().find(|&scale| !is_scale(scale)),
            Self::Learned(prior) => [prior.median, prior.spread]
                .into_iter()
                .find(|&v| !is_scale(v)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_scales_are_shared_or_not() {
        let mut out = [0.0; 3];
        Noise::from(0.2).scales::<f64>(&[], &mut out);
        assert_eq!(out, [0.2; 3]);
        let noise = Noise::Known(vec![0.1, 0.2, 0.3]);
        noise.scales::<f32>(&[], &mut out);
        assert_eq!(out, [0.1, 0.2, 0.3]);
        assert_eq!(
            (noise.coordinates(3), noise.typical(3)),
            (0, vec![0.1, 0.2, 0.3])
        );
    }

    #[test]
    fn learned_scales_are_log_normal_and_their_derivatives_follow() {
        for per_output in [false, true] {
            let prior = NoisePrior {
                per_output,
                ..Default::default()
            };
            let noise = Noise::Learned(prior);
            let count = noise.coordinates(2);
            assert_eq!(count, if per_output { 2 } else { 1 });
            let u = vec![0.7_f64; count];
            let mut scales = [0.0; 2];
            noise.scales(&u, &mut scales);
            assert!((scales[1] / (0.3 * 0.7_f64.exp()) - 1.0).abs() < 1e-14);
            // of Σ_j j·log σ_j
            let mut gradient = vec![0.0_f64; count];
            noise.pull_back(&[1.0, 2.0], &mut gradient);
            assert_eq!(
                gradient,
                if per_output {
                    vec![1.0, 2.0]
                } else {
                    vec![3.0]
                }
            );
        }
    }

    #[test]
    fn residuals_tell_the_noise_where_they_are_many_and_small() {
        let prior = NoisePrior {
            median: 0.3,
            spread: 0.5,
            per_output: false,
        };
        let noise = Noise::Learned(prior);
        // ∂ℓ/∂u at u = 0 where σ² = RSS/(200 − 80)
        let slope = |sigma: f64| prior.spread * (120.0 * sigma.powi(2) / 0.3_f64.powi(2) - 200.0);
        let told =
            |sigma: f64, parameters| noise.told_by_residuals(&[slope(sigma)], 200, parameters)[0];
        assert!(told(0.149, 80) && !told(0.151, 80) && told(0.01, 100));
        // too many parameters, no residuals
        assert!(!told(0.05, 101) && !told(0.0, 80) && !told(f64::NAN, 80));
        // an output with a scale of its own has its own share of both
        let own = Noise::Learned(NoisePrior {
            per_output: true,
            ..prior
        });
        let both = own.told_by_residuals(&[slope(0.1), slope(0.2)], 400, 160);
        assert_eq!(both, [true, false]);
        assert_eq!(noise.gain(160, 2), 80.0);
        assert_eq!(own.gain(160, 2), 40.0);
        let known = Noise::from(0.1);
        assert!(known.told_by_residuals::<f64>(&[], 200, 1).is_empty());
    }
}
