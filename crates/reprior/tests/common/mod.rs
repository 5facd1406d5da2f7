//! Chains to their end, and how far their means are from an exact value.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use reprior::chain::{Chain, Collect, Control, RunOutcome, Schedule, run};
use reprior::diagnostics::{Draws, Estimator};
use reprior::posterior::Target;
use reprior::sampler::{Method, SamplerSettings};

/// Settings of a method with its step size adapted.
pub fn settings(method: Method) -> SamplerSettings {
    SamplerSettings {
        method,
        ..SamplerSettings::default()
    }
}

/// Draws of each chain from targets made by `make`, on two threads.
pub fn sample<T: Target>(
    make: impl Fn() -> T,
    settings: &SamplerSettings,
    schedule: Schedule,
) -> Vec<Collect<T::Real>> {
    sample_on(make, settings, schedule, 2)
}

/// The same on so many threads.
pub fn sample_on<T: Target>(
    make: impl Fn() -> T,
    settings: &SamplerSettings,
    schedule: Schedule,
    threads: usize,
) -> Vec<Collect<T::Real>> {
    let chains = (0..schedule.chains)
        .map(|index| {
            (
                Chain::start(index, schedule, settings, make()).unwrap(),
                Collect::default(),
            )
        })
        .collect();
    let stop = AtomicBool::new(false);
    let control = Control {
        threads,
        checkpoint_every: Duration::from_secs(1),
        stop: &stop,
    };
    let (done, outcome) = run(chains, control, &|_| {});
    assert_eq!(outcome.unwrap(), RunOutcome::Complete);
    done.into_iter().map(|(_, collected)| collected).collect()
}

/// Mean of the draws of all chains, and its Monte-Carlo error from the effective sample size.
pub fn mean_and_error(chains: &[Vec<f64>]) -> (f64, f64) {
    let flat: Vec<f64> = chains.concat();
    let n = flat.len() as f64;
    let mean = flat.iter().sum::<f64>() / n;
    let variance = flat.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let ess = Estimator::new().ess_mean(Draws::new(&flat, chains.len()).unwrap());
    assert!(ess > 100.0, "only {ess} effective draws");
    (mean, (variance / ess).sqrt())
}

/// z-score of the mean of all chains against an exact value.
pub fn z_score(chains: &[Vec<f64>], exact: f64) -> f64 {
    let (mean, error) = mean_and_error(chains);
    (mean - exact) / error
}
