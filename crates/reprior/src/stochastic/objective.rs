//! −log p(y | θ) of minibatches, with its gradient and second moments of single rows' gradients.

use std::sync::Arc;

use thiserror::Error;

use super::Layout;
use crate::compute::{Real, Stream, matrix, matrix_mut, multiply, panel_rows};
use crate::model::likelihood::{Derivatives, Likelihood};
use crate::network::layer::ShapeError;
use crate::network::{Composition, Executor, Moments};

/// Outputs up to which a row's numbers are kept on the stack.
const FEW: usize = 32;

/// Rows that minibatches are taken of. Shared by chains.
#[derive(Debug, Clone)]
pub struct MinibatchData<R> {
    /// Row-major, N × inputs.
    pub inputs: Arc<[R]>,
    /// Row-major, N × C, coded as the likelihood wants them.
    pub targets: Arc<[f64]>,
    /// How targets depend on outputs.
    pub likelihood: Arc<dyn Likelihood>,
    /// σ of each output, where the likelihood has one: C of them.
    pub scales: Vec<f64>,
}

/// A network that minibatches are evaluated with.
#[derive(Debug)]
pub struct Objective<R> {
    data: MinibatchData<R>,
    layout: Layout,
    executor: Executor<R>,
    rows: usize,
    columns: usize,
    outputs: usize,
    /// The batch's inputs, row-major.
    batch: Vec<R>,
    /// Cotangents of the outputs, row-major, and gradients of single rows of a panel.
    cotangents: Vec<R>,
    single: Vec<R>,
}

/// Data that a network cannot take.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ObjectiveError {
    /// A layer that does not fit.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// Not whole rows, or none.
    #[error("{values} input values are not rows of {columns} columns")]
    Inputs {
        /// How many there are.
        values: usize,
        /// Numbers of one input.
        columns: usize,
    },
    /// Not as many as there should be.
    #[error("{values} target values were given for {rows} rows of {outputs} outputs")]
    Targets {
        /// How many there are.
        values: usize,
        /// Training rows.
        rows: usize,
        /// Outputs of the network.
        outputs: usize,
    },
    /// Not one per output.
    #[error("{scales} noise scales were given for {outputs} outputs")]
    Scales {
        /// How many there are.
        scales: usize,
        /// Outputs of the network.
        outputs: usize,
    },
}

impl<R: Real> Objective<R> {
    /// `network` on `data`, with so many threads.
    ///
    /// # Errors
    /// Layers that do not fit, or data of other sizes than the network's.
    pub fn new(
        network: &Composition,
        data: MinibatchData<R>,
        threads: usize,
    ) -> Result<Self, ObjectiveError> {
        let executor = Executor::new(network)?.with_threads(threads);
        let (columns, outputs) = (executor.inputs_count(), executor.outputs_count());
        let values = data.inputs.len();
        if columns == 0 || values == 0 || !values.is_multiple_of(columns) {
            return Err(ObjectiveError::Inputs { values, columns });
        }
        let rows = values / columns;
        if data.targets.len() != rows * outputs {
            let values = data.targets.len();
            return Err(ObjectiveError::Targets {
                values,
                rows,
                outputs,
            });
        }
        if data.scales.len() != outputs {
            let scales = data.scales.len();
            return Err(ObjectiveError::Scales { scales, outputs });
        }
        Ok(Self {
            layout: Layout::new(network),
            rows,
            columns,
            outputs,
            data,
            executor,
            batch: Vec::new(),
            cotangents: Vec::new(),
            single: Vec::new(),
        })
    }

    /// N.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Where each layer's parameters are.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The sum over the rows `batch` of −log p, and `gradient` ← its derivative; `moments` ← sums over rows of products of
    /// their gradients, as of [`Executor::gradient_with_moments`].
    pub fn evaluate(
        &mut self,
        weights: &[R],
        batch: &[u32],
        gradient: &mut [R],
        moments: Moments<'_, R>,
    ) -> f64 {
        self.gather(batch);
        let (data, outputs) = (&self.data, self.outputs);
        let loss = |row: usize, f: &[R], cotangent: &mut [R]| {
            let at = batch[row] as usize * outputs;
            row_loss(data, &data.targets[at..at + outputs], f, cotangent)
        };
        let inputs = matrix(&self.batch, self.columns, batch.len()).transpose();
        self.executor
            .gradient_with_moments(weights, inputs, &loss, gradient, moments)
    }

    /// The same for targets that are drawn from the network itself; the sum of losses is of no interest.
    pub fn evaluate_simulated(
        &mut self,
        weights: &[R],
        batch: &[u32],
        stream: &mut Stream,
        gradient: &mut [R],
        moments: Moments<'_, R>,
    ) {
        self.simulate(weights, batch, stream);
        let (cotangents, outputs) = (&self.cotangents, self.outputs);
        let loss = |row: usize, _: &[R], cotangent: &mut [R]| {
            cotangent.copy_from_slice(&cotangents[row * outputs..(row + 1) * outputs]);
            0.0
        };
        let inputs = matrix(&self.batch, self.columns, batch.len()).transpose();
        self.executor
            .gradient_with_moments(weights, inputs, &loss, gradient, moments);
    }

    /// `outer` (D × D) ← the sum over the rows `batch` of gᵢgᵢᵀ with their gradients gᵢ; of simulated targets if a stream is
    /// given. One panel's gradients at a time.
    pub fn outer_products(
        &mut self,
        weights: &[R],
        batch: &[u32],
        stream: Option<&mut Stream>,
        outer: &mut [R],
    ) {
        match stream {
            Some(stream) => self.simulate(weights, batch, stream),
            None => {
                self.gather(batch);
                self.forward(weights, batch.len());
                let (data, outputs) = (&self.data, self.outputs);
                let mut cotangent = vec![R::ZERO; outputs];
                let rows = self.cotangents.chunks_exact_mut(outputs);
                for (f, &row) in rows.zip(batch) {
                    let at = row as usize * outputs;
                    row_loss(data, &data.targets[at..at + outputs], f, &mut cotangent);
                    f.copy_from_slice(&cotangent);
                }
            }
        }
        let (dim, height) = (self.layout.len(), panel_rows::<R>());
        outer.fill(R::ZERO);
        for first in (0..batch.len()).step_by(height) {
            let rows = height.min(batch.len() - first);
            let inputs = &self.batch[first * self.columns..(first + rows) * self.columns];
            let inputs = matrix(inputs, self.columns, rows).transpose();
            let cotangents = &self.cotangents[first * self.outputs..(first + rows) * self.outputs];
            let cotangents = matrix(cotangents, self.outputs, rows).transpose();
            self.single.resize(height * dim, R::ZERO);
            let single = &mut self.single[..rows * dim];
            let out = matrix_mut(single, rows, dim);
            self.executor
                .vjp_of_samples(weights, inputs, cotangents, out);
            let single = matrix(single, rows, dim);
            let out = matrix_mut(outer, dim, dim);
            multiply(out, true, 1.0, single.transpose(), single);
        }
    }

    /// Targets drawn from the network, and the derivatives of −log p for them.
    fn simulate(&mut self, weights: &[R], batch: &[u32], stream: &mut Stream) {
        self.gather(batch);
        self.forward(weights, batch.len());
        let (data, outputs) = (&self.data, self.outputs);
        let mut targets = vec![0.0; outputs];
        let (mut wide, mut cotangent) = (vec![0.0; outputs], vec![R::ZERO; outputs]);
        for f in self.cotangents.chunks_exact_mut(outputs) {
            for (to, from) in wide.iter_mut().zip(&*f) {
                *to = from.to_f64();
            }
            let likelihood = &data.likelihood;
            likelihood.simulate(&wide, &data.scales, stream, &mut targets);
            row_loss(data, &targets, f, &mut cotangent);
            f.copy_from_slice(&cotangent);
        }
    }

    /// The batch's outputs, to where cotangents go.
    fn forward(&mut self, weights: &[R], rows: usize) {
        self.cotangents.clear();
        self.cotangents.resize(rows * self.outputs, R::ZERO);
        let inputs = matrix(&self.batch, self.columns, rows).transpose();
        let out = matrix_mut(&mut self.cotangents, self.outputs, rows);
        self.executor.outputs(weights, inputs, out.transpose_mut());
    }

    fn gather(&mut self, batch: &[u32]) {
        self.batch.clear();
        for &row in batch {
            let at = row as usize * self.columns;
            self.batch
                .extend_from_slice(&self.data.inputs[at..at + self.columns]);
        }
    }
}

/// −log p of one row, and its derivative in the outputs.
fn row_loss<R: Real>(
    data: &MinibatchData<R>,
    targets: &[f64],
    outputs: &[R],
    cotangent: &mut [R],
) -> f64 {
    let count = outputs.len();
    let mut few = [0.0; 3 * FEW];
    let mut many = Vec::new();
    let space = if count <= FEW {
        &mut few[..3 * count]
    } else {
        many.resize(3 * count, 0.0);
        &mut many[..]
    };
    let (wide, rest) = space.split_at_mut(count);
    let (by_output, by_scale) = rest.split_at_mut(count);
    for (to, from) in wide.iter_mut().zip(outputs) {
        *to = from.to_f64();
    }
    let derivatives = Derivatives {
        outputs: by_output,
        log_scales: by_scale,
    };
    let value = data
        .likelihood
        .log_density(targets, wide, &data.scales, Some(derivatives));
    for (to, from) in cotangent.iter_mut().zip(&*by_output) {
        *to = R::from_f64(-from);
    }
    -value
}
