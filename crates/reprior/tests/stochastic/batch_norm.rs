//! Training with statistics of minibatches: running averages against numbers worked out by hand, the frozen network, resumption.

use reprior::compute::kernels::matrix_mut;
use reprior::compute::matrix;
use reprior::model::likelihood::Gaussian;
use reprior::network::layer::{BatchNorm, Dense, Layer};
use reprior::network::{Composition, Executor, LayerScale};
use reprior::stochastic::update::{StochasticGradient, StochasticGradientError};

use super::*;

const ROWS: usize = 70;

fn norm() -> Layer {
    Layer::BatchNorm(BatchNorm {
        mean: Vec::new(),
        variance: Vec::new(),
        epsilon: BatchNorm::EPSILON,
    })
}

/// The inputs normalised, a hidden layer, and that normalised.
fn normalised() -> Composition {
    let scale = LayerScale::HIDDEN;
    let layers = vec![
        norm(),
        Layer::Dense(Dense { units: 12, scale }),
        norm(),
        Layer::Activation {
            function: Activation::Tanh,
        },
    ];
    Composition {
        input: [1, 1, 2].into(),
        layers,
        outputs: 1,
        readout_scale: LayerScale::READOUT,
    }
}

/// Inputs around 3 and −1, and a smooth function of them.
fn data() -> (Vec<f64>, Vec<f64>) {
    let mut inputs = normals(2 * ROWS, 1);
    for pair in inputs.chunks_exact_mut(2) {
        (pair[0], pair[1]) = (3.0 + 2.0 * pair[0], 0.5 * pair[1] - 1.0);
    }
    let targets = inputs.chunks_exact(2).map(|x| (0.8 * x[0]).sin() + x[1]);
    let targets = targets.collect();
    (inputs, targets)
}

fn chain_of(
    objective: Objective<f64>,
    settings: StochasticGradientSettings,
    start: Vec<f64>,
) -> Result<StochasticGradient<f64>, StochasticGradientError> {
    StochasticGradient::new(objective, Box::new(Identity), settings, start)
}

fn training(network: &Composition, threads: usize) -> Objective<f64> {
    let (inputs, targets) = data();
    objective(network, &inputs, &targets, Gaussian, 0.1, threads).with_batch_statistics(network)
}

fn adam(batch: usize) -> StochasticGradientSettings {
    StochasticGradientSettings {
        batch,
        dynamics: Dynamics::ADAM,
        temperature: 0.0,
        ..settings(0.02)
    }
}

fn start(network: &Composition) -> Vec<f64> {
    let layout = reprior::network::parameters::ParameterLayout::new(network);
    let mut start = layout.draw_standard_normal(&mut Stream::new(9, 0, Purpose::Initial, 0));
    layout.start_normalisation(&mut start);
    assert_eq!(start[..4], [1.0, 0.0, 1.0, 0.0]);
    start
}

/// Mean and unbiased variance of a column.
fn moments(inputs: &[f64], column: usize) -> [f64; 2] {
    let own: Vec<f64> = inputs.iter().skip(column).step_by(2).copied().collect();
    let mean = own.iter().sum::<f64>() / own.len() as f64;
    let squares: f64 = own.iter().map(|x| (x - mean).powi(2)).sum();
    [mean, squares / (own.len() - 1) as f64]
}

/// Of the inputs, whose statistics do not depend on weights: after t minibatches of all rows 0.9ᵗ·start + (1 − 0.9ᵗ)·that of the rows.
#[test]
fn running_averages_have_pytorchs_momentum_and_unbiased_variance() {
    let network = normalised();
    let start = start(&network);
    let mut chain = chain_of(training(&network, 1), adam(usize::MAX), start).unwrap();
    for _ in 0..7 {
        chain.update().unwrap();
    }
    let inputs = data().0;
    let kept = 0.9_f64.powi(7);
    let found = chain.state().statistics[..4].to_vec();
    for column in 0..2 {
        let [mean, variance] = moments(&inputs, column);
        let expected = [(1.0 - kept) * mean, kept + (1.0 - kept) * variance];
        for (found, expected) in [found[column], found[2 + column]].iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
    }
    // and a pass over the rows by themselves finds theirs
    let position = chain.state().position.clone();
    let found = chain.statistics_at(&position);
    assert_eq!(found.len(), chain.state().statistics.len());
    for column in 0..2 {
        let [mean, variance] = moments(&inputs, column);
        assert!((found[column] - mean).abs() < 1e-12);
        assert!((found[2 + column] - variance).abs() < 1e-12);
    }
}

#[test]
fn statistics_at_other_weights_count_rows() {
    let network = normalised();
    // minibatches of 30, 30 and 10
    let mut chain = chain_of(training(&network, 2), adam(30), start(&network)).unwrap();
    let weights = start(&network);
    let found = chain.statistics_at(&weights);
    let inputs = data().0;
    let mut expected = 0.0;
    for rows in inputs.chunks(60) {
        expected += moments(rows, 0)[1] * (rows.len() / 2) as f64 / ROWS as f64;
    }
    assert!(
        (found[2] - expected).abs() < 1e-12,
        "{} {expected}",
        found[2]
    );
}

/// What was trained with the statistics of minibatches predicts with the running ones.
#[test]
fn the_frozen_network_has_learned_what_was_trained() {
    let network = normalised();
    let mut chain = chain_of(training(&network, 2), adam(35), start(&network)).unwrap();
    let mut last = f64::NAN;
    for _ in 0..1500 {
        last = chain.update().unwrap().loss;
    }
    let state = chain.state();
    let (inputs, targets) = data();
    let error = |network: &Composition| {
        let mut out = vec![0.0; ROWS];
        let mut executor = Executor::<f64>::new(network).unwrap();
        let inputs = matrix(&inputs, 2, ROWS).transpose();
        executor.outputs(&state.position, inputs, matrix_mut(&mut out, ROWS, 1));
        let squares = out.iter().zip(&targets).map(|(f, y)| (f - y).powi(2));
        (squares.sum::<f64>() / ROWS as f64).sqrt()
    };
    let frozen = error(&network.with_statistics(&state.statistics));
    assert!(frozen < 0.15, "{frozen}, {last}");
    assert!(error(&network) > 5.0 * frozen);
}

#[test]
fn threads_and_interruptions_change_nothing() {
    let network = normalised();
    let after = |threads: usize, stop: Option<usize>| {
        let mut chain = chain_of(training(&network, threads), adam(33), start(&network)).unwrap();
        for update in 0..9 {
            if stop == Some(update) {
                let state = chain.state().clone();
                let objective = training(&network, 3);
                chain = StochasticGradient::resume(objective, Box::new(Identity), adam(33), state)
                    .unwrap();
            }
            chain.update().unwrap();
        }
        chain.state().clone()
    };
    let whole = after(1, None);
    assert!(!whole.statistics.is_empty());
    assert_eq!(after(3, None), whole);
    assert_eq!(after(2, Some(4)), whole);
}

#[test]
fn what_cannot_have_statistics_of_minibatches_is_refused() {
    let network = normalised();
    let refused = |kind: Box<dyn Preconditioner<f64>>, settings: StochasticGradientSettings| {
        let start = start(&network);
        let chain = StochasticGradient::new(training(&network, 1), kind, settings, start);
        chain.unwrap_err().to_string()
    };
    let found = refused(Box::new(Identity), settings(0.01));
    assert!(found.contains("no posterior"), "{found}");
    let found = refused(Box::new(Identity), adam(69));
    assert!(
        found.contains("of 70 rows in minibatches of 69 the last has one"),
        "{found}"
    );
    let diagonal = Elementwise::diagonal(Regularisation {
        epsilon: 1e-3,
        inside: true,
    });
    let descent = StochasticGradientSettings {
        temperature: 0.0,
        ..settings(0.01)
    };
    let found = refused(Box::new(diagonal), descent);
    assert!(found.contains("no gradients of single rows"), "{found}");
    // with a network that has none nothing changes
    let plain = super::network(2, &[5], 1);
    let (inputs, targets) = data();
    let own = || objective::<f64>(&plain, &inputs, &targets, Gaussian, 0.1, 1);
    let position = normals(plain.parameters(), 3);
    let run = |objective| {
        let mut chain = chain_of(objective, settings(0.001), position.clone()).unwrap();
        chain.update().unwrap();
        chain.state().clone()
    };
    assert_eq!(run(own()), run(own().with_batch_statistics(&plain)));
}
