//! How long and how to sample, and what may go wrong.

use std::thread::available_parallelism;

use thiserror::Error;

use crate::chain::{Schedule, StartError};
use crate::metrics::MetricsError;
use crate::model::ModelError;
use crate::posterior::{Coordinates, EvaluationError, PosteriorError};
use crate::sampler::{SamplerSettings, SettingsError};

/// How to sample. By default four chains of `hmc-infinite`, 200 transitions of warm-up and 250 draws of each.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleSettings {
    /// The algorithm and its step size.
    pub sampler: SamplerSettings,
    /// What chains live in; `marginal` for regression and `repriorised` for classification if `None`.
    pub coordinates: Option<Coordinates>,
    /// Independent chains, at least 1; whether they agree is known from 2 on.
    pub chains: usize,
    /// Transitions before the first draw; the method's default if `None`.
    pub warmup: Option<u64>,
    /// Draws of each chain, at least 1; the method's default if `None`.
    pub draws: Option<u64>,
    /// Transitions from one draw to the next, at least 1; the method's default if `None`.
    pub thin: Option<u64>,
    /// Key of every random number: the same seed gives the same draws on any number of threads.
    pub seed: u64,
    /// Threads, at least 1; one per core unless given. Where there are more than chains, they share the work of each chain.
    pub threads: usize,
    /// Positions of each chain that are kept for predictions, evenly spaced over its draws, at least 1.
    pub keep: u64,
}

impl Default for SampleSettings {
    fn default() -> Self {
        Self {
            sampler: SamplerSettings::default(),
            coordinates: None,
            chains: 4,
            warmup: None,
            draws: None,
            thin: None,
            seed: 0,
            threads: available_parallelism().map_or(1, usize::from),
            keep: 100,
        }
    }
}

impl SampleSettings {
    /// Numbers of chains, transitions and draws.
    ///
    /// # Errors
    /// Settings out of range.
    pub(super) fn schedule(&self) -> Result<Schedule, FitError> {
        self.sampler.check()?;
        let [warmup, draws, thin] = self.sampler.method.default_lengths();
        let schedule = Schedule {
            chains: self.chains,
            warmup: self.warmup.unwrap_or(warmup),
            draws: self.draws.unwrap_or(draws),
            thin: self.thin.unwrap_or(thin),
            seed: self.seed,
        };
        schedule.check()?;
        if self.keep == 0 {
            return Err(StartError::Zero("kept positions (keep)").into());
        }
        Ok(schedule)
    }
}

/// Why there is no fit, or no prediction.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum FitError {
    /// No rows, or rows without numbers.
    #[error("{0}: there are none: give at least one row of at least one number")]
    Empty(&'static str),
    /// Rows of different lengths.
    #[error(
        "{what}: row {row} has {found} numbers, not {expected}: all rows need the same columns"
    )]
    Columns {
        /// Inputs, targets or new inputs.
        what: &'static str,
        /// Which row, counted from 0.
        row: usize,
        /// Its length.
        found: usize,
        /// The length of the others.
        expected: usize,
    },
    /// A NaN or an infinity.
    #[error("{what}: row {row}, column {column} is {value}: leave such rows out, or fill them in")]
    NotFinite {
        /// Inputs, targets or new inputs.
        what: &'static str,
        /// Which row, counted from 0.
        row: usize,
        /// Which column, counted from 0.
        column: usize,
        /// The number.
        value: f64,
    },
    /// Not one target a row.
    #[error(
        "there are {inputs} rows of inputs and {targets} of targets: give one target for each input"
    )]
    Rows {
        /// Rows of the inputs.
        inputs: usize,
        /// Rows of the targets.
        targets: usize,
    },
    /// Nothing to tell apart.
    #[error("all labels are `{0}`: classification takes at least two classes")]
    OneClass(String),
    /// Not one noise scale, or one per output.
    #[error("noise: {0}")]
    Noise(String),
    /// A sampler that cannot be.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Network and data that do not fit together.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Coordinates that the model does not have.
    #[error(transparent)]
    Posterior(#[from] PosteriorError),
    /// A chain without a starting position.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A posterior that could not be evaluated.
    #[error(transparent)]
    Evaluation(#[from] EvaluationError),
    /// Predictions that left the range of numbers.
    #[error(transparent)]
    Prediction(#[from] MetricsError),
    /// A chain that could not go on.
    #[error("{0}")]
    Run(String),
    /// It was asked to stop.
    #[error("stopped before every draw was made")]
    Stopped,
}
