//! An affine change of the inputs leaves the function along a quasi-diagonal trajectory unchanged, noise included (Ollivier
//! 2015; Marceau-Caron & Ollivier 2017); with other preconditioners it does not. (Scales are positive: a negative one turns the
//! sign of a weight's noise around, which changes the path and not its law.)

use reprior::model::likelihood::Bernoulli;
use reprior::stochastic::preconditioner::Preconditioner;
use reprior::stochastic::update::StochasticGradient;
use reprior::stochastic::{Prior, StochasticGradientSettings};

use super::{network, normals, objective, preconditioners, settings};

/// The largest difference between the weights after 30 updates and those of the changed problem, changed back.
fn difference(kind: usize) -> f64 {
    let (rows, d, units) = (60, 3, 4);
    let x = normals(rows * d, 1);
    let y: Vec<f64> = (0..rows)
        .map(|row| f64::from(u8::from(x[row * d] > 0.2 * x[row * d + 1])))
        .collect();
    let (scale, shift) = ([2.5, 0.3, 4.0], [1.0, -2.0, 0.7]);
    let changed: Vec<f64> = x
        .iter()
        .enumerate()
        .map(|(at, x)| scale[at % d] * x + shift[at % d])
        .collect();
    let network = network(d, &[units], 1);
    // w·x + b = Σ (w/scale)·(scale·x + shift) + b − Σ w·shift/scale
    let change = |weights: &[f64]| {
        let mut weights = weights.to_vec();
        for unit in weights[..units * (d + 1)].chunks_exact_mut(d + 1) {
            for at in 0..d {
                unit[at] /= scale[at];
                unit[d] -= unit[at] * shift[at];
            }
        }
        weights
    };
    let start: Vec<f64> = normals(units * (d + 1) + units + 1, 2);
    let run = |x: &[f64], start: Vec<f64>| {
        let settings = StochasticGradientSettings {
            batch: 30,
            priors: vec![Prior::Gaussian {
                weights: 1e15,
                biases: 1e15,
            }],
            ..settings(0.002)
        };
        let objective = objective(&network, x, &y, Bernoulli, 1.0, 1);
        let kind: Box<dyn Preconditioner<f64>> = preconditioners(1e-15).swap_remove(kind);
        let mut chain = StochasticGradient::new(objective, kind, settings, start).unwrap();
        for _ in 0..30 {
            chain.update().unwrap();
        }
        chain.state().position.clone()
    };
    let found = change(&run(&x, start.clone()));
    let expected = run(&changed, change(&start));
    let differences = found.iter().zip(&expected).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, f64::max)
}

#[test]
fn the_quasi_diagonal_trajectory_does_not_see_affine_changes_of_inputs() {
    assert!(difference(3) < 1e-7, "{}", difference(3));
    for other in 0..3 {
        assert!(difference(other) > 1e-2, "{other}");
    }
}
