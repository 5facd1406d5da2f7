//! The joint law of weights and data (after Geweke 2004).
//!
//! With weights from the prior and data from the likelihood given them, the weights are an exact draw from the posterior
//! given the data. Transitions that leave every posterior invariant leave this joint law as it was, however few they
//! are: whatever was known of weights, data and new function values before holds after. No other sampler is needed, and
//! the whole path takes part: reduction of inputs, features, readout, likelihood, noise scales, sampler, recording.
//!
//! * [`laws`]: every likelihood under every sampler, every coordinate system under every sampler;
//! * [`calibration`]: whole chains, warm-up and adaptation included, that do not start in their posterior;
//! * [`broken`]: faults on purpose, which must come to light.
//!
//! At most 180 z-scores for each of 100 cases of [`laws`]: the largest of 18,000 exceeds 6 with probability 4e-5 over
//! seeds. Faults are beyond 7 standard errors.

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
