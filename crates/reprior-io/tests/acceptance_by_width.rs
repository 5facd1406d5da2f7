//! Acceptance rates of pCN, pCNL and Langevin steps on real images as a network widens, against what is published
//! (Pezzetti, Favaro, Peluchetti 2024, Theorems 2.1 and 2.2 and Figure 1) and derived here.
//!
//! 256 images of CIFAR-10, σ = 0.1, one hidden layer of GELU units, repriorised coordinates. Chains are at stationarity:
//! `hmc-infinite` in marginal coordinates gives nearly independent draws of the inner weights, φ_out is N(0, I) exactly,
//! and what reduced inputs leave out of the first layer is N(0, I) too.
//!
//! **pCN and pCNL.** Acceptance tends to 1 at every β. Neither depends on directions that the data do not touch: inputs are
//! reduced.
//!
//! **Langevin.** A leapfrog step of size h from a draw of the law e^{−U} in D dimensions and a momentum m ~ N(0, I) has an
//! energy error h³·X + O(h⁴) with X = ¼⟨m, U″∇U⟩ − (1/12)U‴(m, m, m), so that the acceptance rate is
//! 2Φ(−√(16 E X²)·h³/8). For U = ½‖z‖², the limit of infinite width, 16 E X² = D, here (3073 + 10)·width + 10: acceptance
//! falls to 0. At finite width 16 E X² = D + e; for a Gaussian whose precisions are 1 + κ, e = Σ[(1 + κ)³ − 1]. Directions
//! that the data do not touch add to D only, so that reduced inputs, D = (256 + 10)·width + 10, show e best. Measured:
//! 310 ± 35 thousand at width 512 and 36 ± 16 at 1024, as if width⁻³ ([`excess`]). At width 512 that takes the limit's
//! 0.209 at h = 0.2 to 0.169 and its 0.875 at h = 0.1 to 0.864; from 1024 on it is below 0.002.
//!
//! Damping does not matter for the mean acceptance at stationarity, so that momenta are drawn anew at each step; with those
//! of the step before, damping 0.01, one line of the table is made. The same position and momentum have an energy error
//! under U = ½‖z‖² too, in closed form: what that accepts, less its expectation, is taken off (a control variate). Where
//! the limit is near, Monte-Carlo errors become ten times smaller and more.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that prints what it measures"
)]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::common::shared_data;
use reprior::chain::{Chain, Collect, Control, Schedule, run};
use reprior::compute::kernels::{dot, matrix_mut, multiply, norm_squared};
use reprior::compute::{Purpose, Stream, matrix};
use reprior::model::standardisation::Standardisation;
use reprior::model::{InputReduction, Model, targets};
use reprior::network::{Activation, Composition};
use reprior::posterior::{Coordinates, Posterior};
use reprior::sampler::Method::{Langevin, Pcn, Pcnl};
use reprior::sampler::{Method, SamplerSettings};
use reprior_io::data::{Request, load};

const ROWS: usize = 256;
const NOISE: f64 = 0.1;
const CLASSES: usize = 10;
const PIXELS: usize = 3072;
/// Stationary draws from which steps are made.
const DRAWS: usize = 8;

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
        let architecture =
            Composition::fully_connected(PIXELS, &[width], CLASSES, Activation::Gelu);
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
        let target = Posterior::new(Arc::clone(model), Coordinates::Marginal).unwrap();
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

/// What is measured.
#[derive(Clone, Copy)]
struct Kind {
    method: Method,
    step_size: f64,
    /// From each draw.
    steps: usize,
    /// Whether steps keep the momentum of the one before.
    keeps_momentum: bool,
}

fn kind(method: Method, step_size: f64, steps: usize) -> Kind {
    Kind {
        method,
        step_size,
        steps,
        keeps_momentum: false,
    }
}

/// One step: its acceptance rate and energy error, and those that a Langevin step would have under ½‖z‖².
#[derive(Clone, Copy)]
struct Step {
    acceptance: f64,
    energy_error: f64,
    prior_energy_error: f64,
    /// ⟨z, ∇ℓ⟩, whose mean is that of ‖z‖² − D.
    norm_shift: f64,
}

/// The energy error of a leapfrog step for ½‖z‖² + ½‖m‖². It conserves ‖m‖² + (1 − h²/4)‖z‖².
fn prior_energy_error(z: &[f32], m: &[f32], h: f64) -> f64 {
    let squares = h * h * (norm_squared(m) - (1.0 - h * h / 4.0) * norm_squared(z));
    h * h / 8.0 * (squares + 2.0 * h * (1.0 - h * h / 2.0) * dot(z, m))
}

/// Steps from stationary draws, kind by kind and draw by draw; `draw` gives one by its number. On two threads.
fn measure(
    model: &Arc<Model<f32>>,
    draw: impl Fn(usize) -> Vec<f32> + Sync,
    kinds: &[Kind],
) -> Vec<Vec<Vec<Step>>> {
    let settings = |method, step_size| SamplerSettings {
        method,
        step_size: Some(step_size),
        ..SamplerSettings::default()
    };
    let of_draw = |target: &mut Posterior<f32>, index: usize| -> Vec<Vec<Step>> {
        let start = settings(Langevin, 0.1).sampler().init(target, draw(index));
        let start = start.unwrap();
        let mut momentum = vec![0.0; start.position.len()];
        let mut of_kind = |kind: &Kind| {
            let Kind {
                method, step_size, ..
            } = *kind;
            let settings = settings(method, step_size);
            settings.check().unwrap();
            let (mut sampler, mut state) = (settings.sampler(), start.clone());
            let mut step = |number: usize| {
                let seed = (1000.0 * step_size) as u64;
                let stream = || Stream::new(seed, index as u64, Purpose::Transition, number as u64);
                let (mut prior, mut norm_shift) = (0.0, 0.0);
                if method == Langevin && !kind.keeps_momentum {
                    // with no momentum to keep, the step takes the stream's first numbers
                    state.momentum.clear();
                    stream().fill_normal(&mut momentum);
                    prior = prior_energy_error(&state.position, &momentum, step_size);
                    norm_shift = dot(&state.position, &state.gradient);
                }
                let info = sampler.step(target, &mut state, &mut stream()).unwrap();
                Step {
                    acceptance: info.acceptance_rate,
                    energy_error: info.energy_error,
                    prior_energy_error: prior,
                    norm_shift,
                }
            };
            (0..kind.steps).map(&mut step).collect()
        };
        kinds.iter().map(&mut of_kind).collect()
    };
    let half = |first: usize| {
        let mut target = Posterior::new(Arc::clone(model), Coordinates::Repriorised).unwrap();
        let draws = (first..DRAWS).step_by(2);
        draws
            .map(|index| of_draw(&mut target, index))
            .collect::<Vec<_>>()
    };
    let by_draw: Vec<Vec<Vec<Step>>> = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        [half(0), other.join().unwrap()].concat()
    });
    let of_kind = |kind: usize| by_draw.iter().map(|draw| draw[kind].clone()).collect();
    (0..kinds.len()).map(of_kind).collect()
}

/// 2Φ(−√D h³/8).
fn langevin_limit(dimension: f64, step_size: f64) -> f64 {
    let half_deviation = dimension.sqrt() * step_size.powi(3) / 8.0;
    libm::erfc(half_deviation / std::f64::consts::SQRT_2)
}

fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
}

/// What [`prior_energy_error`] is in law for ‖z‖² = D + shift on average: mean, variance, and the rate it accepts.
fn prior_energy_law(dimension: f64, shift: f64, h: f64) -> [f64; 3] {
    let mean = h.powi(4) / 8.0 * (h * h / 4.0 * dimension - (1.0 - h * h / 4.0) * shift);
    let cross = h.powi(6) / 16.0 * (1.0 - h * h / 2.0).powi(2);
    let squares = h.powi(8) / 32.0 * (1.0 + (1.0 - h * h / 4.0).powi(2));
    let variance = dimension * (cross + squares);
    let sd = variance.sqrt();
    let rate = normal_cdf(-mean / sd) + (0.5 * variance - mean).exp() * normal_cdf(mean / sd - sd);
    [mean, variance, rate]
}

/// D with reduced inputs or with all of them.
fn dimension(width: usize, reduction: InputReduction) -> f64 {
    let first = match reduction {
        InputReduction::Off => PIXELS + 1,
        _ => ROWS,
    };
    ((first + CLASSES) * width + CLASSES) as f64
}

/// 16 E X² from the mean square s² + s⁴/4 of an energy error N(s²/2, s²), s = h³·√(E X²).
fn effective_dimension(square: f64, step_size: f64) -> f64 {
    32.0 * ((1.0 + square).sqrt() - 1.0) / step_size.powi(6)
}

/// e at a width, as measured.
fn excess(width: usize) -> f64 {
    310e3 * (512.0 / width as f64).powi(3)
}

/// What is left of Monte-Carlo errors where acceptance is rare, and of rounding.
const FLOOR: f64 = 0.005;
/// Standard errors that estimates may be off.
const ERRORS: f64 = 5.0;

/// The acceptance rate of one kind.
struct Rate {
    kind: Kind,
    width: usize,
    acceptance: Estimate,
}

impl Rate {
    /// Prints it, too, and checks it against the limit where there is one.
    fn of(kind: Kind, width: usize, reduction: InputReduction, steps: &[Vec<Step>]) -> Self {
        let estimate = |value: &dyn Fn(&Step) -> f64| {
            let of_draw = |draw: &Vec<Step>| draw.iter().map(value).collect::<Vec<_>>();
            Estimate::of(&steps.iter().map(of_draw).collect::<Vec<_>>())
        };
        let mut acceptance = estimate(&|step| step.acceptance);
        let Kind {
            method, step_size, ..
        } = kind;
        print!("{width:>5}  {:<9}{step_size:<5}", method.to_string());
        if method == Langevin {
            let d = dimension(width, reduction);
            let limit = langevin_limit(d, step_size);
            let expected = langevin_limit(d + excess(width), step_size);
            if kind.keeps_momentum {
                print!("{acceptance}   limit {limit:.4}   momenta kept");
            } else {
                let shift = estimate(&|s| s.norm_shift).mean;
                let [mean, variance, rate] = prior_energy_law(d, shift, step_size);
                let accepted = |error: f64| (-error).exp().min(1.0);
                acceptance = estimate(&|s| s.acceptance - accepted(s.prior_energy_error) + rate);
                let square = mean * mean + variance;
                let square =
                    estimate(&|s| s.energy_error.powi(2) - s.prior_energy_error.powi(2) + square);
                let e = |square| effective_dimension(square, step_size) - d;
                let (e, error) = (
                    e(square.mean),
                    e(square.mean + square.error) - e(square.mean),
                );
                print!("{acceptance}   limit {limit:.4}   D {d:>8}   e/1000");
                print!(
                    "{:>5.0} ± {:<4.0} ‖z‖² − D {shift:.0}",
                    e / 1e3,
                    error / 1e3
                );
                // small step sizes show e through the rounding of single precision
                if step_size > 0.05 {
                    assert!((e - excess(width)).abs() < ERRORS * error, "{width} {e}");
                }
            }
            let tolerance = ERRORS * acceptance.error + FLOOR;
            assert!(
                (acceptance.mean - expected).abs() < tolerance,
                "{width} {acceptance}"
            );
        } else {
            print!("{acceptance}");
        }
        println!();
        Self {
            kind,
            width,
            acceptance,
        }
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.4} ± {:.4}", self.mean, self.error)
    }
}

/// All kinds at one width: with reduced inputs, and with all of them.
fn at_width(images: &Images, width: usize, reduced: &[Kind], whole: &[Kind]) -> [Vec<Rate>; 2] {
    let model = images.model(width, InputReduction::Auto);
    let draws = stationary(&model);
    let rates = |model: &Arc<Model<f32>>,
                 reduction,
                 draw: &(dyn Fn(usize) -> Vec<f32> + Sync),
                 kinds: &[Kind]| {
        let steps = measure(model, draw, kinds);
        let rate = |(kind, steps): (&Kind, &Vec<_>)| Rate::of(*kind, width, reduction, steps);
        kinds.iter().zip(&steps).map(rate).collect::<Vec<_>>()
    };
    let of_reduced = rates(
        &model,
        InputReduction::Auto,
        &|index| draws[index].clone(),
        reduced,
    );
    if whole.is_empty() {
        return [of_reduced, Vec::new()];
    }
    let whole_model = images.model(width, InputReduction::Off);
    let q = rows_of_q(&model, &whole_model);
    let draw = |index: usize| unreduced(&draws[index], &q, width, index as u64);
    [
        of_reduced,
        rates(&whole_model, InputReduction::Off, &draw, whole),
    ]
}

/// That rates rise with the width (`direction` 1) or fall (−1), kind by kind: no step goes against it by more than the
/// errors allow, and the whole way is more than two errors. (Langevin at h = 0.01 falls by 0.0003 only.)
fn check_direction<'a>(rates: impl Iterator<Item = &'a Rate> + Clone, direction: f64) {
    for first in rates.clone().filter(|rate| rate.width == 512) {
        let same = |rate: &&Rate| {
            let (a, b) = (rate.kind, first.kind);
            (a.method, a.step_size, a.keeps_momentum) == (b.method, b.step_size, b.keeps_momentum)
        };
        let of_kind: Vec<Estimate> = rates.clone().filter(same).map(|r| r.acceptance).collect();
        let (name, step_size) = (first.kind.method, first.kind.step_size);
        let change =
            |a: Estimate, b: Estimate| (direction * (b.mean - a.mean), a.error.hypot(b.error));
        for pair in of_kind.windows(2) {
            let (change, error) = change(pair[0], pair[1]);
            assert!(
                change > -ERRORS * error - 1e-4,
                "{name} {step_size}: {of_kind:?}"
            );
        }
        let (change, error) = change(of_kind[0], of_kind[of_kind.len() - 1]);
        assert!(change > 2.0 * error, "{name} {step_size}: {of_kind:?}");
    }
}

#[test]
fn pcn_and_pcnl_are_accepted_more_and_langevin_as_predicted() {
    let Some(images) = Images::load() else { return };
    let kinds = [
        kind(Pcn, 0.1, 4),
        kind(Pcnl, 0.2, 4),
        kind(Langevin, 0.1, 8),
    ];
    let [narrow, _] = at_width(&images, 512, &kinds, &[kind(Langevin, 0.1, 4)]);
    let [wide, _] = at_width(&images, 2048, &kinds, &[]);
    let is_preconditioned = |rate: &&Rate| rate.kind.method != Langevin;
    check_direction(narrow.iter().chain(&wide).filter(is_preconditioned), 1.0);
}

/// The whole table.
#[test]
#[ignore = "takes two minutes on two cores"]
fn acceptance_rates_by_width() {
    let Some(images) = Images::load() else { return };
    let (mut rising, mut falling) = (Vec::new(), Vec::new());
    for (width, steps, whole_steps) in [
        (512, 32, 8),
        (1024, 32, 6),
        (2048, 24, 4),
        (4096, 16, 3),
        (8192, 12, 2),
    ] {
        let mut kinds: Vec<Kind> = Vec::new();
        for beta in [0.2, 0.1, 0.01] {
            kinds.extend([kind(Pcn, beta, steps), kind(Pcnl, beta, steps / 2)]);
        }
        kinds.push(kind(Langevin, 0.1, steps / 2));
        if width == 512 {
            let keeps_momentum = true;
            kinds.push(Kind {
                keeps_momentum,
                ..kind(Langevin, 0.2, 64)
            });
        }
        let whole = [0.2, 0.1, 0.01].map(|h| kind(Langevin, h, whole_steps));
        let [reduced, whole] = at_width(&images, width, &kinds, &whole);
        rising.extend(
            reduced
                .into_iter()
                .filter(|rate| rate.kind.method != Langevin),
        );
        falling.extend(whole);
    }
    check_direction(rising.iter(), 1.0);
    check_direction(falling.iter(), -1.0);
}
