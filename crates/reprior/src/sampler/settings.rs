//! Samplers by name, with their settings checked before anything runs.

use std::f64::consts::FRAC_PI_2;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{DualAveraging, Elliptical, HmcInfinite, Nuts, Pcn, Sampler, hmc_infinite, nuts, pcn};
use crate::compute::Real;

/// A sampler's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Hamiltonian Monte Carlo that rotates instead of drifting; needs gradients.
    #[default]
    HmcInfinite,
    /// Preconditioned Crank-Nicolson.
    Pcn,
    /// Elliptical slice sampling.
    Elliptical,
    /// The No-U-Turn sampler; needs gradients.
    Nuts,
}

/// How to sample.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SamplerSettings {
    /// The algorithm.
    pub method: Method,
    /// Fixed step size; adapted during warm-up if `None`. β in (0, 1] for `pcn`, an angle h in (0, π/2] for
    /// `hmc-infinite` (not too small, either), at most 2 for `nuts`, none for `elliptical`.
    pub step_size: Option<f64>,
    /// Acceptance rate that adaptation aims at, in (0, 1); the method's default if `None`.
    pub target_acceptance: Option<f64>,
}

/// Settings out of range.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SettingsError {
    /// The step size.
    #[error("step size {value} is out of range for `{method}`: {allowed}")]
    StepSize {
        /// What was given.
        value: f64,
        /// For which method.
        method: Method,
        /// What may be given.
        allowed: &'static str,
    },
    /// The target acceptance.
    #[error("target acceptance {0} is out of range: it must lie between 0 and 1, both excluded")]
    TargetAcceptance(f64),
}

impl Method {
    /// Every name, for messages.
    pub const NAMES: &'static str = "hmc-infinite, pcn, elliptical, nuts";

    /// Whether ∇ℓ is needed.
    pub fn needs_gradients(self) -> bool {
        matches!(self, Self::HmcInfinite | Self::Nuts)
    }

    /// The smallest step size that the method takes.
    fn smallest_step_size(self) -> f64 {
        match self {
            Self::HmcInfinite => hmc_infinite::SMALLEST,
            Self::Pcn => pcn::SMALLEST,
            Self::Elliptical => 0.0,
            Self::Nuts => nuts::SMALLEST,
        }
    }

    /// Acceptance rate that adaptation aims at unless told otherwise; `None` for methods without a step size.
    pub fn default_target_acceptance(self) -> Option<f64> {
        self.step_size_defaults().map(|(_, _, target)| target)
    }

    /// Step size before adaptation, largest allowed, and target acceptance; `None` without a step size.
    fn step_size_defaults(self) -> Option<(f64, f64, f64)> {
        match self {
            Self::HmcInfinite => Some((0.1, FRAC_PI_2, 0.8)),
            Self::Pcn => Some((0.1, 1.0, 0.3)),
            Self::Elliptical => None,
            Self::Nuts => Some((0.1, nuts::LARGEST, 0.8)),
        }
    }
}

impl SamplerSettings {
    /// Checks ranges.
    ///
    /// # Errors
    /// [`SettingsError`] names the value and what is allowed.
    pub fn check(&self) -> Result<(), SettingsError> {
        let method = self.method;
        if let Some(value) = self.step_size {
            let refuse = |allowed| {
                Err(SettingsError::StepSize {
                    value,
                    method,
                    allowed,
                })
            };
            match method.step_size_defaults() {
                None => return refuse("it has no step size, leave it out"),
                Some((_, limit, _))
                    if !(value >= method.smallest_step_size() && value <= limit) =>
                {
                    return refuse(match method {
                        Method::Pcn => "β must lie in (0, 1], and not below 1e-6",
                        Method::Nuts => "it must lie between 1e-6 and 2",
                        _ => "the angle must lie in (0, π/2], and not below π/2048 (0.00154)",
                    });
                }
                Some(_) => {}
            }
        }
        match self.target_acceptance {
            Some(value) if !(value > 0.0 && value < 1.0) => {
                Err(SettingsError::TargetAcceptance(value))
            }
            _ => Ok(()),
        }
    }

    /// The sampler, at its fixed or initial step size.
    pub fn sampler<R: Real>(&self) -> Box<dyn Sampler<R>> {
        let initial = self
            .method
            .step_size_defaults()
            .map_or(0.0, |(initial, ..)| initial);
        let step_size = self.step_size.unwrap_or(initial);
        match self.method {
            Method::HmcInfinite => Box::new(HmcInfinite::new(step_size, FRAC_PI_2)),
            Method::Pcn => Box::new(Pcn::new(step_size)),
            Method::Elliptical => Box::new(Elliptical::new()),
            Method::Nuts => Box::new(Nuts::new(step_size)),
        }
    }

    /// The adaptation of the step size, unless that is fixed or there is none.
    pub fn adaptation(&self) -> Option<DualAveraging> {
        let (initial, limit, target) = self.method.step_size_defaults()?;
        let target = self.target_acceptance.unwrap_or(target);
        self.step_size
            .is_none()
            .then(|| DualAveraging::new(initial, limit, target))
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HmcInfinite => "hmc-infinite",
            Self::Pcn => "pcn",
            Self::Elliptical => "elliptical",
            Self::Nuts => "nuts",
        })
    }
}

impl FromStr for Method {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "hmc-infinite" => Ok(Self::HmcInfinite),
            "pcn" => Ok(Self::Pcn),
            "elliptical" => Ok(Self::Elliptical),
            "nuts" => Ok(Self::Nuts),
            _ => Err(format!(
                "unknown method `{text}`: use one of {}",
                Self::NAMES
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn out_of_range_settings_are_refused() {
        let with = |method, step_size| SamplerSettings {
            method,
            step_size,
            target_acceptance: None,
        };
        assert!(with(Method::Pcn, Some(1.0)).check().is_ok());
        for bad in [0.0, -0.1, 1e-7, 1.01, f64::NAN, f64::INFINITY] {
            let message = with(Method::Pcn, Some(bad))
                .check()
                .unwrap_err()
                .to_string();
            assert!(message.contains("(0, 1]"), "{message}");
        }
        for bad in [1.6, 1e-3] {
            assert!(with(Method::HmcInfinite, Some(bad)).check().is_err());
        }
        assert!(with(Method::Elliptical, Some(0.1)).check().is_err());
        let settings = SamplerSettings {
            target_acceptance: Some(1.0),
            ..Default::default()
        };
        assert!(settings.check().is_err());
    }

    #[test]
    fn a_step_size_that_is_not_refused_is_used() {
        for (method, step_sizes) in [
            (Method::Pcn, [1e-6, 1.0]),
            (Method::HmcInfinite, [0.00154, FRAC_PI_2]),
            (Method::Nuts, [1e-6, 2.0]),
        ] {
            for step_size in step_sizes {
                let settings = SamplerSettings {
                    method,
                    step_size: Some(step_size),
                    target_acceptance: None,
                };
                assert!(settings.check().is_ok());
                let mut sampler = settings.sampler::<f32>();
                assert_eq!(sampler.step_size(), Some(step_size));
                sampler.set_step_size(step_size);
                assert_eq!(sampler.step_size(), Some(step_size));
            }
        }
    }
}
