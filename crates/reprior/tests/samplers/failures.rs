//! Evaluations that fail: rejected, counted, and the law stays right.
//!
//! A failure at random, whatever the position, rejects with a probability that does not depend on the state: a Metropolis
//! kernel stays reversible (where a trajectory needs several evaluations, their number does not depend on the state
//! either). Elliptical slice sampling stays so, too: a failed point shrinks the bracket as one below the slice does, and on
//! the way back from the accepted point the same failures shrink it to the same points with the same probability.
//! A region where every evaluation fails is a region without mass.

use reprior::chain::{Chain, Collect, DriverError, Schedule};
use reprior::compute::{Purpose, Stream};
use reprior::posterior::{EvaluationError, Target};
use reprior::sampler::{Method, SamplerSettings};

use super::{Line, SIGMA, Y, exact_methods, sample_on, settings, z_score};

/// What can go wrong with an evaluation.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Failure {
    Nan,
    Infinity,
    NegativeInfinity,
    Recoverable,
    GradientNan,
    GradientInfinity,
}

const VALUES: [Failure; 4] = [
    Failure::Nan,
    Failure::Infinity,
    Failure::NegativeInfinity,
    Failure::Recoverable,
];
const GRADIENTS: [Failure; 2] = [Failure::GradientNan, Failure::GradientInfinity];

/// [`Line`] with failures at random evaluations.
struct Flaky {
    probability: f64,
    failures: Vec<Failure>,
    stream: Stream,
    /// Failures so far.
    count: u64,
}

impl Flaky {
    fn new(probability: f64, failures: &[Failure]) -> Self {
        Self {
            probability,
            failures: failures.to_vec(),
            stream: Stream::new(77, 0, Purpose::Initial, 0),
            count: 0,
        }
    }

    fn draw(&mut self, with_gradient: bool) -> Option<Failure> {
        let (fails, which) = (self.stream.uniform(), self.stream.uniform());
        let failure = self.failures[(which * self.failures.len() as f64) as usize];
        let occurs = fails < self.probability && (with_gradient || !GRADIENTS.contains(&failure));
        self.count += u64::from(occurs);
        occurs.then_some(failure)
    }
}

impl Target for Flaky {
    type Real = f64;
    fn dim(&self) -> usize {
        2
    }
    fn log_ratio(&mut self, z: &[f64]) -> Result<f64, EvaluationError> {
        match self.draw(false) {
            None => Line.log_ratio(z),
            Some(failure) => spoilt(failure),
        }
    }
    fn log_ratio_and_gradient(
        &mut self,
        z: &[f64],
        gradient: &mut [f64],
    ) -> Result<f64, EvaluationError> {
        let value = Line.log_ratio_and_gradient(z, gradient);
        match self.draw(true) {
            None => value,
            Some(Failure::GradientNan) => {
                gradient[1] = f64::NAN;
                value
            }
            Some(Failure::GradientInfinity) => {
                gradient[0] = f64::NEG_INFINITY;
                value
            }
            Some(failure) => spoilt(failure),
        }
    }
    /// Shows the number of failures in the statistics.
    fn corrections(&self) -> u64 {
        self.count
    }
}

fn spoilt(failure: Failure) -> Result<f64, EvaluationError> {
    match failure {
        Failure::Infinity => Ok(f64::INFINITY),
        Failure::NegativeInfinity => Ok(f64::NEG_INFINITY),
        Failure::Recoverable => Err(EvaluationError::Recoverable("out of luck".to_owned())),
        _ => Ok(f64::NAN),
    }
}

/// Step sizes at which every method moves well in two dimensions. They are fixed: trajectories of smaller steps would
/// only meet more failures, so that adaptation could not reach its aim.
fn fixed(method: Method) -> SamplerSettings {
    SamplerSettings {
        step_size: match method {
            Method::Elliptical => None,
            Method::HmcInfinite | Method::Hmc | Method::Mams | Method::Mclmc | Method::Langevin => {
                Some(0.4)
            }
            _ => Some(0.7),
        },
        arrival: Some(0),
        ..settings(method)
    }
}

#[test]
fn failures_at_random_are_counted_and_keep_the_law() {
    let total = SIGMA * SIGMA + 1.25;
    let (mean, variance) = (Y / total, 1.0 - 1.0 / total);
    for method in exact_methods() {
        for failures in [&VALUES[..], &GRADIENTS[..]] {
            if failures == GRADIENTS && !method.needs_gradients() {
                continue;
            }
            let schedule = Schedule {
                chains: 4,
                warmup: 50,
                draws: 5000,
                thin: 5,
                seed: 21,
            };
            let chains = sample_on(|| Flaky::new(0.05, failures), &fixed(method), schedule, 2);
            let first = |f: &dyn Fn(f64) -> f64| -> Vec<Vec<f64>> {
                let values = |c: &Collect<f64>| c.positions.iter().map(|z| f(z[0])).collect();
                chains.iter().map(values).collect()
            };
            for (values, exact) in [
                (first(&|x| x), mean),
                (first(&|x| (x - mean).powi(2)), variance),
            ] {
                let z = z_score(&values, exact);
                assert!(z.abs() < 4.5, "{method}: off by {z} standard errors");
            }
            let statistics = || chains.iter().flat_map(|c| &c.statistics);
            let diverged: u64 = statistics().map(|s| s.divergences).sum();
            let failed: u64 = statistics().map(|s| s.n_jitter).sum();
            let transitions: u64 = statistics().map(|s| s.transitions).sum();
            match method {
                // several evaluations a transition, and several may fail
                Method::Elliptical | Method::Hmc | Method::Mams | Method::HmcInfinite => {
                    assert!(diverged <= failed && 2 * diverged > failed, "{method}");
                }
                _ => assert_eq!(diverged, failed, "{method}"),
            }
            assert!(diverged * 30 > transitions);
        }
    }
}

/// ℓ that cannot be evaluated where z₁ > ½.
struct Half(Failure);

impl Target for Half {
    type Real = f64;
    fn dim(&self) -> usize {
        2
    }
    fn log_ratio(&mut self, z: &[f64]) -> Result<f64, EvaluationError> {
        if z[0] > 0.5 {
            return spoilt(self.0);
        }
        Line.log_ratio(z)
    }
    fn log_ratio_and_gradient(
        &mut self,
        z: &[f64],
        gradient: &mut [f64],
    ) -> Result<f64, EvaluationError> {
        Line.log_ratio_and_gradient(z, gradient)?;
        self.log_ratio(z)
    }
}

#[test]
fn where_every_evaluation_fails_there_is_no_mass() {
    // the marginal law of z₁ is Gaussian, here cut off at ½
    let total = SIGMA * SIGMA + 1.25;
    let (centre, variance) = (Y / total, 1.0 - 1.0 / total);
    let (mut mass, mut mean) = (0.0, 0.0);
    for i in 0..100_000 {
        let z = 0.5 - (f64::from(i) + 0.5) * 1e-4;
        let weight = (-0.5 * (z - centre).powi(2) / variance).exp();
        mass += weight;
        mean += weight * z;
    }
    for (k, method) in exact_methods().enumerate() {
        let schedule = Schedule {
            chains: 4,
            warmup: 100,
            draws: 5000,
            thin: 6,
            seed: 22,
        };
        let failure = VALUES[k % VALUES.len()];
        // short steps and trajectories: the gradient at a start far out would drive longer ones into the wall for ever
        let base = fixed(method);
        let settings = SamplerSettings {
            step_size: base.step_size.map(|_| 0.15),
            trajectory: base.trajectory_in_use().map(|_| 0.3),
            ..base
        };
        let chains = sample_on(|| Half(failure), &settings, schedule, 2);
        let first: Vec<Vec<f64>> = chains
            .iter()
            .map(|c| c.positions.iter().map(|z| z[0]).collect())
            .collect();
        assert!(first.iter().flatten().all(|&z| z <= 0.5));
        let z = z_score(&first, mean / mass);
        assert!(z.abs() < 4.5, "{method} {failure:?}: {z}");
        let diverged: u64 = chains[0].statistics.iter().map(|s| s.divergences).sum();
        assert!(diverged > 100, "{method}");
    }
}

/// Without Metropolis correction every step is taken but those that fail.
#[test]
fn uncorrected_steps_refuse_only_failures() {
    let schedule = Schedule {
        chains: 1,
        warmup: 0,
        draws: 3000,
        thin: 1,
        seed: 23,
    };
    let langevin = SamplerSettings {
        metropolis: false,
        step_size: Some(0.3),
        ..fixed(Method::Langevin)
    };
    let mclmc = SamplerSettings {
        step_size: Some(0.15),
        ..fixed(Method::Mclmc)
    };
    for settings in [langevin, mclmc] {
        for failures in [&VALUES[..], &GRADIENTS[..]] {
            let chains = sample_on(|| Flaky::new(0.1, failures), &settings, schedule, 1);
            let chain = &chains[0];
            let mut rates = 0.0;
            for (statistics, z) in chain.statistics.iter().zip(&chain.positions) {
                assert_eq!(statistics.accepted + statistics.divergences, 1);
                assert_eq!(statistics.divergences, statistics.n_jitter);
                assert!(z.iter().all(|z| z.is_finite()));
                rates += statistics.acceptance_sum;
            }
            let refused: u64 = chain.statistics.iter().map(|s| s.divergences).sum();
            assert!((200..400).contains(&refused), "{refused}");
            // the rate that a correction would have had is reported all the same
            assert!(rates < 0.998 * (3000.0 - refused as f64) && rates > 0.7 * 3000.0);
        }
    }
}

/// [`Line`] for `good` evaluations, then nothing but `error`.
struct Breaking {
    good: u32,
    error: EvaluationError,
}

impl Breaking {
    fn next(&mut self) -> Result<(), EvaluationError> {
        if self.good == 0 {
            return Err(self.error.clone());
        }
        self.good -= 1;
        Ok(())
    }
}

impl Target for Breaking {
    type Real = f64;
    fn dim(&self) -> usize {
        2
    }
    fn log_ratio(&mut self, z: &[f64]) -> Result<f64, EvaluationError> {
        self.next()?;
        Line.log_ratio(z)
    }
    fn log_ratio_and_gradient(
        &mut self,
        z: &[f64],
        gradient: &mut [f64],
    ) -> Result<f64, EvaluationError> {
        self.next()?;
        Line.log_ratio_and_gradient(z, gradient)
    }
}

const LONG: Schedule = Schedule {
    chains: 1,
    warmup: 0,
    draws: 100_000,
    thin: 1,
    seed: 24,
};

#[test]
fn a_target_that_always_fails_ends_with_its_reason() {
    for method in Method::ALL {
        let error = EvaluationError::Recoverable("the features are gone".to_owned());
        let target = Breaking { good: 300, error };
        let mut collected = Collect::default();
        let mut chain = Chain::start(0, LONG, &fixed(method), target).unwrap();
        let end = chain.advance_to(u64::MAX, &mut collected).unwrap_err();
        let DriverError::Target {
            transition, reason, ..
        } = &end
        else {
            panic!("{end}")
        };
        assert!(reason.contains("the features are gone"), "{reason}");
        assert!(reason.contains("1000 transitions in a row"), "{reason}");
        // drawn until then, and the state is the last good one
        assert_eq!(collected.positions.len() as u64, *transition);
        assert!((1010..1400).contains(transition), "{method} {transition}");
        assert_eq!(chain.snapshot().failures, 1000);
        assert_eq!(
            collected.positions.last(),
            Some(&chain.snapshot().state.position)
        );
        assert!(chain.snapshot().state.log_ratio.is_finite());
    }
}

#[test]
fn a_fatal_error_stops_at_once_and_leaves_the_state_as_it_was() {
    for method in Method::ALL {
        let with_memory = matches!(method, Method::HmcInfinite).then_some(0.4);
        let settings = SamplerSettings {
            damping: with_memory,
            ..fixed(method)
        };
        let error = EvaluationError::Fatal("the machine is on fire".to_owned());
        let target = Breaking { good: 200, error };
        let mut collected = Collect::default();
        let mut chain = Chain::start(0, LONG, &settings, target).unwrap();
        let mut before = chain.snapshot().clone();
        let end = loop {
            match chain.advance_to(before.transition + 1, &mut collected) {
                Ok(()) => before = chain.snapshot().clone(),
                Err(end) => break end,
            }
        };
        assert!(end.to_string().contains("the machine is on fire"), "{end}");
        assert_eq!(&before, chain.snapshot(), "{method}");
        assert_eq!(collected.positions.len() as u64, before.transition);
    }
}

#[test]
fn a_start_whose_gradient_is_not_finite_is_not_taken() {
    for method in Method::ALL {
        let target = Flaky::new(1.0, &GRADIENTS);
        let start = Chain::start(0, LONG, &fixed(method), target);
        match start {
            Ok(_) => assert!(!method.needs_gradients()),
            Err(error) => {
                assert!(method.needs_gradients());
                assert!(error.to_string().contains("gradient"), "{error}");
            }
        }
    }
}
