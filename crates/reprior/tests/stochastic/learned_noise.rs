//! A noise scale that is learned along: the joint law against quadrature, a mode against a search, threads and interruptions.

use reprior::model::NoisePrior;
use reprior::model::likelihood::{Gaussian, StudentT};
use reprior::stochastic::objective::Objective;
use reprior::stochastic::preconditioner::elementwise::Elementwise;
use reprior::stochastic::preconditioner::identity::Identity;
use reprior::stochastic::preconditioner::{Preconditioner, Regularisation};
use reprior::stochastic::update::StochasticGradient;
use reprior::stochastic::{Dynamics, StochasticGradientSettings};

use super::{network, normals, objective, settings};

const ROWS: usize = 14;
const PRIOR: NoisePrior = NoisePrior {
    median: 0.5,
    spread: 0.8,
    per_output: false,
};

/// One weight, no bias: y = w·x + 1.1·e.
fn line() -> (Vec<f64>, Vec<f64>) {
    let x = normals(ROWS, 11);
    let noise = normals(ROWS, 12);
    let y = x.iter().zip(&noise).map(|(x, e)| 0.7 * x + 1.1 * e);
    (x.clone(), y.collect())
}

fn rms_prop() -> Box<dyn Preconditioner<f64>> {
    Box::new(Elementwise::rms_prop(Regularisation {
        epsilon: 1e-4,
        inside: true,
    }))
}

fn learning(x: &[f64], y: &[f64], threads: usize) -> Objective<f64> {
    // the scale of the data is of no account
    objective(&network(1, &[], 1), x, y, Gaussian, 7.0, threads).with_learned_noise(PRIOR)
}

/// log p(y, w, b, u).
fn log_joint(x: &[f64], y: &[f64], [w, b, u]: [f64; 3]) -> f64 {
    let sigma = PRIOR.median * (PRIOR.spread * u).exp();
    let rows = x.iter().zip(y).map(|(x, y)| {
        let residual = (y - w * x - b) / sigma;
        -0.5 * residual * residual - sigma.ln()
    });
    rows.sum::<f64>() - 0.5 * (w * w + b * b + u * u)
}

/// Means and standard deviations of w, b and u, on a grid.
fn quadrature(x: &[f64], y: &[f64]) -> [[f64; 2]; 3] {
    let axis = |low: f64, high: f64| (0..81).map(move |i| low + (high - low) * f64::from(i) / 80.0);
    let (mut total, mut sums, mut squares) = (0.0, [0.0; 3], [0.0; 3]);
    for w in axis(-2.0, 3.0) {
        for b in axis(-2.5, 2.5) {
            for u in axis(-1.5, 3.5) {
                let p = (log_joint(x, y, [w, b, u]) + 20.0).exp();
                total += p;
                for (at, value) in [w, b, u].into_iter().enumerate() {
                    sums[at] += p * value;
                    squares[at] += p * value * value;
                }
            }
        }
    }
    std::array::from_fn(|at| {
        let mean = sums[at] / total;
        [mean, (squares[at] / total - mean * mean).sqrt()]
    })
}

#[test]
fn weights_and_noise_have_their_joint_law() {
    let (x, y) = line();
    let expected = quadrature(&x, &y);
    let identity: Box<dyn Preconditioner<f64>> = Box::new(Identity);
    for (preconditioner, step_size, dynamics) in [
        (identity, 0.02, Dynamics::Langevin),
        (
            Box::new(Identity) as Box<dyn Preconditioner<f64>>,
            0.002,
            Dynamics::Hamiltonian { friction: 0.1 },
        ),
    ] {
        let settings = StochasticGradientSettings {
            dynamics,
            ..settings(step_size)
        };
        let start = vec![0.0; 2];
        let mut chain =
            StochasticGradient::new(learning(&x, &y, 1), preconditioner, settings, start).unwrap();
        for _ in 0..5000 {
            chain.update().unwrap();
        }
        let updates = 400_000;
        let (mut sums, mut squares) = ([0.0; 3], [0.0; 3]);
        for _ in 0..updates {
            chain.update().unwrap();
            let state = chain.state();
            let values = [state.position[0], state.position[1], state.noise[0]];
            for (at, value) in values.into_iter().enumerate() {
                sums[at] += value / f64::from(updates);
                squares[at] += value * value / f64::from(updates);
            }
        }
        for (at, [mean, sd]) in expected.into_iter().enumerate() {
            let found = [sums[at], (squares[at] - sums[at] * sums[at]).sqrt()];
            assert!(
                (found[0] - mean).abs() < 0.06 * sd && (found[1] / sd - 1.0).abs() < 0.06,
                "{dynamics:?} {at}: {found:?}, not {mean} and {sd}"
            );
        }
    }
}

/// Without noise of its own the scale climbs to the mode of the joint density.
#[test]
fn a_descent_ends_at_the_joint_mode() {
    let (x, y) = line();
    let settings = StochasticGradientSettings {
        temperature: 0.0,
        dynamics: Dynamics::ADAM,
        ..settings(0.01)
    };
    let mut chain = StochasticGradient::new(
        learning(&x, &y, 1),
        Box::new(Identity),
        settings,
        vec![0.0; 2],
    )
    .unwrap();
    for _ in 0..4000 {
        chain.update().unwrap();
    }
    let state = chain.state();
    let at = [state.position[0], state.position[1], state.noise[0]];
    let best = log_joint(&x, &y, at);
    for coordinate in 0..3 {
        for by in [-1e-2, 1e-2] {
            let mut other = at;
            other[coordinate] += by;
            assert!(log_joint(&x, &y, other) < best, "{at:?} {coordinate}");
        }
    }
    let sigma = PRIOR.median * (PRIOR.spread * state.noise[0]).exp();
    assert_eq!(chain.objective().scales(), [sigma]);
}

/// Minibatches, several outputs with scales of their own, a preconditioner: neither threads nor an interruption change anything.
#[test]
fn threads_and_interruptions_change_nothing() {
    let (inputs, targets) = (normals(120, 13), normals(80, 14));
    let network = network(3, &[4], 2);
    let prior = NoisePrior {
        per_output: true,
        ..PRIOR
    };
    let make = |threads: usize| {
        let likelihood = StudentT::new(4.0).unwrap();
        let own = objective::<f64>(&network, &inputs, &targets, likelihood, 1.0, threads);
        own.with_learned_noise(prior)
    };
    let settings = StochasticGradientSettings {
        batch: 9,
        ..settings(1e-3)
    };
    let start = normals(26, 15);
    let run = |threads: usize| {
        let own = settings.clone();
        StochasticGradient::new(make(threads), rms_prop(), own, start.clone()).unwrap()
    };
    let (mut whole, mut threaded) = (run(1), run(3));
    for _ in 0..40 {
        whole.update().unwrap();
        threaded.update().unwrap();
    }
    assert_eq!(whole.state(), threaded.state());
    assert_eq!(whole.state().noise.len(), 2);
    assert_ne!(whole.state().noise[0], whole.state().noise[1]);
    let mut first = run(1);
    for _ in 0..17 {
        first.update().unwrap();
    }
    let state = first.state().clone();
    let mut rest =
        StochasticGradient::resume(make(1), rms_prop(), settings.clone(), state.clone()).unwrap();
    for _ in 0..23 {
        rest.update().unwrap();
    }
    assert_eq!(whole.state(), rest.state());
    let mut wrong = state;
    wrong.noise.pop();
    let refused = StochasticGradient::resume(make(1), rms_prop(), settings, wrong);
    assert!(refused.unwrap_err().to_string().contains("the noise"));
}
