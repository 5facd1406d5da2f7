//! Laplace diffusions against the laws that they should have.

use reprior::compute::{Purpose, Stream, matrix};
use reprior::laplace::diffusion::{
    Decomposition, Diffusion, DiffusionData, DiffusionKind, DiffusionPath, Integrator,
};
use reprior::laplace::{FisherInformation, Lanczos, RowCurvature};
use reprior::model::likelihood::Gaussian;
use reprior::network::Executor;

use super::{apply, close, dense_network, gauss_newton, jacobians, normals, times};

const ALPHA: f64 = 0.6;

struct Problem {
    executor: Executor<f64>,
    weights: Vec<f64>,
    x: Vec<f64>,
    curvature: FisherInformation<'static>,
    rows: usize,
}

fn problem(widths: &[usize], rows: usize) -> Problem {
    let network = dense_network(2, widths, 1);
    let executor = Executor::<f64>::new(&network).unwrap();
    Problem {
        weights: normals(executor.parameters(), 1),
        executor,
        x: normals(rows * 2, 2),
        curvature: FisherInformation {
            likelihood: &Gaussian,
            scales: &[0.4],
        },
        rows,
    }
}

impl Problem {
    fn path(&mut self, kind: DiffusionKind, steps: u64, chain: u64) -> DiffusionPath<f64> {
        let settings = Diffusion {
            kind,
            steps,
            precision: ALPHA,
            integrator: Integrator::Euler,
            decomposition: Decomposition::Exact(1e-10),
        };
        self.run(settings, chain)
    }

    fn run(&mut self, settings: Diffusion, chain: u64) -> DiffusionPath<f64> {
        let mut path = DiffusionPath::new(settings, &self.weights, 5, chain);
        let data = DiffusionData {
            inputs: matrix(&self.x, self.rows, 2),
            curvature: &self.curvature as &dyn RowCurvature<f64>,
            scale: 1.0,
        };
        path.run(&mut self.executor, data).unwrap();
        path
    }

    fn dense(&mut self) -> Vec<f64> {
        let (j, f) = jacobians(&mut self.executor, &self.weights, &self.x, self.rows);
        gauss_newton(&j, &f, 1, &self.curvature)
    }

    fn outputs(&mut self, weights: &[f64], x: &[f64]) -> Vec<f64> {
        jacobians(&mut self.executor, weights, x, x.len() / 2).1
    }
}

/// One step, with the noise known: (G + α)^(−1/2)·ε, its part along G's range, and the rest.
#[test]
fn one_step_is_the_formula() {
    let mut problem = problem(&[4], 6);
    let size = problem.weights.len();
    let dense = problem.dense();
    let mut noise = vec![0.0; size];
    Stream::new(5, 3, Purpose::Transition, 0).fill_normal(&mut noise);
    for (kind, root) in [
        (
            DiffusionKind::Full,
            apply(&dense, size, |v| (v + ALPHA).sqrt().recip()),
        ),
        (
            DiffusionKind::Kernel,
            apply(&dense, size, |v| {
                if v > 1e-8 { 0.0 } else { ALPHA.sqrt().recip() }
            }),
        ),
    ] {
        let path = problem.path(kind, 1, 3);
        let away: Vec<f64> = path
            .position()
            .iter()
            .zip(&problem.weights)
            .map(|(a, b)| a - b)
            .collect();
        close(&away, &times(&root, &noise), 1e-9);
    }
}

/// With a constant metric (a network linear in its weights) any number of steps has the covariance of the Laplace approximation,
/// on G's range alone, off it alone, or on both: 20,000 paths, five standard errors.
#[test]
fn a_constant_metric_gives_the_laplace_approximation() {
    let mut problem = problem(&[], 2);
    let size = problem.weights.len();
    let dense = problem.dense();
    let inside = |v: f64| if v > 1e-8 { 1.0 / (v + ALPHA) } else { 0.0 };
    let outside = |v: f64| if v > 1e-8 { 0.0 } else { 1.0 / ALPHA };
    for (kind, covariance) in [
        (
            DiffusionKind::Full,
            apply(&dense, size, |v| inside(v) + outside(v)),
        ),
        (DiffusionKind::NonKernel, apply(&dense, size, inside)),
        (DiffusionKind::Kernel, apply(&dense, size, outside)),
        (
            DiffusionKind::Alternating,
            apply(&dense, size, |v| inside(v) + outside(v)),
        ),
    ] {
        for steps in [1, 5] {
            let (count, mut sums) = (20_000, vec![0.0; size * size]);
            for chain in 0..count {
                let path = problem.path(kind, steps, chain);
                for i in 0..size {
                    for j in 0..size {
                        let [a, b] = [i, j].map(|at| path.position()[at] - problem.weights[at]);
                        sums[j * size + i] += a * b / count as f64;
                    }
                }
            }
            for i in 0..size {
                for j in 0..size {
                    let [own, a, b] =
                        [j * size + i, i * size + i, j * size + j].map(|at| covariance[at]);
                    let error = ((a * b + own * own) / count as f64).sqrt();
                    let off = sums[j * size + i] - own;
                    assert!(off.abs() < 5.0 * error + 1e-12, "{kind:?} {steps} {i} {j}");
                }
            }
        }
    }
}

/// Theorem 5.1: along the kernel the functions on the training inputs do not move as Heun's steps become small, while others do.
/// Under Euler's they come to a drift of their own, whatever the steps.
#[test]
fn kernel_diffusions_keep_the_training_outputs() {
    let mut problem = problem(&[12], 6);
    let (train, weights) = (problem.x.clone(), problem.weights.clone());
    let new = normals(10, 40);
    let before = [
        problem.outputs(&weights, &train),
        problem.outputs(&weights, &new),
    ];
    let mut moved = |integrator: Integrator, steps: u64| {
        let (count, mut spread) = (40, [0.0; 2]);
        let settings = Diffusion {
            kind: DiffusionKind::Kernel,
            steps,
            precision: ALPHA,
            integrator,
            decomposition: Decomposition::Exact(1e-10),
        };
        for chain in 0..count {
            let path = problem.run(settings, chain);
            let position = path.position().to_vec();
            for (at, x) in [&train, &new].into_iter().enumerate() {
                let f = problem.outputs(&position, x);
                let square = f.iter().zip(&before[at]).map(|(a, b)| (a - b).powi(2));
                spread[at] += square.sum::<f64>() / (count as f64 * f.len() as f64);
            }
        }
        spread
    };
    let heun = [4, 40, 400].map(|steps| moved(Integrator::Heun, steps));
    // a step's error is of order T^(−1), at random
    assert!(
        heun[0][0] > 5.0 * heun[1][0] && heun[1][0] > 5.0 * heun[2][0],
        "{heun:?}"
    );
    assert!(heun[2][0] < 0.005 * heun[2][1], "{heun:?}");
    let euler = moved(Integrator::Euler, 400);
    assert!(
        euler[0] > 20.0 * heun[2][0] && euler[0] < euler[1],
        "{euler:?} {heun:?}"
    );
}

/// Lanczos with warm starts follows the same path as exact decompositions, with fewer products than cold ones.
#[test]
fn lanczos_follows_the_exact_path() {
    let mut problem = problem(&[30], 40);
    let settings = |decomposition, steps| Diffusion {
        kind: DiffusionKind::Kernel,
        steps,
        precision: 300.0,
        integrator: Integrator::Euler,
        decomposition,
    };
    let exact = problem.run(settings(Decomposition::Exact(1e-7), 10), 0);
    let lanczos = Lanczos {
        block: 4,
        tolerance: 1e-8,
        // the largest eigenvalue is about 100, of which the exact path leaves out what is below 1e-7
        threshold: 1e-5,
        ..Lanczos::of_rank(60)
    };
    let path = problem.run(settings(Decomposition::Lanczos(lanczos), 10), 0);
    assert_eq!(path.unconverged, 0);
    close(path.position(), exact.position(), 1e-4);
}

/// Paths with other numbers are independent; the two halves of an alternating step have noise of their own.
#[test]
fn paths_are_independent() {
    let mut problem = problem(&[4], 6);
    let [a, b] = [0, 1].map(|chain| {
        let path = problem.path(DiffusionKind::NonKernel, 3, chain);
        path.position().to_vec()
    });
    assert!(a.iter().zip(&b).all(|(a, b)| a != b));
    let again = problem.path(DiffusionKind::NonKernel, 3, 0);
    assert_eq!(again.position(), a);
}

/// With the eigenpairs at its first weights given a path ends where it does without, and spares their products.
#[test]
fn paths_share_the_first_eigenpairs() {
    let mut problem = problem(&[30], 40);
    let lanczos = Lanczos {
        tolerance: 1e-8,
        ..Lanczos::of_rank(20)
    };
    let settings = Diffusion {
        kind: DiffusionKind::NonKernel,
        steps: 3,
        precision: ALPHA,
        integrator: Integrator::Euler,
        decomposition: Decomposition::Lanczos(lanczos),
    };
    let alone = problem.run(settings, 7);
    let data = DiffusionData {
        inputs: matrix(&problem.x, problem.rows, 2),
        curvature: &problem.curvature as &dyn RowCurvature<f64>,
        scale: 1.0,
    };
    let other = DiffusionPath::new(settings, &problem.weights, 5, 8);
    let known = other.eigenpairs(&mut problem.executor, data).unwrap();
    let path = DiffusionPath::new(settings, &problem.weights, 5, 7);
    let mut path = path.with_eigenpairs(std::sync::Arc::clone(&known));
    path.run(&mut problem.executor, data).unwrap();
    close(path.position(), alone.position(), 1e-5);
    assert_eq!(path.steps(), 3);
    assert!(path.products < alone.products);
}
