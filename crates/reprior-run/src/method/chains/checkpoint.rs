//! What of a chain goes into a checkpoint, and back.

use reprior::chain::Statistics;
use reprior::chain::moments::WeightMoments;
use reprior::chain::snapshot::Snapshot;
use reprior::sampler::State;
use reprior_io::run::{Checkpoint, DrawWriter, RunError, Tensor, Values};
use serde::{Deserialize, Serialize};

use super::ladder::{LadderDocument, LadderNumbers};
use crate::stored::Stored;

/// The part of a checkpoint that is not numbers of the network's precision.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CheckpointDocument {
    transition: u64,
    step_size: Option<f64>,
    #[serde(default, alias = "length")]
    tuned: Option<f64>,
    adaptation: Option<reprior::sampler::kernels::Adaptation>,
    #[serde(default)]
    failures: u64,
    since_record: Statistics,
    /// Of the whole warm-up.
    pub warmup: Statistics,
    /// Of everything after it.
    pub sampling: Statistics,
    /// Coordinates of the chain; 0 where the run is older than this number.
    #[serde(default)]
    pub dimension: u64,
    /// The replicas' part, where the chain has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ladder: Option<LadderDocument>,
    /// How particles came to the posterior, where they did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annealed: Option<Annealed>,
    moments_count: u64,
    /// Wall-clock seconds that the whole run has taken so far.
    pub seconds: f64,
}

/// How the particles of one replicate came from prior to posterior.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Annealed {
    /// In nats, of standardised targets.
    pub log_evidence: f64,
    /// Temperatures on the way.
    pub temperatures: u64,
    /// Draws of the prior that particles descend from.
    pub families: u64,
}

/// Writes a chain's checkpoint; `seconds` is the wall-clock time that the whole run has taken so far, `left_out` what ℓ leaves out of the log-likelihood.
///
/// # Errors
/// A disk that refuses.
pub fn save<R: Stored>(
    writer: &mut DrawWriter,
    snapshot: &Snapshot<R>,
    moments: &WeightMoments,
    annealed: Option<&Annealed>,
    [seconds, left_out]: [f64; 2],
) -> Result<(), RunError> {
    let ladder = snapshot.ladder.as_ref();
    let document = CheckpointDocument {
        transition: snapshot.transition,
        step_size: snapshot.step_size,
        tuned: snapshot.tuned,
        adaptation: snapshot.adaptation.clone(),
        failures: snapshot.failures,
        since_record: snapshot.since_record.clone(),
        warmup: snapshot.warmup.clone(),
        sampling: snapshot.sampling.clone(),
        dimension: snapshot.state.position.len() as u64,
        ladder: ladder.map(|own| LadderDocument::of(own, left_out)),
        annealed: annealed.cloned(),
        moments_count: moments.count,
        seconds,
    };
    let document =
        serde_json::to_value(document).map_err(|error| RunError::Request(error.to_string()))?;
    let state = &snapshot.state;
    let log_ratio = [state.log_ratio];
    let parameters = [moments.mean.len()];
    let position = [state.position.len()];
    let (gradient, momentum) = ([state.gradient.len()], [state.momentum.len()]);
    let ladder = ladder.map(LadderNumbers::of);
    let mut tensors = vec![
        Tensor {
            name: "position",
            shape: &position,
            values: R::values(&state.position),
        },
        Tensor {
            name: "gradient",
            shape: &gradient,
            values: R::values(&state.gradient),
        },
        Tensor {
            name: "momentum",
            shape: &momentum,
            values: R::values(&state.momentum),
        },
        Tensor {
            name: "log_ratio",
            shape: &[1],
            values: Values::F64(&log_ratio),
        },
        Tensor {
            name: "moments_mean",
            shape: &parameters,
            values: Values::F64(&moments.mean),
        },
        Tensor {
            name: "moments_squares",
            shape: &parameters,
            values: Values::F64(&moments.squares),
        },
    ];
    tensors.extend(ladder.iter().flat_map(LadderNumbers::tensors));
    writer.checkpoint(&document, &tensors)
}

/// What a checkpoint says of its chain, for summaries.
///
/// # Errors
/// A damaged checkpoint.
pub fn read_document(checkpoint: &Checkpoint) -> Result<CheckpointDocument, RunError> {
    checkpoint.document_as()
}

/// The chain's state and moments in a checkpoint.
///
/// # Errors
/// A damaged checkpoint, or one of another problem.
pub fn restore<R: Stored>(
    checkpoint: &Checkpoint,
    dimension: usize,
    parameters: usize,
) -> Result<(Snapshot<R>, WeightMoments), RunError> {
    let document = read_document(checkpoint)?;
    let state = State {
        position: R::tensor(checkpoint, "position", &[dimension])?,
        log_ratio: checkpoint.f64("log_ratio", &[1])?[0],
        gradient: optional(checkpoint, "gradient", dimension)?,
        momentum: optional(checkpoint, "momentum", dimension)?,
    };
    let moments = WeightMoments {
        count: document.moments_count,
        mean: checkpoint.f64("moments_mean", &[parameters])?,
        squares: checkpoint.f64("moments_squares", &[parameters])?,
    };
    let ladder = document.ladder.as_ref();
    let ladder = ladder.map(|own| own.restore(checkpoint, dimension));
    let snapshot = Snapshot {
        ladder: ladder.transpose()?,
        transition: document.transition,
        state,
        step_size: document.step_size,
        tuned: document.tuned,
        adaptation: document.adaptation,
        failures: document.failures,
        since_record: document.since_record,
        warmup: document.warmup,
        sampling: document.sampling,
    };
    Ok((snapshot, moments))
}

/// Writes the checkpoint of a chain whose target is no network; `seconds` is the time that it has taken.
///
/// # Errors
/// A disk that refuses.
pub fn save_chain(
    writer: &mut DrawWriter,
    snapshot: &Snapshot<f64>,
    seconds: f64,
) -> Result<(), RunError> {
    save(
        writer,
        snapshot,
        &WeightMoments::new(0),
        None,
        [seconds, 0.0],
    )
}

/// The chain's state in such a checkpoint.
///
/// # Errors
/// A damaged checkpoint, or one of another target.
pub fn restore_chain(checkpoint: &Checkpoint, dimension: usize) -> Result<Snapshot<f64>, RunError> {
    restore(checkpoint, dimension, 0).map(|(snapshot, _)| snapshot)
}

/// A tensor that is as long as the position, or empty.
pub(super) fn optional<R: Stored>(
    checkpoint: &Checkpoint,
    name: &str,
    dimension: usize,
) -> Result<Vec<R>, RunError> {
    let found = checkpoint.tensors().find(|(found, _)| *found == name);
    match found.map_or(0, |(_, shape)| shape.iter().product()) {
        0 => Ok(Vec::new()),
        length if length == dimension => R::tensor(checkpoint, name, &[dimension]),
        _ => Err(RunError::Request(format!(
            "a checkpoint's {name} has another length than its position"
        ))),
    }
}
