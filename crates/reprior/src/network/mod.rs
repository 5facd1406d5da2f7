//! Fully connected networks in the NTK parametrisation: every weight and bias is N(0, 1) a priori, and a layer is
//! z = (σ_w/√fan_in)·h·W + σ_b·b.
//!
//! [`Architecture`] says what a network is; [`Trunk`] evaluates everything below the readout, and its vjp.

mod activation;
mod architecture;
mod composition;
mod dense;
pub mod infinite;
pub mod layer;
mod trunk;

pub use activation::Activation;
pub use architecture::{Architecture, ArchitectureError, LayerScale};
pub use composition::Composition;
pub use dense::Dense;
pub use trunk::Trunk;
