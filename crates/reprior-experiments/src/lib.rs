//! The tables and figures of the papers, made again: what each measures, at three sizes, beside what is published.
//!
//! An [`Experiment`] is a list of [cells](Experiment::cells) - one network, one method, one step size - each measured by itself,
//! so that a long one goes on where it was stopped ([`perform`]), and [findings](Experiment::findings): the claims that the
//! paper's figure is there for, each with what was measured and whether it holds. [`Outcome`] writes tables as text, CSV and
//! JSON, and figures as SVG.
//!
//! One folder a paper: `hron` (2022), `pezzetti` (2024), `roy` (2024), `marceau` (2017).
//! `compare`, `tables` and `calibration` are of no paper: samplers beside one another, the default on people's tables, and on tables from the prior.
//! [`width`] has what changes with a network's width, [`toys`] the toys of Laplace approximations.
//!
//! What they share: `data` and `pictures` (images, as regressions and as classes), `chains` and `sampled` (chains and what is read
//! off them), `scores` (what draws predict for classes, and how well), `training` (networks trained to a mode), `trained` (Laplace approximations and diffusions around it), `effective` (comparisons of effective draws), `findings`
//! (claims and their words), `verdict` (what may be said of them), `ledger` (all of them in one table), [`Table`] and [`Figure`].

mod chains;
mod compare;
mod data;
mod directions;
mod effective;
mod estimate;
mod experiment;
mod figure;
mod findings;
mod hron;
mod judge;
mod ledger;
mod marceau;
mod outcome;
mod perform;
mod pezzetti;
mod pictures;
mod row;
mod roy;
mod sampled;
mod scores;
mod table;
mod tables;
pub mod toys;
mod trained;
mod training;
mod verdict;
pub mod width;

pub use data::{DataFolder, Images};
pub use estimate::Estimate;
pub use experiment::{About, Bench, Cell, Experiment, Failure, Paper, Size};
pub use figure::Figure;
pub use findings::Finding;
pub use judge::{Judged, judge, keep};
pub use ledger::ledger;
pub use outcome::Outcome;
pub use perform::{Event, perform};
pub use row::{Row, Value};
pub use table::Table;
pub use verdict::{Judgement, LEVEL, Verdict};

/// Every experiment, in the order of the papers.
pub fn experiments() -> Vec<&'static dyn Experiment> {
    let mut all = Vec::new();
    all.extend_from_slice(hron::EXPERIMENTS);
    all.extend_from_slice(pezzetti::EXPERIMENTS);
    all.extend_from_slice(roy::EXPERIMENTS);
    all.extend_from_slice(marceau::EXPERIMENTS);
    all.extend_from_slice(compare::EXPERIMENTS);
    all.extend_from_slice(tables::EXPERIMENTS);
    all
}

/// The experiment of that name.
pub fn find(name: &str) -> Option<&'static dyn Experiment> {
    experiments()
        .into_iter()
        .find(|experiment| experiment.about().name == name)
}
