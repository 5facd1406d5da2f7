//! The joint law of weights and data (after Geweke 2004).
//!
//! With weights from the prior and data from the likelihood given them, the weights are an exact draw from the posterior
//! given the data. Transitions that leave every posterior invariant leave this joint law as it was, however few they
//! are: whatever was known of weights, data and new function values before holds after. No other sampler is needed, and
//! the whole path takes part: reduction of inputs, features, readout, likelihood, noise scales, sampler, recording.

#![allow(clippy::unwrap_used)]

mod broken;
mod calibration;
mod case;
mod distorted;
mod experiment;
mod inverse;
mod kernel;
mod laws;
mod prior;
mod ranks;
mod replicate;
mod statistics;

/// Standard errors that the largest z-score of a case stays below when all is right.
const LIMIT: f64 = 6.0;
/// z-scores of one case, at most.
const MOST_SCORES: usize = 180;
