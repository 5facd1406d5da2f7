//! What updates by minibatches are told.

use serde::{Deserialize, Serialize};

use super::objective::Objective;
use super::preconditioner::{Block, Decay, Preconditioner, Scope};
use super::update::StochasticGradientError;
use super::{Prior, StepSize};
use crate::compute::Real;
use crate::network::GradientStatistics;
use crate::network::parameters::ParameterLayout;

/// What the matrices of a preconditioner may take: those of 7,000 parameters together in single precision.
const MOST_BYTES: f64 = 2e9;

/// How the position moves.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "dynamics", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Dynamics {
    /// Overdamped: SGLD.
    #[default]
    Langevin,
    /// With momentum: SGHMC.
    Hamiltonian {
        /// Part a in (0, 1] of the momentum that an update loses.
        friction: f64,
    },
    /// With a thermostat: SGNHT.
    NoseHoover {
        /// The first friction a in (0, 1], and that of the injected noise.
        friction: f64,
    },
    /// Adam: no sampler, at temperature 0 alone.
    Adam {
        /// β₁ in [0, 1).
        first: f64,
        /// β₂ in [0, 1).
        second: f64,
        /// ε > 0.
        epsilon: f64,
    },
}

impl Dynamics {
    /// Adam with its usual numbers.
    pub const ADAM: Self = Self::Adam {
        first: 0.9,
        second: 0.999,
        epsilon: 1e-8,
    };

    /// Numbers that are kept for each parameter.
    pub(super) fn momenta(self) -> usize {
        match self {
            Self::Langevin => 0,
            Self::Hamiltonian { .. } | Self::NoseHoover { .. } => 1,
            Self::Adam { .. } => 2,
        }
    }
}

/// Whose targets the preconditioner's statistics are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CurvatureLabels {
    /// The data's: the outer-product metric.
    #[default]
    Data,
    /// Drawn from the model: the Fisher matrix itself by Monte Carlo, for one more pass.
    Model,
}

/// What a Langevin chain is made of, besides network, data and preconditioner.
#[derive(Debug, Clone, PartialEq)]
pub struct StochasticGradientSettings {
    /// η₀ > 0, in units of the mean loss.
    pub step_size: f64,
    /// η_t/η₀.
    pub schedule: StepSize,
    /// Rows of a minibatch.
    pub batch: usize,
    /// How the position moves.
    pub dynamics: Dynamics,
    /// γ of the preconditioner's averages.
    pub decay: Decay,
    /// Whose targets its statistics are of.
    pub labels: CurvatureLabels,
    /// The prior of all layers, or one for each layer with parameters, the readout last.
    pub priors: Vec<Prior>,
    /// Of every random number.
    pub seed: u64,
    /// Which chain.
    pub chain: u64,
    /// T ≥ 0, of which the noise has √T: 1 for the posterior, 0 for a descent to a mode.
    pub temperature: f64,
    /// Probability in [0, 1) that an activation is left out of an update: for fully connected networks, 0 for the posterior.
    pub dropout: f64,
}

impl StochasticGradientSettings {
    /// The prior of one layer with parameters.
    pub(super) fn prior(&self, layer: usize) -> &Prior {
        &self.priors[if self.priors.len() == 1 { 0 } else { layer }]
    }

    /// Refuses what cannot be with statistics of minibatches.
    pub(super) fn check_batch_statistics<R: Real>(
        &self,
        objective: &Objective<R>,
        preconditioner: &dyn Preconditioner<R>,
    ) -> Result<(), StochasticGradientError> {
        let Some(values) = objective.values_of_row() else {
            return Ok(());
        };
        let wrong = |text: String| Err(StochasticGradientError::Setting(text));
        if self.temperature > 0.0 {
            return wrong(
                "Langevin dynamics need batch normalisation with fixed statistics: a density that depends on which rows share a minibatch is no posterior".to_owned(),
            );
        }
        if preconditioner.statistics() != GradientStatistics::None {
            return wrong(
                "batch normalisation with the statistics of a minibatch has no gradients of single rows: use the preconditioner identity or rmsprop".to_owned(),
            );
        }
        let batch = self.batch.min(objective.rows());
        let last = match objective.rows() % batch {
            0 => batch,
            last => last,
        };
        if last * values < 2 {
            return wrong(format!(
                "batch normalisation needs at least 2 rows in every minibatch to have a variance, and of {} rows in minibatches of {batch} the last has one: give another --batch",
                objective.rows()
            ));
        }
        Ok(())
    }

    /// Checks everything that does not need the data, with a preconditioner and a network of this layout.
    ///
    /// # Errors
    /// [`StochasticGradientError::Setting`] says what is out of range, does not go together, or would take too much memory.
    pub fn check<R: Real>(
        &self,
        preconditioner: &dyn Preconditioner<R>,
        layout: &ParameterLayout,
    ) -> Result<(), StochasticGradientError> {
        let wrong = |text: String| Err(StochasticGradientError::Setting(text));
        check_memory(layout, preconditioner)?;
        let (priors, layers) = (self.priors.len(), layout.layers.len());
        if priors != 1 && priors != layers {
            return wrong(format!(
                "{priors} priors were given for {layers} layers with parameters: give one, or one for each"
            ));
        }
        if !(self.step_size.is_finite() && self.step_size > 0.0) {
            return wrong(format!(
                "the step size is {}: it must be positive and finite",
                self.step_size
            ));
        }
        if !(self.temperature.is_finite() && self.temperature >= 0.0) {
            return wrong(format!(
                "the temperature is {}: it must be zero or positive, and finite",
                self.temperature
            ));
        }
        if !(0.0..1.0).contains(&self.dropout) {
            let rate = self.dropout;
            return wrong(format!("the dropout rate is {rate}: it must be in [0, 1)"));
        }
        if self.batch == 0 {
            return wrong("a minibatch has 0 rows: it must have at least 1".to_owned());
        }
        if let Dynamics::Hamiltonian { friction } | Dynamics::NoseHoover { friction } =
            self.dynamics
            && !(friction > 0.0 && friction <= 1.0)
        {
            return wrong(format!("the friction is {friction}: it must be in (0, 1]"));
        }
        if let Dynamics::Adam {
            first,
            second,
            epsilon,
        } = self.dynamics
        {
            let is_rate = |rate: f64| (0.0..1.0).contains(&rate);
            if !(is_rate(first) && is_rate(second) && epsilon.is_finite() && epsilon > 0.0) {
                return wrong(format!(
                    "Adam's rates are {first} and {second} and its epsilon is {epsilon}: the first two must be in [0, 1), the last positive"
                ));
            }
            if self.temperature > 0.0 {
                return wrong("Adam is no sampler: its temperature must be 0".to_owned());
            }
        }
        let whole = Block {
            rows: 1,
            units: 1,
            has_bias: false,
        };
        let is_alone = matches!(
            self.dynamics,
            Dynamics::NoseHoover { .. } | Dynamics::Adam { .. }
        );
        if is_alone && preconditioner.state_len(whole) > 0 {
            let text =
                "a thermostat and Adam are for the identity alone: leave the preconditioner out";
            return wrong(text.to_owned());
        }
        let checks = [
            preconditioner.check(),
            self.schedule.check(),
            self.decay.check(),
        ];
        let priors = self.priors.iter().map(Prior::check);
        match checks.into_iter().chain(priors).find_map(Result::err) {
            Some(text) => wrong(text),
            None => Ok(()),
        }
    }
}

/// Refuses a preconditioner whose matrices would take more than [`MOST_BYTES`].
fn check_memory<R: Real>(
    layout: &ParameterLayout,
    preconditioner: &dyn Preconditioner<R>,
) -> Result<(), StochasticGradientError> {
    let square = |size: usize| (size as f64).powi(2);
    let layers = layout.layers.iter();
    let (name, numbers) = match preconditioner.scope() {
        Scope::Unit => return Ok(()),
        Scope::Layer => {
            let numbers = layers.map(|layer| square(layer.rows) + square(layer.units));
            ("kfac", numbers.sum::<f64>())
        }
        Scope::All => ("full", square(layout.len())),
    };
    // averages, factors, a minibatch's statistics and their copy; factors are found in double precision
    let bytes = numbers * (4 * R::BYTES + 24) as f64;
    if bytes <= MOST_BYTES {
        return Ok(());
    }
    Err(StochasticGradientError::Setting(format!(
        "the preconditioner {name} of {} parameters would take {:.1} GB, more than {:.0}: use quasi-diagonal",
        layout.len(),
        bytes / 1e9,
        MOST_BYTES / 1e9
    )))
}
