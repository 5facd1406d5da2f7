//! Rows of named values.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Estimate;

/// One entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A finite number.
    Number(f64),
    /// A word.
    Text(String),
    /// Nothing, or no number.
    Missing,
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        if value.is_finite() {
            Self::Number(value)
        } else {
            Self::Missing
        }
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Self::Number(value as f64)
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Number(value as f64)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl fmt::Display for Value {
    /// Numbers with four significant digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Text(text) => text.clone(),
            Self::Missing => "-".to_owned(),
            Self::Number(value) if value.fract() == 0.0 && value.abs() < 1e7 => format!("{value}"),
            // what has few digits anyway: settings such as 0.2
            Self::Number(value) if format!("{value}").len() < 6 => format!("{value}"),
            Self::Number(value) if (1e-3..1e5).contains(&value.abs()) => {
                let digits = 3 - value.abs().log10().floor() as i32;
                format!("{value:.*}", digits.clamp(0, 6) as usize)
            }
            Self::Number(value) => format!("{value:.3e}"),
        };
        f.pad(&text)
    }
}

/// Named values in order, of one table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Which table.
    pub table: String,
    /// Names and values.
    pub values: Vec<(String, Value)>,
}

impl Default for Row {
    fn default() -> Self {
        Self::of(Self::RESULTS)
    }
}

impl Row {
    /// The table that is shown.
    pub const RESULTS: &'static str = "results";

    /// An empty row of the table `name`.
    pub fn of(name: &str) -> Self {
        Self {
            table: name.to_owned(),
            values: Vec::new(),
        }
    }

    /// An empty row of the results.
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more value.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.values.push((name.to_owned(), value.into()));
        self
    }

    /// With another value of that name; with one more if there is none.
    #[must_use]
    pub fn replaced(&self, name: &str, value: impl Into<Value>) -> Self {
        let mut row = self.clone();
        let value = value.into();
        match row.values.iter_mut().find(|(other, _)| other == name) {
            Some((_, old)) => *old = value,
            None => row.values.push((name.to_owned(), value)),
        }
        row
    }

    /// With an estimate: its value, its standard error as `± name`, and what makes it doubtful as `doubt of name`.
    #[must_use]
    pub fn with_estimate(self, name: &str, estimate: &Estimate) -> Self {
        let mut row = self
            .with(name, estimate.value)
            .with(&format!("± {name}"), estimate.error);
        if estimate.degrees.is_finite() {
            row = row.with(&format!("degrees of {name}"), estimate.degrees);
        }
        match &estimate.doubt {
            Some(doubt) => row.with(&format!("doubt of {name}"), doubt.as_str()),
            None => row,
        }
    }

    /// The estimate of that name; a number without a standard error is exact.
    pub fn estimate(&self, name: &str) -> Estimate {
        let part = |kind: &str| format!("{kind} {name}");
        let error = self.number(&part("±"));
        let degrees = self.number(&part("degrees of"));
        let doubt = self.text(&part("doubt of"));
        Estimate {
            value: self.number(name),
            error: match self.get(&part("±")) {
                Some(_) => error,
                None => 0.0,
            },
            degrees: if degrees.is_finite() {
                degrees
            } else {
                f64::INFINITY
            },
            doubt: (!doubt.is_empty()).then(|| doubt.to_owned()),
        }
    }

    /// These values in the table `name`.
    #[must_use]
    pub fn in_table(&self, name: &str) -> Self {
        Self {
            table: name.to_owned(),
            values: self.values.clone(),
        }
    }

    /// The value of that name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let found = self.values.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value)
    }

    /// The number of that name; NaN if there is none.
    pub fn number(&self, name: &str) -> f64 {
        match self.get(name) {
            Some(Value::Number(value)) => *value,
            _ => f64::NAN,
        }
    }

    /// The same as a count.
    pub fn count(&self, name: &str) -> usize {
        self.number(name) as usize
    }

    /// The word of that name; empty if there is none.
    pub fn text(&self, name: &str) -> &str {
        match self.get(name) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    /// The word of that name, where a table may have been read that has a number in its place; empty if there is none.
    pub fn word(&self, name: &str) -> String {
        match self.get(name) {
            Some(Value::Text(text)) => text.clone(),
            Some(Value::Number(value)) => value.to_string(),
            Some(Value::Missing) | None => String::new(),
        }
    }

    /// The same as a long count, such as a seed.
    pub fn long(&self, name: &str) -> u64 {
        self.number(name) as u64
    }

    /// These of a cell's choices, as the beginning of a row of the results.
    pub fn choices(&self, names: &[&str]) -> Self {
        let pick = |&name: &&str| {
            let value = self.get(name).cloned().unwrap_or(Value::Missing);
            (name.to_owned(), value)
        };
        Self {
            values: names.iter().map(pick).collect(),
            ..Self::new()
        }
    }

    /// This row with each of `values`.
    pub fn each<V: Into<Value> + Copy>(&self, name: &str, values: &[V]) -> Vec<Self> {
        let with = |&value: &V| self.clone().with(name, value);
        values.iter().map(with).collect()
    }

    /// `a 1, b 2`.
    pub fn label(&self) -> String {
        let parts: Vec<String> = self
            .values
            .iter()
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_four_digits() {
        for (value, text) in [
            (0.012_345, "0.01235"),
            (1234.567, "1235"),
            (3.0, "3"),
            (1e-7, "1.000e-7"),
            (-0.5, "-0.5"),
            (0.32899, "0.3290"),
        ] {
            assert_eq!(Value::from(value).to_string(), text);
        }
    }
}
