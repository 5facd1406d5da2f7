//! How a run's draws come about: chains of one of the library's methods, minibatches, or a Gaussian process in closed form.

use std::fmt;
use std::str::FromStr;

use reprior::gaussian_process::evidence::Covariance;
use reprior::sampler::Method;
use serde::{Deserialize, Serialize};

/// `--method`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum MethodName {
    /// Chains.
    Chain(Method),
    /// Particles annealed from the prior.
    Annealed,
    /// Langevin dynamics with minibatches, and what it is compared with.
    Minibatch(MinibatchMethod),
    /// The posterior of infinitely wide layers.
    Infinite(Covariance),
}

/// A minibatch method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MinibatchMethod {
    /// Langevin dynamics.
    Sgld,
    /// With momentum.
    Sghmc,
    /// With a thermostat.
    Sgnht,
    /// A mode.
    Map,
    /// A mode of a network whose units are left out at random.
    Dropout,
    /// A Gaussian around a run of gradient descent.
    Swag,
    /// Modes of several starts.
    Ensemble,
    /// A Gaussian around a mode.
    Laplace,
    /// Diffusions from a mode.
    LaplaceDiffusion,
}

impl MinibatchMethod {
    const ALL: [(Self, &'static str); 9] = [
        (Self::Sgld, "sgld"),
        (Self::Sghmc, "sghmc"),
        (Self::Sgnht, "sgnht"),
        (Self::Map, "map"),
        (Self::Dropout, "dropout"),
        (Self::Swag, "swag"),
        (Self::Ensemble, "ensemble"),
        (Self::Laplace, "laplace"),
        (Self::LaplaceDiffusion, "laplace-diffusion"),
    ];

    /// Names of all, for messages.
    pub(crate) const NAMES: &'static str =
        "sgld, sghmc, sgnht, map, dropout, swag, ensemble, laplace, laplace-diffusion";

    /// Whether its draws are meant to be the posterior's.
    pub fn is_sampler(self) -> bool {
        matches!(self, Self::Sgld | Self::Sghmc | Self::Sgnht)
    }

    /// Whether draws are around a mode, by its curvature.
    pub fn is_around_mode(self) -> bool {
        matches!(self, Self::Laplace | Self::LaplaceDiffusion)
    }

    fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(method, _)| *method == self);
        found.map_or("", |(_, name)| name)
    }

    fn of_name(text: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, name)| *name == text);
        found.map(|(method, _)| *method)
    }
}

impl fmt::Display for MinibatchMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a method's draws are, which decides what of them can be plotted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nature {
    /// Chains that sample the posterior.
    Chains,
    /// Chains that sample approximately, with minibatches.
    ApproximateChains,
    /// Draws that are no chain's: of a Gaussian around a mode, or networks trained one by one.
    Draws,
    /// The predictive distribution itself.
    ClosedForm,
}

impl Nature {
    /// Whether one draw follows from the previous one.
    pub fn has_chains(self) -> bool {
        matches!(self, Self::Chains | Self::ApproximateChains)
    }
}

impl MethodName {
    /// The method that moves chains or particles on all data; none where there are none.
    pub fn kernel(self) -> Option<Method> {
        match self {
            Self::Chain(method) => Some(method),
            Self::Annealed => Some(Method::default()),
            Self::Minibatch(_) | Self::Infinite(_) => None,
        }
    }

    /// What its draws are.
    pub fn nature(self) -> Nature {
        match self {
            Self::Infinite(_) => Nature::ClosedForm,
            Self::Chain(_) | Self::Annealed => Nature::Chains,
            Self::Minibatch(method) if method.is_sampler() => Nature::ApproximateChains,
            Self::Minibatch(_) => Nature::Draws,
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
            "smc" => Ok(Self::Annealed),
            _ => match (MinibatchMethod::of_name(text), text.parse()) {
                (Some(method), _) => Ok(Self::Minibatch(method)),
                (None, Ok(method)) => Ok(Self::Chain(method)),
                (None, Err(error)) => Err(format!(
                    "{error}, smc, {}, nngp, ntk",
                    MinibatchMethod::NAMES
                )),
            },
        }
    }
}

impl fmt::Display for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chain(method) => method.fmt(f),
            Self::Annealed => f.write_str("smc"),
            Self::Minibatch(method) => method.fmt(f),
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
