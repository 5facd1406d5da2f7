//! Schedules, decays and priors as they are written in flags and files.

use std::fmt;
use std::str::FromStr;

use reprior::stochastic::preconditioner::Decay;
use reprior::stochastic::{Prior, StepSize};
use serde::{Deserialize, Serialize};

use super::names::{call, count};

/// As one word in flags and files.
macro_rules! written {
    ($type:ident) => {
        impl TryFrom<String> for $type {
            type Error = String;
            fn try_from(text: String) -> Result<Self, String> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.to_string()
            }
        }
    };
}

/// `--schedule`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum StepSizeChoice {
    /// Half a cosine over all updates.
    Cosine,
    /// As the library has it.
    Fixed(StepSize),
}
pub(super) use written;
written!(StepSizeChoice);

impl StepSizeChoice {
    /// The library's, of so many updates.
    pub fn of(self, updates: u64) -> StepSize {
        match self {
            Self::Cosine => StepSize::Cyclical {
                length: updates.max(2),
                exploration: 0.0,
            },
            Self::Fixed(schedule) => schedule,
        }
    }
}

impl FromStr for StepSizeChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let schedule = match call(text) {
            Some(("cosine", numbers)) if numbers.is_empty() => return Ok(Self::Cosine),
            Some(("constant", numbers)) if numbers.is_empty() => Some(StepSize::Constant),
            Some(("halving", numbers)) => match numbers[..] {
                [every] => count(every).map(|every| StepSize::Halving { every }),
                _ => None,
            },
            Some(("polynomial", numbers)) => match numbers[..] {
                [exponent, after] => {
                    count(after).map(|after| StepSize::Polynomial { exponent, after })
                }
                _ => None,
            },
            Some(("cyclical", numbers)) => match numbers[..] {
                [length, exploration] => count(length).map(|length| StepSize::Cyclical {
                    length,
                    exploration,
                }),
                _ => None,
            },
            _ => None,
        };
        let schedule = schedule.ok_or_else(|| {
            format!(
                "unknown schedule `{text}`: use constant, cosine, halving(UPDATES), polynomial(EXPONENT,UPDATES) or cyclical(UPDATES,EXPLORING-PART)"
            )
        })?;
        schedule.check()?;
        Ok(Self::Fixed(schedule))
    }
}

impl fmt::Display for StepSizeChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cosine => f.write_str("cosine"),
            Self::Fixed(StepSize::Constant) => f.write_str("constant"),
            Self::Fixed(StepSize::Halving { every }) => write!(f, "halving({every})"),
            Self::Fixed(StepSize::Polynomial { exponent, after }) => {
                write!(f, "polynomial({exponent},{after})")
            }
            Self::Fixed(StepSize::Cyclical {
                length,
                exploration,
            }) => write!(f, "cyclical({length},{exploration})"),
        }
    }
}

/// `--decay`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WrittenDecay(pub Decay);
written!(WrittenDecay);

impl FromStr for WrittenDecay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let decay = match call(text) {
            Some(("constant", numbers)) if numbers.len() == 1 => {
                Decay::Constant { rate: numbers[0] }
            }
            Some(("harmonic", numbers)) if numbers.len() == 1 => {
                Decay::Harmonic { first: numbers[0] }
            }
            _ => {
                return Err(format!(
                    "unknown decay `{text}`: use constant(RATE) or harmonic(FIRST)"
                ));
            }
        };
        decay.check()?;
        Ok(Self(decay))
    }
}

impl fmt::Display for WrittenDecay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Decay::Constant { rate } => write!(f, "constant({rate})"),
            Decay::Harmonic { first } => write!(f, "harmonic({first})"),
        }
    }
}

/// `--prior`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum PriorChoice {
    /// The network's own scales, whatever the parametrisation.
    Network,
    /// The same for all layers.
    Same(Prior),
}
written!(PriorChoice);

impl FromStr for PriorChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let prior = match call(text) {
            Some(("network", numbers)) if numbers.is_empty() => return Ok(Self::Network),
            Some(("gaussian", numbers)) if numbers.len() == 2 => Prior::Gaussian {
                weights: numbers[0],
                biases: numbers[1],
            },
            Some(("normal-inverse-gamma", numbers)) if numbers.len() == 3 => {
                Prior::NormalInverseGamma {
                    shape: numbers[0],
                    rate: numbers[1],
                    mean: numbers[2],
                }
            }
            _ => {
                return Err(format!(
                    "unknown prior `{text}`: use network, gaussian(VARIANCE-OF-WEIGHTS,VARIANCE-OF-BIASES) or normal-inverse-gamma(SHAPE,RATE,MEAN)"
                ));
            }
        };
        prior.check()?;
        Ok(Self::Same(prior))
    }
}

impl fmt::Display for PriorChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network => f.write_str("network"),
            Self::Same(Prior::Gaussian { weights, biases }) => {
                write!(f, "gaussian({weights},{biases})")
            }
            Self::Same(Prior::NormalInverseGamma { shape, rate, mean }) => {
                write!(f, "normal-inverse-gamma({shape},{rate},{mean})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for text in [
            "constant",
            "cosine",
            "halving(10000)",
            "polynomial(0.33,1000)",
            "cyclical(500,0.25)",
        ] {
            assert_eq!(text.parse::<StepSizeChoice>().unwrap().to_string(), text);
        }
        for text in ["constant(0.1)", "harmonic(1)"] {
            assert_eq!(text.parse::<WrittenDecay>().unwrap().to_string(), text);
        }
        for text in [
            "network",
            "gaussian(0.1,1)",
            "normal-inverse-gamma(1,0.5,0)",
        ] {
            assert_eq!(text.parse::<PriorChoice>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_not_understood_or_out_of_range_is_refused() {
        for text in [
            "halving",
            "halving(0)",
            "halving(1.5)",
            "cyclical(9,1)",
            "cosine(3)",
            "polynomial(1",
        ] {
            assert!(text.parse::<StepSizeChoice>().is_err(), "{text}");
        }
        for text in ["constant", "harmonic(0)", "constant(2)"] {
            assert!(text.parse::<WrittenDecay>().is_err(), "{text}");
        }
        for text in [
            "gaussian(1)",
            "gaussian(-1,1)",
            "normal-inverse-gamma(1,1)",
            "cauchy(1)",
        ] {
            assert!(text.parse::<PriorChoice>().is_err(), "{text}");
        }
    }
}
