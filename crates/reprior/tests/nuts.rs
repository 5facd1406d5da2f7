//! The No-U-Turn sampler: its law against closed forms and quadrature, resumption, failing targets, its accounts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{sample, settings, z_score};
use reprior::chain::{Chain, Collect, Schedule};
use reprior::compute::{Purpose, Real, Stream};
use reprior::posterior::{EvaluationError, Target};
use reprior::sampler::kernels::Nuts;
use reprior::sampler::{Fatal, Method, Sampler, SamplerSettings};

/// Over all tests of this file 35 z-scores are compared with this: were they normal, a false alarm would have
/// probability 2e-4.
const LIMIT: f64 = 4.5;

/// A function of z with its gradient as a target.
struct Function<R, F> {
    dim: usize,
    f: F,
    calls: Arc<AtomicU64>,
    real: std::marker::PhantomData<R>,
}

impl<R, F> Function<R, F> {
    fn new(dim: usize, f: F) -> Self {
        Self {
            dim,
            f,
            calls: Arc::default(),
            real: std::marker::PhantomData,
        }
    }
}

impl<R: Real, F> Target for Function<R, F>
where
    F: Fn(&[f64], &mut [f64]) -> Result<f64, EvaluationError> + Send,
{
    type Real = R;
    fn dim(&self) -> usize {
        self.dim
    }
    fn log_ratio(&mut self, z: &[R]) -> Result<f64, EvaluationError> {
        let mut gradient = vec![R::ZERO; z.len()];
        self.log_ratio_and_gradient(z, &mut gradient)
    }
    fn log_ratio_and_gradient(
        &mut self,
        z: &[R],
        gradient: &mut [R],
    ) -> Result<f64, EvaluationError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let z: Vec<f64> = z.iter().map(|z| z.to_f64()).collect();
        let mut g = vec![0.0; z.len()];
        let value = (self.f)(&z, &mut g)?;
        for (to, from) in gradient.iter_mut().zip(g) {
            *to = R::from_f64(from);
        }
        Ok(value)
    }
}

/// Values of `f` at the draws of each chain.
fn values<R: Real>(chains: &[Collect<R>], f: impl Fn(&[f64]) -> f64) -> Vec<Vec<f64>> {
    let at = |z: &Vec<R>| f(&z.iter().map(|z| z.to_f64()).collect::<Vec<_>>());
    chains
        .iter()
        .map(|chain| chain.positions.iter().map(at).collect())
        .collect()
}

fn schedule(draws: u64, seed: u64) -> Schedule {
    Schedule {
        chains: 4,
        warmup: 300,
        draws,
        thin: 1,
        seed,
    }
}

const DIM: usize = 12;

/// ℓ(z) = −½ Σ pᵢ (zᵢ − mᵢ)²: precision 1 + pᵢ, mean pᵢmᵢ/(1 + pᵢ).
fn precision(i: usize) -> f64 {
    0.3 * (i * i) as f64
}

fn centre(i: usize) -> f64 {
    1.0 - 0.2 * i as f64
}

fn gaussian(z: &[f64], gradient: &mut [f64]) -> Result<f64, EvaluationError> {
    let mut value = 0.0;
    for (i, (z, g)) in z.iter().zip(gradient).enumerate() {
        let (p, distance) = (precision(i), z - centre(i));
        *g = -p * distance;
        value -= 0.5 * p * distance * distance;
    }
    Ok(value)
}

fn gaussian_law<R: Real>(seed: u64) {
    let make = || Function::<R, _>::new(DIM, gaussian);
    let chains = sample(make, &settings(Method::Nuts), schedule(4000, seed));
    for i in [0, 1, 5, 11] {
        let exact = 1.0 + precision(i);
        let mean = precision(i) * centre(i) / exact;
        let z = z_score(&values(&chains, |z| z[i]), mean);
        assert!(z.abs() < LIMIT, "mean of {i} off by {z} standard errors");
        let squares = values(&chains, |z| (z[i] - mean).powi(2) * exact);
        let z = z_score(&squares, 1.0);
        assert!(
            z.abs() < LIMIT,
            "variance of {i} off by {z} standard errors"
        );
    }
    let rate = |c: &Collect<R>| {
        c.statistics
            .iter()
            .map(|s| s.acceptance_rate())
            .sum::<f64>()
            / 4000.0
    };
    let rate = chains.iter().map(rate).sum::<f64>() / 4.0;
    assert!((rate - 0.8).abs() < 0.1, "acceptance {rate}");
}

#[test]
fn a_gaussian_has_its_mean_and_variance() {
    gaussian_law::<f64>(1);
    gaussian_law::<f32>(2);
}

/// A ridge along the parabola z₂ = z₁² − 1: curvature, scale and correlation change from place to place, so that a kernel
/// whose mass matrix or step size followed the state would have another law.
fn banana(z: &[f64], gradient: &mut [f64]) -> Result<f64, EvaluationError> {
    let residual = (z[1] - z[0] * z[0] + 1.0) / 0.16;
    gradient.copy_from_slice(&[2.0 * z[0] * residual, -residual]);
    Ok(-0.5 * 0.16 * residual * residual)
}

#[test]
fn a_curved_ridge_agrees_with_quadrature() {
    type Moment = fn(&[f64]) -> f64;
    let moments: [Moment; 5] = [
        |z| z[0],
        |z| z[1],
        |z| z[0] * z[0],
        |z| z[1] * z[1],
        |z| z[0] * z[0] * z[1],
    ];
    let (mut mass, mut exact) = (0.0, [0.0; 5]);
    for i in -500..=500 {
        for j in -500..=500 {
            let z = [f64::from(i) * 0.012, f64::from(j) * 0.012];
            let value = banana(&z, &mut [0.0; 2]).unwrap() - 0.5 * (z[0] * z[0] + z[1] * z[1]);
            mass += value.exp();
            for (sum, f) in exact.iter_mut().zip(&moments) {
                *sum += value.exp() * f(&z);
            }
        }
    }
    for (step_size, seed) in [(None, 3), (Some(0.45), 4), (Some(0.1), 5)] {
        let settings = SamplerSettings {
            step_size,
            ..settings(Method::Nuts)
        };
        let make = || Function::<f64, _>::new(2, banana);
        let chains = sample(make, &settings, schedule(8000, seed));
        for (k, (f, sum)) in moments.iter().zip(exact).enumerate() {
            let z = z_score(&values(&chains, f), sum / mass);
            assert!(
                z.abs() < LIMIT,
                "step {step_size:?}: moment {k} off by {z} standard errors"
            );
        }
    }
}

/// Where ℓ fails or is no number the density is 0: a truncated normal.
#[test]
fn positions_that_cannot_be_evaluated_are_never_taken() {
    let truncated = |z: &[f64], gradient: &mut [f64]| {
        gradient.fill(0.0);
        if z[0] > 1.0 {
            return Err(EvaluationError::Recoverable("beyond the wall".to_owned()));
        }
        Ok(if z[1] > 1.0 { f64::NAN } else { 0.0 })
    };
    let make = || Function::<f64, _>::new(2, truncated);
    let settings = SamplerSettings {
        step_size: Some(0.3),
        ..settings(Method::Nuts)
    };
    let chains = sample(make, &settings, schedule(20_000, 6));
    // E[z | z < 1] = −φ(1)/Φ(1), E[z² | z < 1] = 1 − φ(1)/Φ(1)
    let ratio = 0.241_970_724_519_143_37 / 0.841_344_746_068_542_9;
    for i in 0..2 {
        for z in [
            z_score(&values(&chains, |z| z[i]), -ratio),
            z_score(&values(&chains, |z| z[i] * z[i]), 1.0 - ratio),
        ] {
            assert!(z.abs() < LIMIT, "coordinate {i} off by {z} standard errors");
        }
    }
    assert!(
        values(&chains, |z| z[0].max(z[1]))
            .concat()
            .iter()
            .all(|z| *z <= 1.0)
    );
    assert!(chains[0].statistics.iter().any(|s| s.divergences > 0));
}

#[test]
fn a_fatal_error_stops_and_leaves_the_state() {
    let fails = |z: &[f64], gradient: &mut [f64]| {
        if z[0] == 0.0 {
            return gaussian(z, gradient);
        }
        Err(EvaluationError::Fatal("no memory".to_owned()))
    };
    let mut target = Function::<f64, _>::new(3, fails);
    let mut sampler = Nuts::new(0.5, None);
    let mut state = sampler.init(&mut target, vec![0.0; 3]).unwrap();
    let before = state.clone();
    let mut stream = Stream::new(7, 0, Purpose::Transition, 1);
    let result = sampler.step(&mut target, &mut state, &mut stream);
    assert_eq!(result, Err(Fatal("no memory".to_owned())));
    assert_eq!(before, state);
}

/// The state holds ℓ and ∇ℓ at its position to the last bit, and nothing is evaluated twice.
fn accounts<R: Real>() {
    let mut target = Function::<R, _>::new(DIM, gaussian);
    let mut again = Function::<R, _>::new(DIM, gaussian);
    let mut sampler = Nuts::new(0.2, None);
    let mut position = vec![R::ZERO; DIM];
    Stream::new(8, 0, Purpose::Initial, 0).fill_normal(&mut position);
    let mut state = sampler.init(&mut target, position).unwrap();
    let (mut evaluations, mut accepted) = (1, 0);
    for transition in 0..50 {
        let mut stream = Stream::new(8, 0, Purpose::Transition, transition);
        let info = sampler.step(&mut target, &mut state, &mut stream).unwrap();
        assert_eq!(info.n_gradients, info.n_steps);
        assert!((0.0..=1.0).contains(&info.acceptance_rate));
        evaluations += u64::from(info.n_gradients);
        accepted += u32::from(info.is_accepted);
        let mut gradient = vec![R::ZERO; DIM];
        let value = again.log_ratio_and_gradient(&state.position, &mut gradient);
        assert_eq!(value, Ok(state.log_ratio));
        assert_eq!(gradient, state.gradient);
    }
    assert_eq!(target.calls.load(Ordering::Relaxed), evaluations);
    assert!(accepted > 25);
}

#[test]
fn the_state_is_exact_and_nothing_is_evaluated_twice() {
    accounts::<f64>();
    accounts::<f32>();
}

#[test]
fn a_resumed_chain_makes_the_same_draws() {
    let make = || Function::<f32, _>::new(DIM, gaussian);
    let settings = settings(Method::Nuts);
    let schedule = Schedule {
        chains: 1,
        warmup: 30,
        draws: 40,
        thin: 2,
        seed: 9,
    };
    let whole = sample(make, &settings, schedule);
    let mut parts = Collect::default();
    let mut chain = Chain::start(0, schedule, &settings, make()).unwrap();
    let mut at = 0;
    while !chain.is_done() {
        at += 7;
        chain.advance_to(at, &mut parts).unwrap();
        chain = Chain::resume(0, schedule, &settings, make(), chain.snapshot().clone()).unwrap();
    }
    assert_eq!(whole[0].positions, parts.positions);
    assert_eq!(whole[0].statistics, parts.statistics);
}

/// As often as the steps have room for.
#[test]
fn trajectories_double_no_further_than_asked() {
    let mut target = Function::<f64, _>::new(DIM, gaussian);
    let mut most = |max_steps| {
        let mut sampler = Nuts::new(0.01, max_steps);
        let mut state = sampler.init(&mut target, vec![0.3; DIM]).unwrap();
        let mut stream = Stream::new(9, 0, Purpose::Transition, 1);
        let info = sampler.step(&mut target, &mut state, &mut stream).unwrap();
        info.n_gradients
    };
    assert_eq!(
        [1, 2, 3, 14, 15].map(|steps| most(Some(steps))),
        [1, 1, 3, 7, 15]
    );
    assert!(most(None) > 15);
}

#[test]
fn flat_and_empty_targets_are_sampled() {
    let flat = |_: &[f64], gradient: &mut [f64]| {
        gradient.fill(0.0);
        Ok(0.0)
    };
    // a start where every derivative is 0
    let mut target = Function::<f64, _>::new(4, flat);
    let mut sampler = Nuts::new(0.5, None);
    let mut state = sampler.init(&mut target, vec![0.0; 4]).unwrap();
    let mut stream = Stream::new(10, 0, Purpose::Transition, 1);
    let info = sampler.step(&mut target, &mut state, &mut stream).unwrap();
    assert!(info.n_gradients > 0 && !info.diverging);
    let none = sample(
        || Function::<f64, _>::new(0, flat),
        &settings(Method::Nuts),
        schedule(5, 11),
    );
    assert!(none[0].positions.iter().all(Vec::is_empty));
}
