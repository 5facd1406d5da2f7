//! Samples the posterior of Bayesian neural networks.
//!
//! Rooms, each using only those below it in this list:
//! [`experiment`], [`chain`], [`stochastic`], [`sampler`], [`posterior`], [`model`], [`metrics`], [`diagnostics`],
//! [`gaussian_process`], [`network`], [`compute`].

pub mod chain;
pub mod compute;
pub mod diagnostics;
pub mod experiment;
pub mod gaussian_process;
pub mod laplace;
pub mod metrics;
pub mod model;
pub mod network;
pub mod posterior;
pub mod sampler;
pub mod stochastic;
