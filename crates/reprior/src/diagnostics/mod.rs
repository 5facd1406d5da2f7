//! Effective sample size, R-hat and Monte-Carlo standard errors of the draws of scalar variables.
//!
//! | question | answer |
//! |---|---|
//! | how many independent draws are these worth? | [`Estimator::ess_bulk`], [`Estimator::ess_tail`], [`Estimator::ess_mean`], …, [`Estimator::ess_tfp`] |
//! | do the chains agree with one another? | [`Estimator::rhat_rank`], [`Draws::rhat_split`], [`Draws::rhat_gelman_rubin`], [`Draws::rhat_squared_hron`], [`Draws::potential_scale_reduction`] |
//! | how far off is this estimate? | [`Estimator::mcse_mean`], [`Estimator::mcse_sd`], [`Estimator::mcse_quantile`] |
//! | can they be believed? | [`Convergence::of`], with known error rates |
//! | do they still move one way? | [`Estimator::drift`] |
//! | how long does a chain remember? | [`Estimator::autocorrelation`] |
//! | does the momentum explore the energies? | [`bfmi`] |
//! | how well are rows predicted that were left out? | [`LeaveOneOut`] |
//! | which chains predict them best together? | [`stacking_weights`] |
//! | all of the usual, for many variables | [`Estimator::summarise`] |
//!
//! Everything takes [`Draws`], one variable's draws of one or more chains. What needs no workspace is a function;
//! the rest are methods of [`Estimator`], which keeps Fourier plans and buffers from one variable to the next.
//!
//! A statistic that is not defined for what it was given is NaN, never an error and never a panic:
//!
//! | given | ESS | R-hat | standard errors |
//! |---|---|---|---|
//! | a NaN among the draws | NaN | NaN | NaN |
//! | fewer than 4 draws a chain | NaN | NaN | NaN |
//! | one chain | defined | NaN | defined |
//! | every draw the same | the number of draws | NaN | 0 (of the standard deviation: NaN) |
//!
//! These are ArviZ's conventions. The functions that follow TensorFlow Probability or Hron et al. (2022) say where they differ.

mod autocorrelation;
mod autocovariance;
pub(crate) mod beta;
mod convergence;
mod draws;
mod drift;
mod energy;
mod ess;
mod estimator;
mod loo;
mod mcse;
mod moments;
pub(crate) mod normal;
mod pareto;
mod ranks;
mod rhat;
mod stacking;
mod student;
mod summary;

pub use convergence::Convergence;
pub use draws::{DiagnosticsError, Draws};
pub use energy::bfmi;
pub use ess::Truncation;
pub use estimator::Estimator;
pub use loo::{LARGEST_PARETO_K, LeaveOneOut, RowSum};
pub use pareto::GeneralisedPareto;
pub use stacking::{stacked, stacking_weights};
pub use student::student_cdf;
pub use summary::{Spread, VariableSummary};
