//! Names of the coordinate systems and of the spaces in which the readout is solved for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Coordinates z in which the posterior is written as N(z; 0, I)·exp ℓ(z).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coordinates {
    /// Inner weights only; the readout is integrated out:
    /// ℓ = −½ Σⱼ yⱼᵀK_s⁻¹yⱼ − (C/2) log det K_s.
    #[default]
    Marginal,
    /// Inner weights and φ_out with θ_out = T(φ_out) (Hron et al. 2022, eq. 9). Gaussian likelihood and λ = σ²: the
    /// posterior of φ_out is exactly N(0, I) and ℓ is that of `marginal`. Otherwise
    /// ℓ = log p(y | T(φ)) − ½‖θ_out‖² + ½‖φ_out‖² + log|det ∂θ_out/∂φ_out|.
    Repriorised,
    /// The network's own weights: ℓ = log p(y | θ).
    Standard,
    /// All weights φ, θ = R(φ) of the network linearised at φ (after Hron et al. 2022, Appendix E.2), see
    /// [`TangentMap`](super::tangent::TangentMap). Gaussian likelihood with known noise.
    Tangent,
}

/// λ of the map T of `repriorised` coordinates, or of R of `tangent` ones. It changes coordinates, not the posterior.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Regulariser {
    /// σ², or the variances of the likelihood's own approximation, one for each output: T whitens the readout as well as it can. In `tangent`
    /// coordinates the map of the linearised network's posterior, which has no λ.
    #[default]
    Matched,
    /// λ itself, positive; T and R tend to the identity as it grows.
    Value(f64),
    /// λ as a multiple of n times what `Matched` gives (n·σ²).
    PerRow(f64),
}

impl Regulariser {
    /// λ for n rows and the matched variance.
    pub fn value(self, rows: usize, variance: f64) -> f64 {
        match self {
            Self::Matched => variance,
            Self::Value(value) => value,
            Self::PerRow(multiple) => multiple * rows as f64 * variance,
        }
    }
}

impl fmt::Display for Regulariser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Matched => f.write_str("matched"),
            Self::Value(value) => write!(f, "{value}"),
            Self::PerRow(multiple) => write!(f, "{multiple}n"),
        }
    }
}

impl FromStr for Regulariser {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let positive = |number: &str| {
            let value = number.parse::<f64>().ok();
            value.filter(|value| value.is_finite() && *value > 0.0)
        };
        let parsed = match text.strip_suffix('n') {
            _ if text == "matched" => Some(Self::Matched),
            Some(multiple) => positive(multiple).map(Self::PerRow),
            None => positive(text).map(Self::Value),
        };
        parsed.ok_or_else(|| {
            format!(
                "regulariser `{text}`: use `matched`, a positive number, or a multiple of n times what is matched such as `1n`"
            )
        })
    }
}

impl Serialize for Regulariser {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Regulariser {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Where the linear algebra of the readout happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Space {
    /// p × p, p = features + 1: cheaper when there are more rows than features.
    Feature,
    /// n × n: cheaper when there are fewer.
    Data,
    /// n × n by eigenvalues, with the symmetric root of Hron et al. 2022, Appendix B, in T: the same law as `Data` at
    /// about twenty times the cost of its factorisation.
    DataSymmetric,
}

impl Space {
    /// The cheaper space for n rows and p = features + 1.
    pub fn cheaper(rows: usize, readout_rows: usize) -> Self {
        if rows < readout_rows {
            Self::Data
        } else {
            Self::Feature
        }
    }
}

impl fmt::Display for Coordinates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Marginal => "marginal",
            Self::Repriorised => "repriorised",
            Self::Standard => "standard",
            Self::Tangent => "tangent",
        })
    }
}

impl FromStr for Coordinates {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "marginal" => Ok(Self::Marginal),
            "repriorised" => Ok(Self::Repriorised),
            "standard" => Ok(Self::Standard),
            "tangent" => Ok(Self::Tangent),
            _ => Err(format!(
                "unknown coordinates `{text}`: use one of marginal, repriorised, standard, tangent"
            )),
        }
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Feature => "feature",
            Self::Data => "data",
            Self::DataSymmetric => "data-symmetric",
        })
    }
}
