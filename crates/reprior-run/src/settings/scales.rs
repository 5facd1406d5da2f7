//! `--scales`: where the prior's scales come from.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Where the prior's scales come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScalesSetting {
    /// From the flags and their defaults.
    None,
    /// From the evidence of the infinitely wide network; numbers once the data are there.
    Evidence,
    /// Sampled along, with log-normal priors.
    Learn,
    /// Sampled along, with half-normal priors.
    LearnHalfNormal,
}

impl FromStr for ScalesSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "evidence" => Ok(Self::Evidence),
            "learn" => Ok(Self::Learn),
            "learn-half-normal" => Ok(Self::LearnHalfNormal),
            _ => Err(format!(
                "unknown scales `{text}`: use evidence, learn or learn-half-normal, or none and --weight-variance and so on"
            )),
        }
    }
}

impl fmt::Display for ScalesSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Evidence => "evidence",
            Self::Learn => "learn",
            Self::LearnHalfNormal => "learn-half-normal",
        })
    }
}
