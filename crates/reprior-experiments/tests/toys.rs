//! The qualitative claims of Roy, Miani et al. (2024) on their toys: a sampled Laplace approximation underfits, a linearised one
//! and diffusions do not; it underfits less the more of its directions have curvature.

use reprior::laplace::diffusion::{Decomposition, Diffusion, DiffusionKind, Integrator};
use reprior::laplace::{HessianStructure, Lanczos, Subset};
use reprior_experiments::toys::{self, TrainedNetwork};

type Toy = TrainedNetwork<f64>;
/// Weights, draw by draw.
type Draws = Vec<Vec<f64>>;

const FULL: HessianStructure = HessianStructure::Full(1 << 30);

const SEED: u64 = 3;

fn laplace(toy: &mut Toy, structure: HessianStructure, draws: u64) -> Draws {
    let laplace = toy.laplace(structure, Subset::All, SEED).unwrap();
    toy.draws(&laplace, SEED, draws)
}

fn diffusions(toy: &mut Toy, kind: DiffusionKind, steps: u64, draws: u64) -> Draws {
    let settings = Diffusion {
        kind,
        steps,
        precision: toy.precision,
        integrator: Integrator::Euler,
        decomposition: Decomposition::Exact(1e-7),
    };
    let paths = toy
        .diffusions(settings, None, SEED, draws, |_| Ok(()))
        .unwrap();
    paths.iter().map(|path| path.position.clone()).collect()
}

/// Outputs of the network, or of that linearised at the mode, at each draw.
fn outputs(toy: &mut Toy, draws: &Draws, is_linearised: bool, inputs: &[f64]) -> Draws {
    let mut all = Vec::new();
    let take = |f: &[f64]| {
        all.push(f.to_vec());
        Ok(())
    };
    toy.predict(draws, is_linearised, inputs, take).unwrap();
    all
}

/// Mean squared error of single draws on the training points, and the spread of draws far from them.
fn sine(toy: &mut Toy, draws: &Draws, is_linearised: bool) -> [f64; 2] {
    let mut x = toy.data.inputs.to_vec();
    let rows = x.len();
    x.extend((0..20).map(|i| -1.0 + 0.04 * f64::from(i)));
    let all = outputs(toy, draws, is_linearised, &x);
    let error: f64 = all
        .iter()
        .map(|f| {
            let pairs = f[..rows].iter().zip(&*toy.data.targets);
            pairs.map(|(f, y)| (f - y).powi(2)).sum::<f64>() / rows as f64
        })
        .sum();
    let count = all.len() as f64;
    let spread: f64 = (rows..x.len())
        .map(|at| {
            let mean = all.iter().map(|f| f[at]).sum::<f64>() / count;
            all.iter().map(|f| (f[at] - mean).powi(2)).sum::<f64>() / count
        })
        .sum();
    [error / count, (spread / 20.0).sqrt()]
}

#[test]
fn the_sine() {
    let mut toy = toys::sine(0, 10_000).unwrap();
    let mode = toy.at_mode();
    let map = sine(&mut toy, &mode, false)[0];
    let draws = laplace(&mut toy, FULL, 30);
    let sampled = sine(&mut toy, &draws, false);
    let linearised = sine(&mut toy, &draws, true);
    let ends = diffusions(&mut toy, DiffusionKind::NonKernel, 50, 10);
    let non_kernel = sine(&mut toy, &ends, false);
    let ends = diffusions(&mut toy, DiffusionKind::Kernel, 50, 10);
    let kernel = sine(&mut toy, &ends, false);
    let found = format!("{map} {sampled:?} {linearised:?} {non_kernel:?} {kernel:?}");
    // noise has variance 1e-4
    assert!(map < 1e-3, "{found}");
    assert!(
        sampled[0] > 50.0 * linearised[0] && sampled[0] > 0.05,
        "{found}"
    );
    assert!(
        linearised[0] < 2.0 * map && non_kernel[0] < 10.0 * map,
        "{found}"
    );
    // Euler's steps along the kernel drift
    assert!(kernel[0] < 0.3 * sampled[0], "{found}");
    // draws differ where there are no data
    assert!(linearised[1] > 0.05 && kernel[1] > 0.05, "{found}");
}

/// Accuracy on the training points and mean −log of the mean probability.
fn mixture(toy: &mut Toy, draws: &Draws, is_linearised: bool) -> [f64; 2] {
    let inputs = toy.data.inputs.to_vec();
    let all = outputs(toy, draws, is_linearised, &inputs);
    let rows = inputs.len() / 2;
    let (mut right, mut nll) = (0.0, 0.0);
    for row in 0..rows {
        let of = |f: &Vec<f64>| 1.0 / (1.0 + (f[2 * row] - f[2 * row + 1]).exp());
        let second = all.iter().map(of).sum::<f64>() / all.len() as f64;
        let p = if row % 2 == 1 { second } else { 1.0 - second };
        right += f64::from(u8::from(p > 0.5)) / rows as f64;
        nll -= p.ln() / rows as f64;
    }
    [right, nll]
}

#[test]
fn the_mixture() {
    let mut toy = toys::mixture(0, 100, 2000).unwrap();
    let mode = toy.at_mode();
    let map = mixture(&mut toy, &mode, false);
    let draws = laplace(&mut toy, FULL, 100);
    let sampled = mixture(&mut toy, &draws, false);
    let linearised = mixture(&mut toy, &draws, true);
    let ends = diffusions(&mut toy, DiffusionKind::NonKernel, 20, 20);
    let diffusion = mixture(&mut toy, &ends, false);
    let found = format!("{map:?} {sampled:?} {linearised:?} {diffusion:?}");
    assert!(map[0] > 0.999 && diffusion[0] > 0.999, "{found}");
    assert!(
        sampled[1] > 3.0 * diffusion[1] && sampled[1] > 3.0 * linearised[1],
        "{found}"
    );
    assert!(diffusion[1] < 0.2 && map[1] < 0.01, "{found}");
}

/// Figure 4: the fewer directions are left to the prior alone, the less draws underfit.
#[test]
fn sampled_draws_underfit_less_with_more_curvature() {
    let mut toy = toys::sine(1, 3000).unwrap();
    let errors = [1, 4, 50].map(|rank| {
        let lanczos = Lanczos {
            block: 4,
            tolerance: 1e-6,
            ..Lanczos::of_rank(rank)
        };
        let structure = HessianStructure::LowRank(lanczos);
        let draws = laplace(&mut toy, structure, 200);
        sine(&mut toy, &draws, false)[0]
    });
    // what four pairs leave over is hardly curved
    assert!(
        errors[0] > 2.0 * errors[1] && errors[1] > 0.95 * errors[2],
        "{errors:?}"
    );
}
