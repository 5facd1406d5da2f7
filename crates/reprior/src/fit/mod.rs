//! From data in their own units to predictions in these: [`Regression`] and [`Classification`].
//!
//! | piece | what it does |
//! |---|---|
//! | [`Regression::sample`], [`Classification::sample`] | data and network to a [`Fit`], by chains |
//! | [`Fit::predict`] | new inputs to a [`Prediction`] or to [`ClassProbabilities`] |
//! | [`Fit::summary`] | whether the chains agree: a [`FitSummary`] |
//!
//! Inputs and real targets are standardised column by column, and predictions given back in the targets' own units. All of it
//! runs in double precision. Positions of the chains stay in memory, at most [`SampleSettings::keep`] of each; each prediction
//! evaluates the network at all training rows once for every one of them. What more there is to choose - other likelihoods,
//! priors, layers, single precision - has the modules behind this: a [`Model`](crate::model::Model), its
//! [`Posterior`](crate::posterior::Posterior), a [`Chain`](crate::chain::Chain).

mod classification;
mod data;
mod prediction;
mod problem;
mod regression;
mod sampled;
mod settings;

pub use classification::Classification;
pub use data::AsRow;
pub use prediction::{ClassProbabilities, Prediction};
pub use regression::Regression;
pub use sampled::{Fit, FitSummary};
pub use settings::{FitError, SampleSettings};
