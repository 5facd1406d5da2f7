//! What an experiment is.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use reprior::laplace::spectrum::SpectrumError;
use serde::Serialize;
use thiserror::Error;

use crate::{DataFolder, Figure, Finding, Row, Table};

/// Whose figure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paper {
    /// Hron, Novak, Pennington, Sohl-Dickstein 2022.
    Hron,
    /// Pezzetti, Favaro, Peluchetti 2024.
    Pezzetti,
    /// Roy, Miani et al. 2024.
    Roy,
    /// Marceau-Caron, Ollivier 2017.
    Marceau,
    /// Nobody's: a comparison of ours.
    Ours,
}

impl fmt::Display for Paper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hron => "Hron et al. 2022",
            Self::Pezzetti => "Pezzetti et al. 2024",
            Self::Roy => "Roy, Miani et al. 2024",
            Self::Marceau => "Marceau-Caron, Ollivier 2017",
            Self::Ours => "reprior",
        })
    }
}

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Size {
    /// A minute: shrunk, for tests.
    Quick,
    /// Seconds to an hour and a half on two cores.
    Default,
    /// Hours on two cores: where the paper's claims can be seen.
    Long,
    /// The paper's own.
    Full,
}

impl Size {
    /// One of four, by size.
    pub fn pick<T>(self, quick: T, default: T, long: T, full: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Default => default,
            Self::Long => long,
            Self::Full => full,
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.pick("quick", "default", "long", "full"))
    }
}

/// What an experiment is about.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// What `reprior reproduce` calls it.
    pub name: &'static str,
    /// Whose figure.
    pub paper: Paper,
    /// Which figure, table or proposition.
    pub figure: &'static str,
    /// What is measured, in a sentence.
    pub what: &'static str,
    /// The folder of data that it wants; none if it makes its own.
    pub data: Option<&'static str>,
    /// About how long each size takes on two cores: quick, default, long, full.
    pub cost: [&'static str; 4],
}

/// What is measured at once: a name for every choice.
pub type Cell = Row;

/// What cells are measured with.
#[derive(Clone, Copy)]
pub struct Bench<'a> {
    /// How much is measured.
    pub size: Size,
    /// Where data come from.
    pub data: &'a DataFolder,
    /// Threads for chains.
    pub threads: usize,
    /// Set from anywhere to stop.
    pub stop: &'a AtomicBool,
    /// Called now and then with the part of the cell that is done, in [0, 1].
    pub progress: &'a (dyn Fn(f64) + Sync),
}

impl Bench<'_> {
    /// Reports progress.
    ///
    /// # Errors
    /// [`Failure::Stopped`] if it was asked to stop.
    pub fn advance(&self, part: f64) -> Result<(), Failure> {
        (self.progress)(part);
        if self.stop.load(Ordering::Relaxed) {
            return Err(Failure::Stopped);
        }
        Ok(())
    }
}

/// A table or figure of a paper.
pub trait Experiment: Sync {
    /// What it is about.
    fn about(&self) -> About;

    /// What is measured, in order. `as_published` adds the published algorithm where that one is faulty.
    fn cells(&self, size: Size, as_published: bool) -> Vec<Cell>;

    /// The folders of data that a size wants.
    fn data(&self, _: Size) -> Vec<&'static str> {
        self.about().data.into_iter().collect()
    }

    /// Refuses data that are not there, or too few of them for these cells, before any work.
    ///
    /// # Errors
    /// What is not there, with the way out.
    fn check_data(&self, size: Size, cells: &[Cell], data: &DataFolder) -> Result<(), Failure> {
        let most = cells.iter().map(|cell| cell.number("n"));
        let most = most.fold(2.0, f64::max) as usize;
        let mut wanted = self.data(size).into_iter();
        wanted.try_for_each(|name| data.images(name, most).map(|_| ()))
    }

    /// Measures one cell: rows of the table `results`, which is shown, and of any others.
    ///
    /// # Errors
    /// [`Failure`] says what is not there or went wrong.
    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure>;

    /// The tables that claims are judged by.
    fn judged_tables(&self) -> &'static [&'static str] {
        &[Row::RESULTS]
    }

    /// The claims, given all that was measured.
    fn findings(&self, tables: &[Table]) -> Vec<Finding>;

    /// The figures to draw.
    fn figures(&self) -> Vec<Figure>;
}

/// An experiment that could not be made.
#[derive(Debug, Error)]
pub enum Failure {
    /// It was asked to stop.
    #[error("stopped; what was measured is kept")]
    Stopped,
    /// Data that are not there or cannot be used.
    #[error(transparent)]
    Data(#[from] reprior_io::data::DataError),
    /// What was asked for cannot be.
    #[error("{0}")]
    Request(String),
    /// A computation that failed.
    #[error("{0}")]
    Failed(String),
    /// A file that could not be read or written.
    #[error("{path}: {error}")]
    Io {
        /// Which.
        path: String,
        /// What the system said.
        error: std::io::Error,
    },
}

impl Failure {
    /// A computation that failed.
    pub fn failed(error: impl fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }

    /// For `map_err`: a file at `path`.
    pub fn io(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.display().to_string();
        move |error| Self::Io { path, error }
    }
}

impl From<SpectrumError> for Failure {
    fn from(error: SpectrumError) -> Self {
        match error {
            SpectrumError::Stopped => Self::Stopped,
            error => Self::failed(error),
        }
    }
}

/// Computations fail with many types of errors; what counts is what they say.
macro_rules! failures_of_computations {
    ($($error:ty),+ $(,)?) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::failed(error)
            }
        })+
    };
}

failures_of_computations!(
    reprior::chain::StartError,
    reprior::gaussian_process::GaussianProcessError,
    reprior::laplace::LaplaceError,
    reprior::metrics::MetricsError,
    reprior::model::ModelError,
    reprior::network::NetworkError,
    reprior::network::infinite::InfiniteError,
    reprior::network::layer::ShapeError,
    reprior::posterior::EvaluationError,
    reprior::posterior::PosteriorError,
    reprior::sampler::Fatal,
    reprior::stochastic::update::StochasticGradientError,
    reprior::stochastic::objective::ObjectiveError,
    crate::width::ExperimentError,
);
