//! What Table 1 against the rank says: the claims of [`table1_rank`](super::table1_rank).

use super::methods::PUBLISHED;
use crate::{Estimate, Finding, Judgement, Table, Value};

/// The conventions of the equations.
pub const DERIVED: &str = "of the equations";
/// The α of training.
pub const TRAINED: &str = "training";
/// The α with which sampled Laplace predicts validation images best.
pub const TUNED: &str = "validation";

/// What both are called together.
pub fn conventions(convention: &str, choice: &str) -> String {
    format!("{convention}, α of {choice}")
}

/// The rows of one data set's curvature.
pub struct Fit<'a> {
    /// All rows.
    pub table: &'a Table,
    /// A data set.
    pub data: &'a Value,
    /// A number of rows.
    pub rows: &'a Value,
}

/// Numbers of eigenpairs with estimates.
type ByPairs = Vec<(f64, Estimate)>;

impl Fit<'_> {
    fn by_pairs(&self, method: &str, conventions: &str, column: &str) -> ByPairs {
        let wanted = [
            ("data", self.data.clone()),
            ("rows", self.rows.clone()),
            ("method", method.into()),
            ("conventions", conventions.into()),
        ];
        let rows = self.table.sorted("pairs", &wanted).into_iter();
        rows.map(|row| (row.number("pairs"), row.estimate(column)))
            .collect()
    }

    /// The claims.
    pub fn findings(&self) -> Vec<Finding> {
        let (data, rows) = (self.data, self.rows);
        let mut findings = Vec::new();
        let settings = [(DERIVED, TRAINED), (DERIVED, TUNED), (PUBLISHED, TUNED)];
        for (convention, choice) in settings {
            let conventions = conventions(convention, choice);
            let of = |method| self.by_pairs(method, &conventions, "nll");
            let [linearised, diffusion, sampled] = ["linearised", "diffusion", "sampled"].map(of);
            let begin = format!("{data}, {rows} rows, {conventions}:");
            for (pairs, own) in judged(&diffusion) {
                let linear = nearest(&linearised, pairs);
                findings.push(
                    Finding::new(
                        format!("{begin} along {pairs} eigenpairs the diffusion has a lower test NLL than linearised Laplace"),
                        &Judgement::below(&own, &linear),
                        format!("{own} against {linear}"),
                    )
                    .published("Table 1: it has, on every data set"),
                );
            }
            if diffusion.is_empty() {
                continue;
            }
            let below = several(&diffusion)
                .into_iter()
                .map(|(pairs, own)| Judgement::below(&own, &nearest(&sampled, pairs)));
            findings.push(
                Finding::new(
                    format!("{begin} the diffusion has a lower test NLL than sampled Laplace, whatever the number of eigenpairs"),
                    &Judgement::all(below),
                    format!("diffusion {}; sampled {}", words(&diffusion), words(&sampled)),
                )
                .published("Table 1: it has, on every data set"),
            );
        }
        let own = conventions(DERIVED, TRAINED);
        let accuracy = self.by_pairs("linearised", &own, "accuracy");
        findings.push(Finding::new(
            format!("{data}, {rows} rows, {own}: linearised Laplace is the more accurate the more eigenpairs"),
            &Judgement::rises(&values(&accuracy)),
            words(&accuracy),
        ));
        let nll = self.by_pairs("diffusion", &own, "nll");
        findings.push(Finding::new(
            format!("{data}, {rows} rows, {own}: the diffusion fits the worse the more eigenpairs it moves along"),
            &Judgement::rises(&values(&several(&nll))),
            words(&nll),
        ));
        findings
    }
}

/// What is not of one path.
fn several(all: &[(f64, Estimate)]) -> ByPairs {
    let known = all.iter().filter(|(_, estimate)| estimate.doubt.is_none());
    known.cloned().collect()
}

/// The fewest eigenpairs, the most of which there are several paths, and the most.
fn judged(all: &[(f64, Estimate)]) -> ByPairs {
    let several = several(all);
    let mut found: ByPairs = Vec::new();
    for one in [several.first(), several.last(), all.last()]
        .into_iter()
        .flatten()
    {
        if found.iter().all(|(pairs, _)| *pairs != one.0) {
            found.push(one.clone());
        }
    }
    found
}

/// The estimate at the number of eigenpairs that is nearest: all of them are a few less along a path.
fn nearest(all: &[(f64, Estimate)], pairs: f64) -> Estimate {
    let distance = |one: &(f64, Estimate)| (one.0 - pairs).abs();
    let found = all
        .iter()
        .min_by(|a, b| distance(a).total_cmp(&distance(b)));
    found.map_or_else(|| Estimate::exact(f64::NAN), |found| found.1.clone())
}

fn values(all: &[(f64, Estimate)]) -> Vec<Estimate> {
    all.iter().map(|(_, estimate)| estimate.clone()).collect()
}

fn words(all: &[(f64, Estimate)]) -> String {
    let each = all
        .iter()
        .map(|(pairs, value)| format!("{value} at {pairs}"));
    each.collect::<Vec<_>>().join(", ")
}
