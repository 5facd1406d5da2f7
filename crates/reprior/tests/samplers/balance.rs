//! Detailed balance from the densities of the proposals, and what it rests on where there are trajectories: reversible
//! maps that preserve volume, and the energy.

use std::f64::consts::FRAC_PI_2;
use std::sync::Arc;

use reprior::compute::{Purpose, Stream};
use reprior::model::{InputReduction, Model};
use reprior::network::{Activation, Composition};
use reprior::posterior::{Coordinates, EvaluationError, Posterior, Target};
use reprior::sampler::kernels::{Hmc, HmcInfinite, Langevin, Mala, Pcn, Pcnl, Rwm};
use reprior::sampler::{Info, Sampler, State};

/// A target that remembers where it was evaluated last: an accepted or rejected proposal.
struct Spy {
    target: Posterior<f64>,
    last: Vec<f64>,
}

impl Target for Spy {
    type Real = f64;
    fn dim(&self) -> usize {
        self.target.dim()
    }
    fn log_ratio(&mut self, z: &[f64]) -> Result<f64, EvaluationError> {
        self.last = z.to_vec();
        self.target.log_ratio(z)
    }
    fn log_ratio_and_gradient(
        &mut self,
        z: &[f64],
        gradient: &mut [f64],
    ) -> Result<f64, EvaluationError> {
        self.last = z.to_vec();
        self.target.log_ratio_and_gradient(z, gradient)
    }
}

impl Spy {
    fn new(hidden: &[usize], coordinates: Coordinates) -> Self {
        let (rows, inputs, outputs) = (4, 3, 2);
        let (mut x, mut y) = (vec![0.0; rows * inputs], vec![0.0; rows * outputs]);
        let mut stream = Stream::new(5, 0, Purpose::Initial, 0);
        stream.fill_normal(&mut x);
        stream.fill_normal(&mut y);
        let architecture = Composition::fully_connected(inputs, hidden, outputs, Activation::Gelu);
        let model = Model::new(architecture, 0.5, &x, y, &[], InputReduction::Auto).unwrap();
        Self {
            target: Posterior::new(Arc::new(model), coordinates).unwrap(),
            last: vec![],
        }
    }

    fn gradient(&mut self, z: &[f64]) -> Vec<f64> {
        let mut gradient = vec![0.0; z.len()];
        self.target
            .log_ratio_and_gradient(z, &mut gradient)
            .unwrap();
        gradient
    }

    fn log_density(&mut self, z: &[f64]) -> f64 {
        self.target.log_ratio(z).unwrap() - 0.5 * z.iter().map(|x| x * x).sum::<f64>()
    }

    /// −ℓ(z) + ½‖z‖² + ½‖v‖².
    fn energy(&mut self, z: &[f64], v: &[f64]) -> f64 {
        0.5 * v.iter().map(|x| x * x).sum::<f64>() - self.log_density(z)
    }
}

fn normals(dim: usize, index: u64) -> Vec<f64> {
    let mut values = vec![0.0; dim];
    Stream::new(8, 0, Purpose::Initial, index).fill_normal(&mut values);
    values
}

/// Logarithm of the density at `to` of a normal law about `mean`, up to what two such laws have in common.
fn log_normal(to: &[f64], mean: impl Iterator<Item = f64>, sd: f64) -> f64 {
    let terms = to.iter().zip(mean).map(|(t, m)| ((t - m) / sd).powi(2));
    -0.5 * terms.sum::<f64>()
}

/// For every proposal, accepted or not: the kernel's log a is log[π(v)q(v, u)/(π(u)q(u, v))].
fn accepts_with_the_metropolis_hastings_ratio(
    sampler: &mut dyn Sampler<f64>,
    coordinates: Coordinates,
    mut log_q: impl FnMut(&mut Spy, &[f64], &[f64]) -> f64,
) {
    let mut spy = Spy::new(&[4, 3], coordinates);
    let start = normals(spy.dim(), 2);
    let mut state = sampler.init(&mut spy, start).unwrap();
    let (mut accepted, mut rejected) = (0, 0);
    for transition in 0..300 {
        let before = state.clone();
        let mut stream = Stream::new(8, 0, Purpose::Transition, transition);
        let info = sampler.step(&mut spy, &mut state, &mut stream).unwrap();
        let (u, v) = (before.position.clone(), spy.last.clone());
        let there = spy.log_density(&u) + log_q(&mut spy, &u, &v);
        let back = spy.log_density(&v) + log_q(&mut spy, &v, &u);
        let ratio = back - there;
        assert!(
            (ratio + info.energy_error).abs() < 1e-10 * (1.0 + there.abs() + back.abs()),
            "{ratio} {}",
            info.energy_error
        );
        assert!((info.acceptance_rate - ratio.min(0.0).exp()).abs() < 1e-8);
        if info.is_accepted {
            accepted += 1;
            assert_eq!(state.position, v);
            assert_eq!(state.log_ratio, spy.target.log_ratio(&v).unwrap());
            assert!(state.gradient.is_empty() || state.gradient == spy.gradient(&v));
        } else {
            rejected += 1;
            assert_eq!(before, state);
        }
    }
    assert!(accepted > 20 && rejected > 20, "{accepted} {rejected}");
}

const COORDINATES: [Coordinates; 3] = [
    Coordinates::Marginal,
    Coordinates::Repriorised,
    Coordinates::Standard,
];

#[test]
fn rwm_satisfies_detailed_balance() {
    for coordinates in COORDINATES {
        let sd = 0.3;
        accepts_with_the_metropolis_hastings_ratio(&mut Rwm::new(sd), coordinates, |_, u, v| {
            log_normal(v, u.iter().copied(), sd)
        });
    }
}

#[test]
fn pcn_satisfies_detailed_balance() {
    for coordinates in COORDINATES {
        let beta: f64 = 0.4;
        let keep = (1.0 - beta * beta).sqrt();
        accepts_with_the_metropolis_hastings_ratio(&mut Pcn::new(beta), coordinates, |_, u, v| {
            log_normal(v, u.iter().map(|u| keep * u), beta)
        });
    }
}

#[test]
fn pcnl_satisfies_detailed_balance() {
    for (coordinates, delta) in [
        (Coordinates::Marginal, 0.4),
        (Coordinates::Repriorised, 0.4),
        (Coordinates::Standard, 0.05),
    ] {
        let variance: f64 = 8.0 * delta / ((2.0 + delta) * (2.0 + delta));
        let sd = variance.sqrt();
        accepts_with_the_metropolis_hastings_ratio(&mut Pcnl::new(sd), coordinates, |spy, u, v| {
            let gradient = spy.gradient(u);
            let mean = u.iter().zip(&gradient);
            let mean = mean.map(|(u, g)| ((2.0 - delta) * u + 2.0 * delta * g) / (2.0 + delta));
            log_normal(v, mean, sd)
        });
    }
}

#[test]
fn mala_satisfies_detailed_balance() {
    for (coordinates, h) in [
        (Coordinates::Marginal, 0.7),
        (Coordinates::Repriorised, 0.7),
        (Coordinates::Standard, 0.3),
    ] {
        accepts_with_the_metropolis_hastings_ratio(&mut Mala::new(h), coordinates, |spy, u, v| {
            let gradient = spy.gradient(u);
            let mean = u.iter().zip(&gradient);
            let mean = mean.map(|(u, g)| u + 0.5 * h * h * (g - u));
            log_normal(v, mean, h)
        });
    }
}

/// With full damping one leapfrog step of Langevin dynamics is a Langevin proposal.
#[test]
fn langevin_without_memory_is_mala() {
    let mut spy = Spy::new(&[4, 3], Coordinates::Marginal);
    let (mut mala, mut langevin) = (Mala::new(0.5), Langevin::new(0.5, 1.0, true));
    let start = normals(spy.dim(), 0);
    let mut state = mala.init(&mut spy, start).unwrap();
    for transition in 0..100 {
        let mut other = state.clone();
        let stream = || Stream::new(8, 0, Purpose::Transition, transition);
        let a = mala.step(&mut spy, &mut state, &mut stream()).unwrap();
        let b = langevin.step(&mut spy, &mut other, &mut stream()).unwrap();
        assert!((a.energy_error - b.energy_error).abs() < 1e-10);
        assert_eq!(a.is_accepted, b.is_accepted);
        let close = |(x, y): (&f64, &f64)| (x - y).abs() < 1e-12;
        assert!(state.position.iter().zip(&other.position).all(close));
    }
}

/// One transition from (z, v) with a damping so small that the velocity is not refreshed at all.
fn flow(
    sampler: &mut dyn Sampler<f64>,
    spy: &mut Spy,
    (z, v): (&[f64], &[f64]),
    transition: u64,
) -> (Info, State<f64>) {
    let mut state = sampler.init(spy, z.to_vec()).unwrap();
    state.momentum = v.to_vec();
    let mut stream = Stream::new(8, 0, Purpose::Transition, transition);
    let info = sampler.step(spy, &mut state, &mut stream).unwrap();
    (info, state)
}

fn negated(values: &[f64]) -> Vec<f64> {
    values.iter().map(|x| -x).collect()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max)
}

/// Trajectories run back from their end with the velocity turned round; log a is the change of the energy; a rejection
/// turns the velocity round.
fn is_reversible(sampler: &mut dyn Sampler<f64>, coordinates: Coordinates) {
    let mut spy = Spy::new(&[4, 3], coordinates);
    let dim = spy.dim();
    let (mut accepted, mut rejected) = (0, 0);
    for transition in 0..150 {
        let (z, v) = (
            normals(dim, 2 * transition),
            normals(dim, 2 * transition + 1),
        );
        let (info, end) = flow(sampler, &mut spy, (&z, &v), transition);
        if !info.is_accepted {
            rejected += 1;
            assert_eq!((&end.position, &end.momentum), (&z, &negated(&v)));
            continue;
        }
        accepted += 1;
        let change = spy.energy(&end.position, &end.momentum) - spy.energy(&z, &v);
        let size = 1.0 + spy.energy(&z, &v).abs();
        assert!(
            (info.energy_error - change).abs() < 1e-11 * size,
            "{change} {info:?}"
        );
        let turned = negated(&end.momentum);
        let (back, start) = flow(sampler, &mut spy, (&end.position, &turned), transition);
        assert!((back.energy_error + info.energy_error).abs() < 1e-11 * size);
        if back.is_accepted {
            assert!(distance(&start.position, &z) < 1e-9);
            assert!(distance(&start.momentum, &negated(&v)) < 1e-9);
        }
    }
    assert!(accepted > 20 && rejected > 5, "{accepted} {rejected}");
}

const HARDLY: f64 = 1e-300;

#[test]
fn trajectories_are_reversible_and_accepted_by_their_energy() {
    for (coordinates, step) in [
        (Coordinates::Marginal, 0.6),
        (Coordinates::Repriorised, 0.6),
        (Coordinates::Standard, 0.2),
    ] {
        is_reversible(&mut HmcInfinite::new(step, FRAC_PI_2, HARDLY), coordinates);
        is_reversible(&mut HmcInfinite::new(step, step, HARDLY), coordinates);
        is_reversible(&mut Langevin::new(1.5 * step, HARDLY, true), coordinates);
    }
}

/// Determinant by elimination with pivots.
fn determinant(mut rows: Vec<Vec<f64>>) -> f64 {
    let n = rows.len();
    let mut determinant = 1.0;
    for k in 0..n {
        let pivot = (k..n).max_by(|&a, &b| rows[a][k].abs().total_cmp(&rows[b][k].abs()));
        let pivot = pivot.unwrap();
        if pivot != k {
            rows.swap(pivot, k);
            determinant = -determinant;
        }
        determinant *= rows[k][k];
        let head = rows[k].clone();
        for row in &mut rows[k + 1..] {
            let factor = row[k] / head[k];
            for (x, h) in row.iter_mut().zip(&head) {
                *x -= factor * h;
            }
        }
    }
    determinant
}

/// The determinant of the derivative of (z, v) → (z', v') by central differences is 1.
#[test]
fn trajectories_preserve_volume() {
    let mut spy = Spy::new(&[2], Coordinates::Standard);
    let dim = spy.dim();
    let kernels: [&mut dyn Sampler<f64>; 2] = [
        &mut HmcInfinite::new(0.15, 1.0, HARDLY),
        &mut Langevin::new(0.2, HARDLY, true),
    ];
    for kernel in kernels {
        let mut seen = 0;
        for transition in 0..8 {
            let start = normals(2 * dim, transition);
            let mut at = |shift: usize, by: f64| {
                let mut moved = start.clone();
                moved[shift] += by;
                let (z, v) = moved.split_at(dim);
                let (info, end) = flow(&mut *kernel, &mut spy, (z, v), transition);
                let joined = [end.position, end.momentum].concat();
                info.is_accepted.then_some(joined)
            };
            let step = 1e-4;
            let columns: Option<Vec<Vec<f64>>> = (0..2 * dim)
                .map(|k| {
                    let (up, down) = (at(k, step)?, at(k, -step)?);
                    let slope = up.iter().zip(&down).map(|(a, b)| (a - b) / (2.0 * step));
                    Some(slope.collect())
                })
                .collect();
            if let Some(columns) = columns {
                seen += 1;
                let volume = determinant(columns);
                assert!((volume - 1.0).abs() < 1e-5, "{volume}");
            }
        }
        assert!(seen > 2, "{seen}");
    }
}

/// The leapfrog written out plainly, with the kernel's own random numbers.
#[test]
fn hmc_follows_the_leapfrog() {
    let mut spy = Spy::new(&[4, 3], Coordinates::Standard);
    let dim = spy.dim();
    let h = 0.15;
    let mut sampler = Hmc::new(h, FRAC_PI_2);
    let mut state = sampler.init(&mut spy, normals(dim, 0)).unwrap();
    let mut accepted = 0;
    for transition in 0..100 {
        let before = state.clone();
        let mut stream = Stream::new(8, 0, Purpose::Transition, transition);
        let info = sampler.step(&mut spy, &mut state, &mut stream).unwrap();
        let end = spy.last.clone();
        let mut stream = Stream::new(8, 0, Purpose::Transition, transition);
        let length = (0.75 + 0.5 * stream.uniform()) * FRAC_PI_2;
        if info.diverging {
            continue;
        }
        assert_eq!(f64::from(info.n_steps), (length / h).round());
        let (mut z, mut m) = (before.position.clone(), vec![0.0; dim]);
        stream.fill_normal(&mut m);
        let energy = spy.energy(&z, &m);
        for _ in 0..info.n_steps {
            for half in 0..2 {
                let gradient = spy.gradient(&z);
                for k in 0..dim {
                    m[k] += 0.5 * h * (gradient[k] - z[k]);
                }
                if half == 0 {
                    z.iter_mut().zip(&m).for_each(|(z, m)| *z += h * m);
                }
            }
        }
        assert!(distance(&z, &end) < 1e-9);
        let change = spy.energy(&z, &m) - energy;
        assert!((info.energy_error - change).abs() < 1e-9 * (1.0 + energy.abs()));
        let rate = (-change).min(0.0).exp();
        assert!((info.acceptance_rate - rate).abs() < 1e-7);
        assert_eq!(info.is_accepted, stream.uniform() < rate);
        accepted += u32::from(info.is_accepted);
        let expected = if info.is_accepted {
            &end
        } else {
            &before.position
        };
        assert_eq!(&state.position, expected);
    }
    assert!(accepted > 20);
}

/// ℓ(z) = −½·25·(z − 200)², far from the prior.
struct Far;

impl Target for Far {
    type Real = f64;
    fn dim(&self) -> usize {
        1
    }
    fn log_ratio(&mut self, z: &[f64]) -> Result<f64, EvaluationError> {
        Ok(-12.5 * (z[0] - 200.0).powi(2))
    }
    fn log_ratio_and_gradient(
        &mut self,
        z: &[f64],
        gradient: &mut [f64],
    ) -> Result<f64, EvaluationError> {
        gradient[0] = -25.0 * (z[0] - 200.0);
        self.log_ratio(z)
    }
}

/// Half a step of this descent changes the kinetic energy by up to 12,000, but the energy at the points of the trajectory
/// by at most (hω)²/8 of 500,000, 160: it is not a divergence.
#[test]
fn a_steep_descent_is_no_divergence() {
    let kernels: [&mut dyn Sampler<f64>; 2] = [
        &mut HmcInfinite::new(0.01, FRAC_PI_2, 1.0),
        &mut Hmc::new(0.01, FRAC_PI_2),
    ];
    for kernel in kernels {
        let mut state = kernel.init(&mut Far, vec![0.0]).unwrap();
        let mut stream = Stream::new(8, 0, Purpose::Transition, 0);
        let info = kernel.step(&mut Far, &mut state, &mut stream).unwrap();
        assert!(!info.diverging && info.n_steps > 100, "{info:?}");
        assert!(info.energy_error.abs() < 200.0, "{info:?}");
        // a step at which the leapfrog is unstable is
        kernel.set_step_size(0.5);
        let mut state = kernel.init(&mut Far, vec![0.0]).unwrap();
        let info = kernel.step(&mut Far, &mut state, &mut stream).unwrap();
        assert!(info.diverging && !info.is_accepted && state.position == [0.0]);
    }
}
