//! Pezzetti, Favaro, Peluchetti 2024, *Function-space MCMC for Bayesian wide neural networks*: pCN, pCNL and Langevin steps on
//! repriorised networks of one hidden layer of GELU units, images with σ = 0.1.
//!
//! β means what it means there: of pCN and pCNL the part of a proposal that is new, of Langevin steps the leapfrog's step
//! size h with a damping of 0.01 and the Metropolis correction, as the authors' code has it. Predictions are watched halfway
//! between training images.

mod acceptance;
mod effective_draws;
mod marginal;
mod million;
mod mixing;
mod published;
mod shrink_factors;
mod traces;

use reprior::sampler::{Method, SamplerSettings};

use crate::{Bench, Experiment, Failure, Images};

pub(crate) const EXPERIMENTS: &[&dyn Experiment] = &[
    &acceptance::Acceptance,
    &effective_draws::EffectiveDraws,
    &million::Million,
    &shrink_factors::ShrinkFactors,
    &traces::LANGEVIN,
    &traces::PCN,
    &traces::PCNL,
    &marginal::Marginal,
];

/// The damping of the authors' Langevin steps.
const DAMPING: f64 = 0.01;
/// Methods by name.
const METHODS: [&str; 3] = ["pcn", "pcnl", "langevin"];
/// pCNL with the potential of the authors' code ([`published`]), which samples another law.
const PUBLISHED: &str = "pcnl as published";

/// The methods, with the published pCNL where it is asked for.
fn methods(as_published: bool) -> Vec<&'static str> {
    let published = as_published.then_some(PUBLISHED);
    METHODS.into_iter().chain(published).collect()
}

fn images(bench: &Bench<'_>) -> Result<Images, Failure> {
    let count = bench.size.pick(32, 256, 256, 256);
    bench.data.images("cifar10", count)
}

fn settings(method: &str, beta: f64) -> SamplerSettings {
    let method = if method == PUBLISHED { "pcnl" } else { method };
    let method: Method = method.parse().unwrap_or_default();
    SamplerSettings {
        method,
        step_size: Some(beta),
        damping: (method == Method::Langevin).then_some(DAMPING),
        ..SamplerSettings::default()
    }
}
