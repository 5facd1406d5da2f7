//! Networks that are trained to a mode of their posterior, with a step size that goes down half a cosine. Batch normalisation has the
//! statistics of minibatches meanwhile, and those that were running beside it afterwards.

use reprior::compute::{Purpose, Real, Stream};
use reprior::network::Composition;
use reprior::network::parameters::ParameterLayout;
use reprior::stochastic::data::MinibatchData;
use reprior::stochastic::objective::Objective;
use reprior::stochastic::preconditioner::identity::Identity;
use reprior::stochastic::update::StochasticGradient;
use reprior::stochastic::{Dynamics, Prior, StepSize, StochasticGradientSettings};

use crate::Failure;

/// How a mode is found.
pub struct Training {
    /// Of the start and the minibatches.
    pub seed: u64,
    /// Adam, or SGD with momentum.
    pub dynamics: Dynamics,
    /// At the beginning.
    pub step_size: f64,
    /// Of the weights at the start: their variance is this over the fan-in.
    pub gain: f64,
    /// Rows of a minibatch, at most.
    pub batch: usize,
    /// Passes over the rows.
    pub epochs: usize,
    /// α, of a Gaussian prior on weights and biases.
    pub precision: f64,
}

impl Training {
    /// For so many rows.
    pub fn settings(&self, rows: usize) -> StochasticGradientSettings {
        let batch = self.batch.min(rows).max(1);
        let variance = 1.0 / self.precision;
        StochasticGradientSettings {
            step_size: self.step_size,
            schedule: StepSize::Cyclical {
                length: (self.epochs * rows.div_ceil(batch)) as u64,
                exploration: 0.0,
            },
            batch,
            dynamics: self.dynamics,
            decay: Default::default(),
            labels: Default::default(),
            priors: vec![Prior::Gaussian {
                weights: variance,
                biases: variance,
            }],
            seed: self.seed,
            chain: 0,
            temperature: 0.0,
            dropout: 0.0,
        }
    }

    /// The mode of a network without batch normalisation; `advance` is called now and then with the part of the training that is done.
    ///
    /// # Errors
    /// A training that leaves the range of numbers; what `advance` says.
    pub fn mode<R: Real>(
        &self,
        network: &Composition,
        data: MinibatchData<R>,
        threads: usize,
        advance: impl FnMut(f64) -> Result<(), Failure>,
    ) -> Result<Vec<R>, Failure> {
        let trained = self.trained(network, data, threads, advance)?;
        Ok(trained.1)
    }

    /// The same of any network: with the statistics of its batch normalisation, frozen as training left them, and its mode.
    ///
    /// # Errors
    /// As [`mode`](Self::mode).
    pub fn trained<R: Real>(
        &self,
        network: &Composition,
        data: MinibatchData<R>,
        threads: usize,
        advance: impl FnMut(f64) -> Result<(), Failure>,
    ) -> Result<(Composition, Vec<R>), Failure> {
        let rows = data.targets.len() / network.outputs;
        let mut stream = Stream::new(self.seed, 0, Purpose::Initial, 0);
        let start = ParameterLayout::new(network).draw_by_fan_in(self.gain, &mut stream);
        let objective = Objective::new(network, data, threads)?.with_batch_statistics(network);
        let mut chain =
            StochasticGradient::new(objective, Box::new(Identity), self.settings(rows), start)?;
        let updates = self.epochs as u64 * chain.updates_per_epoch();
        update(&mut chain, updates, advance, |_, _| {})?;
        let state = chain.state();
        let network = network.with_statistics(&state.statistics);
        Ok((network, state.position.clone()))
    }
}

/// Makes so many updates; `see` sees each, counted from 1, and its position.
///
/// # Errors
/// A chain that leaves the range of numbers; what `advance` says, which is called now and then with the part that is done.
pub fn update<R: Real>(
    chain: &mut StochasticGradient<R>,
    updates: u64,
    mut advance: impl FnMut(f64) -> Result<(), Failure>,
    mut see: impl FnMut(u64, &[R]),
) -> Result<(), Failure> {
    for update in 1..=updates {
        chain.update()?;
        see(update, &chain.state().position);
        if update.is_multiple_of(20) {
            advance(update as f64 / updates as f64)?;
        }
    }
    Ok(())
}
