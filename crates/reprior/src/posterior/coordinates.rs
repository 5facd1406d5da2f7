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
    /// Inner weights and φ_out with θ_out = T(φ_out) (Hron et al. 2022, eq. 9): at λ = σ² the posterior of φ_out is
    /// exactly N(0, I) and ℓ is that of `marginal`.
    Repriorised,
    /// The network's own weights: ℓ = log p(y | θ).
    Standard,
}

/// Where the linear algebra of the readout happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Space {
    /// p × p, p = features + 1: cheaper when there are more rows than features.
    Feature,
    /// n × n: cheaper when there are fewer.
    Data,
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
            _ => Err(format!(
                "unknown coordinates `{text}`: use one of marginal, repriorised, standard"
            )),
        }
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Feature => "feature",
            Self::Data => "data",
        })
    }
}
