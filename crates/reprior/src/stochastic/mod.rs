//! Minibatch methods: stochastic-gradient Langevin dynamics with preconditioners (Marceau-Caron & Ollivier 2017), and the
//! baselines that they are compared with.
//!
//! With N rows, L̂ the mean over a minibatch of −log p(y | θ) and a prior, an update of step size η is
//! θ ← θ − η·C·∇[L̂ − (1/N) log prior] + √(2η/N)·C^{1/2}·ξ, ξ ~ N(0, I):
//! a Langevin step of size η/N for the posterior, whose drift and noise the [`preconditioner`] C shapes. There is no Metropolis
//! correction: the law is the posterior's only as η → 0 (and as C stops changing); [`StepSize`] says which schedules get there.
//!
//! Weights are in the NTK parametrisation, where a prior N(0, 1) is on every one, or in the standard one
//! ([`Composition::in_standard_parametrisation`](crate::network::Composition::in_standard_parametrisation)) with a [`Prior`].

mod batch_norm;
mod batches;
mod dropout;
mod groups;
mod noise;
pub mod preconditioner;
mod prior;
mod settings;
mod step_size;

// Updates, the data that they are of, and what the program's runs do with the weights that they leave; it changes without notice.
#[doc(hidden)]
pub mod average;
#[doc(hidden)]
pub mod data;
#[doc(hidden)]
pub mod ensemble;
#[doc(hidden)]
pub mod objective;
#[doc(hidden)]
pub mod swag;
#[doc(hidden)]
pub mod update;
#[doc(hidden)]
pub mod validation;

pub(crate) use batches::Batches;
pub(crate) use data::row_loss;
pub(crate) use dropout::leave_units_out;

pub use prior::Prior;
pub use settings::{CurvatureLabels, Dynamics, StochasticGradientSettings};
pub use step_size::StepSize;
