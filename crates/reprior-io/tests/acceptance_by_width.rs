//! Acceptance rates of pCN, pCNL and Langevin steps on real images as a network widens, against what is published
//! (Pezzetti, Favaro, Peluchetti 2024, Theorems 2.1 and 2.2 and Figure 1) and derived here.
//!
//! 256 images of CIFAR-10, σ = 0.1, one hidden layer of GELU units, repriorised coordinates. Chains are at stationarity:
//! `hmc-infinite` in marginal coordinates gives nearly independent draws of the inner weights, φ_out is N(0, I) exactly,
//! and what reduced inputs leave out of the first layer is N(0, I) too.
//!
//! **Langevin.** One leapfrog step of size h from a draw of the law with density e^{−U} in D dimensions and m ~ N(0, I) has
//! an energy error h³·X + O(h⁴) with X = ¼⟨m, U″∇U⟩ − (1/12)U‴(m, m, m), so that the acceptance rate is
//! 2Φ(−√(16 E X²)·h³/8). For U = ½‖z‖², the limit of infinite width, 16 E X² = D (as the papers' code does, b = 0.01 of
//! the momentum is refreshed at each step; at stationarity the mean acceptance does not depend on b). At finite width
//! 16 E X² = D + e(width), with e > 0 the part of the directions that the data narrow: Σ[(1 + κ)³ − 1] for a Gaussian whose
//! precisions are 1 + κ. Directions that the data do not touch add to D and not to e: what is measured with reduced inputs
//! (D = (256 + 10)·width + 10) says how far off the limit is with all of them (D = (3073 + 10)·width + 10).
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that prints what it measures"
)]

mod common;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use common::shared_data;
use reprior::chain::{Chain, Collect, Control, Schedule, run};
use reprior::compute::{Purpose, Stream, matrix, matrix_mut, multiply};
use reprior::model::{InputReduction, Model, Standardisation, targets};
use reprior::network::{Activation, Architecture};
use reprior::posterior::{Coordinates, NetworkPosterior};
use reprior::sampler::Method::{self, Langevin, Pcn, Pcnl};
use reprior::sampler::SamplerSettings;
use reprior_io::data::{Request, load};

const ROWS: usize = 256;
const NOISE: f64 = 0.1;
const CLASSES: usize = 10;
const PIXELS: usize = 3072;
/// Stationary draws from which steps are made.
const DRAWS: usize = 8;
/// Steps that follow one another before the momentum is drawn anew.
const IN_A_ROW: usize = 2;

/// Standardised inputs and coded targets.
struct Images {
    inputs: Vec<f64>,
    targets: Vec<f64>,
}

impl Images {
    /// The first training images, or a message that they are not there.
    fn load() -> Option<Self> {
        let Some(path) = shared_data("cifar10") else {
            eprintln!("skipped: shared/data/cifar10 is not there");
            return None;
        };
        let mut request = Request::new(path);
        (request.train, request.test) = (Some(ROWS), Some(0));
        let train = load(&request).unwrap().train;
        let standardisation = Standardisation::fit(&train);
        Some(Self {
            inputs: standardisation.standardise_inputs(&train.inputs),
            targets: targets::code(&train.targets, &standardisation),
        })
    }

    fn model(&self, width: usize, reduction: InputReduction) -> Arc<Model<f32>> {
        let architecture = Architecture::new(PIXELS, &[width], CLASSES, Activation::Gelu);
        let (x, y) = (&self.inputs, self.targets.clone());
        Arc::new(Model::new(architecture, NOISE, x, y, &[], reduction).unwrap())
    }
}

/// Draws of the inner weights in reduced coordinates, each with a φ_out. The chains arrive in about five trajectories at
/// width 512, in two or three at 2048.
fn stationary(model: &Arc<Model<f32>>) -> Vec<Vec<f32>> {
    let schedule = Schedule {
        chains: 2,
        warmup: 8,
        draws: DRAWS as u64 / 2,
        thin: 1,
        seed: 31,
    };
    let start = |index| {
        let target = NetworkPosterior::new(Arc::clone(model), Coordinates::Marginal, None);
        let settings = SamplerSettings::default();
        let chain = Chain::start(index, schedule, &settings, target).unwrap();
        (chain, Collect::default())
    };
    let stop = AtomicBool::new(false);
    let control = Control {
        threads: 2,
        checkpoint_every: Duration::from_secs(600),
        stop: &stop,
    };
    let (chains, outcome) = run((0..2).map(start).collect(), control, &|_| {});
    outcome.unwrap();
    let readout = model.architecture.readout_parameters();
    let with_readout = |(index, mut z): (usize, Vec<f32>)| {
        let mut phi = vec![0.0; readout];
        Stream::new(32, index as u64, Purpose::Recording, 0).fill_normal(&mut phi);
        z.extend(phi);
        z
    };
    let positions = chains.into_iter().flat_map(|(_, c)| c.positions);
    positions.enumerate().map(with_readout).collect()
}

/// Rows that span the inputs: B = L·Q with the L of the reduced inputs, 256 × 3073, column-major.
fn rows_of_q(reduced: &Model<f32>, whole: &Model<f32>) -> Vec<f32> {
    let (l, b) = (reduced.design.matrix(), whole.design.matrix());
    let mut q = Vec::with_capacity(ROWS * b.ncols());
    for column in 0..b.ncols() {
        let mut x: Vec<f64> = (0..ROWS).map(|i| f64::from(b[(i, column)])).collect();
        for j in 0..ROWS {
            x[j] /= f64::from(l[(j, j)]);
            for i in j + 1..ROWS {
                x[i] -= f64::from(l[(i, j)]) * x[j];
            }
        }
        q.extend(x.iter().map(|&x| x as f32));
    }
    q
}

/// The same draw in the network's own coordinates: W = ε + Qᵀ(V − Qε) with ε ~ N(0, I).
fn unreduced(z: &[f32], q: &[f32], width: usize, index: u64) -> Vec<f32> {
    let columns = q.len() / ROWS;
    let (v, readout) = z.split_at(ROWS * width);
    let mut w = vec![0.0; columns * width];
    Stream::new(33, index, Purpose::Recording, 0).fill_normal(&mut w);
    let q = matrix(q, ROWS, columns);
    let mut rest = v.to_vec();
    let into = matrix_mut(&mut rest, ROWS, width);
    multiply(into, true, -1.0, q, matrix(&w, columns, width));
    let into = matrix_mut(&mut w, columns, width);
    multiply(into, true, 1.0, q.transpose(), matrix(&rest, ROWS, width));
    w.extend(readout);
    w
}

/// A mean with its standard error.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    mean: f64,
    error: f64,
}

impl Estimate {
    /// From equally long parts, draw by draw: the larger of the errors that draws and that parts give.
    fn of(draws: &[Vec<f64>]) -> Self {
        let of_parts = Self::of_independent(&draws.concat());
        let average = |parts: &Vec<f64>| parts.iter().sum::<f64>() / parts.len() as f64;
        let means: Vec<f64> = draws.iter().map(average).collect();
        let error = of_parts.error.max(Self::of_independent(&means).error);
        Self { error, ..of_parts }
    }

    fn of_independent(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let error = (variance / n).sqrt();
        Self { mean, error }
    }
}

/// What is measured: a method, its step size, and how often from each draw.
type Kind = (Method, f64, usize);

#[derive(Clone, Copy, Debug)]
struct Measured {
    acceptance: Estimate,
    /// Mean square of the energy error.
    squared_error: Estimate,
}

/// Acceptance of steps from stationary draws; `draw` gives one by its number. On two threads.
fn measure(
    model: &Arc<Model<f32>>,
    draw: impl Fn(usize) -> Vec<f32> + Sync,
    kinds: &[Kind],
) -> Vec<Measured> {
    // per kind and run: acceptance rate, squared energy error
    let of_draw = |target: &mut NetworkPosterior<f32>, index: usize| -> Vec<Vec<[f64; 2]>> {
        let settings = |method, step_size| SamplerSettings {
            method,
            step_size: Some(step_size),
            ..SamplerSettings::default()
        };
        let start = settings(Langevin, 0.1).sampler().init(target, draw(index));
        let start = start.unwrap();
        let of_kind = |&(method, step_size, runs): &Kind| {
            let settings = settings(method, step_size);
            settings.check().unwrap();
            let (mut sampler, mut state) = (settings.sampler(), start.clone());
            let mut run = |run: usize| {
                state.momentum.clear();
                let mut sums = [0.0; 2];
                for step in 0..IN_A_ROW {
                    let transition = (run * IN_A_ROW + step) as u64;
                    let seed = (1000.0 * step_size) as u64;
                    let mut stream =
                        Stream::new(seed, index as u64, Purpose::Transition, transition);
                    let info = sampler.step(target, &mut state, &mut stream).unwrap();
                    sums[0] += info.acceptance_rate / IN_A_ROW as f64;
                    sums[1] += info.energy_error.powi(2) / IN_A_ROW as f64;
                }
                sums
            };
            (0..runs).map(&mut run).collect()
        };
        kinds.iter().map(of_kind).collect()
    };
    let half = |first: usize| {
        let mut target = NetworkPosterior::new(Arc::clone(model), Coordinates::Repriorised, None);
        (first..DRAWS)
            .step_by(2)
            .map(|index| of_draw(&mut target, index))
            .collect::<Vec<_>>()
    };
    let by_draw = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        let mut all = half(0);
        all.extend(other.join().unwrap());
        all
    });
    let of_kind = |kind: usize| {
        let [acceptance, squared_error] = [0, 1].map(|which| {
            let of_draw = |draw: &Vec<Vec<[f64; 2]>>| draw[kind].iter().map(|r| r[which]).collect();
            Estimate::of(&by_draw.iter().map(of_draw).collect::<Vec<Vec<f64>>>())
        });
        Measured {
            acceptance,
            squared_error,
        }
    };
    (0..kinds.len()).map(of_kind).collect()
}

/// D with reduced inputs and with all of them.
fn dimensions(width: usize) -> [f64; 2] {
    [ROWS, PIXELS + 1].map(|first| ((first + CLASSES) * width + CLASSES) as f64)
}

/// 2Φ(−√D h³/8).
fn langevin_limit(dimension: f64, step_size: f64) -> f64 {
    let half_deviation = dimension.sqrt() * step_size.powi(3) / 8.0;
    libm::erfc(half_deviation / std::f64::consts::SQRT_2)
}

/// 16 E X² from the mean square s² + s⁴/4 of an energy error N(s²/2, s²), s = h³·√(E X²).
fn effective_dimension(squared_error: f64, step_size: f64) -> f64 {
    let variance = 2.0 * ((1.0 + squared_error).sqrt() - 1.0);
    16.0 * variance / step_size.powi(6)
}

/// All kinds at one width, with reduced inputs; Langevin steps too with all of them.
struct AtWidth {
    width: usize,
    reduced: Vec<Measured>,
    whole: Vec<Measured>,
}

fn at_width(images: &Images, width: usize, reduced: &[Kind], whole: &[Kind]) -> AtWidth {
    let model = images.model(width, InputReduction::Auto);
    let draws = stationary(&model);
    let of_reduced = measure(&model, |index| draws[index].clone(), reduced);
    let of_whole = if whole.is_empty() {
        Vec::new()
    } else {
        let whole_model = images.model(width, InputReduction::Off);
        let q = rows_of_q(&model, &whole_model);
        let draw = |index: usize| unreduced(&draws[index], &q, width, index as u64);
        measure(&whole_model, draw, whole)
    };
    let kinds = [(reduced, &of_reduced, 0), (whole, &of_whole, 1)];
    for (kinds, measured, which) in kinds {
        let dimension = dimensions(width)[which];
        let inputs = ["reduced", "all"][which];
        for ((method, step_size, _), measured) in kinds.iter().zip(measured) {
            let Estimate { mean, error } = measured.acceptance;
            print!("{width:>5} {inputs:<8} {method:<9} {step_size:<5} {mean:.4} ± {error:.4}");
            if *method == Langevin {
                let square = measured.squared_error;
                let e = effective_dimension(square.mean, *step_size) - dimension;
                let up = effective_dimension(square.mean + square.error, *step_size) - dimension;
                print!("   limit {:.4}", langevin_limit(dimension, *step_size));
                print!(
                    "   D {dimension:.0}, e {:.0} ± {:.0} thousand",
                    e / 1e3,
                    (up - e) / 1e3
                );
            }
            println!();
        }
    }
    AtWidth {
        width,
        reduced: of_reduced,
        whole: of_whole,
    }
}

#[test]
fn cheap() {
    let Some(images) = Images::load() else { return };
    let kinds = [(Pcn, 0.2, 4), (Pcnl, 0.2, 4), (Langevin, 0.2, 8)];
    at_width(&images, 512, &kinds, &[(Langevin, 0.1, 4)]);
    at_width(&images, 2048, &kinds, &[]);
}

#[test]
#[ignore = "takes two minutes on two cores"]
fn acceptance_rates_by_width() {
    let Some(images) = Images::load() else { return };
    for (width, steps) in [(512, 256), (1024, 192), (2048, 128), (4096, 80), (8192, 48)] {
        let many = steps / DRAWS / IN_A_ROW;
        let few = many.div_ceil(8);
        let mut kinds: Vec<Kind> = Vec::new();
        for beta in [0.2, 0.1, 0.01] {
            kinds.extend([(Pcn, beta, many), (Pcnl, beta, many)]);
        }
        // where e is not lost in the error of the mean square
        if width < 4000 {
            kinds.push((Langevin, 0.1, 4 * many));
        }
        let whole = [
            (Langevin, 0.2, few),
            (Langevin, 0.1, many),
            (Langevin, 0.01, few),
        ];
        let t = std::time::Instant::now();
        at_width(&images, width, &kinds, &whole);
        println!("{:.1}s", t.elapsed().as_secs_f64());
    }
}
