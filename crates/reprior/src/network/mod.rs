//! Fully connected networks in the NTK parametrisation: every weight and bias is N(0, 1) a priori, and a layer is
//! z = (σ_w/√fan_in)·h·W + σ_b·b.
//!
//! [`Architecture`] says what a network is; [`Trunk`] evaluates everything below the readout, and its vjp.

mod activation;
mod architecture;
mod composition;
mod dense;
mod executor;
pub mod layer;
mod operation;
mod trunk;

pub use activation::Activation;
pub use architecture::{Architecture, ArchitectureError, LayerScale};
pub use composition::Composition;
pub use dense::Dense;
pub use executor::{Curvature, Executor, Loss, categorical_curvature, gaussian_curvature};
pub use trunk::Trunk;
