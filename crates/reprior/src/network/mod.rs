//! Networks in the NTK parametrisation: every weight and bias is N(0, 1) a priori, and a layer is
//! z = (σ_w/√fan_in)·h·W + σ_b·b.
//!
//! Fully connected ones: [`Architecture`] says what a network is; [`Trunk`] evaluates everything below the readout, and its
//! vjp. Networks of any layers: [`Composition`] says what a network is, [`Named`] makes those that have names, and
//! [`Executor`] evaluates and differentiates them; [`EmpiricalKernels`] are their kernels at given weights.

mod activation;
mod architecture;
mod composition;
mod covariance;
mod dense;
mod empirical;
mod executor;
pub mod infinite;
pub mod layer;
mod named;
mod operation;
mod trunk;

pub use activation::Activation;
pub use architecture::{Architecture, ArchitectureError, LayerScale};
pub use composition::{Composition, ParameterMatrix};
pub use dense::Dense;
pub use empirical::EmpiricalKernels;
pub use executor::{Curvature, Executor, Factor, Factors, Loss, Moments};
pub use named::{NETWORKS, Named, Scaling};
pub use operation::Spread;
pub use trunk::Trunk;
pub(crate) use trunk::scale_by;
