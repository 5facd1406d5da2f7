//! Closed sets of names that settings may have, with messages that list them.

use std::str::FromStr;

use reprior::posterior::Space;
use serde::{Deserialize, Serialize};

use crate::error::Failure;

/// A closed set of names with messages that list them.
macro_rules! names {
    ($(#[$doc:meta])* $type:ident, $what:literal { $first:ident = $first_name:literal $(, $variant:ident = $name:literal)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        pub enum $type {
            #[default]
            #[serde(rename = $first_name)]
            $first,
            $(#[serde(rename = $name)] $variant,)*
        }

        impl FromStr for $type {
            type Err = Failure;
            fn from_str(text: &str) -> Result<Self, Failure> {
                match text {
                    $first_name => Ok(Self::$first),
                    $($name => Ok(Self::$variant),)*
                    _ => Err(Failure::request(format!(
                        concat!("unknown ", $what, " `{}`: use one of ", $first_name $(, ", ", $name)*), text
                    ))),
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
    /// Precision of the network.
    Precision, "precision" { F32 = "f32", F64 = "f64" }
);
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
