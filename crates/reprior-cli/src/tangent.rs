//! `--coordinates tangent`: what it is not for, how its determinant is had, and what it takes.

use std::fmt;
use std::str::FromStr;

use reprior::model::likelihood::LikelihoodName;
use reprior::network::Composition;
use reprior::posterior::TangentDeterminant;
use serde::{Deserialize, Serialize};

use crate::error::Failure;
use crate::names::SpaceChoice;
use crate::settings::Settings;

/// Parameters up to which the determinant is exact unless told otherwise: each evaluation takes as many products.
const MOST_EXACT: usize = 200;

/// `--determinant`: how log det dR/dφ is had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Determinant {
    Exact,
    Series { terms: usize, probes: usize },
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

impl TryFrom<String> for Determinant {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Determinant> for String {
    fn from(determinant: Determinant) -> Self {
        determinant.to_string()
    }
}

/// Refuses what tangent coordinates are not for.
///
/// # Errors
/// A wrong request, with the way out.
pub fn check(settings: &Settings) -> Result<(), Failure> {
    let (method, likelihood) = (settings.sampler.method.chain(), settings.model.likelihood);
    let refuse = |text: String| Err(Failure::Request(text));
    if likelihood != LikelihoodName::Gaussian {
        return refuse(format!(
            "tangent coordinates are for the gaussian likelihood, not for {likelihood}: use --coordinates repriorised or standard"
        ));
    }
    if settings.model.learns_noise() {
        return refuse(
            "tangent coordinates are for a known noise: give --noise a number or auto, or use --coordinates marginal"
                .to_owned(),
        );
    }
    if method.needs_gradients() {
        return refuse(format!(
            "{method} needs gradients, which tangent coordinates have not: use --method pcn, elliptical or rwm"
        ));
    }
    if settings.sampler.arrival.is_some_and(|arrival| arrival > 0) {
        return refuse(
            "--arrival takes gradients, which tangent coordinates have not: leave it out"
                .to_owned(),
        );
    }
    if settings.sampler.space != SpaceChoice::Auto {
        return refuse(
            "--space says where a readout is solved for, which tangent coordinates do not: leave it out"
                .to_owned(),
        );
    }
    Ok(())
}

/// Bytes of a chain's work space for n rows, beyond what every chain has: two Jacobians, their kernel with its eigenvectors and
/// work, and the derivative of the map or the probes.
pub fn bytes(rows: usize, outputs: usize, dimension: usize, determinant: Determinant) -> usize {
    let size = rows * outputs;
    let of_determinant = match determinant {
        // and a copy that is factorised
        Determinant::Exact => 2 * dimension,
        Determinant::Series { probes, .. } => probes,
    };
    8 * (2 * size * dimension + 6 * size * size + of_determinant * dimension)
}

/// Operations of ℓ: the Jacobian, its kernel and eigenvalues, and the products that the determinant takes.
pub fn operations(
    architecture: &Composition,
    rows: usize,
    dimension: usize,
    forward: f64,
    determinant: Determinant,
) -> f64 {
    let outputs = architecture.outputs as f64;
    let (size, dim) = (rows as f64 * outputs, dimension as f64);
    let products = match determinant {
        Determinant::Exact => dim,
        Determinant::Series { terms, probes } => (terms * probes) as f64,
    };
    // the Hessian product of one output's samples is a way there, a way back, and the tangents of both
    let product = 6.0 * outputs * forward + 2.0 * size * size * (dim + 2.0 * size);
    let factorisation = match determinant {
        Determinant::Exact => 2.0 * dim.powi(3) / 3.0,
        Determinant::Series { .. } => 0.0,
    };
    3.0 * outputs * forward
        + size * size * dim
        + 9.0 * size.powi(3)
        + products * product
        + factorisation
}
