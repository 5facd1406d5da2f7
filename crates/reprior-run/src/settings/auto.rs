//! Settings that may be left to the data: `auto` until they are chosen.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// A value, or `auto`: what fits the data, chosen once they are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Auto<T> {
    /// Left to the data.
    #[default]
    Open,
    /// This one.
    Chosen(T),
}

impl<T> Auto<T> {
    /// The value, if there is one.
    pub fn get(self) -> Option<T> {
        match self {
            Self::Open => None,
            Self::Chosen(value) => Some(value),
        }
    }

    /// Whether it is left to the data.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open)
    }
}

impl<T> From<T> for Auto<T> {
    fn from(value: T) -> Self {
        Self::Chosen(value)
    }
}

impl<T: FromStr<Err = String>> FromStr for Auto<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Open),
            _ => match text.parse() {
                Ok(value) => Ok(Self::Chosen(value)),
                Err(error) => Err(format!("{error}, or auto")),
            },
        }
    }
}

impl<T: fmt::Display> fmt::Display for Auto<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("auto"),
            Self::Chosen(value) => value.fmt(f),
        }
    }
}

impl<T: fmt::Display> Serialize for Auto<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, T: FromStr<Err = String>> Deserialize<'de> for Auto<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}
