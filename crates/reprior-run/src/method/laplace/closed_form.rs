//! Predictions of a linearised network in closed form: Gaussian outputs, and the probabilities of classes by a link.

use std::sync::Arc;

use reprior::compute::{Purpose, Stream, matrix};
use reprior::laplace::link::log_probabilities;
use reprior::laplace::{Laplace, Link};
use reprior::metrics::PredictiveFamily;
use reprior::model::likelihood::Likelihood;
use reprior::model::standardisation::Affine;
use reprior::network::Executor;

use crate::failure::Failure;
use crate::method::minibatch::network;
use crate::predictive::PredictionKind;
use crate::problem::Problem;
use crate::stored::Stored;

/// Numbers of covariances that are held at a time.
const COVARIANCES: usize = 1 << 23;

/// What predictions in closed form are made with.
pub struct FitPredictor<R> {
    executor: Executor<R>,
    likelihood: Arc<dyn Likelihood>,
    kind: PredictionKind,
    link: Link,
    seed: u64,
    maps: Vec<Affine>,
}

/// Whether predictions of such targets have a closed form.
pub fn has_closed_form(problem: &Problem) -> bool {
    let kind = problem.kind();
    kind == PredictionKind::Probabilities || kind == PredictionKind::Real(PredictiveFamily::NORMAL)
}

/// Rows that are predicted together, of a network with so many outputs. Random numbers of the link begin anew with each part.
pub fn rows_together(outputs: usize) -> usize {
    (COVARIANCES / (outputs * outputs)).clamp(1, 1024)
}

impl<R: Stored> FitPredictor<R> {
    /// For a run's network; none where its targets have no closed form.
    ///
    /// # Errors
    /// A layer that does not fit.
    pub fn new(problem: &Problem) -> Result<Option<Self>, Failure> {
        let kind = problem.kind();
        if !has_closed_form(problem) {
            return Ok(None);
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let executor = Executor::new(&network(problem)?).map_err(Failure::request)?;
        Ok(Some(Self {
            executor: executor.with_threads(cores),
            likelihood: problem.likelihood()?,
            kind,
            link: problem.settings.laplace.link(),
            seed: problem.settings.run.seed,
            maps: problem.output_maps(),
        }))
    }

    /// What is predicted.
    pub fn kind(&self) -> PredictionKind {
        self.kind
    }

    /// Takes a chain's means and variances of batch normalisation; none leave them as they are.
    pub fn set_statistics(&mut self, statistics: &[f64]) {
        self.executor.set_statistics(statistics);
    }

    /// Appends one chain's predictions for `inputs` (row-major) in the target's own units: logarithms of probabilities, or means
    /// and variances.
    ///
    /// # Errors
    /// A covariance that is not positive semi-definite.
    pub fn predict(
        &mut self,
        laplace: &Laplace<R>,
        chain: u64,
        inputs: &[R],
        [means, variances]: [&mut Vec<f64>; 2],
    ) -> Result<(), Failure> {
        let columns = self.executor.inputs_count();
        let together = rows_together(self.executor.outputs_count().max(1));
        for part in inputs.chunks(together * columns) {
            let rows = part.len() / columns;
            let part = matrix(&part[..rows * columns], columns, rows).transpose();
            let found = laplace.linearised(&mut self.executor, part);
            if self.kind == PredictionKind::Probabilities {
                let mut stream = Stream::new(self.seed, chain, Purpose::Prediction, 0);
                let numbers = [&found.means[..], &found.covariances];
                let (likelihood, outputs) = (&*self.likelihood, found.outputs);
                log_probabilities(likelihood, self.link, numbers, outputs, &mut stream, means)
                    .map_err(Failure::run)?;
                continue;
            }
            for (f, map) in found.means.iter().zip(self.maps.iter().cycle()) {
                means.push(map.restore(*f));
            }
            let size = found.outputs * found.outputs;
            for covariance in found.covariances.chunks_exact(size) {
                let own = covariance.iter().step_by(found.outputs + 1);
                let own = own.zip(&self.maps);
                variances.extend(own.map(|(variance, map)| variance * map.scale * map.scale));
            }
        }
        Ok(())
    }
}
