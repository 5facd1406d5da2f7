//! Rows that are held out: how likely their targets are at one position.

use super::data::MinibatchData;
use super::objective::ObjectiveError;
use crate::compute::{Real, matrix, matrix_mut};
use crate::network::{Composition, Executor};

/// Rows that are evaluated together.
const BLOCK_ROWS: usize = 1000;

/// Rows that are held out.
#[derive(Debug)]
pub struct Validation<R> {
    executor: Executor<R>,
    data: MinibatchData<R>,
    outputs: Vec<R>,
}

impl<R: Real> Validation<R> {
    /// `data` with `network`, with so many threads.
    ///
    /// # Errors
    /// Layers that do not fit, or data of other sizes than the network's.
    pub fn new(
        network: &Composition,
        data: MinibatchData<R>,
        threads: usize,
    ) -> Result<Self, ObjectiveError> {
        let executor = Executor::new(network)?.with_threads(threads);
        data.check(executor.inputs_count(), executor.outputs_count())?;
        Ok(Self {
            executor,
            data,
            outputs: Vec::new(),
        })
    }

    /// Takes other means and variances of batch normalisation, see
    /// [`Composition::statistics`]; none leave the network as it is.
    pub fn set_statistics(&mut self, statistics: &[f64]) {
        self.executor.set_statistics(statistics);
    }

    /// Takes other σ.
    pub fn set_scales(&mut self, scales: &[f64]) {
        self.data.scales.copy_from_slice(scales);
    }

    /// Mean −log p of the rows at one position.
    pub fn nll(&mut self, weights: &[R]) -> f64 {
        let (columns, count) = (self.executor.inputs_count(), self.executor.outputs_count());
        let mut total = 0.0;
        let blocks = self.data.inputs.chunks(columns * BLOCK_ROWS);
        let targets = self.data.targets.chunks(count * BLOCK_ROWS);
        for (inputs, targets) in blocks.zip(targets) {
            let rows = inputs.len() / columns;
            self.outputs.resize(rows * count, R::ZERO);
            let inputs = matrix(inputs, columns, rows).transpose();
            let out = matrix_mut(&mut self.outputs, count, rows).transpose_mut();
            self.executor.outputs(weights, inputs, out);
            let mut wide = vec![0.0; count];
            for (f, y) in self
                .outputs
                .chunks_exact(count)
                .zip(targets.chunks_exact(count))
            {
                for (to, from) in wide.iter_mut().zip(f) {
                    *to = from.to_f64();
                }
                let likelihood = &self.data.likelihood;
                total -= likelihood.log_density(y, &wide, &self.data.scales, None);
                total -= likelihood.left_out(count);
            }
        }
        total / (self.data.inputs.len() / columns) as f64
    }
}
