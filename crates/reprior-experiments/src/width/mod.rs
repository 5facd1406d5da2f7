//! What changes with the width of a network, over draws from its prior: how far the posterior is from the prior
//! ([`divergences`]) and how far its gradient is from the prior's ([`gradient_gaps`]).

mod divergence;
mod gradient_gap;

use std::sync::Arc;

use thiserror::Error;

use reprior::compute::{Purpose, Stream};
use reprior::model::{InputReduction, Model, ModelError};
use reprior::network::Composition;
use reprior::posterior::{EvaluationError, PosteriorError};

pub(crate) use divergence::log_mean;
pub use divergence::{Divergences, divergences, limit_of_divergence};
pub use gradient_gap::{GradientGaps, gradient_gaps};

/// Regression data with a Gaussian likelihood of known noise.
#[derive(Debug, Clone, Copy)]
pub struct WidthProblem<'a> {
    /// Standardised inputs, row-major n × d₀.
    pub inputs: &'a [f64],
    /// Targets, column-major n × C.
    pub targets: &'a [f64],
    /// σ, a standard deviation, in units of the targets.
    pub noise: f64,
}

impl WidthProblem<'_> {
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
    fn fill(&self, width: usize, index: usize, values: &mut [f64]) {
        Stream::new(self.seed, width as u64, Purpose::Initial, index as u64).fill_normal(values);
    }

    fn check(&self) -> Result<(), ExperimentError> {
        if self.count < 2 {
            return Err(ExperimentError::Draws(self.count));
        }
        Ok(())
    }
}

/// Why there is no estimate.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ExperimentError {
    /// Network and data do not fit together.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A model without a readout in closed form.
    #[error(transparent)]
    Posterior(#[from] PosteriorError),
    /// A draw from the prior at which the posterior has no density.
    #[error(transparent)]
    Evaluation(#[from] EvaluationError),
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
