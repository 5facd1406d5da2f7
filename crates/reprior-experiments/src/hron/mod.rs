//! Hron, Novak, Pennington, Sohl-Dickstein 2022, *Wide Bayesian neural networks have a simple weight posterior*: repriorisation,
//! and Langevin steps in its coordinates.
//!
//! GELU, σ_w² = 2, σ_b² = 0.01 (readout 1 and 0.01), σ = 0.1, as there. Langevin steps are underdamped, one leapfrog each; step
//! sizes are tuned for an acceptance of 0.98 during warm-up, dampings, except at quick size, for effective draws ([`langevin`]): the
//! paper's values are not published.

mod categorical;
mod convergence;
mod function_space;
mod inverse;
mod langevin;
mod linear;
mod mixing;
mod other_layers;
mod overhead;
mod precision;
mod propositions;
mod regulariser;
mod slices;
mod stability;
mod steps;
mod tangent;

use reprior::posterior::Coordinates;

use crate::Experiment;

pub(crate) const EXPERIMENTS: &[&dyn Experiment] = &[
    &linear::Map,
    &function_space::Widths,
    &slices::Slices,
    &overhead::Overhead,
    &mixing::Mixing,
    &steps::FullyConnected,
    &steps::Residual,
    &tangent::Tangent,
    &categorical::Categorical,
    &regulariser::Sweep,
    &precision::Precision,
    &propositions::Divergence,
    &propositions::Gradient,
    &stability::StepSizes,
    &other_layers::OtherLayers,
];

/// Names of the coordinates that are compared.
const COORDINATES: [&str; 2] = ["standard", "repriorised"];

fn coordinates(name: &str) -> Coordinates {
    name.parse().unwrap_or_default()
}

/// What figures of effective draws have for comparison.
const FLOORS: &[(&str, &str)] = &[("floor", "chains that hardly move")];
