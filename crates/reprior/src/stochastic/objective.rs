//! −log p(y | θ) of minibatches, with its gradient and second moments of single rows' gradients.

use thiserror::Error;

use super::batch_norm::StatisticsMean;
use super::data::{MinibatchData, row_loss_by_scale, simulate};
use super::noise::{LearnedNoise, NoiseStep};
use crate::compute::{Real, Stream, Team};
use crate::model::NoisePrior;
use crate::network::layer::ShapeError;
use crate::network::parameters::ParameterLayout;
use crate::network::{
    Composition, Dropout, Evaluation, Executor, GradientStatistics, Gradients, Minibatch,
};

/// A network that minibatches are evaluated with.
#[derive(Debug)]
pub struct Objective<R> {
    data: MinibatchData<R>,
    layout: ParameterLayout,
    gradients: Gradients<R>,
    /// Where σ is learned.
    noise: Option<LearnedNoise>,
    /// Of the network's batch normalisation, where minibatches have statistics of their own.
    start: Vec<f64>,
    /// Values of a channel that a row has at least in the network's batch normalisation.
    positions: usize,
    rows: usize,
    columns: usize,
    outputs: usize,
    threads: usize,
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
        let mut gradients = Gradients::new(network, executor);
        gradients.leave_out_common(&data.inputs, columns);
        Ok(Self {
            layout: ParameterLayout::new(network),
            gradients,
            noise: None,
            start: Vec::new(),
            positions: network.fewest_positions(),
            rows,
            columns,
            outputs,
            threads: threads.max(1),
            data,
        })
    }

    /// With batch normalisation that has the statistics of each minibatch, for the training of a mode. Without any in `network`,
    /// the one that this has been made of, nothing changes.
    #[must_use]
    pub fn with_batch_statistics(mut self, network: &Composition) -> Self {
        self.start = network.statistics();
        if !self.start.is_empty() {
            self.gradients.take_batch_statistics();
        }
        self
    }

    /// With a σ that is learned; those of the data are then of no account.
    #[must_use]
    pub fn with_learned_noise(mut self, prior: NoisePrior) -> Self {
        self.noise = Some(LearnedNoise::new(prior));
        self
    }

    /// Coordinates of a learned σ; 0 where it is known.
    pub(super) fn noise_coordinates(&self) -> usize {
        let learned = self.noise.as_ref();
        learned.map_or(0, |noise| noise.coordinates(self.outputs))
    }

    /// Takes the coordinates of a learned σ; without one nothing changes.
    pub(super) fn set_noise(&mut self, coordinates: &[f64]) {
        if let Some(noise) = &self.noise {
            noise.scales(coordinates, &mut self.data.scales);
        }
    }

    /// Moves the coordinates of a learned σ, and takes them.
    pub(super) fn step_noise(&mut self, coordinates: &mut [f64], step: NoiseStep) {
        if let Some(noise) = &self.noise {
            noise.step(coordinates, self.outputs, step);
        }
        self.set_noise(coordinates);
    }

    /// What a step of a gradient is to be shortened by where σ is learned.
    pub(super) fn shortening(&self) -> f64 {
        let learned = self.noise.as_ref();
        learned.map_or(1.0, |noise| noise.shortening(&self.data.scales))
    }

    /// σ of every output, as it is now.
    pub fn scales(&self) -> &[f64] {
        &self.data.scales
    }

    /// Means and variances that running averages start at, see [`Composition::statistics`]; none where batch normalisation keeps
    /// the network's, or there is none.
    pub fn start_statistics(&self) -> &[f64] {
        &self.start
    }

    /// Values of a channel that a minibatch of one row has in the network's batch normalisation, at least; none where that has no
    /// statistics of minibatches.
    pub(super) fn values_of_row(&self) -> Option<usize> {
        (!self.start.is_empty()).then_some(self.positions)
    }

    /// Means and variances of the last minibatch.
    pub(super) fn batch_statistics(&self) -> &[f64] {
        self.gradients.batch_statistics()
    }

    /// Means and variances at any weights: the mean over all rows, taken in order `batch` at a time.
    pub(super) fn statistics_at(
        &mut self,
        team: &mut Team,
        weights: &[R],
        batch: usize,
    ) -> Vec<f64> {
        if self.start.is_empty() {
            return Vec::new();
        }
        let mut mean = StatisticsMean::default();
        let rows: Vec<u32> = (0..self.rows as u32).collect();
        let inputs = (&self.data.inputs[..], self.columns);
        for rows in rows.chunks(batch.clamp(1, self.rows)) {
            let found = self
                .gradients
                .find_batch_statistics(team, weights, inputs, rows);
            mean.add(found, rows.len());
        }
        mean.mean()
    }

    /// N.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Where each layer's parameters are.
    pub fn layout(&self) -> &ParameterLayout {
        &self.layout
    }

    /// Whether the network is fully connected.
    pub fn is_fully_connected(&self) -> bool {
        self.gradients.is_fully_connected()
    }

    /// Threads that work on a batch.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The sum over the rows `batch` of −log p, and what its gradients are made of. Statistics are of the data's targets, or of
    /// targets that are drawn from the network if there is a stream. `dropout` has no effect on networks that are not fully
    /// connected.
    pub(super) fn evaluate(
        &mut self,
        team: &mut Team,
        weights: &[R],
        batch: &[u32],
        statistics: GradientStatistics,
        simulation: Option<&mut Stream>,
        dropout: Option<Dropout>,
    ) -> Evaluation<'_, R> {
        let (data, outputs) = (&self.data, self.outputs);
        if let Some(noise) = &mut self.noise {
            noise.begin(batch.len() * outputs);
        }
        let noise = self.noise.as_ref();
        let loss = |row: usize, f: &[R], cotangent: &mut [R]| {
            let at = batch[row] as usize * outputs;
            let targets = &data.targets[at..at + outputs];
            row_loss_by_scale(data, targets, f, cotangent, |by_scale| {
                if let Some(noise) = noise {
                    noise.take(row, by_scale);
                }
            })
        };
        let batch = Minibatch {
            inputs: &data.inputs,
            columns: self.columns,
            rows: batch,
            loss: &loss,
            statistics,
            dropout,
        };
        let mut draw =
            simulation.map(|stream| move |f: &mut [R]| simulate(data, outputs, f, stream));
        let draw = draw.as_mut().map(|draw| draw as &mut dyn FnMut(&mut [R]));
        self.gradients.evaluate(team, weights, batch, draw)
    }
}
