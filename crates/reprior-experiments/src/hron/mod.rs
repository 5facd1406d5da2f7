//! Hron, Novak, Pennington, Sohl-Dickstein 2022, *Wide Bayesian neural networks have a simple weight posterior*: repriorisation,
//! and Langevin steps in its coordinates.
//!
//! GELU, σ_w² = 2, σ_b² = 0.01 (readout 1 and 0.01), σ = 0.1, as there. Langevin steps are underdamped, one leapfrog each; step
//! sizes are tuned for an acceptance of 0.98 during warm-up, dampings for effective draws where the paper tunes them: its values are
//! not published.

mod categorical;
mod function_space;
mod inverse;
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

use std::sync::Arc;

use reprior::chain::Schedule;
use reprior::model::Model;
use reprior::posterior::Coordinates;
use reprior::sampler::{Method, SamplerSettings};

use crate::chains::ChainPlan;
use crate::sampled::{FLOOR, Sampled};
use crate::{Bench, Cell, Experiment, Failure, Row};

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

/// Dampings that are tried.
const DAMPINGS: [f64; 4] = [0.003, 0.01, 0.03, 0.1];

/// Langevin steps in the coordinates of a cell: step size tuned in warm-up for an acceptance of 0.98.
fn langevin(cell: &Cell, schedule: Schedule) -> ChainPlan {
    let settings = SamplerSettings {
        method: Method::Langevin,
        target_acceptance: Some(0.98),
        arrival: Some(0),
        ..SamplerSettings::default()
    };
    ChainPlan::new(settings, coordinates(cell.text("coordinates")), schedule)
}

/// The plan with the damping of [`DAMPINGS`] whose chains, a twentieth as long, have the most effective draws of weights: what the
/// paper maximises too.
///
/// # Errors
/// Chains that could not start or go on; a request to stop.
fn with_tuned_damping(
    plan: ChainPlan,
    model: &Arc<Model<f32>>,
    bench: &Bench<'_>,
) -> Result<ChainPlan, Failure> {
    let mut best = (f64::NEG_INFINITY, plan.clone());
    for damping in DAMPINGS {
        let mut own = plan.clone();
        own.settings.damping = Some(damping);
        let mut pilot = own.clone();
        pilot.schedule.draws = (plan.schedule.draws / 20).max(20);
        let sampled = pilot.sample(model, bench)?;
        let effective = sampled.ess_per_draw(&sampled.weights).mean;
        if effective > best.0 {
            best = (effective, own);
        }
    }
    Ok(best.1)
}

/// What is read off chains that ran, as columns: tuned settings, acceptance, R-hat, effective draws per draw of weights and
/// predictions with the least and the greatest of all directions.
fn onto(row: Row, plan: &ChainPlan, sampled: &Sampled) -> Row {
    let mut row = row
        .with("steps", plan.schedule.draws * plan.schedule.thin)
        .with("step size", sampled.step_size)
        .with("damping", plan.settings.damping.unwrap_or(f64::NAN))
        .with("acceptance", sampled.acceptance)
        .with("R-hat", sampled.rhat(&sampled.weights).mean);
    for (name, series) in [
        ("weights", &sampled.weights),
        ("predictions", &sampled.predictions),
    ] {
        let spread = sampled.ess_per_draw(series);
        let estimate = sampled.effective_draws(series);
        row = row
            .with_estimate(&format!("ess {name}"), &estimate)
            .with(&format!("least, {name}"), spread.min)
            .with(&format!("greatest, {name}"), spread.max);
    }
    row.with("floor", FLOOR / sampled.length() as f64)
        .with("steps per second", sampled.steps_per_second())
}
