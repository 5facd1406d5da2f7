//! Networks in the NTK parametrisation: every weight and bias is N(0, 1) a priori, and a layer is
//! z = (σ_w/√fan_in)·h·W + σ_b·b.
//!
//! [`Composition`] says what a network is, [`Named`] makes those that have names, and [`ParameterLayout`] says where each layer's
//! parameters are. [`Executor`] evaluates and differentiates any network.
//! [`EmpiricalKernels`] are kernels at given weights, [`infinite`] has those of infinitely wide networks.

mod activation;
mod composition;
mod covariance;
mod empirical;
mod executor;
mod fully_connected;
pub mod infinite;
pub mod layer;
mod named;
mod operation;
mod parameters;
mod scale;

pub use activation::Activation;
pub use composition::{Composition, NetworkError};
pub use empirical::EmpiricalKernels;
pub use executor::{Curvature, Executor, Factor, Factors, GradientStatistics, Loss, Moments};
pub(crate) use executor::{
    Dropout, Evaluation, Features, Gradients, Inputs, Minibatch, UnitSums, scale_by,
};
pub use fully_connected::HiddenLayer;
pub use named::{NETWORKS, Named, Scaling};
pub use operation::Spread;
pub use parameters::{ParameterLayout, ParameterMatrix};
pub use scale::LayerScale;
