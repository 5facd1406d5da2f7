//! Natural-gradient Langevin dynamics on MNIST (Marceau-Caron & Ollivier 2017, Table 1): ensembles and posterior means.
//!
//! ```text
//! cargo run --release -p reprior-io --example natural_langevin -- DATA [METHOD] [STEP-SIZE] [EPOCHS] [SEED] [HIDDEN] [THREADS]
//! ```
//!
//! DATA is a folder with MNIST's IDX files; METHOD one of sgd, dropout, identity, rmsprop, diagonal, quasi-diagonal. As in the
//! paper and its code: pixels from 0 to 1, two hidden layers of ReLU, batches of 100, weights from N(0, 1/fan-in) with the prior
//! N(0, 0.1) on them and N(0, 1) on biases, ε = 1e-4, averages with γ_t = 1/√t, step sizes halved every 10,000 updates (but those of
//! sgd and dropout), members of the ensemble every 101 updates from update 601 on, posterior means with μ_t = 1/√t.
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use reprior::compute::{Purpose, Stream};
use reprior::metrics::ClassPredictions;
use reprior::model::likelihood::Categorical;
use reprior::model::{Dataset, Targets};
use reprior::network::{Activation, Architecture};
use reprior::stochastic::preconditioner::{
    Diagonal, Identity, Preconditioner, QuasiDiagonal, RmsProp,
};
use reprior::stochastic::{
    Averaging, Dynamics, Ensemble, Langevin, LangevinSettings, MinibatchData, Objective,
    PosteriorMean, Prior, StepSize,
};
use reprior_io::data::{Request, load};

/// Pixels from 0 to 1.
fn pixels(data: &Dataset) -> Arc<Vec<f32>> {
    Arc::new(data.inputs.iter().map(|x| (x / 255.0) as f32).collect())
}

fn labels(data: &Dataset) -> Result<&[u32], Box<dyn Error>> {
    match &data.targets {
        Targets::Classes { labels, .. } => Ok(labels),
        Targets::Real { .. } => Err("the targets are not classes".into()),
    }
}

/// NLL and accuracy in per cent.
fn scores(probabilities: &[f64], labels: &[u32]) -> Result<(f64, f64), Box<dyn Error>> {
    let predictions = ClassPredictions::new(probabilities, labels, 10)?;
    Ok((predictions.nll(), 100.0 * predictions.accuracy()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let source = words.next().ok_or("give a folder with MNIST's files")?;
    let method = words.next().unwrap_or_else(|| "quasi-diagonal".to_owned());
    let mut number = |default: f64| words.next().map_or(Ok(default), |word| word.parse::<f64>());
    let (step_size, epochs, seed) = (number(0.01)?, number(10.0)?, number(0.0)?);
    let (hidden, threads) = (number(400.0)? as usize, number(2.0)? as usize);
    let split = load(&Request::new(source))?;
    let (train, test) = (pixels(&split.train), pixels(&split.test));
    let mut targets = vec![0.0; split.train.rows * 10];
    for (row, &label) in labels(&split.train)?.iter().enumerate() {
        targets[row * 10 + label as usize] = 1.0;
    }
    let (train_labels, test_labels) = (labels(&split.train)?, labels(&split.test)?);
    let architecture = Architecture::new(784, &[hidden, hidden], 10, Activation::Relu);
    let network = architecture
        .to_composition()
        .in_standard_parametrisation()?;
    let data = MinibatchData {
        inputs: Arc::clone(&train),
        targets: targets.into(),
        likelihood: Arc::new(Categorical),
        scales: vec![1.0; 10],
    };
    let preconditioner: Box<dyn Preconditioner<f32>> = match method.as_str() {
        "sgd" | "dropout" | "identity" => Box::new(Identity),
        "rmsprop" => Box::new(RmsProp::default()),
        "diagonal" => Box::new(Diagonal::default()),
        "quasi-diagonal" => Box::new(QuasiDiagonal::default()),
        other => return Err(format!("unknown method `{other}`").into()),
    };
    let is_baseline = matches!(method.as_str(), "sgd" | "dropout");
    let objective = Objective::new(&network, data, threads)?;
    let mut stream = Stream::new(seed as u64, 0, Purpose::Initial, 0);
    let start = objective.layout().draw_by_fan_in(1.0, &mut stream);
    let parameters = start.len();
    let settings = LangevinSettings {
        step_size,
        schedule: if is_baseline {
            StepSize::Constant
        } else {
            StepSize::Halving { every: 10_000 }
        },
        batch: 100,
        dynamics: Dynamics::Langevin,
        decay: Default::default(),
        labels: Default::default(),
        priors: vec![if is_baseline {
            // as good as none
            Prior::Gaussian {
                weights: 1e12,
                biases: 1e12,
            }
        } else {
            Prior::Gaussian {
                weights: 0.1,
                biases: 1.0,
            }
        }],
        seed: seed as u64,
        chain: 0,
        temperature: if is_baseline { 0.0 } else { 1.0 },
        dropout: if method == "dropout" { 0.5 } else { 0.0 },
    };
    let mut chain = Langevin::new(objective, preconditioner, settings, start)?;
    let likelihood = Arc::new(Categorical);
    let mut ensemble = Ensemble::new(&network, likelihood.clone(), Arc::clone(&test), threads)?;
    let mut mean = PosteriorMean::new(Averaging::Forgetting, parameters);
    let updates = chain.updates_per_epoch();
    let mut seconds = 0.0;
    println!(
        "{method}, step size {step_size}, seed {seed}: epoch, seconds, batch loss, NLL and accuracy of the last position, of the ensemble, of the posterior mean"
    );
    for epoch in 1..=epochs as u64 {
        let (mut loss, mut temperature) = (0.0, 0.0);
        for _ in 0..updates {
            let begin = Instant::now();
            let update = chain.update()?;
            seconds += begin.elapsed().as_secs_f64();
            loss += update.loss / updates as f64;
            temperature += update.configurational_temperature / updates as f64;
            let state = chain.state();
            mean.add(&state.position);
            if !is_baseline && state.update >= 601 && (state.update - 601).is_multiple_of(101) {
                ensemble.add(&state.position);
            }
        }
        if epoch % 5 == 0 || epoch == epochs as u64 || epoch == 1 {
            let last = scores(ensemble.predict(&chain.state().position), test_labels)?;
            let mean = scores(ensemble.predict(&mean.mean), test_labels)?;
            let of_ensemble = if ensemble.members() > 0 {
                scores(&ensemble.mean(), test_labels)?
            } else {
                (f64::NAN, f64::NAN)
            };
            println!(
                "{epoch:4} {seconds:7.1} {loss:.4}   {:.4} {:.2}   {:.4} {:.2}   {:.4} {:.2}   temperature {temperature:.3}",
                last.0, last.1, of_ensemble.0, of_ensemble.1, mean.0, mean.1
            );
        }
    }
    let mut of_train = Ensemble::new(&network, likelihood, train, threads)?;
    let (nll, accuracy) = scores(of_train.predict(&chain.state().position), train_labels)?;
    println!("last position on the training rows: {nll:.4} {accuracy:.2}");
    Ok(())
}
