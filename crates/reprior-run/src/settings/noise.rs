//! `--noise`: known, learned, or chosen by the data.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// `--noise`: a number, one per output, `learn` or `learn-each`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NoiseSetting {
    /// One σ for all outputs.
    One(f64),
    /// One per output.
    Each(Vec<f64>),
    /// Learned.
    Learn(Learn),
    /// The most likely one under the infinitely wide network; a number once the data are there.
    #[serde(with = "auto")]
    Auto,
}

/// The word `auto` in a file.
mod auto {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("auto")
    }

    pub fn deserialize<'a, D: Deserializer<'a>>(deserializer: D) -> Result<(), D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "auto" => Ok(()),
            other => Err(D::Error::custom(format!("unknown noise `{other}`"))),
        }
    }
}

/// How many scales are learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Learn {
    /// One scale for all outputs.
    Learn,
    /// One per output.
    LearnEach,
}

impl FromStr for NoiseSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "noise `{text}`: use a standard deviation, one per output with commas, `learn`, `learn-each`, or `auto`"
            )
        };
        match text {
            "learn" => return Ok(Self::Learn(Learn::Learn)),
            "learn-each" => return Ok(Self::Learn(Learn::LearnEach)),
            "auto" => return Ok(Self::Auto),
            _ => {}
        }
        let numbers = text.split(',').map(|number| number.trim().parse::<f64>());
        let numbers: Vec<f64> = numbers.collect::<Result<_, _>>().map_err(|_| wrong())?;
        Ok(match numbers.as_slice() {
            [one] => Self::One(*one),
            _ => Self::Each(numbers),
        })
    }
}

impl fmt::Display for NoiseSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(scale) => write!(f, "{scale}"),
            Self::Each(scales) => {
                let scales: Vec<String> = scales.iter().map(f64::to_string).collect();
                f.write_str(&scales.join(","))
            }
            Self::Learn(Learn::Learn) => f.write_str("learn"),
            Self::Learn(Learn::LearnEach) => f.write_str("learn-each"),
            Self::Auto => f.write_str("auto"),
        }
    }
}
