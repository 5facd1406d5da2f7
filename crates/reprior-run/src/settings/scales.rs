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
}

impl FromStr for ScalesSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "evidence" => Ok(Self::Evidence),
            _ => Err(format!(
                "unknown scales `{text}`: use evidence, or none and --weight-variance and so on"
            )),
        }
    }
}

impl fmt::Display for ScalesSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Evidence => "evidence",
        })
    }
}
