//! The log evidence of annealed particles, and whether its error can be believed.

use reprior::annealing::LogEvidence;
use reprior::sampler::MOST_REPLICAS;
use serde::Serialize;

use super::{Check, Level, Summary};
use crate::words::number;

/// Log evidence, from replicates or chains that share nothing.
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
    /// Draws of the prior that the particles of a replicate descend from, the fewest; null for chains with replicas.
    pub families: Option<u64>,
}

/// How chains exchanged positions with their replicas, after warm-up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExchangeSummary {
    /// Of each chain.
    pub replicas: u64,
    /// The share of exchanges that were refused: between the chain and its first replica, the first and the second, ..., the last and the prior;
    /// means of all chains.
    pub refusals: Vec<f64>,
    /// Λ, their sum, which hardly depends on the number of replicas where there are enough.
    pub barrier: f64,
    /// Positions of each chain that came from the prior.
    pub arrivals: Vec<u64>,
}

/// Fewer arrivals of a chain do not show that it has been everywhere.
const FEWEST_ARRIVALS: u64 = 10;

impl ExchangeSummary {
    /// The smallest and the largest share of exchanges that were refused.
    pub fn least_and_most(&self) -> [f64; 2] {
        let ends = |[least, most]: [f64; 2], &rate: &f64| [least.min(rate), most.max(rate)];
        self.refusals.iter().fold([1.0, 0.0], ends)
    }

    /// The fewest arrivals of a chain.
    pub fn fewest_arrivals(&self) -> u64 {
        self.arrivals.iter().copied().min().unwrap_or(0)
    }
}

impl Summary {
    /// Whether replicates agree about the evidence.
    pub(super) fn of_evidence(&self) -> Option<Check> {
        let found = self.evidence.as_ref()?;
        let (meaning, advice, level) = if found.spread.is_nan() {
            (
                "one of them cannot show its own error",
                "use --chains 4",
                Level::Caution,
            )
        } else if found.spread > LogEvidence::WIDEST {
            (
                "they differ by more than a nat: the error is rough, and the evidence likely too small",
                match self.exchanges.is_some() {
                    true => "raise --draws or --replicas",
                    false => {
                        "raise --draws (particles) or --thin (transitions at each temperature)"
                    }
                },
                Level::Caution,
            )
        } else {
            let meaning = match self.exchanges.is_some() {
                true => "they agree within a nat",
                // 4 x 1,000 particles were 0.16 ± 0.03 below what chains with replicas found
                false => {
                    "they agree within a nat; a mode that none of them met is not in the error"
                }
            };
            (meaning, "", Level::Good)
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

impl Summary {
    /// Whether chains get positions from the prior.
    pub(super) fn of_exchanges(&self) -> Option<Check> {
        let found = self.exchanges.as_ref()?;
        let fewest = found.fewest_arrivals();
        let enough = (2.0 * found.barrier).ceil();
        let (meaning, advice, level) = match fewest < FEWEST_ARRIVALS {
            true => (
                "too few to show that a chain has been in every mode",
                match (found.replicas as f64) < enough.min(MOST_REPLICAS as f64) {
                    true => format!("raise --replicas to {enough} or so"),
                    false => "give it more time".to_owned(),
                },
                Level::Caution,
            ),
            false => (
                "chains are not held in the mode where they began",
                String::new(),
                Level::Good,
            ),
        };
        Some(Check {
            name: "exchanges".to_owned(),
            value: format!(
                "each chain got {fewest} positions or more that came from the prior; barrier {}",
                number(found.barrier)
            ),
            meaning: meaning.to_owned(),
            advice,
            level,
        })
    }
}

impl EvidenceSummary {
    /// Of replicates; none of none.
    pub(crate) fn of(
        replicates: Vec<f64>,
        temperatures: u64,
        families: Option<u64>,
    ) -> Option<Self> {
        let found = LogEvidence::of(&replicates)?;
        Some(Self {
            log_evidence: found.value,
            error: found.error,
            spread: found.spread,
            temperatures,
            families,
            replicates,
        })
    }

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
