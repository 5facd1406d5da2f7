//! Step sizes: where adaptation begins, how small they may become; targets without gradients.

use reprior::chain::{Chain, Collect, Schedule};
use reprior::compute::{Purpose, Stream};
use reprior::posterior::{EvaluationError, Target};
use reprior::sampler::{Method, SamplerSettings};

use super::{SIGMA, Y, sample_on, settings, z_score};

/// Independent observations of zero with standard deviation s: z has standard deviations s/√(1 + s²).
struct Narrow(f64);

impl Target for Narrow {
    type Real = f64;
    fn dim(&self) -> usize {
        3
    }
    fn log_ratio(&mut self, z: &[f64]) -> Result<f64, EvaluationError> {
        Ok(z.iter().map(|z| -0.5 * (z / self.0).powi(2)).sum())
    }
    fn log_ratio_and_gradient(
        &mut self,
        z: &[f64],
        gradient: &mut [f64],
    ) -> Result<f64, EvaluationError> {
        for (gradient, z) in gradient.iter_mut().zip(z) {
            *gradient = -z / self.0.powi(2);
        }
        self.log_ratio(z)
    }
}

const ADAPTED: [Method; 9] = [
    Method::HmcInfinite,
    Method::Hmc,
    Method::Mams,
    Method::Nuts,
    Method::Pcn,
    Method::Pcnl,
    Method::Mala,
    Method::Langevin,
    Method::Rwm,
];

fn found(settings: &SamplerSettings, scale: f64, position: f64) -> f64 {
    let mut target = Narrow(scale);
    let state = settings
        .sampler()
        .init(&mut target, vec![position; 3])
        .unwrap();
    let stream = || Stream::new(1, 0, Purpose::StepSize, 1);
    let found = settings.search(&mut target, &state, stream).unwrap();
    let found = found.unwrap();
    assert!(found.n_gradients + found.n_evaluations >= 1);
    assert!(found.n_gradients + found.n_evaluations <= 30);
    found.step_size
}

#[test]
fn the_search_finds_the_scale_of_the_posterior() {
    for method in ADAPTED {
        let settings = settings(method);
        let steps = [1e-1, 1e-2, 1e-3, 1e-4].map(|scale| found(&settings, scale, scale));
        for pair in steps.windows(2) {
            // a tenth of the scale, a tenth of the step (a power of two, hence the range)
            let ratio = pair[0] / pair[1];
            assert!((4.0..33.0).contains(&ratio), "{method} {steps:?}");
        }
        assert!((1e-6..1e-3).contains(&steps[3]), "{method} {steps:?}");
        // nothing is small enough here, and nothing too large for the prior itself
        assert_eq!(found(&settings, 1e-9, 1e-9), 1e-6, "{method}");
        let largest = found(&settings, 1e9, 1e-3);
        assert!(largest >= 0.4, "{method} {largest}");
    }
    assert_eq!(
        settings(Method::Elliptical).search(
            &mut Narrow(1.0),
            &settings(Method::Elliptical)
                .sampler()
                .init(&mut Narrow(1.0), vec![0.0; 3])
                .unwrap(),
            || Stream::new(1, 0, Purpose::StepSize, 1)
        ),
        Ok(None)
    );
}

/// A posterior 10⁵ times narrower than its prior, from prior draws.
#[test]
fn chains_of_a_very_narrow_posterior_move() {
    for method in [Method::HmcInfinite, Method::Hmc] {
        let schedule = Schedule {
            chains: 2,
            warmup: 150,
            draws: 60,
            thin: 1,
            seed: 31,
        };
        let chains = sample_on(|| Narrow(1e-5), &settings(method), schedule, 1);
        for chain in &chains {
            let rates = chain.statistics.iter().map(|s| s.acceptance_sum);
            let rate = rates.sum::<f64>() / chain.statistics.len() as f64;
            assert!(rate > 0.5, "{method} {rate}");
            let last = chain.positions.last().unwrap();
            assert!(last.iter().all(|z| z.abs() < 1e-4), "{method} {last:?}");
        }
    }
}

#[test]
fn the_search_is_counted_with_the_transition_that_it_precedes() {
    let schedule = Schedule {
        chains: 1,
        warmup: 20,
        draws: 1,
        thin: 1,
        seed: 32,
    };
    let first = |settings: &SamplerSettings| {
        let mut chain = Chain::start(0, schedule, settings, Narrow(1e-3)).unwrap();
        chain.advance_to(1, &mut Collect::default()).unwrap();
        chain.snapshot().warmup.clone()
    };
    let alone = |step_size| SamplerSettings {
        arrival: Some(0),
        step_size,
        ..settings(Method::Mala)
    };
    let adapts = first(&alone(None));
    assert!(adapts.n_gradients > 5);
    assert!(adapts.step_size.unwrap() < 0.05);
    let fixed = first(&alone(Some(0.1)));
    assert_eq!((fixed.n_gradients, fixed.step_size), (1, Some(0.1)));
}

/// ℓ of [`Line`](super::Line), for those who have no gradient: the trait's own says so.
struct Value;

impl Target for Value {
    type Real = f64;
    fn dim(&self) -> usize {
        2
    }
    fn log_ratio(&mut self, z: &[f64]) -> Result<f64, EvaluationError> {
        Ok(-0.5 * ((Y - z[0] - 0.5 * z[1]) / SIGMA).powi(2))
    }
}

/// The same with one that must not be called.
struct Panics;

impl Target for Panics {
    type Real = f64;
    fn dim(&self) -> usize {
        2
    }
    fn log_ratio(&mut self, z: &[f64]) -> Result<f64, EvaluationError> {
        Value.log_ratio(z)
    }
    fn log_ratio_and_gradient(&mut self, _: &[f64], _: &mut [f64]) -> Result<f64, EvaluationError> {
        panic!("a method without gradients asked for one")
    }
}

#[test]
fn a_target_without_gradients_is_sampled_by_methods_without() {
    let total = SIGMA * SIGMA + 1.25;
    let schedule = Schedule {
        chains: 4,
        warmup: 400,
        draws: 500,
        thin: 20,
        seed: 33,
    };
    for method in [Method::Pcn, Method::Elliptical, Method::Rwm] {
        let chains = sample_on(|| Panics, &settings(method), schedule, 1);
        let first = |chain: &Collect<f64>| chain.positions.iter().map(|z| z[0]).collect();
        let values: Vec<Vec<f64>> = chains.iter().map(first).collect();
        let z = z_score(&values, Y / total);
        assert!(z.abs() < 4.5, "{method}: off by {z} standard errors");
        let others = sample_on(|| Value, &settings(method), schedule, 1);
        assert_eq!(others[0].positions, chains[0].positions);
    }
    let error = Chain::start(0, schedule, &settings(Method::Hmc), Value).err();
    let message = error.unwrap().to_string();
    assert!(
        message.contains("no gradient") && message.contains("pcn"),
        "{message}"
    );
}
