//! `--determinant`: how the log-determinant of tangent coordinates is computed.

use std::fmt;
use std::str::FromStr;

use reprior::posterior::TangentDeterminant;
use serde::{Deserialize, Serialize};

use super::expressions::written;

/// Parameters up to which the determinant is exact unless told otherwise: each evaluation takes as many products.
const MOST_EXACT: usize = 200;

/// `--determinant`: how log det dR/dφ is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Determinant {
    /// By as many products as there are parameters, and a factorisation.
    Exact,
    /// By terms of a series, each estimated with random probes.
    Series {
        /// How many terms.
        terms: usize,
        /// How many probes of each.
        probes: usize,
    },
}

impl Determinant {
    /// The default for so many parameters.
    pub fn of(parameters: usize) -> Self {
        if parameters <= MOST_EXACT {
            Self::Exact
        } else {
            Self::Series {
                terms: 4,
                probes: 16,
            }
        }
    }

    /// The library's, with the probes of a run's seed.
    pub fn seeded(self, seed: u64) -> TangentDeterminant {
        match self {
            Self::Exact => TangentDeterminant::Exact,
            Self::Series { terms, probes } => TangentDeterminant::Series {
                terms,
                probes,
                seed,
            },
        }
    }
}

impl fmt::Display for Determinant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact => f.write_str("exact"),
            Self::Series { terms, probes } => write!(f, "series({terms},{probes})"),
        }
    }
}

impl FromStr for Determinant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "unknown determinant `{text}`: use exact, or series(TERMS,PROBES) with at least one of each, such as series(4,16)"
            )
        };
        if text == "exact" {
            return Ok(Self::Exact);
        }
        let inner = text.strip_prefix("series(");
        let inner = inner.and_then(|rest| rest.strip_suffix(')'));
        let (terms, probes) = inner.and_then(|i| i.split_once(',')).ok_or_else(wrong)?;
        let number = |text: &str| {
            let number = text.trim().parse().ok();
            number.filter(|n| (1..=1_000_000).contains(n))
        };
        match (number(terms), number(probes)) {
            (Some(terms), Some(probes)) => Ok(Self::Series { terms, probes }),
            _ => Err(wrong()),
        }
    }
}

written!(Determinant);
