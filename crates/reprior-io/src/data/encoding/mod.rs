//! What the columns of a table become as inputs of a network, and how: decided by the training rows, written into a run, and applied to new tables as it is.
//!
//! | column | becomes |
//! |---|---|
//! | numbers | the number; a missing one the training rows' median (or mean) |
//! | true, false, yes, no | 1 or 0 |
//! | dates | days since the first training date; sine and cosine of the time of the year, and of the day where times are given |
//! | text | one 0/1 input for each of the 20 most frequent levels, and one for all others if there are more |
//! | text with a value of its own in nearly every row | nothing: it is an identifier |
//!
//! A column with missing cells among the training rows has one more input, 1 where the cell is missing.

mod apply;
mod fit;
mod kinds;

use serde::{Deserialize, Serialize};

pub use super::dates::DateForm;
pub(super) use apply::encode;
pub(super) use fit::fit;
pub(super) use kinds::{Kind, kind_of};

/// What is made of missing input cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// The median of the training rows, and a further input that says so.
    #[default]
    Median,
    /// The mean of the training rows, and a further input that says so.
    Mean,
    /// Rows with a missing input are left out.
    Drop,
    /// An error.
    Error,
}

impl Missing {
    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Median => "median",
            Self::Mean => "mean",
            Self::Drop => "drop",
            Self::Error => "error",
        }
    }
}

/// What every input column of a table becomes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TableEncoding {
    /// What was made of missing cells.
    pub missing: Missing,
    /// In the order of the file that was trained on.
    pub columns: Vec<ColumnEncoding>,
}

/// What one column becomes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnEncoding {
    /// Its name in the header.
    pub column: String,
    /// The inputs made of its values.
    #[serde(flatten)]
    pub becomes: Becomes,
    /// Whether one more input is 1 where the cell is missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_indicator: bool,
}

/// The inputs made of a column. A `fill` stands for missing cells; without one they are refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "becomes", rename_all = "kebab-case")]
pub enum Becomes {
    /// Itself.
    Number {
        /// In the column's own units.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fill: Option<f64>,
    },
    /// 1 for true and yes, 0 for false and no.
    Boolean {
        /// Between 0 and 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fill: Option<f64>,
    },
    /// Days since `origin`; sine and cosine of the time of the year, and with `has_time` of the day.
    Date {
        /// In what order dates have their parts.
        form: DateForm,
        /// Days from 1970-01-01 to the first training date.
        origin: f64,
        /// Whether times of day are given.
        has_time: bool,
        /// Days since 1970-01-01.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fill: Option<f64>,
    },
    /// One 0/1 input for each level, and one for other levels.
    Levels {
        /// As they are written.
        levels: Vec<String>,
        /// Whether there is an input for other levels; without it an unknown level has 0 everywhere.
        has_other: bool,
        /// One of the levels, or "" for 0 everywhere.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fill: Option<String>,
    },
    /// Nothing.
    LeftOut {
        /// In words.
        why: String,
    },
}

impl TableEncoding {
    /// Columns that are all numbers, of which none may be missing: what runs without an encoding expect.
    pub(super) fn of_numbers(names: &[String]) -> Self {
        let number = |name: &String| ColumnEncoding {
            column: name.clone(),
            becomes: Becomes::Number { fill: None },
            has_indicator: false,
        };
        Self {
            missing: Missing::Error,
            columns: names.iter().map(number).collect(),
        }
    }

    /// Names of all inputs.
    pub fn input_names(&self) -> Vec<String> {
        self.columns
            .iter()
            .flat_map(ColumnEncoding::input_names)
            .collect()
    }

    /// Columns that are not left out.
    pub fn used(&self) -> impl Iterator<Item = &ColumnEncoding> {
        let is_used = |column: &&ColumnEncoding| !matches!(column.becomes, Becomes::LeftOut { .. });
        self.columns.iter().filter(is_used)
    }

    /// What a user should know of it, a line each.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let listed = |name: &dyn Fn(&ColumnEncoding) -> Option<String>| {
            let named: Vec<String> = self.columns.iter().filter_map(name).collect();
            (!named.is_empty()).then(|| named.join(", "))
        };
        let texts = listed(&|column| match &column.becomes {
            Becomes::Levels {
                levels, has_other, ..
            } => Some(format!(
                "`{}` ({}{})",
                column.column,
                levels.len(),
                if *has_other { " and other" } else { "" }
            )),
            _ => None,
        });
        notes.extend(
            texts.map(|list| format!("text columns became 0/1 inputs, one for each level: {list}")),
        );
        let dates = listed(&|column| match &column.becomes {
            Becomes::Date { .. } => Some(format!("`{}`", column.column)),
            _ => None,
        });
        notes.extend(dates.map(|list| {
            format!("dates became days since the first, and the time of the year: {list}")
        }));
        let left_out = listed(&|column| match &column.becomes {
            Becomes::LeftOut { why } => Some(format!("`{}` ({why})", column.column)),
            _ => None,
        });
        notes.extend(left_out.map(|list| format!("columns that are left out: {list}")));
        notes
    }

    /// Whether its parts go together.
    pub fn is_sound(&self) -> bool {
        let finite = |fill: &Option<f64>| fill.is_none_or(f64::is_finite);
        self.columns.iter().all(|column| match &column.becomes {
            Becomes::Number { fill } | Becomes::Boolean { fill } => finite(fill),
            Becomes::Date { origin, fill, .. } => origin.is_finite() && finite(fill),
            Becomes::Levels { .. } | Becomes::LeftOut { .. } => true,
        })
    }
}

impl ColumnEncoding {
    /// Names of its inputs.
    pub fn input_names(&self) -> Vec<String> {
        let name = &self.column;
        let mut names = match &self.becomes {
            Becomes::Number { .. } | Becomes::Boolean { .. } => vec![name.clone()],
            Becomes::Date { has_time, .. } => {
                let parts: &[&str] = match has_time {
                    true => &["days", "year sine", "year cosine", "day sine", "day cosine"],
                    false => &["days", "year sine", "year cosine"],
                };
                parts.iter().map(|part| format!("{name} {part}")).collect()
            }
            Becomes::Levels {
                levels, has_other, ..
            } => {
                let other = has_other.then(|| format!("{name}: other"));
                let levels = levels.iter().map(|level| format!("{name}: {level}"));
                levels.chain(other).collect()
            }
            Becomes::LeftOut { .. } => Vec::new(),
        };
        if self.has_indicator {
            names.push(format!("{name} missing"));
        }
        names
    }
}
