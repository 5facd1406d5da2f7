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

use std::sync::Arc;

use reprior::chain::Schedule;
use reprior::model::{InputReduction, Model};
use reprior::network::{Activation, Composition};
use reprior::posterior::{Coordinates, Regulariser};
use reprior::sampler::{Method, SamplerSettings};

use crate::chains::ChainPlan;
use crate::{Experiment, Failure, Images};

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

/// σ.
const NOISE: f64 = 0.1;
/// Names of the coordinates that are compared.
const COORDINATES: [&str; 2] = ["standard", "repriorised"];

fn coordinates(name: &str) -> Coordinates {
    name.parse().unwrap_or_default()
}

/// A fully connected network on images; `reduction` says whether chains live on all weights of the first layer.
fn model(
    images: &Images,
    hidden: &[usize],
    reduction: InputReduction,
) -> Result<Arc<Model<f32>>, Failure> {
    let network =
        Composition::fully_connected(images.columns(), hidden, images.classes(), Activation::Gelu);
    let (x, y) = (&images.inputs, images.targets.clone());
    let model = Model::new(network, NOISE, x, y, &images.midpoints(20), reduction);
    Ok(Arc::new(model.map_err(Failure::failed)?))
}

/// Langevin steps, tuned.
fn langevin(coordinates: Coordinates, schedule: Schedule) -> ChainPlan {
    ChainPlan {
        settings: SamplerSettings {
            method: Method::Langevin,
            target_acceptance: Some(0.98),
            arrival: Some(0),
            ..SamplerSettings::default()
        },
        coordinates,
        regulariser: Regulariser::Matched,
        schedule,
    }
}
