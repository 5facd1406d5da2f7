//! How a run's draws come about: chains of one of the library's methods, or a Gaussian process in closed form.

use std::fmt;
use std::str::FromStr;

use reprior::gaussian_process::Covariance;
use reprior::sampler::Method;
use serde::{Deserialize, Serialize};

/// `--method`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum MethodName {
    /// Chains.
    Chain(Method),
    /// The posterior of infinitely wide layers.
    Infinite(Covariance),
}

impl MethodName {
    /// The chains' method; that of a closed form is never used.
    pub fn chain(self) -> Method {
        match self {
            Self::Chain(method) => method,
            Self::Infinite(_) => Method::default(),
        }
    }

    /// The kernel of a closed form.
    pub fn covariance(self) -> Option<Covariance> {
        match self {
            Self::Chain(_) => None,
            Self::Infinite(covariance) => Some(covariance),
        }
    }
}

impl Default for MethodName {
    fn default() -> Self {
        Self::Chain(Method::default())
    }
}

impl FromStr for MethodName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "nngp" => Ok(Self::Infinite(Covariance::Nngp)),
            "ntk" => Ok(Self::Infinite(Covariance::Ntk)),
            _ => match text.parse() {
                Ok(method) => Ok(Self::Chain(method)),
                Err(error) => Err(format!("{error}, nngp, ntk")),
            },
        }
    }
}

impl fmt::Display for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chain(method) => method.fmt(f),
            Self::Infinite(Covariance::Nngp) => f.write_str("nngp"),
            Self::Infinite(Covariance::Ntk) => f.write_str("ntk"),
        }
    }
}

impl TryFrom<String> for MethodName {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<MethodName> for String {
    fn from(method: MethodName) -> Self {
        method.to_string()
    }
}
