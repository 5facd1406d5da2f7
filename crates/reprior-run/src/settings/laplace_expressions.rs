//! Subsets and prior precisions as they are written in flags and files.

use std::fmt;
use std::str::FromStr;

use reprior::laplace::subset::SubsetChoice;
use serde::{Deserialize, Serialize};

use super::expressions::written;
use super::names::{call, count};

/// `--subset-of-weights`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WrittenSubset(pub SubsetChoice);
written!(WrittenSubset);

impl FromStr for WrittenSubset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |numbers: &[f64]| match numbers {
            [value] => count(*value)
                .filter(|n| *n > 0)
                .and_then(|n| usize::try_from(n).ok()),
            _ => None,
        };
        let choice = match call(text) {
            Some(("all", numbers)) if numbers.is_empty() => Some(SubsetChoice::All),
            Some(("last-layer", numbers)) if numbers.is_empty() => Some(SubsetChoice::LastLayer),
            Some(("last", numbers)) => number(&numbers).map(SubsetChoice::Last),
            Some(("largest-magnitude", numbers)) => {
                number(&numbers).map(SubsetChoice::LargestMagnitude)
            }
            Some(("largest-variance", numbers)) => {
                number(&numbers).map(SubsetChoice::LargestVariance)
            }
            _ => None,
        };
        choice.map(Self).ok_or_else(|| {
            format!(
                "unknown weights `{text}`: use all, last-layer, last(N), largest-magnitude(N) or largest-variance(N)"
            )
        })
    }
}

impl fmt::Display for WrittenSubset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            SubsetChoice::All => f.write_str("all"),
            SubsetChoice::LastLayer => f.write_str("last-layer"),
            SubsetChoice::Last(count) => write!(f, "last({count})"),
            SubsetChoice::LargestMagnitude(count) => write!(f, "largest-magnitude({count})"),
            SubsetChoice::LargestVariance(count) => write!(f, "largest-variance({count})"),
        }
    }
}

/// `--prior-precision`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum PriorPrecisionChoice {
    /// That of training.
    #[default]
    Prior,
    /// The same for all weights.
    Number(f64),
    /// The largest marginal likelihood.
    MarginalLikelihood(Per),
    /// The best of a grid.
    Validation,
}
written!(PriorPrecisionChoice);

/// What precisions may differ between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// One for all.
    All,
    /// One for each layer.
    Layer,
    /// One for each parameter.
    Parameter,
}

impl FromStr for PriorPrecisionChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "prior" => Self::Prior,
            "marglik" => Self::MarginalLikelihood(Per::All),
            "marglik-layer" => Self::MarginalLikelihood(Per::Layer),
            "marglik-parameter" => Self::MarginalLikelihood(Per::Parameter),
            "validation" => Self::Validation,
            _ => match text.parse::<f64>() {
                Ok(value) if value.is_finite() && value > 0.0 => Self::Number(value),
                _ => {
                    return Err(format!(
                        "unknown prior precision `{text}`: use a positive number, prior, marglik, marglik-layer, marglik-parameter or validation"
                    ));
                }
            },
        })
    }
}

impl fmt::Display for PriorPrecisionChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prior => f.write_str("prior"),
            Self::Number(value) => write!(f, "{value}"),
            Self::MarginalLikelihood(Per::All) => f.write_str("marglik"),
            Self::MarginalLikelihood(Per::Layer) => f.write_str("marglik-layer"),
            Self::MarginalLikelihood(Per::Parameter) => f.write_str("marglik-parameter"),
            Self::Validation => f.write_str("validation"),
        }
    }
}
