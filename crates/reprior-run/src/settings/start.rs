//! Where chains start.

use std::fmt;
use std::str::FromStr;

/// `--start`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartName {
    /// Each at a draw of the prior.
    Prior,
    /// Each at a mode, which is searched from such a draw.
    Mode,
    /// Where the chains of an earlier run ended, whose folder this is, or at trained networks: a file of weights, or a folder of such files.
    Given(String),
}

impl fmt::Display for StartName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prior => "prior",
            Self::Mode => "mode",
            Self::Given(place) => place,
        })
    }
}

impl FromStr for StartName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "prior" => Ok(Self::Prior),
            "mode" => Ok(Self::Mode),
            "" => Err(
                "--start is empty: give prior, mode, the folder of a run or a file of weights"
                    .to_owned(),
            ),
            place => Ok(Self::Given(place.to_owned())),
        }
    }
}
