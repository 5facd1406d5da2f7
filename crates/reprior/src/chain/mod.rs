//! Many chains: warm-up, thinning, recording, checkpoints, cancellation, progress.
//!
//! A [`Chain`] is a target, a sampler and where they are; an [`Observer`] sees what a chain produces; a [`MinibatchChain`](minibatch::MinibatchChain) and a
//! [`MinibatchObserver`](minibatch::MinibatchObserver) are their like for minibatch methods; [`run`] drives any number of either on any number of
//! threads. Each transition has a random stream of its own, so results depend neither
//! on the number of threads nor on interruptions.

mod exchange;
mod heeding;
pub mod ladder;
mod observer;
mod progress;
mod schedule;
mod single;
mod start;
mod statistics;

// What the program's runs need beyond chains of one's own: minibatch chains, how any chain is driven, checkpoints, modes, running moments. It changes without notice.
#[doc(hidden)]
pub mod driver;
#[doc(hidden)]
pub mod minibatch;
#[doc(hidden)]
pub mod mode;
#[doc(hidden)]
pub mod moments;
#[doc(hidden)]
pub mod snapshot;

pub use driver::{Control, DriverError, RunOutcome, run};
pub use observer::{Collect, Observer};
pub use progress::{Progress, ProgressDetails};
pub use schedule::Schedule;
pub use single::Chain;
pub use snapshot::StartError;
pub use statistics::Statistics;
