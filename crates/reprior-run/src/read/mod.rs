//! What is read back of a run: diagnostics, metrics, whether the test rows are as predicted.

mod detection;
mod diagnostics;
mod fit;
mod leave_one_out;
mod modes;
mod pit;
mod recorded;
mod stacking;
mod transitions;

pub use detection::Detector;
pub use diagnostics::{Ess, EssSummary};
pub(crate) use diagnostics::{PredictionDiagnostics, Rates};
pub use fit::{Outlier, TestRowsCheck};
pub(crate) use leave_one_out::{ExactLeaveOneOut, LEAVE_ONE_OUT};
pub use leave_one_out::{LeaveOneOutSummary, LeftOutRows};
pub use modes::{EnsembleOfModes, Mode};
pub use pit::PitHistogram;
pub use recorded::Recorded;
pub use stacking::StackingSummary;
pub use transitions::{EnergyErrors, NoiseScale, Stationarity, WeightScale};
