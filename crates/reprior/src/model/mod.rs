//! Data, prior and likelihood: what the posterior is a posterior of.

mod dataset;

pub use dataset::{Dataset, InputKind, Split, Targets};
