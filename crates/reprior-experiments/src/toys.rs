//! The toys of Roy, Miani et al. (2024), Figures 2 and 4: what sampled, linearised and diffused Laplace approximations of a small
//! network predict, where the truth can be seen.
//!
//! * [`sine`]: y = sin(5x + 1) + N(0, 0.01²), 50 x ~ U(0, 1); 1-10-10-1 with tanh (141 weights), α = 10;
//! * [`mixture`]: two classes, N((∓3.15, ±3.15), 0.6²·I); 2-16-16-2 with tanh (354 weights), α = 1.
//!
//! Weights are in the standard parametrisation as the paper's are, trained by Adam to the posterior's mode with the same α. Unlike
//! the paper's code G has the noise's precision, and α once.

use std::sync::Arc;

use reprior::compute::{Purpose, Stream};
use reprior::model::likelihood::{Categorical, Gaussian};
use reprior::network::{Activation, Composition};
use reprior::stochastic::Dynamics;
use reprior::stochastic::data::MinibatchData;

use crate::Failure;
use crate::training::Training;

pub use crate::trained::TrainedNetwork;

/// The sine, trained with `updates` updates.
///
/// # Errors
/// A training that leaves the range of numbers.
pub fn sine(seed: u64, updates: usize) -> Result<TrainedNetwork<f64>, Failure> {
    let mut stream = Stream::new(seed, 0, Purpose::Simulation, 0);
    let inputs: Vec<f64> = (0..50).map(|_| stream.uniform()).collect();
    let target = |x: &f64| (5.0 * x + 1.0).sin() + 0.01 * stream.normal();
    let data = MinibatchData {
        targets: inputs.iter().map(target).collect::<Vec<_>>().into(),
        inputs: Arc::new(inputs),
        likelihood: Arc::new(Gaussian),
        scales: vec![0.01],
    };
    let network = Composition::fully_connected(1, &[10, 10], 1, Activation::Tanh);
    train(&network, data, 10.0, seed, updates)
}

/// The mixture with so many points of each class.
///
/// # Errors
/// A training that leaves the range of numbers.
pub fn mixture(
    seed: u64,
    per_class: usize,
    updates: usize,
) -> Result<TrainedNetwork<f64>, Failure> {
    let mut stream = Stream::new(seed, 1, Purpose::Simulation, 0);
    let (mut inputs, mut targets) = (Vec::new(), Vec::new());
    for row in 0..2 * per_class {
        let sign = [-1.0, 1.0][row % 2];
        for side in [sign, -sign] {
            inputs.push(3.15 * side + 0.6 * stream.normal());
        }
        targets.extend([[1.0, 0.0], [0.0, 1.0]][row % 2]);
    }
    let data = MinibatchData {
        inputs: Arc::new(inputs),
        targets: targets.into(),
        likelihood: Arc::new(Categorical),
        scales: vec![1.0; 2],
    };
    let network = Composition::fully_connected(2, &[16, 16], 2, Activation::Tanh);
    train(&network, data, 1.0, seed, updates)
}

fn train(
    network: &Composition,
    data: MinibatchData<f64>,
    precision: f64,
    seed: u64,
    updates: usize,
) -> Result<TrainedNetwork<f64>, Failure> {
    let network = network.in_standard_parametrisation()?;
    let training = Training {
        seed,
        dynamics: Dynamics::ADAM,
        step_size: 0.01,
        gain: 1.0,
        batch: usize::MAX,
        epochs: updates,
        precision,
    };
    let mode = training.mode(&network, data.clone(), 1, |_| Ok(()))?;
    TrainedNetwork::new(&network, mode, data, precision)
}
