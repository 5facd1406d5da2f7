//! Epochs of minibatch methods on 60,000 rows like MNIST's (81 % of the pixels zero unless `dense` is given), 784-400-400-10 ReLU, batches
//! of 100 by default, in single precision.
//!
//! ```text
//! cargo bench -p reprior --bench minibatch [-- dense --only SGD --rows 100 --threads 2 --seconds 5 --json]
//! ```
//!
//! Operations are those of products alone: 2 for each weight and row forward, 2 for its gradient, 2 for the cotangent of its input
//! (not in the first layer), 2 for each second moment.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark")]

mod options;

use std::sync::Arc;
use std::time::Duration;

use options::{Options, shortest};
use reprior::compute::{Purpose, Stream};
use reprior::model::likelihood::Categorical;
use reprior::network::{Activation, Composition};
use reprior::stochastic::data::MinibatchData;
use reprior::stochastic::objective::Objective;
use reprior::stochastic::preconditioner::elementwise::Elementwise;
use reprior::stochastic::preconditioner::identity::Identity;
use reprior::stochastic::preconditioner::quasi_diagonal::QuasiDiagonal;
use reprior::stochastic::preconditioner::{Preconditioner, Regularisation};
use reprior::stochastic::update::StochasticGradient;
use reprior::stochastic::{Dynamics, Prior, StepSize, StochasticGradientSettings};

const ROWS: usize = 60_000;
/// Weights of the layers, and of those above the first.
const WEIGHTS: [f64; 2] = [477_600.0, 164_000.0];

/// The name, the preconditioner, whether there is noise, and products for each weight besides gradient and outputs.
type Case = (&'static str, Box<dyn Preconditioner<f32>>, bool, f64);

fn cases() -> Vec<Case> {
    vec![
        ("SGD", Box::new(Identity), false, 0.0),
        ("SGLD", Box::new(Identity), true, 0.0),
        (
            "RMSProp SGLD",
            Box::new(Elementwise::rms_prop(Regularisation::default())),
            true,
            0.0,
        ),
        (
            "diagonal SGLD",
            Box::new(Elementwise::diagonal(Regularisation::default())),
            true,
            1.0,
        ),
        (
            "quasi-diagonal SGLD",
            Box::new(QuasiDiagonal::default()),
            true,
            2.0,
        ),
    ]
}

fn main() {
    let options = Options::read();
    let threads = options.threads.unwrap_or(2);
    let batch = options.rows.unwrap_or(100);
    let network = Composition::fully_connected(784, &[400, 400], 10, Activation::Relu);
    let network = network.in_standard_parametrisation().unwrap();
    let mut stream = Stream::new(0, 0, Purpose::Initial, 0);
    let mut inputs = vec![0.0_f32; ROWS * 784];
    stream.fill_normal(&mut inputs);
    if !options.names.iter().any(|name| name == "dense") {
        // as many zeros as there are in MNIST
        inputs.iter_mut().for_each(|x| *x = x.max(0.88) - 0.88);
    }
    let mut targets = vec![0.0; ROWS * 10];
    for row in 0..ROWS {
        targets[row * 10 + row % 10] = 1.0;
    }
    let data = MinibatchData {
        inputs: Arc::new(inputs),
        targets: targets.into(),
        likelihood: Arc::new(Categorical),
        scales: vec![1.0; 10],
    };
    let updates = ROWS.div_ceil(batch);
    if !options.json {
        println!("an epoch of {updates} updates of {batch} rows, {threads} threads\n");
        println!("{:22} {:>9} {:>11}", "", "ms", "Gflop/s");
    }
    for (name, preconditioner, is_noisy, products) in cases() {
        if !options.wants(name) {
            continue;
        }
        let objective = Objective::new(&network, data.clone(), threads).unwrap();
        let start = objective.layout().draw_by_fan_in(1.0, &mut stream);
        let settings = StochasticGradientSettings {
            step_size: 0.01,
            schedule: StepSize::Constant,
            batch,
            dynamics: Dynamics::Langevin,
            decay: Default::default(),
            labels: Default::default(),
            priors: vec![Prior::Gaussian {
                weights: 0.1,
                biases: 1.0,
            }],
            seed: 0,
            chain: 0,
            temperature: f64::from(u8::from(is_noisy)),
            dropout: 0.0,
        };
        let mut chain =
            StochasticGradient::new(objective, preconditioner, settings, start).unwrap();
        let budget = Duration::from_secs_f64(options.seconds.unwrap_or(5.0));
        let seconds = shortest(budget, 2, || {
            for _ in 0..updates {
                chain.update().unwrap();
            }
        });
        let [all, above] = WEIGHTS;
        let operations = 2.0 * ROWS as f64 * ((2.0 + products) * all + above);
        if options.json {
            Options::report("784-400-400-10", name, ROWS, threads, seconds);
        } else {
            let (ms, rate) = (seconds * 1e3, operations / seconds / 1e9);
            println!("{name:22} {ms:9.0} {rate:11.1}");
        }
    }
}
