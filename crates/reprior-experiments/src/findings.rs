//! Findings, and what their words and conditions are made of.

use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::verdict::{Judgement, Verdict};
use crate::{Row, Table, Value};

/// A claim and what was measured of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What the figure is there to show.
    pub claim: String,
    /// Whether this table shows it.
    pub verdict: Verdict,
    /// The numbers that say so.
    pub measured: String,
    /// What the paper has, and where.
    pub published: Option<String>,
    /// Why it cannot be told, if it cannot.
    pub because: Option<String>,
}

impl Finding {
    /// A finding.
    pub fn new(claim: impl Into<String>, judged: &Judgement, measured: impl Into<String>) -> Self {
        Self {
            claim: claim.into(),
            verdict: judged.verdict(),
            measured: measured.into(),
            published: None,
            because: judged.because(),
        }
    }

    /// With what the paper has, and where.
    #[must_use]
    pub fn published(mut self, what: impl Into<String>) -> Self {
        self.published = Some(what.into());
        self
    }
}

/// The results table.
pub fn results(tables: &[Table]) -> &Table {
    static EMPTY: Table = Table {
        name: String::new(),
        rows: Vec::new(),
    };
    tables
        .iter()
        .find(|table| table.name == Row::RESULTS)
        .unwrap_or(&EMPTY)
}

/// The mean; NaN of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Mean and standard deviation, over n.
pub fn mean_and_sd(values: &[f64]) -> (f64, f64) {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / values.len() as f64).sqrt())
}

/// Numbers in words: `0.12, 0.34`.
pub fn listed(values: &[f64]) -> String {
    let words = values.iter().map(|&value| Value::from(value).to_string());
    words.collect::<Vec<_>>().join(", ")
}

/// Estimates in words: `0.12 ± 0.01, 0.34 ± 0.02`.
pub fn estimates(values: &[Estimate]) -> String {
    let words = values.iter().map(ToString::to_string);
    words.collect::<Vec<_>>().join(", ")
}
