//! What tables by width have in common: data, draws from the prior, estimates with their errors.

use std::sync::Arc;

use thiserror::Error;

use crate::compute::{Purpose, Stream};
use crate::model::{InputReduction, Model, ModelError};
use crate::network::Composition;
use crate::posterior::EvaluationError;

/// Regression data with a Gaussian likelihood of known noise.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    /// Standardised inputs, row-major n × d₀.
    pub inputs: &'a [f64],
    /// Targets, column-major n × C.
    pub targets: &'a [f64],
    /// σ, a standard deviation, in units of the targets.
    pub noise: f64,
}

impl Problem<'_> {
    /// The model of `network`.
    ///
    /// # Errors
    /// What does not fit together or is out of range.
    pub fn model(&self, network: Composition) -> Result<Arc<Model<f64>>, ModelError> {
        let (noise, targets) = (self.noise, self.targets.to_vec());
        let model = Model::new(
            network,
            noise,
            self.inputs,
            targets,
            &[],
            InputReduction::Auto,
        )?;
        Ok(Arc::new(model))
    }
}

/// Draws of all inner weights from N(0, I).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriorDraws {
    /// How many, at least 2.
    pub count: usize,
    /// Draw i at a width w comes from the stream (`seed`, w, initial, i).
    pub seed: u64,
}

impl PriorDraws {
    /// Draw `index` of the numbers of a network of the given width.
    pub(super) fn fill(&self, width: usize, index: usize, values: &mut [f64]) {
        Stream::new(self.seed, width as u64, Purpose::Initial, index as u64).fill_normal(values);
    }

    pub(super) fn check(&self) -> Result<(), ExperimentError> {
        if self.count < 2 {
            return Err(ExperimentError::Draws(self.count));
        }
        Ok(())
    }
}

/// A number that was estimated from independent draws.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Its standard error.
    pub standard_error: f64,
}

impl Estimate {
    /// The mean of `values`.
    pub(super) fn mean(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let value = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|x| (x - value).powi(2)).sum();
        Self {
            value,
            standard_error: (squares / (n * (n - 1.0))).sqrt(),
        }
    }

    /// The jackknife (Quenouille 1956, Tukey 1958) of a statistic: its value on all draws less the estimated bias, and the
    /// standard error, from its values `without` each of the draws.
    pub(super) fn jackknife(all: f64, without: &[f64]) -> Self {
        let n = without.len() as f64;
        let mean = without.iter().sum::<f64>() / n;
        let squares: f64 = without.iter().map(|x| (x - mean).powi(2)).sum();
        Self {
            value: n * all - (n - 1.0) * mean,
            standard_error: (squares * (n - 1.0) / n).sqrt(),
        }
    }
}

/// A row of a table by width.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ByWidth<T> {
    /// What the family of networks was asked for.
    pub width: usize,
    /// What was found.
    pub found: T,
}

/// One row for each of `widths`.
pub(super) fn table<T>(
    widths: &[usize],
    mut find: impl FnMut(usize) -> Result<T, ExperimentError>,
) -> Result<Vec<ByWidth<T>>, ExperimentError> {
    let row = |&width: &usize| find(width).map(|found| ByWidth { width, found });
    widths.iter().map(row).collect()
}

/// Why there is no table.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ExperimentError {
    /// Network and data do not fit together.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A draw from the prior at which the posterior has no density.
    #[error(transparent)]
    Evaluation(#[from] EvaluationError),
    /// A training or an approximation that failed.
    #[error("{0}")]
    Training(String),
    /// Too few draws for a standard error.
    #[error("{0} draws from the prior were asked for: a standard error takes at least 2")]
    Draws(usize),
    /// Not a kernel matrix for the targets.
    #[error("{kernel} kernel values and {targets} target values were given for {rows} rows")]
    Kernel {
        /// Values of the kernel.
        kernel: usize,
        /// Values of the targets.
        targets: usize,
        /// Rows.
        rows: usize,
    },
}
