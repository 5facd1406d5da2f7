//! What of a chain's replicas goes into a checkpoint, and back; and what a summary says of them.

use reprior::chain::ladder::{Exchanges, Ladder, Replica};
use reprior::sampler::State;
use reprior::sampler::kernels::Adaptation;
use reprior_io::run::{Checkpoint, RunError, Tensor, Values};
use serde::{Deserialize, Serialize};

use super::checkpoint::optional;
use crate::stored::Stored;

/// The part of a ladder that is not of floating-point numbers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LadderDocument {
    step_sizes: Vec<Option<f64>>,
    adaptations: Vec<Option<Adaptation>>,
    is_fresh: Vec<bool>,
    /// Exchanges tried, by pair.
    tried: Vec<u64>,
    /// How many of them were refused, on average.
    pub refusals: Vec<f64>,
    /// Positions that came from the prior to the chain.
    pub arrivals: u64,
    /// In nats, of standardised targets; absent before there is one.
    pub log_evidence: Option<f64>,
}

/// The numbers of a ladder, one after the other.
pub struct LadderNumbers<R> {
    count: [usize; 1],
    pairs: [usize; 1],
    betas: Vec<f64>,
    log_ratios: Vec<f64>,
    refused: Vec<f64>,
    log_weights: Vec<f64>,
    /// Position, gradient and momentum of all replicas, each with its length.
    states: [(Vec<R>, [usize; 1]); 3],
}

const STATES: [&str; 3] = ["replica_positions", "replica_gradients", "replica_momenta"];

impl LadderDocument {
    /// Of a ladder, of a log-density that leaves out a constant.
    pub fn of<R: Stored>(ladder: &Ladder<R>, left_out: f64) -> Self {
        let replicas = || ladder.replicas.iter();
        let log_evidence = ladder.log_evidence().map(|found| found + left_out);
        Self {
            step_sizes: replicas().map(|own| own.step_size).collect(),
            adaptations: replicas().map(|own| own.adaptation.clone()).collect(),
            is_fresh: replicas().map(|own| own.is_fresh).collect(),
            tried: ladder.exchanges.iter().map(|own| own.tried).collect(),
            refusals: ladder.exchanges.iter().map(Exchanges::refusal).collect(),
            arrivals: ladder.arrivals,
            log_evidence: log_evidence.filter(|found| found.is_finite()),
        }
    }

    /// Whether every pair has tried an exchange, before which nothing is known of how often they are refused.
    pub fn has_tried(&self) -> bool {
        self.tried.iter().all(|&tried| tried > 0)
    }

    /// The ladder, with its numbers.
    ///
    /// # Errors
    /// A damaged checkpoint.
    pub fn restore<R: Stored>(
        &self,
        checkpoint: &Checkpoint,
        dimension: usize,
    ) -> Result<Ladder<R>, RunError> {
        let count = self.step_sizes.len();
        let pairs = self.tried.len();
        if [
            self.adaptations.len(),
            self.is_fresh.len(),
            pairs.wrapping_sub(1),
        ] != [count; 3]
        {
            return Err(RunError::Request(
                "a checkpoint's replicas are not of one number".to_owned(),
            ));
        }
        let betas = checkpoint.f64("replica_betas", &[count])?;
        let log_ratios = checkpoint.f64("replica_log_ratios", &[count])?;
        let refused = checkpoint.f64("exchanges_refused", &[pairs])?;
        let log_weights = checkpoint.f64("exchanges_log_weights", &[pairs])?;
        let whole = count * dimension;
        let [positions, gradients, momenta] = [
            R::tensor(checkpoint, STATES[0], &[whole])?,
            optional(checkpoint, STATES[1], whole)?,
            optional(checkpoint, STATES[2], whole)?,
        ];
        let part = |all: &[R], at: usize| match all.is_empty() {
            true => Vec::new(),
            false => all[at * dimension..(at + 1) * dimension].to_vec(),
        };
        let replica = |at: usize| Replica {
            beta: betas[at],
            state: State {
                position: part(&positions, at),
                log_ratio: log_ratios[at],
                gradient: part(&gradients, at),
                momentum: part(&momenta, at),
            },
            step_size: self.step_sizes[at],
            adaptation: self.adaptations[at].clone(),
            is_fresh: self.is_fresh[at],
        };
        let exchanges = |pair: usize| Exchanges {
            tried: self.tried[pair],
            refused: refused[pair],
            log_weights: log_weights[pair],
        };
        Ok(Ladder {
            replicas: (0..count).map(replica).collect(),
            exchanges: (0..pairs).map(exchanges).collect(),
            arrivals: self.arrivals,
        })
    }
}

impl<R: Stored> LadderNumbers<R> {
    /// Of a ladder.
    pub fn of(ladder: &Ladder<R>) -> Self {
        let replicas = || ladder.replicas.iter();
        let exchanges = || ladder.exchanges.iter();
        let whole = |part: fn(&State<R>) -> &Vec<R>| {
            let all: Vec<R> = replicas()
                .flat_map(|own| part(&own.state))
                .copied()
                .collect();
            let length = [all.len()];
            (all, length)
        };
        Self {
            count: [ladder.replicas.len()],
            pairs: [ladder.exchanges.len()],
            betas: replicas().map(|own| own.beta).collect(),
            log_ratios: replicas().map(|own| own.state.log_ratio).collect(),
            refused: exchanges().map(|own| own.refused).collect(),
            log_weights: exchanges().map(|own| own.log_weights).collect(),
            states: [
                whole(|state| &state.position),
                whole(|state| &state.gradient),
                whole(|state| &state.momentum),
            ],
        }
    }

    /// As a checkpoint has them.
    pub fn tensors(&self) -> Vec<Tensor<'_>> {
        let (count, pairs) = (&self.count[..], &self.pairs[..]);
        let numbers = [
            ("replica_betas", count, &self.betas),
            ("replica_log_ratios", count, &self.log_ratios),
            ("exchanges_refused", pairs, &self.refused),
            ("exchanges_log_weights", pairs, &self.log_weights),
        ];
        let numbers = numbers.map(|(name, shape, values)| Tensor {
            name,
            shape,
            values: Values::F64(values),
        });
        let states = STATES.into_iter().zip(&self.states);
        let states = states.map(|(name, (values, shape))| Tensor {
            name,
            shape,
            values: R::values(values),
        });
        numbers.into_iter().chain(states).collect()
    }
}
