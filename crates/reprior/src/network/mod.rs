//! Networks in the NTK parametrisation: every weight and bias is N(0, 1) a priori, and a layer is
//! z = (σ_w/√fan_in)·h·W + σ_b·b.
//!
//! [`Composition`] says what a network is, [`Named`](named::NamedNetwork) makes those that have names, and [`ParameterLayout`](parameters::ParameterLayout) says where each layer's
//! parameters are. [`Executor`] evaluates and differentiates any network.
//! [`EmpiricalKernels`](empirical::EmpiricalKernels) are kernels at given weights, [`infinite`] has those of infinitely wide networks.

mod activation;
mod composition;
mod covariance;
mod fully_connected;
pub mod infinite;
pub mod layer;
mod operation;
mod scale;
mod statistics;

// Named networks, kernels at given weights and sums over samples, for the program and the experiments; they change without notice.
#[doc(hidden)]
pub mod empirical;
#[doc(hidden)]
pub mod executor;
#[doc(hidden)]
pub mod named;
#[doc(hidden)]
pub mod parameters;

pub use activation::Activation;
pub use composition::{Composition, NetworkError};
pub(crate) use executor::{
    Dropout, Evaluation, Features, Gradients, Minibatch, NetworkInputs, Part, Parts, UnitSums,
};
pub use executor::{Executor, GradientStatistics};
pub(crate) use fully_connected::HiddenLayer;
pub(crate) use operation::MatrixGaussian;
pub use scale::LayerScale;
