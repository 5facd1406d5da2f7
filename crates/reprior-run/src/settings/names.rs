//! Closed sets of names that settings may have, with messages that list them.

use std::fmt;
use std::str::FromStr;

use reprior::posterior::Space;
use reprior_io::run::DataType;
use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};
use serde::{Deserialize, Serialize};

/// A closed set of names with messages that list them.
macro_rules! names {
    ($(#[$doc:meta])* $type:ident, $what:literal { $first:ident = $first_name:literal $(, $variant:ident = $name:literal)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[allow(missing_docs, reason = "each is explained where the setting is")]
        pub enum $type {
            #[default]
            #[serde(rename = $first_name)]
            $first,
            $(#[serde(rename = $name)] $variant,)*
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    Self::$first => $first_name,
                    $(Self::$variant => $name,)*
                })
            }
        }

        impl FromStr for $type {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $first_name => Ok(Self::$first),
                    $($name => Ok(Self::$variant),)*
                    _ => Err(format!(
                        concat!("unknown ", $what, " `{}`: use one of ", $first_name $(, ", ", $name)*), text
                    )),
                }
            }
        }
    };
}

names!(
    /// What the target is.
    TaskName, "task" { Auto = "auto", Regression = "regression", Classification = "classification" }
);
names!(
    /// Where the readout is solved for.
    SpaceChoice, "space" { Auto = "auto", Feature = "feature", Data = "data", DataSymmetric = "data-symmetric" }
);
names!(
    /// Precision of the network; chosen before a run starts.
    Precision, "precision" { Auto = "auto", F32 = "f32", F64 = "f64" }
);
names!(
    /// What weights are multiplied by in the network.
    Parametrisation, "parametrisation" { Ntk = "ntk", Standard = "standard" }
);
names!(
    /// What shapes drift and noise.
    PreconditionerName, "preconditioner" {
        Identity = "identity", RmsProp = "rmsprop", Diagonal = "diagonal", QuasiDiagonal = "quasi-diagonal", Full = "full",
        Kfac = "kfac"
    }
);
names!(
    /// Where a preconditioner's ε is added.
    EpsilonAt, "place of epsilon" { Average = "average", Inversion = "inversion" }
);
names!(
    /// Whose labels a preconditioner's statistics are of.
    LabelsName, "labels" { Data = "data", Model = "model" }
);
names!(
    /// What descends to a mode.
    Optimiser, "optimiser" { Adam = "adam", Sgd = "sgd" }
);
names!(
    /// Weights of positions in a running mean.
    AveragingName, "averaging" { Uniform = "uniform", Forgetting = "forgetting" }
);
names!(
    /// Of the curvature of a Laplace approximation.
    StructureName, "Hessian structure" {
        Kron = "kron", KronSeparate = "kron-separate", Full = "full", Diag = "diag", LowRank = "lowrank"
    }
);

impl StructureName {
    /// Whether a layer has one prior precision.
    pub fn is_kronecker(self) -> bool {
        matches!(self, Self::Kron | Self::KronSeparate)
    }
}

names!(
    /// Of which network a Laplace approximation's predictions are: the linearised one, or the network itself.
    PredictionType, "prediction type" { Glm = "glm", Nn = "nn" }
);
names!(
    /// Class probabilities of Gaussian logits.
    LinkName, "link approximation" { Probit = "probit", Bridge = "bridge", Mc = "mc" }
);
names!(
    /// Directions of a Laplace diffusion.
    DiffusionName, "diffusion" { NonKernel = "non-kernel", Kernel = "kernel", Alternating = "alternating", Full = "full" }
);
names!(
    /// Steps of a Laplace diffusion.
    IntegratorName, "integrator" { Euler = "euler", Heun = "heun" }
);
names!(
    /// Yes or no.
    Switch, "value" { On = "on", Off = "off" }
);

/// Reads one of the names that serde knows a type by.
pub(crate) fn name<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let text: StrDeserializer<'_, Error> = text.into_deserializer();
    let said = |error: Error| {
        let text = error
            .to_string()
            .replace("unknown variant", "unknown value");
        match text.split_once(", expected ") {
            Some((what, names)) => format!("{what}: use {}", names.replace('`', "")),
            None => text,
        }
    };
    T::deserialize(text).map_err(said)
}

/// `name` or `name(number,…)`, in parts.
pub(crate) fn call(text: &str) -> Option<(&str, Vec<f64>)> {
    let Some((name, rest)) = text.split_once('(') else {
        return Some((text, Vec::new()));
    };
    let numbers = rest.strip_suffix(')')?.split(',');
    let numbers = numbers.map(|number| number.trim().parse());
    Some((name, numbers.collect::<Result<_, _>>().ok()?))
}

/// A number that counts something.
pub(crate) fn count(value: f64) -> Option<u64> {
    ((0.0..1e15).contains(&value) && value.fract() == 0.0).then_some(value as u64)
}

impl Precision {
    /// Bytes of a number of the network.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Auto | Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// Its type on disk.
    pub(crate) fn data_type(self) -> DataType {
        match self {
            Self::Auto | Self::F32 => DataType::F32,
            Self::F64 => DataType::F64,
        }
    }
}

impl SpaceChoice {
    /// The space that is forced, if any.
    pub fn forced(self) -> Option<Space> {
        match self {
            Self::Auto => None,
            Self::Feature => Some(Space::Feature),
            Self::Data => Some(Space::Data),
            Self::DataSymmetric => Some(Space::DataSymmetric),
        }
    }
}
