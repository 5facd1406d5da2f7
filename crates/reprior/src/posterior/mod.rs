//! Targets: the same posterior in different coordinates, each a density against the standard normal.
//!
//! [`Target`] is the contract with the samplers. [`NetworkPosterior`] is the library's own implementation, in the
//! [`Coordinates`] of the design: `marginal`, `repriorised`, `standard`; [`TangentPosterior`] repriorises all weights, not the
//! readout's alone. [`Recorder`] turns a position into what a run keeps: predictions in closed form given the inner weights,
//! projections and norms of whole weights.

mod conditional;
mod coordinates;
mod features;
mod fit;
mod network;
mod projection;
mod readout;
mod recorder;
mod repriorisation;
mod tangent;
mod target;

pub use coordinates::{Coordinates, Regulariser, Space};
pub use features::FeatureMap;
pub use network::NetworkPosterior;
pub use projection::Projection;
pub use readout::Readout;
pub use recorder::{DrawRecord, Recorder};
pub use repriorisation::Repriorisation;
pub use tangent::{LogDeterminant, TangentDeterminant, TangentError, TangentPosterior};
pub use target::{Ellipse, EvaluationError, Target};
