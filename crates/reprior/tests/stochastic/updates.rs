//! Updates: the same on any number of threads and after an interruption; schedules; what goes wrong is said.

use reprior::compute::{Purpose, Stream};
use reprior::model::likelihood::{Categorical, Gaussian};
use reprior::network::layer::{Convolution, Layer, Padding, Shape, Window};
use reprior::network::{Activation, Composition, LayerScale};
use reprior::stochastic::preconditioner::Preconditioner;
use reprior::stochastic::preconditioner::quasi_diagonal::QuasiDiagonal;
use reprior::stochastic::update::{StochasticGradient, StochasticGradientError};
use reprior::stochastic::{CurvatureLabels, Dynamics, Prior, StepSize, StochasticGradientSettings};

use super::{network, normals, objective, preconditioners, settings};

fn images() -> (Composition, Vec<f64>, Vec<f64>) {
    let scale = LayerScale::HIDDEN;
    let network = Composition {
        input: Shape::from([5, 5, 1]),
        layers: vec![
            Layer::Convolution(Convolution {
                channels: 3,
                window: Window {
                    size: [3; 2],
                    stride: [1; 2],
                    padding: Padding::Same,
                },
                scale,
            }),
            Layer::Activation {
                function: Activation::Relu,
            },
            Layer::Flatten,
        ],
        outputs: 3,
        readout_scale: LayerScale::READOUT,
    };
    let (x, rows) = (normals(50 * 25, 1), 50);
    let mut y = vec![0.0; rows * 3];
    for row in 0..rows {
        let label = if x[row * 25] > 0.5 { 0 } else { 1 + row % 2 };
        y[row * 3 + label] = 1.0;
    }
    (network, x, y)
}

fn kinds() -> Vec<Box<dyn Preconditioner<f32>>> {
    preconditioners(1e-2)
}

/// Every preconditioner with statistics of either kind of labels, batches of 16: 30 updates in one go and on one thread
/// against 11 and 19 on three.
#[test]
fn nothing_depends_on_threads_or_interruptions() {
    let (network, x, y) = images();
    for labels in [CurvatureLabels::Data, CurvatureLabels::Model] {
        for kind in 0..kinds().len() {
            let settings = StochasticGradientSettings {
                batch: 16,
                labels,
                dynamics: if kind == 3 {
                    Dynamics::Hamiltonian { friction: 0.3 }
                } else {
                    Dynamics::Langevin
                },
                priors: vec![Prior::NormalInverseGamma {
                    shape: 0.5,
                    rate: 0.5,
                    mean: 0.0,
                }],
                ..settings(1e-3)
            };
            let make = |threads| objective::<f32>(&network, &x, &y, Categorical, 1.0, threads);
            let mut stream = Stream::new(1, 0, Purpose::Initial, 0);
            let start = make(1).layout().draw_standard_normal(&mut stream);
            let preconditioner = || kinds().swap_remove(kind);
            let mut whole =
                StochasticGradient::new(make(1), preconditioner(), settings.clone(), start.clone())
                    .unwrap();
            let mut first =
                StochasticGradient::new(make(3), preconditioner(), settings.clone(), start)
                    .unwrap();
            let mut losses = Vec::new();
            (0..30).for_each(|_| losses.push(whole.update().unwrap().loss));
            for loss in &losses[..11] {
                assert_eq!(first.update().unwrap().loss, *loss);
            }
            let state = first.state().clone();
            let mut second =
                StochasticGradient::resume(make(2), preconditioner(), settings.clone(), state)
                    .unwrap();
            for loss in &losses[11..] {
                assert_eq!(second.update().unwrap().loss, *loss);
            }
            assert!(whole.state() == second.state(), "{:?}", preconditioner());
            assert_eq!(whole.updates_per_epoch(), 4);
        }
    }
}

/// Without noise in a cycle's first part updates are gradient steps; drawing is for the second.
#[test]
fn cycles_explore_before_they_sample() {
    let (x, y) = (normals(20, 1), normals(10, 2));
    let network = network(2, &[], 1);
    let settings = StochasticGradientSettings {
        schedule: StepSize::Cyclical {
            length: 10,
            exploration: 0.6,
        },
        ..settings(0.1)
    };
    let run = |seed: u64| {
        let objective = objective::<f64>(&network, &x, &y, Gaussian, 0.5, 1);
        let kind = Box::new(QuasiDiagonal::default());
        let settings = StochasticGradientSettings {
            seed,
            ..settings.clone()
        };
        StochasticGradient::new(objective, kind, settings, vec![0.0; 3]).unwrap()
    };
    let (mut one, mut other) = (run(1), run(2));
    for update in 0..10 {
        one.update().unwrap();
        other.update().unwrap();
        let is_sampling = update >= 6;
        assert_eq!(one.is_sampling(), is_sampling);
        assert_eq!(one.state().position != other.state().position, is_sampling);
    }
}

#[test]
fn what_goes_wrong_is_said() {
    let (x, y) = (normals(40, 1), normals(20, 2));
    let network = network(2, &[3], 1);
    let dim = 13;
    let make = |settings: StochasticGradientSettings, dim: usize| {
        let objective = objective::<f64>(&network, &x, &y, Gaussian, 1e-3, 1);
        let kind: Box<dyn Preconditioner<f64>> = preconditioners(1e-4).swap_remove(0);
        StochasticGradient::new(objective, kind, settings, vec![0.1; dim])
    };
    let mut chain = make(settings(1e250), dim).unwrap();
    let error = (0..10).find_map(|_| chain.update().err()).unwrap();
    let text = error.to_string();
    assert!(matches!(
        error,
        StochasticGradientError::Loss { .. } | StochasticGradientError::Position { .. }
    ));
    assert!(
        text.contains("step size of") && text.contains("lower --step-size"),
        "{text}"
    );
    for (wrong, word) in [
        (settings(0.0), "the step size is 0"),
        (
            StochasticGradientSettings {
                batch: 0,
                ..settings(0.1)
            },
            "minibatch has 0 rows",
        ),
        (
            StochasticGradientSettings {
                dynamics: Dynamics::Hamiltonian { friction: 0.0 },
                ..settings(0.1)
            },
            "friction is 0",
        ),
    ] {
        let error = make(wrong, dim).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    let large = super::network(784, &[400], 10);
    let objective_of = |rows: usize| {
        objective::<f32>(
            &large,
            &vec![0.0; rows * 784],
            &vec![0.0; rows * 10],
            Gaussian,
            1.0,
            1,
        )
    };
    let full: Box<dyn Preconditioner<f32>> = preconditioners(1e-4).swap_remove(4);
    let error = StochasticGradient::new(objective_of(1), full, settings(0.1), vec![0.0; 318_010]);
    let text = error.unwrap_err().to_string();
    assert!(
        text.contains("4045.2 GB") && text.contains("quasi-diagonal"),
        "{text}"
    );
    let error = make(settings(0.1), 5).unwrap_err().to_string();
    assert_eq!(error, "the state has 5 numbers of the position, not 13");
    let objective = objective::<f64>(&network, &x, &y, Gaussian, 1.0, 1);
    let settings = StochasticGradientSettings {
        dynamics: Dynamics::NoseHoover { friction: 0.1 },
        ..settings(0.1)
    };
    let kind = Box::new(QuasiDiagonal::default());
    let error = StochasticGradient::new(objective, kind, settings, vec![0.0; dim]).unwrap_err();
    assert!(error.to_string().contains("thermostat"), "{error}");
}

/// Whole matrices and units shared among threads against layer by layer: a pool of one pixel changes nothing but the way.
#[test]
fn dense_networks_go_another_way_to_the_same_positions() {
    let (d, rows) = (7, 60);
    let plain = network(d, &[150, 9], 3);
    let mut pooled = plain.clone();
    pooled.layers.insert(2, Layer::GlobalAveragePool);
    let whole = normals(rows * d, 1);
    let mut y = vec![0.0; rows * 3];
    (0..rows).for_each(|row| y[row * 3 + usize::from(whole[row * d] > 0.0)] = 1.0);
    let start = normals(plain.parameters(), 2);
    // few inputs other than zero are multiplied in yet another way
    let sparse: Vec<f64> = whole.iter().map(|x| x.max(0.7) - 0.7).collect();
    // so are few inputs other than one number
    let common: Vec<f64> = whole.iter().map(|x| x.max(0.7) - 1.0).collect();
    for (x, labels) in [
        (&whole, CurvatureLabels::Data),
        (&whole, CurvatureLabels::Model),
        (&sparse, CurvatureLabels::Data),
        (&sparse, CurvatureLabels::Model),
        (&common, CurvatureLabels::Data),
        (&common, CurvatureLabels::Model),
    ] {
        for kind in 0..4 {
            let settings = StochasticGradientSettings {
                batch: 25,
                labels,
                ..settings(1e-3)
            };
            let run = |network: &Composition, threads: usize| {
                let objective = objective::<f64>(network, x, &y, Categorical, 1.0, threads);
                let preconditioner = preconditioners(1e-3).swap_remove(kind);
                let mut chain = StochasticGradient::new(
                    objective,
                    preconditioner,
                    settings.clone(),
                    start.clone(),
                )
                .unwrap();
                let losses = (0..7).map(|_| chain.update().unwrap().loss);
                (losses.collect::<Vec<_>>(), chain.state().position.clone())
            };
            let (one, three, layers) = (run(&plain, 1), run(&plain, 3), run(&pooled, 1));
            assert!(one == three, "{kind}");
            for (a, b) in one.1.iter().zip(&layers.1) {
                assert!((a - b).abs() < 1e-9 * (1.0 + b.abs()), "{kind}: {a} {b}");
            }
        }
    }
}

/// The mean loss over many masks at a position that stands still, against its expectation by hand.
#[test]
fn dropout_keeps_means_and_is_the_same_on_any_number_of_threads() {
    let (d, units, rows) = (3, 40, 8);
    let network = network(d, &[units], 1);
    let (x, y) = (normals(rows * d, 1), vec![0.0; rows]);
    let start = normals(network.parameters(), 2);
    let rate = 0.3;
    let run = |threads: usize, updates: usize| {
        let settings = StochasticGradientSettings {
            dropout: rate,
            temperature: 0.0,
            ..settings(1e-300)
        };
        let objective = objective::<f64>(&network, &x, &y, Gaussian, 1.0, threads);
        let kind: Box<dyn Preconditioner<f64>> = preconditioners(1e-3).swap_remove(0);
        let mut chain = StochasticGradient::new(objective, kind, settings, start.clone()).unwrap();
        let losses = (0..updates).map(|_| chain.update().unwrap().loss);
        losses.collect::<Vec<_>>()
    };
    assert_eq!(run(1, 5), run(3, 5));
    let losses = run(1, 20_000);
    let mean = losses.iter().sum::<f64>() / losses.len() as f64;
    let spread = losses.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / losses.len() as f64;
    // ½ log 2π + ½ E f², E f² = (Σ w h + b)² + Σ w²h²·p/(1 − p)
    let mut expected = 0.5 * std::f64::consts::TAU.ln();
    for row in 0..rows {
        let (mut f, mut variance) = (start[units * (d + 1) + units], 0.0);
        for unit in 0..units {
            let own = &start[unit * (d + 1)..(unit + 1) * (d + 1)];
            let z: f64 = (0..d).map(|k| own[k] * x[row * d + k]).sum::<f64>() + own[d];
            let term = start[units * (d + 1) + unit] * z.tanh();
            f += term;
            variance += term * term * rate / (1.0 - rate);
        }
        expected += 0.5 * (f * f + variance) / rows as f64;
    }
    let error = (spread / losses.len() as f64).sqrt();
    assert!(
        (mean - expected).abs() < 4.5 * error,
        "{mean} {expected} {error}"
    );
}

/// Adam by its formulas, from gradients that differences of positions of plain descent give.
#[test]
fn adam_moves_as_its_formulas_say() {
    let (d, rows) = (3, 9);
    let network = network(d, &[2], 1);
    let (x, y) = (normals(rows * d, 1), normals(rows, 2));
    let dim = network.parameters();
    let make = |dynamics, step_size, start: &[f64]| {
        let settings = StochasticGradientSettings {
            dynamics,
            temperature: 0.0,
            ..settings(step_size)
        };
        let objective = objective::<f64>(&network, &x, &y, Gaussian, 0.7, 2);
        let kind: Box<dyn Preconditioner<f64>> = preconditioners(1e-3).swap_remove(0);
        StochasticGradient::new(objective, kind, settings, start.to_vec()).unwrap()
    };
    let start = normals(dim, 3);
    let mut adam = make(Dynamics::ADAM, 0.01, &start);
    let (mut theta, mut m, mut v) = (start, vec![0.0; dim], vec![0.0; dim]);
    for t in 1..=6 {
        let mut descent = make(Dynamics::Langevin, 1.0, &theta);
        descent.update().unwrap();
        let moved = &descent.state().position;
        for at in 0..dim {
            let g = theta[at] - moved[at];
            m[at] = 0.9 * m[at] + 0.1 * g;
            v[at] = 0.999 * v[at] + 0.001 * g * g;
            let hats = [
                m[at] / (1.0 - 0.9_f64.powi(t)),
                v[at] / (1.0 - 0.999_f64.powi(t)),
            ];
            theta[at] -= 0.01 * hats[0] / (hats[1].sqrt() + 1e-8);
        }
        adam.update().unwrap();
        for (a, b) in adam.state().position.iter().zip(&theta) {
            assert!((a - b).abs() < 1e-9, "{t}: {a} {b}");
        }
    }
}
