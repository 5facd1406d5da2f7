//! What the groups of a run, and some of their variables, are called.

/// Kept positions.
pub const POSITIONS: &str = "positions";
/// Whole weights.
pub const WEIGHTS: &str = "weights";
/// Running moments of the weights.
pub const MOMENTS: &str = "weight_moments";
/// The variable of learned noise scales, in the group `posterior`.
pub const NOISE: &str = "noise";
/// The variable of learned scales of weights, in the group `posterior`.
pub const WEIGHT_SCALE: &str = "weight_scale";
/// Predictions for the test rows.
pub const PREDICTIONS: &str = "predictions";
/// The variable of standard deviations there, if predictions have any beside the means.
pub const SPREAD: &str = "sd";
/// Some predictions at every draw, where [`PREDICTIONS`] has fewer.
pub const TRACES: &str = "prediction_traces";
/// The variable of means and variances of batch normalisation beside kept positions, where those are trained.
pub const BATCH_NORM: &str = "batch_norm";
/// The variable of kept positions, in the group [`POSITIONS`].
pub const POSITION: &str = "position";
/// Log-likelihoods of training rows.
pub const LOG_LIKELIHOOD: &str = "log_likelihood";
/// The variable of the targets, and of their log-likelihoods.
pub const TARGET: &str = "y";
