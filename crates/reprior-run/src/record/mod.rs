//! What a run records, and how often: the schema of its draws, statistics, predictions, a budget of bytes.

mod disk;
mod groups;
mod keeping;
mod predictions;
mod schema;
mod scored;
mod statistics;

pub use disk::Destination;
pub use groups::{
    BATCH_NORM, LOG_LIKELIHOOD, MOMENTS, NOISE, POSITION, POSITIONS, PREDICTIONS, SPREAD, TARGET,
    TRACES, WEIGHT_SCALE, WEIGHTS,
};
pub use keeping::{Keeping, Load, Traces, kept_in_words, megabytes};
pub use predictions::{PredictionRecord, split_layer};
pub use schema::{
    LayerTensors, SchemaContents, group, learned_noise, learned_scales, outputs, predictions,
    schema, targets, tensors, traces_of, variable, with_names,
};
pub use scored::{log_unit, scored_rows};
pub(crate) use statistics::statistics;
pub use statistics::{Scalar, count, scalar};
