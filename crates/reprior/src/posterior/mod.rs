//! Targets: the same posterior in different coordinates, each a density against the standard normal.
//!
//! [`Target`] is the contract with the samplers. [`Posterior`] is the library's own implementation, in the
//! [`Coordinates`] `marginal`, `repriorised` and `standard`, and in `tangent` ones, which repriorise all weights, not the
//! readout's alone. [`Recorder`] turns a position into what a run keeps: predictions in closed form given the inner weights,
//! projections and norms of whole weights.

mod conditional;
mod coordinates;
mod features;
mod network;
mod output_likelihood;
mod projection;
mod readout;
mod recorder;
mod repriorisation;
mod repriorised;
mod tangent;
mod target;

pub use coordinates::{Coordinates, Regulariser, Space};
pub use features::FeatureMap;
pub use network::{Posterior, PosteriorError, PosteriorSettings};
pub use projection::Projection;
pub use readout::Readout;
pub use recorder::{DrawRecord, Recorder};
pub use repriorisation::Repriorisation;
pub use tangent::{LogDeterminant, TangentDeterminant, TangentMap};
pub use target::{Ellipse, EvaluationError, Target};
