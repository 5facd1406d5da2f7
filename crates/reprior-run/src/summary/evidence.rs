//! The log evidence of annealed particles, and whether its error can be believed.

use reprior::annealing::LogEvidence;
use serde::Serialize;

use super::{Check, Level, Summary};
use crate::words::number;

/// Log evidence, from replicates that share nothing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvidenceSummary {
    /// In nats, of standardised targets.
    pub log_evidence: f64,
    /// Its standard error, from the spread of the replicates; not a number for a single one.
    pub error: f64,
    /// Standard deviation of a single replicate.
    pub spread: f64,
    /// Of each replicate.
    pub replicates: Vec<f64>,
    /// Temperatures of the longest ladder.
    pub temperatures: u64,
    /// Draws of the prior that the particles of a replicate descend from, the fewest.
    pub families: u64,
}

impl Summary {
    /// Whether replicates agree about the evidence.
    pub(super) fn of_evidence(&self) -> Option<Check> {
        let found = self.evidence.as_ref()?;
        let (meaning, advice, level) = if found.spread.is_nan() {
            (
                "one replicate cannot show its own error",
                "use --chains 4",
                Level::Caution,
            )
        } else if found.spread > LogEvidence::WIDEST {
            (
                "the replicates differ by more than a nat: the error is rough, and the evidence likely too small",
                "raise --draws (particles) or --thin (transitions at each temperature)",
                Level::Caution,
            )
        } else {
            ("the replicates agree within a nat", "", Level::Good)
        };
        Some(Check {
            name: "log evidence".to_owned(),
            value: found.in_words(),
            meaning: meaning.to_owned(),
            advice: advice.to_owned(),
            level,
        })
    }
}

impl EvidenceSummary {
    /// With its error.
    pub fn in_words(&self) -> String {
        match self.error.is_nan() {
            true => format!("{} nats", number(self.log_evidence)),
            false => format!(
                "{} ± {} nats",
                number(self.log_evidence),
                number(self.error)
            ),
        }
    }
}
