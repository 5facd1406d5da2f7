//! What a run needs of a family of methods, and the families: chains on all data, minibatches, Laplace approximations, infinite width.
//!
//! Whatever differs between families is behind [`MethodFamily`]; nothing else asks which one it is.

mod chains;
mod default_noise;
pub(crate) mod defaults;
mod drive;
mod infinite;
mod laplace;
mod minibatch;
mod plan;
mod predictions;

pub(crate) use chains::annealed::DEFAULT_LENGTHS as ANNEALED_LENGTHS;
pub(crate) use chains::bench;
pub use chains::bench::{Benchmark, TimedPart};
pub(crate) use chains::is_run;
pub use chains::{restore_chain, save_chain};
pub(crate) use defaults::choose_variances;
pub(crate) use drive::RunContext;
pub use drive::{More, Options, Watcher};
pub(crate) use laplace::{read_fits, write_fits};
pub use plan::Plan;
pub(crate) use plan::keeps_states;
pub(crate) use predictions::{Of, Predictions};

use crate::failure::Failure;
use crate::problem::Problem;
use crate::read::Recorded;
use crate::settings::{MethodName, Settings};
use crate::summary::Summary;

/// What every family of methods offers.
pub(crate) trait MethodFamily {
    /// Refuses settings that do not go together, before any work.
    ///
    /// # Errors
    /// A wrong request.
    fn check(&self, settings: &Settings) -> Result<(), Failure>;

    /// Writes the defaults out that need no data.
    fn write_defaults(&self, _settings: &mut Settings) {}

    /// Writes the defaults out that hang on data and network, and reads what else the method needs.
    ///
    /// # Errors
    /// A wrong request.
    fn complete(&self, problem: &mut Problem) -> Result<(), Failure>;

    /// What a run takes and what it records. The problem need not have records.
    ///
    /// # Errors
    /// A wrong request: a run so large that its size cannot be counted.
    fn plan(&self, problem: &Problem) -> Result<Plan, Failure>;

    /// Adds to a plan what time a run takes, measured by a few evaluations, where it has no limit of its own.
    ///
    /// # Errors
    /// A wrong request; a density that cannot be evaluated.
    fn say_time(&self, _: &mut Plan, _: &Problem, _threads: usize) -> Result<(), Failure> {
        Ok(())
    }

    /// Starts, or goes on from checkpoints, to the end. Lengths that were open are then in the problem's settings.
    ///
    /// # Errors
    /// A failed run, whose draws are kept; a run that was stopped.
    fn sample(
        &self,
        problem: &mut Problem,
        plan: &Plan,
        place: &RunContext<'_>,
    ) -> Result<(), Failure>;

    /// Diagnostics and metrics, without the verdict.
    ///
    /// # Errors
    /// A run that cannot be read.
    fn summarise(&self, run: &Recorded) -> Result<(Summary, Vec<String>), Failure>;

    /// Predictions for new inputs from the draws of a run.
    ///
    /// # Errors
    /// A run that cannot be read.
    fn predictor<'a>(
        &self,
        problem: &'a Problem,
        run: &'a Recorded,
    ) -> Result<Box<dyn Predict + 'a>, Failure>;
}

/// Predictions of a run's draws for standardised inputs, row-major, in the order that the network takes them.
pub(crate) trait Predict {
    /// Of all draws, for some rows.
    ///
    /// # Errors
    /// A run without draws, or that cannot be read.
    fn predict(&mut self, inputs: &[f64]) -> Result<Predictions, Failure>;

    /// What draws predict where [`predict`](Self::predict) has a closed form: what scores of uncertainty are made of.
    ///
    /// # Errors
    /// As [`predict`](Self::predict).
    fn by_draws(&mut self, _: &[f64]) -> Result<Option<Predictions>, Failure> {
        Ok(None)
    }

    /// The function of every draw at these inputs, whatever is left open of it drawn: the same function for all rows that are given together.
    /// Only a closed form has variances: the function's own.
    ///
    /// # Errors
    /// As [`predict`](Self::predict).
    fn functions(&mut self, inputs: &[f64]) -> Result<Predictions, Failure> {
        match self.by_draws(inputs)? {
            Some(draws) => Ok(draws),
            None => self.predict(inputs),
        }
    }

    /// Of a closed form: the covariance of the function between these inputs, in the target's own units: outputs × rows × rows.
    ///
    /// # Errors
    /// As [`predict`](Self::predict).
    fn covariance(&mut self, _: &[f64]) -> Result<Option<Vec<f64>>, Failure> {
        Ok(None)
    }

    /// Uses one of so many kept positions of each chain from now on, the first among them; of a closed form there is nothing to leave out.
    fn use_every(&mut self, _: u64) {}

    /// Rows that are to be predicted together.
    fn rows_together(&self) -> usize {
        1000
    }
}

/// The family of a method.
pub(crate) fn family(method: MethodName) -> Box<dyn MethodFamily> {
    match method {
        MethodName::Chain(method) => Box::new(chains::Chains(method)),
        MethodName::Annealed => Box::new(chains::Particles),
        MethodName::Minibatch(method) if method.is_around_mode() => {
            Box::new(laplace::Laplace(method))
        }
        MethodName::Minibatch(method) => Box::new(minibatch::Minibatches(method)),
        MethodName::Infinite(covariance) => Box::new(infinite::Infinite(covariance)),
    }
}
