//! A posterior that has nothing to do with networks: Bayesian logistic regression.
//!
//! Before the last flight of the space shuttle Challenger, seven of 23 flights had come back with damaged O-rings
//! (Dalal, Fowlkes, Hoadley 1989, "Risk analysis of the space shuttle"). How likely was damage at 31 °F?
//!
//! ```text
//! cargo run --release -p reprior --example custom_posterior [METHOD]
//! ```
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use reprior::chain::{Chain, Collect, Control, Schedule, run};
use reprior::diagnostics::{Draws, Estimator};
use reprior::posterior::{EvaluationError, Target};
use reprior::sampler::{Method, SamplerSettings};

/// Temperature at launch in °F, and whether an O-ring was damaged.
const FLIGHTS: [(f64, bool); 23] = [
    (53.0, true),
    (57.0, true),
    (58.0, true),
    (63.0, true),
    (66.0, false),
    (67.0, false),
    (67.0, false),
    (67.0, false),
    (68.0, false),
    (69.0, false),
    (70.0, true),
    (70.0, true),
    (70.0, false),
    (70.0, false),
    (72.0, false),
    (73.0, false),
    (75.0, true),
    (75.0, false),
    (76.0, false),
    (76.0, false),
    (78.0, false),
    (79.0, false),
    (81.0, false),
];

/// Priors: log-odds at 70 °F ~ N(0, 2.5²), their change per 10 °F ~ N(0, 2.5²).
const PRIOR_SCALE: f64 = 2.5;

/// Every target is written against the standard normal: coordinates z ~ N(0, I) a priori, and ℓ(z) is the log-likelihood.
/// The parameters are z times the prior's scale.
struct ORings;

fn log_odds(z: &[f64], temperature: f64) -> f64 {
    PRIOR_SCALE * (z[0] + z[1] * (temperature - 70.0) / 10.0)
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

impl Target for ORings {
    type Real = f64;

    fn dim(&self) -> usize {
        2
    }

    fn log_ratio(&mut self, z: &[f64]) -> Result<f64, EvaluationError> {
        self.log_ratio_and_gradient(z, &mut [0.0; 2])
    }

    fn log_ratio_and_gradient(
        &mut self,
        z: &[f64],
        gradient: &mut [f64],
    ) -> Result<f64, EvaluationError> {
        gradient.fill(0.0);
        let mut value = 0.0;
        for (temperature, damaged) in FLIGHTS {
            let x = log_odds(z, temperature);
            let signed = if damaged { x } else { -x };
            // log(1/(1 + e^−s)) without overflow
            value += signed.min(0.0) - (-signed.abs()).exp().ln_1p();
            let by_x = f64::from(u8::from(damaged)) - logistic(x);
            gradient[0] += PRIOR_SCALE * by_x;
            gradient[1] += PRIOR_SCALE * by_x * (temperature - 70.0) / 10.0;
        }
        Ok(value)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let method = match std::env::args().nth(1) {
        Some(name) => name.parse()?,
        None => Method::default(),
    };
    let settings = SamplerSettings {
        method,
        ..SamplerSettings::default()
    };
    settings.check()?;
    let schedule = Schedule {
        chains: 4,
        warmup: 500,
        draws: 2000,
        thin: 2,
        seed: 1,
    };
    let chains = (0..schedule.chains)
        .map(|index| {
            let chain = Chain::start(index, schedule, &settings, ORings)?;
            Ok((chain, Collect::default()))
        })
        .collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    let stop = AtomicBool::new(false);
    let control = Control {
        threads: 2,
        checkpoint_every: Duration::from_secs(60),
        stop: &stop,
    };
    let (chains, outcome) = run(chains, control, &|_| {});
    outcome?;

    type Quantity = fn(&[f64]) -> f64;
    let quantities: [(&str, Quantity); 4] = [
        ("log-odds at 70 °F", |z| log_odds(z, 70.0)),
        ("their change per 10 °F", |z| {
            log_odds(z, 80.0) - log_odds(z, 70.0)
        }),
        ("risk of damage at 70 °F", |z| logistic(log_odds(z, 70.0))),
        ("risk of damage at 31 °F", |z| logistic(log_odds(z, 31.0))),
    ];
    let mut estimator = Estimator::new();
    println!(
        "{method}, {} chains of {} draws",
        schedule.chains, schedule.draws
    );
    println!(
        "{:<24}{:>8}{:>8}{:>8}{:>8}{:>7}",
        "", "mean", "sd", "error", "ESS", "R-hat"
    );
    for (name, f) in quantities {
        let positions = chains
            .iter()
            .flat_map(|(_, collected)| &collected.positions);
        let values: Vec<f64> = positions.map(|z| f(z)).collect();
        let summary = estimator.summary(Draws::new(&values, chains.len())?);
        println!(
            "{name:<24}{:>8.3}{:>8.3}{:>8.4}{:>8.0}{:>7.3}",
            summary.mean, summary.sd, summary.mcse_mean, summary.ess_bulk, summary.rhat
        );
    }
    for (chain, _) in &chains {
        let sampling = &chain.snapshot().sampling;
        println!(
            "chain {}: acceptance {:.3}, step size {}, {} divergences",
            chain.index(),
            sampling.acceptance_rate(),
            sampling
                .step_size
                .map_or("none".to_owned(), |step| format!("{step:.3}")),
            sampling.divergences
        );
    }
    Ok(())
}
