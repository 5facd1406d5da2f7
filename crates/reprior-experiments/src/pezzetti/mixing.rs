//! What Figures 2 to 6 have in common: their cells and chains.

use std::sync::Arc;

use reprior::chain::Schedule;
use reprior::model::InputReduction;
use reprior::posterior::Coordinates;

use super::published::PublishedPotential;
use super::{PUBLISHED, images, methods, settings};
use crate::chains::ChainPlan;
use crate::sampled::Sampled;
use crate::{Bench, Cell, Failure};

/// Transitions between draws, as published.
pub(super) const THIN: u64 = 25;

/// A cell's choices that rows begin with.
pub(super) const CHOICES: &[&str] = &["method", "beta", "width"];

/// Chains of cells.
#[derive(Debug, Clone, Copy)]
pub(super) struct Length {
    /// Transitions that are not kept.
    pub warmup: u64,
    /// Transitions after them.
    pub steps: u64,
    /// Chains of each cell.
    pub chains: usize,
}

/// A cell of every width, β and method.
pub(super) fn cells(
    widths: &[usize],
    betas: &[f64],
    methods: &[&str],
    length: Length,
) -> Vec<Cell> {
    let cells = Cell::new().each("width", widths).into_iter();
    cells
        .flat_map(|cell| cell.each("beta", betas))
        .flat_map(|cell| cell.each("method", methods))
        .map(|cell| {
            cell.with("warm-up", length.warmup)
                .with("steps", length.steps)
                .with("chains", length.chains)
        })
        .collect()
}

/// Those of all methods, with the published pCNL where it is asked for.
pub(super) fn cells_of_all(
    widths: &[usize],
    betas: &[f64],
    as_published: bool,
    length: Length,
) -> Vec<Cell> {
    cells(widths, betas, &methods(as_published), length)
}

/// Runs a cell's chains: from a draw of the prior, or after `arrival` transitions of hmc-infinite. Below the full size they live on the
/// weights that the data touch.
pub(super) fn chains(cell: &Cell, bench: &Bench<'_>, arrival: u64) -> Result<Sampled, Failure> {
    let images = images(bench)?;
    let (hidden, test) = ([cell.count("width")], images.midpoints(20));
    let [auto, off] = [InputReduction::Auto, InputReduction::Off];
    let model = images.model::<f32>(&hidden, &test, bench.size.pick(auto, auto, auto, off))?;
    let mut settings = settings(cell.text("method"), cell.number("beta"));
    settings.arrival = Some(arrival);
    let schedule = Schedule {
        chains: cell.count("chains"),
        warmup: cell.long("warm-up"),
        draws: cell.long("steps") / THIN,
        thin: THIN,
        seed: 4,
    };
    let plan = ChainPlan::new(settings, Coordinates::Repriorised, schedule);
    if cell.text("method") == PUBLISHED {
        let potential = || Ok(PublishedPotential::new(Arc::clone(&model))?);
        return plan.sample_on(potential, &model, bench);
    }
    plan.sample(&model, bench)
}

/// Effective draws per draw of chains of pCN that accept everything, on functions that are linear in the position of a law N(0, I).
pub(super) fn accepted_walk(beta: f64) -> f64 {
    let memory = (1.0 - beta * beta).powf(THIN as f64 / 2.0);
    (1.0 - memory) / (1.0 + memory)
}
