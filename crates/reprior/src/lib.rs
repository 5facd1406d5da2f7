//! Samples the posterior of Bayesian neural networks.
//!
//! Rooms, each using only those below it in this list:
//!
//! - [`chain`]: many chains over threads, warm-up, checkpoints.
//! - [`laplace`]: Laplace approximations and diffusions around trained weights.
//! - [`stochastic`]: methods by minibatches.
//! - [`sampler`]: transition kernels.
//! - [`posterior`]: the same posterior in different coordinates; [`posterior::Target`] is the contract with samplers.
//! - [`model`]: data, prior and likelihood.
//! - [`gaussian_process`]: regression with given kernels.
//! - [`network`]: layers, their derivatives, kernels of infinite width.
//! - [`compute`]: dense kernels and random streams.
//! - [`metrics`]: how good predictions are.
//! - [`diagnostics`]: effective sample sizes, R-hat, Monte-Carlo standard errors.

pub mod chain;
pub mod compute;
pub mod diagnostics;
pub mod gaussian_process;
pub mod laplace;
pub mod metrics;
pub mod model;
pub mod network;
pub mod posterior;
pub mod sampler;
pub mod stochastic;
