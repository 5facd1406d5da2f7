//! Targets: the same posterior in different coordinates, each a density against the standard normal.
//!
//! [`Target`] is the contract with the samplers. [`Posterior`] is the library's own implementation, in the
//! [`Coordinates`] `marginal`, `repriorised` and `standard`, and in `tangent` ones, which repriorise all weights, not the
//! readout's alone. [`Recorder`] turns a position into what a run keeps: predictions in closed form given the inner weights,
//! projections and norms of whole weights. [`Shards`] are a posterior whose rows are in several parts.

mod approach;
mod conditional;
mod coordinates;
mod leave_one_out;
mod network;
mod output_likelihood;
mod recorder;
mod repriorised;
mod ridge;
mod scaled;
mod shards;
mod tempered;
mod widened;

// Parts of `Posterior` that tests, plans and experiments look at one by one; they change without notice.
#[doc(hidden)]
pub mod features;
#[doc(hidden)]
pub mod projection;
#[doc(hidden)]
pub mod readout;
#[doc(hidden)]
pub mod repriorisation;
#[doc(hidden)]
pub mod tangent;
#[doc(hidden)]
pub mod target;

pub use coordinates::{Coordinates, Regulariser, Space};
#[doc(hidden)]
pub use network::{Posterior, PosteriorError, PosteriorSettings};
pub use recorder::{DrawRecord, Recorder};
pub use shards::{Shard, ShardError, Shards, Total, add};
pub use tangent::TangentDeterminant;
pub use target::{EvaluationError, Target};
pub use tempered::Tempered;
