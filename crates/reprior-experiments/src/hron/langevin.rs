//! Langevin steps as the paper tunes them, for the most effective draws of weights at a mean acceptance of more than 98 %; and what is
//! read off their chains.

use std::sync::Arc;

use reprior::chain::Schedule;
use reprior::model::Model;
use reprior::sampler::{Method, SamplerSettings};

use super::coordinates;
use crate::chains::ChainPlan;
use crate::sampled::{FLOOR, Sampled};
use crate::{Bench, Cell, Estimate, Failure, Row, Size};

/// Dampings that are tried.
const DAMPINGS: [f64; 4] = [0.003, 0.01, 0.03, 0.1];
/// Acceptance that step sizes are tuned for in warm-up.
const ACCEPTANCE: f64 = 0.98;
/// How far acceptance may be below what step sizes were tuned for: a chain that was still on its way when they were is another chain.
const SHORT_OF: f64 = 0.01;
/// Transitions of hmc-infinite before a pilot whose chains begin at the prior.
const PILOT_ARRIVAL: u64 = 60;

/// Langevin steps in the coordinates of a cell: step size tuned in warm-up for an acceptance of 0.98.
pub(super) fn langevin(cell: &Cell, schedule: Schedule) -> ChainPlan {
    let settings = SamplerSettings {
        method: Method::Langevin,
        target_acceptance: Some(ACCEPTANCE),
        arrival: Some(0),
        ..SamplerSettings::default()
    };
    ChainPlan::new(settings, coordinates(cell.text("coordinates")), schedule)
}

/// The plan with the damping of [`DAMPINGS`] whose chains, a tenth as long, have the most effective draws of weights, of those that are
/// accepted as they should be, and with the step size that they ended with: tuned where chains arrive, not on the way there. At quick size
/// the plan as it is.
///
/// # Errors
/// Chains that could not start or go on; a request to stop.
pub(super) fn with_tuned_damping(
    plan: ChainPlan,
    model: &Arc<Model<f32>>,
    bench: &Bench<'_>,
) -> Result<ChainPlan, Failure> {
    if bench.size == Size::Quick {
        return Ok(plan);
    }
    let mut best = ((false, f64::NEG_INFINITY), plan.clone());
    for damping in DAMPINGS {
        let mut own = plan.clone();
        own.settings.damping = Some(damping);
        let mut pilot = own.clone();
        pilot.schedule.draws = (plan.schedule.draws / 10).max(100);
        if pilot.settings.arrival == Some(0) {
            pilot.settings.arrival = Some(PILOT_ARRIVAL);
        }
        let sampled = pilot.sample(model, bench)?;
        let effective = sampled.ess_per_draw(&sampled.weights).mean;
        let key = (is_accepted(&plan, &sampled), effective);
        if key > best.0 {
            own.settings.step_size = Some(sampled.step_size);
            best = (key, own);
        }
    }
    Ok(best.1)
}

/// Whether acceptance is what step sizes were tuned for.
fn is_accepted(plan: &ChainPlan, sampled: &Sampled) -> bool {
    let wanted = plan.settings.target_acceptance.unwrap_or(ACCEPTANCE);
    sampled.acceptance >= wanted - SHORT_OF
}

/// An estimate of chains, in doubt where these are not accepted as they should be.
pub(super) fn of_accepted(estimate: Estimate, plan: &ChainPlan, sampled: &Sampled) -> Estimate {
    if is_accepted(plan, sampled) {
        return estimate;
    }
    estimate.doubted(format!(
        "acceptance is {:.3}, below what the step size was tuned for",
        sampled.acceptance
    ))
}

/// What is read off chains that ran, as columns: tuned settings, acceptance, R-hat, effective draws per draw of weights and
/// predictions with the least and the greatest of all directions. Those of chains that are not accepted as they should be are in doubt.
pub(super) fn onto(row: Row, plan: &ChainPlan, sampled: &Sampled) -> Row {
    let mut row = row
        .with("steps", plan.schedule.draws * plan.schedule.thin)
        .with("draws", sampled.length())
        .with("step size", sampled.step_size)
        .with("damping", plan.settings.damping.unwrap_or(f64::NAN))
        .with("acceptance", sampled.acceptance)
        .with("R-hat", sampled.rhat(&sampled.weights).mean);
    for (name, series) in [
        ("weights", &sampled.weights),
        ("predictions", &sampled.predictions),
    ] {
        let [mean, least] = [
            sampled.effective_draws(series),
            sampled.least_effective_draws(series),
        ]
        .map(|estimate| of_accepted(estimate, plan, sampled));
        row = row
            .with_estimate(&format!("ess {name}"), &mean)
            .with_estimate(&format!("least, {name}"), &least)
            .with(
                &format!("greatest, {name}"),
                sampled.ess_per_draw(series).max,
            );
    }
    row.with("floor", FLOOR / sampled.length() as f64)
        .with("steps per second", sampled.steps_per_second())
}
