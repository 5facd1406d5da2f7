//! log |det dR/dφ| of tangent coordinates, exactly and by a series.
//!
//! dR = S(I + E), E = S⁻¹(dR − S). The first factor is known; of the second log det(I + E) = Σ_k (−1)^{k+1}/k · tr Eᵏ where the eigenvalues of E lie within the unit circle. The series is cut off
//! after M terms, and traces are estimated as means of zᵀEᵏz over P probes z of independent signs (Hutchinson 1990) that stay
//! the same from one evaluation to the next: the approximation is a function of φ, and a chain's law is exactly that of it.
//!
//! With ρ < 1 the largest modulus of an eigenvalue of E and r the rank of it the cut leaves out at most
//! r·ρ^{M+1}/((M + 1)(1 − ρ)) if E is normal. The probes' error has the standard deviation that [`LogDeterminant`] estimates,
//! to first order √(2/P)·‖½(E + Eᵀ) without its diagonal‖_F.
//!
//! For the map of eq. 10 E = Σ v_i H_i − (1/λ)·Jᵀ·B, row i of B being (θ − φ)ᵀH_i: its second term is large where λ is small. The
//! paper leaves it out, and log det S with it (eqs 13, 14): what remains is the series of log det(I + Σ v_i H_i).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::linearisation::Linearisation;
use crate::compute::{Purpose, Stream, dot, log_determinant};

/// Parameters up to which the determinant is exact unless told otherwise: each evaluation takes as many products.
const MOST_EXACT: usize = 200;

/// How log det dR/dφ is computed. In text `exact`, `series(TERMS,PROBES)` or `hessian(TERMS,PROBES)`.
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
    /// The same of log det(I + Σ v_i H_i) in place of log det dR/dφ, with the Hessians H_i of the outputs (Hron et al. 2022,
    /// eqs 13 and 14): for the map with a regulariser. The rest of the determinant tends to a constant as the width grows; in
    /// narrow networks it does not, and draws are of another law than the posterior's.
    Hessian {
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

    /// Terms and probes; none if exact.
    pub fn terms_and_probes(&self) -> Option<[usize; 2]> {
        match *self {
            Self::Exact => None,
            Self::Series { terms, probes } | Self::Hessian { terms, probes } => {
                Some([terms, probes])
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
            Self::Hessian { terms, probes } => format!(
                "approximate: of the Hessians alone, {terms} Taylor terms, {probes} Hutchinson probes"
            ),
        }
    }
}

impl fmt::Display for TangentDeterminant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact => f.write_str("exact"),
            Self::Series { terms, probes } => write!(f, "series({terms},{probes})"),
            Self::Hessian { terms, probes } => write!(f, "hessian({terms},{probes})"),
        }
    }
}

impl FromStr for TangentDeterminant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "unknown determinant `{text}`: use exact, series(TERMS,PROBES) or hessian(TERMS,PROBES) with at least one of each, such as series(4,16)"
            )
        };
        if text == "exact" {
            return Ok(Self::Exact);
        }
        let inner = text.strip_suffix(')').and_then(|text| text.split_once('('));
        let (name, inner) = inner.ok_or_else(wrong)?;
        let (terms, probes) = inner.split_once(',').ok_or_else(wrong)?;
        let number = |text: &str| {
            let number = text.trim().parse().ok();
            number.filter(|n| (1..=1_000_000).contains(n))
        };
        match (name, number(terms), number(probes)) {
            ("series", Some(terms), Some(probes)) => Ok(Self::Series { terms, probes }),
            ("hessian", Some(terms), Some(probes)) => Ok(Self::Hessian { terms, probes }),
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
    /// The part of it that is known, log det S.
    pub known: f64,
    /// The sign of the determinant, if it was found exactly.
    pub sign: Option<f64>,
    /// Standard error from the spread of the probes: 0 if exact, NaN with a single probe.
    pub standard_error: f64,
    /// The last term of the series that was taken, a measure of what was left out; 0 if exact.
    pub last_term: f64,
}

/// Of the linearisation at φ, with the matrix dR/dφ written to `jacobian`.
pub(super) fn exact(linearisation: &mut Linearisation, jacobian: &mut Vec<f64>) -> LogDeterminant {
    let dim = linearisation.dim();
    jacobian.resize(dim * dim, 0.0);
    let mut u = vec![0.0; dim];
    for (parameter, column) in jacobian.chunks_exact_mut(dim.max(1)).enumerate() {
        u.fill(0.0);
        u[parameter] = 1.0;
        linearisation.remainder(&u, column);
        linearisation.multiply_by_root(&mut u);
        for (value, root) in column.iter_mut().zip(&u) {
            *value += root;
        }
    }
    let (value, sign) = log_determinant(jacobian, dim);
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
    terms: usize,
    /// Whether it is that of the Hessians alone.
    is_of_hessians: bool,
    /// One after the other.
    pub(super) probes: Vec<f64>,
    /// z, Ez, …, E^M z of one probe.
    pub(super) powers: Vec<Vec<f64>>,
    /// The sum of each probe.
    sums: Vec<f64>,
}

impl TraceSeries {
    pub fn new(dim: usize, determinant: TangentDeterminant, seed: u64) -> Self {
        let Some([terms, probes]) = determinant.terms_and_probes() else {
            return Self::default();
        };
        // fixed for all chains; lower indices have the directions of projections
        let mut stream = Stream::new(seed, 0, Purpose::Projection, 1 << 32);
        let sign = |_| if stream.uniform() < 0.5 { -1.0 } else { 1.0 };
        Self {
            terms,
            is_of_hessians: matches!(determinant, TangentDeterminant::Hessian { .. }),
            probes: (0..dim * probes).map(sign).collect(),
            powers: vec![vec![0.0; dim]; terms + 1],
            sums: vec![0.0; probes],
        }
    }

    /// P.
    pub fn count(&self) -> usize {
        self.sums.len()
    }

    /// The factor (−1)^{k+1}/k of term k.
    pub fn coefficient(term: usize) -> f64 {
        let sign = if term.is_multiple_of(2) { -1.0 } else { 1.0 };
        sign / term as f64
    }

    /// Of the linearisation at φ.
    pub fn evaluate(&mut self, linearisation: &mut Linearisation) -> LogDeterminant {
        let known = match self.is_of_hessians {
            true => 0.0,
            false => linearisation.log_determinant_of_root(),
        };
        let (mut last_term, count) = (0.0, self.sums.len() as f64);
        for index in 0..self.sums.len() {
            self.set_powers(linearisation, index);
            let mut sum = 0.0;
            for (term, power) in self.powers.iter().enumerate().skip(1) {
                let sign = if term.is_multiple_of(2) { -1.0 } else { 1.0 };
                let value = sign * dot(&self.powers[0], power) / term as f64;
                sum += value;
                if term == self.terms {
                    last_term += value / count;
                }
            }
            self.sums[index] = sum;
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

    /// `powers` of one probe.
    pub fn set_powers(&mut self, linearisation: &mut Linearisation, index: usize) {
        let dim = linearisation.dim();
        self.powers[0].copy_from_slice(&self.probes[index * dim..(index + 1) * dim]);
        for term in 0..self.terms {
            let (below, above) = self.powers.split_at_mut(term + 1);
            let (from, to) = (&below[term], &mut above[0]);
            if self.is_of_hessians {
                let v = linearisation.v.clone();
                to.fill(0.0);
                linearisation.add_hessian_product(&v, from, 1.0, to);
            } else {
                linearisation.remainder(from, to);
                linearisation.divide_by_root(to);
            }
        }
    }
}
