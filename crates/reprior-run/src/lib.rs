//! A run: settings in, draws, a summary and predictions out, in a folder that can be gone on with.
//!
//! [`Settings`] say what is asked for; [`sample`] makes the run and [`resume`] goes on with one; [`summarise`] says how good the draws
//! are and whether to believe them; a [`Predictor`] predicts for new inputs; [`plan`] says beforehand what a run takes. Front ends -
//! the program, the report, other languages - decide nothing of it.
//!
//! Inside, from bottom to top: `settings`; `predictive`, draws of predictions; `problem`, data and network; `record`, what is written;
//! `read`, what is read back; `effects`, what the inputs of a table do; `summary`, with the verdict; `method`, one family of methods each; `run`, all of it in order; `merge`, several runs in one.

mod by_target;
mod check;
mod difference;
mod effects;
mod failure;
mod instructions;
mod joint;
mod merge;
mod method;
mod predict;
mod predictive;
mod problem;
mod read;
mod record;
mod rhat_so_far;
mod run;
mod settings;
mod shard;
mod stored;
mod summary;
pub mod words;

pub use by_target::{TargetMetrics, target_rows};
pub use effects::{ColumnImportance, Dependence, InputEffects, Rise};
pub use failure::Failure;
pub use joint::JointPrediction;
pub use merge::{MergeOptions, merge};
pub use method::{Benchmark, More, Options, Plan, TimedPart, Watcher, restore_chain, save_chain};
pub use predict::{
    PredictedOutput, PredictedRows, PredictionReport, PredictionRequest, Predictor, Told, rotated,
};
pub use predictive::Metrics;
pub use problem::{DataDescription, Problem};
pub use read::{
    EnergyErrors, EnsembleOfModes, Ess, EssSummary, LeaveOneOutSummary, LeftOutRows, Mode,
    NoiseScale, Outlier, PitHistogram, Recorded, StackingSummary, Stationarity, TestRowsCheck,
    WeightScale,
};
pub use record::kept_in_words;
pub use rhat_so_far::RhatSoFar;
pub use run::{
    NewRun, benchmark, earlier_run, plan, plan_with_time, prepare, prepare_given, resume,
    resume_in, sample, sample_in_memory, sample_or_resume, summarise,
};
pub use settings::*;
pub use shard::{ShardPositions, ShardRows, predict_by_shards, shard};
pub use stored::Stored;
pub use summary::{
    Check, EvidenceSummary, ExchangeSummary, LaplaceFitSummary, LeftOutSummary, Level,
    MinibatchSummary, Summary, Verdict,
};
