//! The way from a prior draw to a mode by minibatches, where there are many rows: Adam (Kingma & Ba 2015) on log p(y | θ) − ½‖θ‖².
//!
//! A pass over 7,000 rows in minibatches of 128 is 60 steps, of all rows at once it is one: how far ten of them get is in
//! `docs/src/mathematics/samplers.md`. What is held at modes is held here: σ at its prior's median, and where the noise depends on the inputs it is
//! the same for all of them, with a Gaussian likelihood.

use std::sync::Arc;

use super::Coordinates;
use super::network::Posterior;
use crate::compute::Real;
use crate::model::Model;
use crate::model::likelihood::Gaussian;
use crate::network::Composition;
use crate::stochastic::data::MinibatchData;
use crate::stochastic::objective::Objective;
use crate::stochastic::preconditioner::identity::Identity;
use crate::stochastic::update::StochasticGradient;
use crate::stochastic::{Dynamics, Prior, StepSize, StochasticGradientSettings};

/// Training rows from which on it is worth it.
const FEWEST_ROWS: usize = 5000;
/// Passes over the rows, and rows of a minibatch.
const EPOCHS: u64 = 10;
const BATCH: usize = 128;
/// Adam's first step size, in standard deviations of the prior; it falls to nothing as half a cosine.
const STEP_SIZE: f64 = 0.05;

impl<R: Real> Posterior<R> {
    /// Moves a position near a mode; whether it did. It does not for fewer rows than are worth it, nor for networks or coordinates whose weights are not
    /// those of the network itself, nor once it is `halted`. Random numbers are the chain's.
    pub(super) fn descend_by_minibatches(
        &self,
        position: &mut [R],
        seed_and_chain: [u64; 2],
        halted: &dyn Fn() -> bool,
    ) -> bool {
        let model = &**self.model();
        let is_plain = !model.design.is_reduced() && model.scale_coordinates() == 0;
        if model.rows() < FEWEST_ROWS || !is_plain || self.coordinates() == Coordinates::Tangent {
            return false;
        }
        let Some((network, data)) = problem(model) else {
            return false;
        };
        let inner = model.inner_parameters();
        let mut weights = position[..inner].to_vec();
        weights.resize(inner + network.readout_parameters(), R::ZERO);
        let Some(weights) = descend(&network, data, weights, seed_and_chain, halted) else {
            return false;
        };
        let (own, readout) = weights.split_at(inner);
        position[..inner].copy_from_slice(own);
        let [.., of_readout] = self.split(position).map(<[R]>::len);
        let start = position.len() - of_readout;
        // elsewhere the readout begins at its mean given the features
        position[start..].fill(R::ZERO);
        if self.coordinates() == Coordinates::Standard {
            position[start..start + readout.len()].copy_from_slice(readout);
        }
        true
    }
}

/// The network with the outputs that are no scales, and its rows; none unless it is fully connected with a hidden layer.
fn problem<R: Real>(model: &Model<R>) -> Option<(Composition, MinibatchData<R>)> {
    let hidden = model.architecture.as_fully_connected()?;
    let columns = model.architecture.inputs();
    // the design has σ_w·x/√d₀, and then σ_b
    let factor = R::from_f64(hidden.first()?.scale.factor(columns));
    let (rows, outputs) = (model.rows(), model.architecture.outputs);
    let of_scales = model.likelihood.scale_outputs(outputs);
    let count = outputs - of_scales;
    let design = model.design.matrix();
    let mut inputs = Vec::with_capacity(rows * columns);
    let mut targets = Vec::with_capacity(rows * count);
    for row in 0..rows {
        inputs.extend((0..columns).map(|column| design[(row, column)] / factor));
        targets.extend((0..count).map(|output| model.targets[output * rows + row]));
    }
    let network = Composition {
        outputs: count,
        ..model.architecture.clone()
    };
    let likelihood = match of_scales {
        0 => Arc::clone(&model.likelihood),
        _ => Arc::new(Gaussian) as _,
    };
    let data = MinibatchData {
        inputs: Arc::new(inputs),
        targets: targets.into(),
        likelihood,
        scales: model.noise.typical(outputs)[..count].to_vec(),
    };
    Some((network, data))
}

/// Where Adam ends; none where it fails or is `halted`.
fn descend<R: Real>(
    network: &Composition,
    data: MinibatchData<R>,
    start: Vec<R>,
    [seed, chain]: [u64; 2],
    halted: &dyn Fn() -> bool,
) -> Option<Vec<R>> {
    let objective = Objective::new(network, data, 1).ok()?;
    let updates = EPOCHS * objective.rows().div_ceil(BATCH) as u64;
    let settings = StochasticGradientSettings {
        step_size: STEP_SIZE,
        schedule: StepSize::Cyclical {
            length: updates,
            exploration: 0.0,
        },
        batch: BATCH,
        dynamics: Dynamics::ADAM,
        decay: Default::default(),
        labels: Default::default(),
        priors: vec![Prior::Gaussian {
            weights: 1.0,
            biases: 1.0,
        }],
        seed,
        chain,
        temperature: 0.0,
        dropout: 0.0,
    };
    let mut descent =
        StochasticGradient::new(objective, Box::new(Identity), settings, start).ok()?;
    for _ in 0..updates {
        if halted() {
            return None;
        }
        descent.update().ok()?;
    }
    Some(descent.state().position.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::mode::find_mode;
    use crate::compute::{Purpose, Stream, norm_squared};
    use crate::model::likelihood::GaussianHeteroscedastic;
    use crate::model::{InputReduction, Noise, NoisePrior};
    use crate::network::Activation;
    use crate::posterior::Target;

    /// y = sin 2x₀x₁ + |x₂| + noise of 0.1, in units of 0.7.
    fn model(rows: usize, outputs: usize) -> Model<f64> {
        let mut stream = Stream::new(5, 0, Purpose::Initial, 0);
        let mut numbers: Vec<f64> = vec![0.0; rows * 4];
        stream.fill_normal(&mut numbers);
        let (x, noise) = numbers.split_at(rows * 3);
        let mut targets = vec![0.0; rows * outputs];
        for (row, target) in targets[..rows].iter_mut().enumerate() {
            let x = &x[3 * row..][..3];
            *target = ((2.0 * x[0] * x[1]).sin() + x[2].abs() - 0.8 + 0.1 * noise[row]) / 0.7;
        }
        let network = Composition::fully_connected(3, &[16, 16], outputs, Activation::Gelu);
        let noise = Noise::Learned(NoisePrior::default());
        let model = Model::new(network, noise, x, targets, &x[..3], InputReduction::Auto).unwrap();
        match outputs {
            1 => model,
            _ => model.with_likelihood(Arc::new(GaussianHeteroscedastic::default())),
        }
    }

    fn density(target: &mut Posterior<f64>, z: &[f64]) -> f64 {
        target.log_ratio(z).unwrap() - 0.5 * norm_squared(z)
    }

    #[test]
    fn a_search_for_a_mode_gets_farther_after_it() {
        for (outputs, coordinates) in [
            (1, Coordinates::Marginal),
            (1, Coordinates::Standard),
            (2, Coordinates::Repriorised),
            (2, Coordinates::Standard),
        ] {
            let model = Arc::new(model(FEWEST_ROWS, outputs));
            let mut target = Posterior::new(Arc::clone(&model), coordinates).unwrap();
            let mut start = vec![0.0; target.dim()];
            Stream::new(1, 2, Purpose::Initial, 0).fill_normal(&mut start);
            for range in target.held_at_modes() {
                start[range].fill(0.0);
            }
            let searched = find_mode(&mut target, &start, 60).unwrap().log_density;
            let mut found = start.clone();
            assert!(target.approach_mode(&mut found, [1, 2], &|| false));
            let (before, after) = (density(&mut target, &start), density(&mut target, &found));
            let both = find_mode(&mut target, &found, 60).unwrap().log_density;
            assert!(
                after > before && both > searched,
                "{coordinates}: from {before} to {searched}, or to {after} and {both}"
            );
            for range in target.held_at_modes() {
                assert!(found[range].iter().all(|&z| z == 0.0), "{coordinates}");
            }
            // by this seed and chain
            let [mut again, mut other] = [start.clone(), start];
            target.approach_mode(&mut again, [1, 2], &|| false);
            target.approach_mode(&mut other, [1, 3], &|| false);
            assert!(again == found && other != found);
        }
    }

    #[test]
    fn it_ends_at_its_next_step_once_it_is_halted() {
        let model = Arc::new(model(FEWEST_ROWS, 1));
        let mut target = Posterior::new(model, Coordinates::Marginal).unwrap();
        let mut position = vec![0.5; target.dim()];
        let asked = std::cell::Cell::new(0);
        let halted = || {
            asked.set(asked.get() + 1);
            asked.get() > 3
        };
        assert!(!target.approach_mode(&mut position, [0, 0], &halted));
        assert_eq!(asked.get(), 4);
        assert!(position.iter().all(|&z| z == 0.5));
    }

    #[test]
    fn few_rows_stay_where_they_are() {
        let model = Arc::new(model(FEWEST_ROWS - 1, 1));
        let mut target = Posterior::new(model, Coordinates::Marginal).unwrap();
        let mut position = vec![0.5; target.dim()];
        assert!(!target.approach_mode(&mut position, [0, 0], &|| false));
        assert!(position.iter().all(|&z| z == 0.5));
    }
}
