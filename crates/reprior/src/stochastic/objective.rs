//! −log p(y | θ) of minibatches, with its gradient and second moments of single rows' gradients.

use std::ops::Range;

use thiserror::Error;

use super::MinibatchData;
use super::data::{losses, row_loss, simulate};
use super::dense::{DenseNetwork, Dropout, UnitSums};
use super::preconditioner::Statistics;
use crate::compute::{Real, Stream, Team, matrix, matrix_mut, multiply, panel_rows};
use crate::network::layer::ShapeError;
use crate::network::{Composition, Executor, Layout, Moments};

/// A network that minibatches are evaluated with.
#[derive(Debug)]
pub struct Objective<R> {
    data: MinibatchData<R>,
    layout: Layout,
    executor: Executor<R>,
    /// If the network is fully connected.
    dense: Option<DenseNetwork<R>>,
    rows: usize,
    columns: usize,
    outputs: usize,
    threads: usize,
    /// The batch's inputs, row-major.
    batch: Vec<R>,
    /// Outputs and cotangents, row-major, and gradients of single rows of a panel.
    cotangents: Vec<R>,
    single: Vec<R>,
    /// What the executor found; empty where it was not asked.
    found: Found<R>,
    /// Whether the last batch went through `dense`.
    is_dense: bool,
}

/// Sums over the rows of a batch, as long as the parameters but for the outer products.
#[derive(Debug, Default)]
struct Found<R> {
    gradient: Vec<R>,
    squares: Vec<R>,
    cross: Vec<R>,
    outer: Vec<R>,
    /// A gradient that is of no interest: that of simulated targets.
    unused: Vec<R>,
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
        let rows = data.check(columns, outputs)?;
        let layout = Layout::new(network);
        Ok(Self {
            dense: DenseNetwork::new(network, &layout),
            layout,
            rows,
            columns,
            outputs,
            threads: threads.max(1),
            data,
            executor,
            batch: Vec::new(),
            cotangents: Vec::new(),
            single: Vec::new(),
            found: Found::default(),
            is_dense: false,
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

    /// Whether the network is fully connected.
    pub fn is_fully_connected(&self) -> bool {
        self.dense.is_some()
    }

    /// Threads that work on a batch.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The sum over the rows `batch` of −log p; what [`scaled_sums`](Self::scaled_sums) and [`outer`](Self::outer) are to give is found as far
    /// as that is done for all parameters at once. Statistics are of the data's targets, or of targets that are drawn from the
    /// network if there is a stream. Without effect on networks that are not fully connected: `dropout`.
    pub(super) fn evaluate(
        &mut self,
        team: &mut Team,
        weights: &[R],
        batch: &[u32],
        statistics: Statistics,
        simulation: Option<&mut Stream>,
        dropout: Option<Dropout>,
    ) -> f64 {
        self.is_dense = self.dense.is_some()
            && !matches!(statistics, Statistics::Outer | Statistics::Kronecker);
        if self.is_dense {
            self.evaluate_dense(team, weights, batch, statistics, simulation, dropout)
        } else {
            self.gather(batch);
            self.evaluate_layers(weights, batch, statistics, simulation)
        }
    }

    fn evaluate_dense(
        &mut self,
        team: &mut Team,
        weights: &[R],
        batch: &[u32],
        statistics: Statistics,
        simulation: Option<&mut Stream>,
        dropout: Option<Dropout>,
    ) -> f64 {
        let Some(network) = &mut self.dense else {
            return f64::NAN;
        };
        let (n, outputs) = (batch.len(), self.outputs);
        network.load(team, &self.data.inputs, self.columns, batch);
        let f = network.forward(team, weights, dropout);
        self.cotangents.clear();
        for row in 0..n {
            let own = (0..outputs).map(|output| f[(row, output)]);
            self.cotangents.extend(own);
        }
        let simulated = simulation.map(|stream| {
            let mut simulated = self.cotangents.clone();
            simulate(&self.data, outputs, &mut simulated, stream);
            simulated
        });
        let loss = losses(&self.data, outputs, batch, &mut self.cotangents);
        let mut back = |network: &mut DenseNetwork<R>, cotangents: &[R]| {
            let out = network.output_cotangents();
            for (row, cotangent) in cotangents.chunks_exact(outputs).enumerate() {
                for (output, &cotangent) in cotangent.iter().enumerate() {
                    out[output * n + row] = cotangent;
                }
            }
            network.backward(team, weights);
        };
        match simulated {
            None => {
                back(network, &self.cotangents);
                if statistics != Statistics::None {
                    network.square();
                }
            }
            Some(simulated) => {
                back(network, &simulated);
                network.square();
                back(network, &self.cotangents);
            }
        }
        loss
    }

    fn evaluate_layers(
        &mut self,
        weights: &[R],
        batch: &[u32],
        statistics: Statistics,
        simulation: Option<&mut Stream>,
    ) -> f64 {
        let (dim, found) = (self.layout.len(), &mut self.found);
        let lengths = match statistics {
            Statistics::None => [0, 0, 0],
            Statistics::Squares => [dim, 0, 0],
            Statistics::SquaresAndCross => [dim, dim, 0],
            Statistics::Outer => [0, 0, dim * dim],
            Statistics::Kronecker => [0, 0, self.executor.kronecker_len()],
        };
        found.gradient.resize(dim, R::ZERO);
        let own = [&mut found.squares, &mut found.cross, &mut found.outer];
        for (values, length) in own.into_iter().zip(lengths) {
            values.resize(length, R::ZERO);
        }
        if statistics == Statistics::Outer {
            let mut outer = std::mem::take(&mut self.found.outer);
            self.outer_products(weights, batch, simulation, &mut outer);
            self.found.outer = outer;
            return self.gradient(weights, batch, Statistics::None);
        }
        let Some(stream) = simulation else {
            return self.gradient(weights, batch, statistics);
        };
        self.forward(weights, batch.len());
        simulate(&self.data, self.outputs, &mut self.cotangents, stream);
        let (cotangents, outputs) = (&self.cotangents, self.outputs);
        let loss = |row: usize, _: &[R], cotangent: &mut [R]| {
            cotangent.copy_from_slice(&cotangents[row * outputs..(row + 1) * outputs]);
            0.0
        };
        let inputs = matrix(&self.batch, self.columns, batch.len()).transpose();
        let (unused, moments) = self.found.moments(statistics);
        unused.resize(dim, R::ZERO);
        self.executor
            .gradient_with_moments(weights, inputs, &loss, unused, moments);
        self.gradient(weights, batch, Statistics::None)
    }

    /// The gradient for the data's targets, with these statistics, by the executor.
    fn gradient(&mut self, weights: &[R], batch: &[u32], statistics: Statistics) -> f64 {
        let (data, outputs) = (&self.data, self.outputs);
        let loss = |row: usize, f: &[R], cotangent: &mut [R]| {
            let at = batch[row] as usize * outputs;
            row_loss(data, &data.targets[at..at + outputs], f, cotangent)
        };
        let inputs = matrix(&self.batch, self.columns, batch.len()).transpose();
        let mut gradient = std::mem::take(&mut self.found.gradient);
        let moments = match statistics {
            Statistics::None => Moments::default(),
            _ => self.found.moments(statistics).1,
        };
        let value =
            self.executor
                .gradient_with_moments(weights, inputs, &loss, &mut gradient, moments);
        self.found.gradient = gradient;
        value
    }

    /// `scale` times the sums over the last batch of the parameters `range`, which are `units` of layer `layer` if the network is
    /// fully connected.
    pub(super) fn scaled_sums(
        &self,
        scale: f64,
        range: Range<usize>,
        (layer, units): (usize, Range<usize>),
        sums: UnitSums<'_, R>,
    ) {
        if let (Some(network), true) = (&self.dense, self.is_dense) {
            return network.scaled_sums(scale, layer, units, sums);
        }
        let (found, scale) = (&self.found, R::from_f64(scale));
        for (out, values) in [
            (sums.gradient, &found.gradient),
            (sums.squares, &found.squares),
            (sums.cross, &found.cross),
        ] {
            if !out.is_empty() {
                for (out, &value) in out.iter_mut().zip(&values[range.clone()]) {
                    *out = scale * value;
                }
            }
        }
    }

    /// The sums of outer products over the last batch: D × D, or layer by layer those of Kronecker-factored curvature.
    pub(super) fn outer(&self) -> &[R] {
        &self.found.outer
    }

    /// `outer` (D × D) ← the sum over the rows `batch` of gᵢgᵢᵀ with their gradients gᵢ; of simulated targets if a stream is
    /// given. One panel's gradients at a time.
    fn outer_products(
        &mut self,
        weights: &[R],
        batch: &[u32],
        stream: Option<&mut Stream>,
        outer: &mut [R],
    ) {
        self.forward(weights, batch.len());
        match stream {
            Some(stream) => simulate(&self.data, self.outputs, &mut self.cotangents, stream),
            None => {
                losses(&self.data, self.outputs, batch, &mut self.cotangents);
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

impl<R> Found<R> {
    /// Where the gradient that is of no interest goes, and the statistics that are wanted.
    fn moments(&mut self, statistics: Statistics) -> (&mut Vec<R>, Moments<'_, R>) {
        let moments = Moments {
            squares: &mut self.squares,
            cross: &mut self.cross,
            kronecker: match statistics {
                Statistics::Kronecker => &mut self.outer,
                _ => &mut [],
            },
        };
        (&mut self.unused, moments)
    }
}
