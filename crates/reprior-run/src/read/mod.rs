//! What is read back of a run: diagnostics, metrics, whether the test rows are as predicted.

mod detection;
mod diagnostics;
mod fit;
mod recorded;
mod transitions;

pub use detection::Detector;
pub use diagnostics::{Ess, EssSummary};
pub(crate) use diagnostics::{PredictionDiagnostics, Rates};
pub use fit::TestRowsCheck;
pub use recorded::Recorded;
pub use transitions::{EnergyErrors, NoiseScale, Stationarity};
