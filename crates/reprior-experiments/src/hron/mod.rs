//! Hron, Novak, Pennington, Sohl-Dickstein 2022, *Wide Bayesian neural networks have a simple weight posterior*: repriorisation,
//! and Langevin steps in its coordinates.
//!
//! GELU, σ_w² = 2, σ_b² = 0.01 (readout 1 and 0.01), σ = 0.1, as there. Langevin steps are underdamped, one leapfrog each; step
//! sizes are tuned for an acceptance of 0.98 during warm-up, damping is the library's default: the paper's tuned values
//! are not published.

mod alternatives;
mod function_space;
mod linear;
mod mixing;
mod overhead;
mod propositions;
mod slices;
mod steps;

use reprior::chain::Schedule;
use reprior::posterior::Coordinates;
use reprior::sampler::{Method, SamplerSettings};

use crate::chains::ChainPlan;
use crate::{Cell, Experiment};

pub(crate) const EXPERIMENTS: &[&dyn Experiment] = &[
    &linear::Map,
    &function_space::Widths,
    &slices::Slices,
    &overhead::Overhead,
    &mixing::Mixing,
    &steps::FullyConnected,
    &steps::Residual,
    &alternatives::Tangent,
    &alternatives::Categorical,
    &propositions::Divergence,
    &propositions::Gradient,
    &linear::StepSizes,
];

/// Names of the coordinates that are compared.
const COORDINATES: [&str; 2] = ["standard", "repriorised"];

fn coordinates(name: &str) -> Coordinates {
    name.parse().unwrap_or_default()
}

/// Langevin steps in the coordinates of a cell, tuned.
fn langevin(cell: &Cell, schedule: Schedule) -> ChainPlan {
    let settings = SamplerSettings {
        method: Method::Langevin,
        target_acceptance: Some(0.98),
        arrival: Some(0),
        ..SamplerSettings::default()
    };
    ChainPlan::new(settings, coordinates(cell.text("coordinates")), schedule)
}
