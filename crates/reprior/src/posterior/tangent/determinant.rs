//! log |det dR/dφ| of tangent coordinates, exactly and by a series.
//!
//! dR = Σ^{1/2}(I + E), E = Σ^{−1/2}(dR − Σ^{1/2}). The first factor is known, log det Σ^{1/2} = −½ log det K; of the second
//! log det(I + E) = Σ_k (−1)^{k+1}/k · tr Eᵏ where the eigenvalues of E lie within the unit circle. The series is cut off
//! after M terms, and traces are estimated as means of zᵀEᵏz over P probes z of independent signs (Hutchinson 1990) that stay
//! the same from one evaluation to the next: the approximation is a function of φ, and a chain's law is exactly that of it.
//!
//! With ρ < 1 the largest modulus of an eigenvalue of E and r the rank of it the cut leaves out at most
//! r·ρ^{M+1}/((M + 1)(1 − ρ)) if E is normal. The probes' error has the standard deviation that [`LogDeterminant`] estimates,
//! to first order √(2/P)·‖½(E + Eᵀ) without its diagonal‖_F.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::linearisation::Linearisation;
use crate::compute::{Purpose, Stream, dot, log_determinant};

/// Parameters up to which the determinant is exact unless told otherwise: each evaluation takes as many products.
const MOST_EXACT: usize = 200;

/// How log det dR/dφ is computed. In text `exact`, or `series(TERMS,PROBES)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum TangentDeterminant {
    /// From the dense D × D Jacobian of R: D products with it, D² numbers and 2D³/3 operations. For small networks.
    Exact,
    /// Hutchinson's estimate of the first terms of the series of log det(I + E): `terms`·`probes` products. An approximation,
    /// good where the network is wide: the eigenvalues of E must be well below 1.
    Series {
        /// Terms M ≥ 1 of the series.
        terms: usize,
        /// Probes P ≥ 1.
        probes: usize,
    },
}

impl TangentDeterminant {
    /// The default for so many parameters.
    pub fn for_parameters(parameters: usize) -> Self {
        if parameters <= MOST_EXACT {
            Self::Exact
        } else {
            Self::Series {
                terms: 4,
                probes: 16,
            }
        }
    }

    /// In words, for reports.
    pub fn description(&self) -> String {
        match self {
            Self::Exact => "exact".to_owned(),
            Self::Series { terms, probes } => {
                format!("approximate: {terms} Taylor terms, {probes} Hutchinson probes")
            }
        }
    }
}

impl fmt::Display for TangentDeterminant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact => f.write_str("exact"),
            Self::Series { terms, probes } => write!(f, "series({terms},{probes})"),
        }
    }
}

impl FromStr for TangentDeterminant {
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

impl TryFrom<String> for TangentDeterminant {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<TangentDeterminant> for String {
    fn from(determinant: TangentDeterminant) -> Self {
        determinant.to_string()
    }
}

/// log |det dR/dφ| at one φ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogDeterminant {
    /// log |det dR/dφ|, or its approximation.
    pub value: f64,
    /// log det Σ^{1/2}, the part of it that is known.
    pub known: f64,
    /// The sign of the determinant, if it was found exactly.
    pub sign: Option<f64>,
    /// Standard error from the spread of the probes: 0 if exact, NaN with a single probe.
    pub standard_error: f64,
    /// The last term of the series that was taken, a measure of what was left out; 0 if exact.
    pub last_term: f64,
}

/// Of the linearisation at φ.
pub(super) fn exact(linearisation: &mut Linearisation, phi: &[f64]) -> LogDeterminant {
    let dim = phi.len();
    let mut jacobian = vec![0.0; dim * dim];
    let mut u = vec![0.0; dim];
    for (parameter, column) in jacobian.chunks_exact_mut(dim.max(1)).enumerate() {
        u.fill(0.0);
        u[parameter] = 1.0;
        linearisation.remainder(phi, &u, column);
        linearisation.multiply_by_root(&mut u);
        for (value, root) in column.iter_mut().zip(&u) {
            *value += root;
        }
    }
    let (value, sign) = log_determinant(&jacobian, dim);
    LogDeterminant {
        value,
        known: linearisation.log_determinant_of_root(),
        sign: Some(sign),
        standard_error: 0.0,
        last_term: 0.0,
    }
}

/// Probes and work space of the series.
#[derive(Debug, Default)]
pub(super) struct TraceSeries {
    /// One after the other.
    probes: Vec<f64>,
    power: Vec<f64>,
    next: Vec<f64>,
    /// The sum of each probe.
    sums: Vec<f64>,
}

impl TraceSeries {
    pub fn new(dim: usize, probes: usize, seed: u64) -> Self {
        // fixed for all chains; lower indices have the directions of projections
        let mut stream = Stream::new(seed, 0, Purpose::Projection, 1 << 32);
        let sign = |_| if stream.uniform() < 0.5 { -1.0 } else { 1.0 };
        Self {
            probes: (0..dim * probes).map(sign).collect(),
            power: vec![0.0; dim],
            next: vec![0.0; dim],
            sums: vec![0.0; probes],
        }
    }

    /// Of the linearisation at φ.
    pub fn evaluate(
        &mut self,
        linearisation: &mut Linearisation,
        phi: &[f64],
        terms: usize,
    ) -> LogDeterminant {
        let known = linearisation.log_determinant_of_root();
        let mut last_term = 0.0;
        let count = self.sums.len() as f64;
        let probes = self.probes.chunks_exact(phi.len().max(1));
        for (probe, sum) in probes.zip(&mut self.sums) {
            self.power.copy_from_slice(probe);
            *sum = 0.0;
            for term in 1..=terms {
                linearisation.remainder(phi, &self.power, &mut self.next);
                linearisation.divide_by_root(&mut self.next);
                std::mem::swap(&mut self.power, &mut self.next);
                let sign = if term % 2 == 0 { -1.0 } else { 1.0 };
                let value = sign * dot(probe, &self.power) / term as f64;
                *sum += value;
                if term == terms {
                    last_term += value / count;
                }
            }
        }
        let mean = self.sums.iter().sum::<f64>() / count;
        let squares: f64 = self.sums.iter().map(|x| (x - mean).powi(2)).sum();
        LogDeterminant {
            value: known + mean,
            known,
            sign: None,
            standard_error: (squares / (count * (count - 1.0))).sqrt(),
            last_term,
        }
    }
}
