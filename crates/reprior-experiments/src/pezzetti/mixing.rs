//! What Figures 2 to 6 have in common: their cells and chains, and how effective draws are compared.

use std::sync::Arc;

use reprior::chain::Schedule;
use reprior::model::InputReduction;
use reprior::posterior::Coordinates;

use super::published::PublishedPotential;
use super::{PUBLISHED, images, methods, settings};
use crate::chains::ChainPlan;
use crate::sampled::Sampled;
use crate::{Bench, Cell, Estimate, Failure, Judgement, Row, Table, Verdict};

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
        return plan.sample_of(potential, &model, bench);
    }
    plan.sample(&model, bench)
}

/// Effective draws per draw of chains of pCN that accept everything, on functions that are linear in the position of a law N(0, I).
pub(super) fn accepted_walk(beta: f64) -> f64 {
    let memory = (1.0 - beta * beta).powf(THIN as f64 / 2.0);
    (1.0 - memory) / (1.0 + memory)
}

/// Effective draws that were measured, and what they are at most.
#[derive(Debug, Clone)]
pub(super) struct Effective {
    /// The estimate, in doubt where it is at the estimator's floor.
    pub estimate: Estimate,
    /// Without that doubt: the floor's upper end.
    most: Estimate,
    is_floor: bool,
}

impl Effective {
    /// Of `column` in a row that has the number of `draws` of each chain.
    fn of(row: &Row, column: &str) -> Self {
        let (estimate, length) = (row.estimate(column), row.count("draws"));
        Self {
            most: Sampled::at_most(&estimate, length),
            is_floor: Sampled::is_floor(estimate.value, length),
            estimate,
        }
    }

    /// A method's at one β, by width.
    pub fn by_width(table: &Table, column: &str, method: &str, beta: f64) -> Vec<Self> {
        let mut rows = table.select(&[("method", method.into()), ("beta", beta.into())]);
        rows.sort_by(|a, b| a.number("width").total_cmp(&b.number("width")));
        rows.into_iter().map(|row| Self::of(row, column)).collect()
    }

    /// `self` is above `other`, also where the latter is too little to be told from none; that is never told of the former.
    pub fn above(&self, other: &Self) -> Judgement {
        let judged = Judgement::above(&self.estimate, &other.most);
        match judged.verdict() {
            Verdict::Holds => judged,
            _ => Judgement::above(&self.estimate, &other.estimate),
        }
    }

    /// `self` is below a number.
    pub fn below(&self, limit: f64) -> Judgement {
        let limit = Estimate::exact(limit);
        let judged = Judgement::below(&self.most, &limit);
        match judged.verdict() {
            Verdict::Holds => judged,
            _ => Judgement::below(&self.estimate, &limit),
        }
    }

    /// How many times as large as `other` it is at the first of two widths, above the same at the last: `at_first` and `at_last` are
    /// pairs of both.
    pub fn gap_falls(at_first: [&Self; 2], at_last: [&Self; 2]) -> Judgement {
        let ln_ratio = |[a, b]: [&Estimate; 2]| a.ln().minus(&b.ln());
        let last = ln_ratio(at_last.map(|one| &one.estimate));
        let [first, floor] = [&at_first[1].estimate, &at_first[1].most]
            .map(|other| ln_ratio([&at_first[0].estimate, other]));
        let judged = Judgement::above(&floor, &last);
        match judged.verdict() {
            Verdict::Holds => judged,
            _ => Judgement::above(&first, &last),
        }
    }

    /// They grow: the last is above the first, and of those that can be told from none each is not below the one before.
    pub fn grow(values: &[Self]) -> Judgement {
        let (Some(first), Some(last)) = (values.first(), values.last()) else {
            return Judgement::all([]);
        };
        if values.len() < 2 {
            return Judgement::all([]);
        }
        let told: Vec<Estimate> = values
            .iter()
            .filter(|value| !value.is_floor)
            .map(|value| value.estimate.clone())
            .collect();
        let ends = last.above(first);
        match told.len() {
            0 | 1 => ends,
            _ => Judgement::all([ends, Judgement::rises(&told)]),
        }
    }

    /// They fall, in the same way.
    pub fn fall(values: &[Self]) -> Judgement {
        let reversed: Vec<Self> = values.iter().rev().cloned().collect();
        Self::grow(&reversed)
    }

    /// In words, those in doubt marked.
    pub fn listed(values: &[Self]) -> String {
        let word = |value: &Self| match value.estimate.doubt {
            Some(_) => format!("({})", value.estimate),
            None => value.estimate.to_string(),
        };
        values.iter().map(word).collect::<Vec<_>>().join(", ")
    }
}
