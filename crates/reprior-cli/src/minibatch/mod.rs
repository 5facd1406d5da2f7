//! Methods by minibatches: flags and settings, what they take, their runs, and what is made of them.

mod arguments;
mod check;
mod laplace;
mod mode;
mod plan;
mod predict;
mod record;
mod resolve;
mod run;
mod schema;
mod settings;
mod summary;
mod weights;
mod written;

pub use arguments::MinibatchArguments;
pub use check::check;
pub use laplace::{LaplaceArguments, LaplaceSettings, closed_form, rows_together};
pub use plan::{Plan, command as plan};
pub use predict::predict;
pub use resolve::{Resolved, resolve};
pub use run::run;
pub use settings::MinibatchSettings;
pub use summary::{MinibatchSummary, summarise};
pub use weights::GivenWeights;
