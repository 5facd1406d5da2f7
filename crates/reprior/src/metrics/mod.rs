//! How good predictions are: error, likelihood, accuracy, calibration.
//!
//! | predictions | metrics |
//! |---|---|
//! | real outputs | [`rmse`] |
//! | a member of a [`PredictiveFamily`] (Gaussian, Student-t, Poisson) per draw, mixed over draws | [`PredictiveFamily::mixture_nll`]; of one output, [`Mixture`]'s distribution function and quantiles |
//! | class probabilities | [`ClassPredictions`]: accuracy, Brier score, negative log-likelihood, mean confidence, reliability |
//! | uncertainties ([`UncertaintyScore`](detection::UncertaintyScore)) of inputs like the training data and of others | [`Detection`](detection::Detection): AUROC, average precision, FPR95 |
//! | whether as many rows are hit as the model expects | [`PredictiveCheck`](predictive_check::PredictiveCheck), with a known error rate |
//! | reliability of class probabilities | [`ReliabilityBin::expected_calibration_error`], [`ReliabilityBin::maximum_calibration_error`] |
//!
//! Logarithms are natural; likelihoods are in nats. None of the metrics depends on the order of the rows, up to rounding.

mod calibration;
mod classification;
mod error;
mod family;
mod mixture;
mod mixture_nll;
pub(crate) mod poisson;
mod regression;

// Statistics that the program's summaries show; they change without notice.
#[doc(hidden)]
pub mod detection;
#[doc(hidden)]
pub mod predictive_check;

pub use calibration::ReliabilityBin;
pub use classification::ClassPredictions;
pub use error::MetricsError;
pub use family::{PredictiveFamily, PredictiveLaw};
pub use mixture::Mixture;
pub use regression::rmse;
