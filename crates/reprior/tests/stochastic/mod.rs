//! Minibatch Langevin dynamics: statistics against gradients of single rows, noise against the matrix that it should have,
//! stationary laws against closed forms and quadrature, invariances, and that nothing depends on threads or interruptions.

mod batch_norm;
mod invariance;
mod learned_noise;
mod moments;
mod noise;
mod stationary;
mod updates;

use std::sync::Arc;

use reprior::compute::{Purpose, Real, Stream};
use reprior::model::likelihood::Likelihood;
use reprior::network::{Activation, Composition};
use reprior::stochastic::data::MinibatchData;
use reprior::stochastic::objective::Objective;
use reprior::stochastic::preconditioner::elementwise::Elementwise;
use reprior::stochastic::preconditioner::full::Full;
use reprior::stochastic::preconditioner::identity::Identity;
use reprior::stochastic::preconditioner::kfac::Kfac;
use reprior::stochastic::preconditioner::quasi_diagonal::QuasiDiagonal;
use reprior::stochastic::preconditioner::{Preconditioner, Regularisation};
use reprior::stochastic::{CurvatureLabels, Dynamics, Prior, StepSize, StochasticGradientSettings};

fn normals(count: usize, index: u64) -> Vec<f64> {
    let mut values = vec![0.0; count];
    Stream::new(61, 0, Purpose::Initial, index).fill_normal(&mut values);
    values
}

/// Fully connected, in the standard parametrisation.
fn network(inputs: usize, hidden: &[usize], outputs: usize) -> Composition {
    let architecture = Composition::fully_connected(inputs, hidden, outputs, Activation::Tanh);
    let network = architecture;
    network.in_standard_parametrisation().unwrap()
}

fn objective<R: Real>(
    network: &Composition,
    inputs: &[f64],
    targets: &[f64],
    likelihood: impl Likelihood + 'static,
    sigma: f64,
    threads: usize,
) -> Objective<R> {
    let data = MinibatchData {
        inputs: Arc::new(inputs.iter().map(|&x| R::from_f64(x)).collect()),
        targets: targets.into(),
        likelihood: Arc::new(likelihood),
        scales: vec![sigma; network.outputs],
    };
    Objective::new(network, data, threads).unwrap()
}

fn settings(step_size: f64) -> StochasticGradientSettings {
    StochasticGradientSettings {
        step_size,
        schedule: StepSize::Constant,
        batch: usize::MAX,
        dynamics: Dynamics::Langevin,
        decay: Default::default(),
        labels: CurvatureLabels::Data,
        priors: vec![Prior::default()],
        seed: 3,
        chain: 0,
        temperature: 1.0,
        dropout: 0.0,
    }
}

/// Every preconditioner, with this ε.
fn preconditioners<R: Real>(epsilon: f64) -> Vec<Box<dyn Preconditioner<R>>> {
    let regularisation = Regularisation {
        epsilon,
        inside: true,
    };
    vec![
        Box::new(Identity),
        Box::new(Elementwise::rms_prop(regularisation)),
        Box::new(Elementwise::diagonal(regularisation)),
        Box::new(QuasiDiagonal { regularisation }),
        Box::new(Full {
            regularisation,
            ..Full::default()
        }),
        Box::new(Kfac {
            regularisation,
            every: 1,
            shrinkage: false,
        }),
    ]
}
