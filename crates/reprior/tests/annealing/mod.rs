//! The log evidence of annealed particles, and of chains with replicas, against closed forms, quadratures and the infinitely wide network, with errors that are honest; modes by
//! their mass; failures; threads.

mod evidence;
mod networks;
mod replicas;
mod robust;

use reprior::annealing::{Annealing, AnnealingSettings, LogEvidence};
use reprior::posterior::Target;
use reprior::sampler::{Method, SamplerSettings};

/// So many particles moved by a method.
fn settings(method: Method, particles: usize, seed: u64) -> AnnealingSettings {
    AnnealingSettings {
        particles,
        sampler: SamplerSettings {
            method,
            ..SamplerSettings::default()
        },
        seed,
        ..AnnealingSettings::default()
    }
}

/// Replicates at their ends.
fn anneal<T: Target>(
    make: impl Fn() -> T,
    settings: &AnnealingSettings,
    replicates: u64,
) -> Vec<Annealing<T>> {
    let start = |replicate| {
        let mut annealing = Annealing::start(settings, replicate, vec![make()]).unwrap();
        annealing.finish().unwrap();
        annealing
    };
    (0..replicates).map(start).collect()
}

fn log_evidence<T: Target>(replicates: &[Annealing<T>]) -> LogEvidence {
    let values: Vec<f64> = replicates.iter().map(Annealing::log_evidence).collect();
    LogEvidence::of(&values).unwrap()
}
