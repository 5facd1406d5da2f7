//! Figure 2: effective draws against width, with the limit of an accepted pCN walk.
//!
//! Below the full size chains live on the weights that the data touch: the laws of pCN and pCNL on these are the same as on all, as both leave
//! what the data do not touch to the prior; Langevin steps are accepted more often than on all weights, whose number is 3,073 a unit and not 257.

use super::mixing::{CHOICES, Length, accepted_walk, cells_of_all, chains};
use super::{METHODS, PUBLISHED};
use crate::effective::Effective;
use crate::findings::results;
use crate::sampled::Sampled;
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Judgement, Paper, Row,
    Size, Table, Value,
};

/// Figure 2.
pub(super) struct EffectiveDraws;

pub(super) const WEIGHTS: &str = "ess weights";
pub(super) const PREDICTIONS: &str = "ess predictions";

impl Experiment for EffectiveDraws {
    fn about(&self) -> About {
        About {
            name: "pezzetti2024-fig2",
            paper: Paper::Pezzetti,
            figure: "Figure 2",
            what: "effective draws per thinned draw (every 25th step) of weights and predictions against width, n = 256; below the full size of the weights that the data touch, by two chains that start where hmc-infinite arrived, with 400 draws (quick), 320 (default), 800 (long) where the paper has 40,000 of one chain, and at β = 0.2 only (default: widths to 2,048; long: to 4,096)",
            data: Some("cifar10"),
            cost: ["20 s", "25 min", "75 min", "months"],
        }
    }

    fn cells(&self, size: Size, as_published: bool) -> Vec<Cell> {
        let widths: &[usize] = size.pick(
            &[64, 256],
            &[512, 1024, 2048],
            &[512, 1024, 2048, 4096],
            &[128, 256, 512, 1024, 2048, 4096, 8192],
        );
        let betas: &[f64] = size.pick(&[0.2], &[0.2], &[0.2], &[0.2, 0.1, 0.01]);
        let million = [20_000, 1_000_000];
        let [warmup, steps] = size.pick([200, 10_000], [500, 8000], [2000, 20_000], million);
        let length = Length {
            warmup,
            steps,
            chains: size.pick(2, 2, 2, 1),
        };
        // β by β, so that one is whole before the next begins
        let of_beta = |&beta: &f64| cells_of_all(widths, &[beta], as_published, length);
        betas.iter().flat_map(of_beta).collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let sampled = chains(cell, bench, bench.size.pick(40, 20, 20, 0))?;
        let row = of_draws(cell, &sampled, sampled.length());
        Ok(vec![match cell.text("method") {
            "pcn" => row.with("accepted walk", accepted_walk(cell.number("beta"))),
            _ => row,
        }])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let betas = table.distinct("beta").into_iter();
        let numbers = betas.filter_map(|beta| match beta {
            Value::Number(beta) => Some(beta),
            _ => None,
        });
        let mut findings: Vec<Finding> = numbers
            .filter(|beta| *beta > 0.05)
            .flat_map(|beta| of_beta(table, beta))
            .collect();
        findings.push(smallest(table));
        findings
    }

    fn figures(&self) -> Vec<Figure> {
        let guide = "Higher is better; 1 is an independent draw every 25 steps. Lines are means over directions, bands go from least to greatest.";
        let both = against(("width", "width"), guide).into_iter();
        both.map(|figure| figure.panels("beta")).collect()
    }
}

/// Effective draws of weights and of predictions against a column of the results, with its label.
pub(super) fn against(x: (&'static str, &'static str), guide: &'static str) -> [Figure; 2] {
    let figure = |name, column: (&'static str, &'static str), title| {
        Figure::lines(name, title, guide, x, column, &["method"])
            .limits(&[("accepted walk", "a pCN walk that is always accepted")])
            .logarithmic(true, true)
    };
    [
        figure(
            "ess-weights",
            (WEIGHTS, "effective draws per draw"),
            "Effective draws of weights",
        )
        .band("least weights", "greatest weights"),
        figure(
            "ess-predictions",
            (PREDICTIONS, "effective draws per draw"),
            "Effective draws of predictions",
        )
        .band("least predictions", "greatest predictions"),
    ]
}

/// Effective draws of the first `length` draws of each of a cell's chains.
pub(super) fn of_draws(cell: &Cell, sampled: &Sampled, length: usize) -> Row {
    let [weights, predictions] = [&sampled.weights, &sampled.predictions]
        .map(|directions| sampled.first(directions, length));
    let mut row = cell
        .choices(CHOICES)
        .with("draws", length)
        .with("acceptance", sampled.acceptance)
        .with("R-hat", weights.rhat(&weights.weights).mean);
    for (what, first) in [("weights", &weights), ("predictions", &predictions)] {
        let directions = &first.weights;
        let spread = first.ess_per_draw(directions);
        row = row
            .with_estimate(&format!("ess {what}"), &first.effective_draws(directions))
            .with(&format!("least {what}"), spread.min)
            .with(&format!("greatest {what}"), spread.max);
    }
    row
}

/// A method's at one β.
fn by_width(table: &Table, column: &str, method: &str, beta: f64) -> Vec<Effective> {
    let wanted = [("method", method.into()), ("beta", beta.into())];
    Effective::by_width(table, column, &wanted)
}

/// The claims at a β of which the paper has meaningful results.
fn of_beta(table: &Table, beta: f64) -> Vec<Finding> {
    let of = |method: &str, column: &str| by_width(table, column, method, beta);
    let words = Effective::listed;
    let mut findings = Vec::new();
    for method in ["pcn", "pcnl"] {
        for column in [WEIGHTS, PREDICTIONS] {
            let values = of(method, column);
            let what = column.trim_start_matches("ess ");
            findings.push(
                Finding::new(
                    format!("β = {beta}: {method}'s effective draws of {what} grow with width"),
                    &Effective::grow(&values),
                    words(&values),
                )
                .published("they do for pCN and pCNL (Figure 2, in both versions of the paper)"),
            );
        }
    }
    let [pcn, pcnl, langevin] = METHODS.map(|method| of(method, WEIGHTS));
    let limit = accepted_walk(beta);
    findings.push(Finding::new(
        format!("β = {beta}: at every width pCN's effective draws of weights are below those of a walk that is always accepted, (1 − r)/(1 + r) with r = (1 − β²)^12.5"),
        &Judgement::all(pcn.iter().map(|value| value.below(limit))),
        format!("{}; limit {}", words(&pcn), Value::from(limit)),
    ));
    findings.push(
        Finding::new(
            format!("β = {beta}: Langevin's effective draws of weights fall with width"),
            &Effective::fall(&langevin),
            words(&langevin),
        )
        .published("very low at β = 0.2, and falling quickly at 0.1 (Section 4.3)"),
    );
    for (name, values) in [("pCN", &pcn), ("pCNL", &pcnl)] {
        if let (Some(own), Some(other)) = (values.last(), langevin.last()) {
            findings.push(
                Finding::new(
                    format!("β = {beta}: at the largest width {name} has more effective draws of weights than Langevin steps"),
                    &own.above(other),
                    format!("{}; Langevin {}", words(std::slice::from_ref(own)), words(std::slice::from_ref(other))),
                )
                .published("more, above all on wide networks (Section 5)"),
            );
        }
    }
    for (name, other) in [("pCNL", pcnl), (PUBLISHED, of(PUBLISHED, WEIGHTS))] {
        findings.extend(gap(beta, &pcn, name, &other));
    }
    findings
}

/// What is said of pCN against pCNL: the gap reduces with width, and inverts.
fn gap(beta: f64, pcn: &[Effective], name: &str, other: &[Effective]) -> Vec<Finding> {
    let (Some(pcn_first), Some(pcn_last)) = (pcn.first(), pcn.last()) else {
        return Vec::new();
    };
    let (Some(first), Some(last)) = (other.first(), other.last()) else {
        return Vec::new();
    };
    let measured = format!(
        "pCN {}; {name} {}",
        Effective::listed(pcn),
        Effective::listed(other)
    );
    let published = "pCN seems to reach pCNL in the end (Section 4.3)";
    vec![
        Finding::new(
            format!("β = {beta}: {name} has fewer times as many effective draws of weights as pCN at the largest width than at the smallest"),
            &Effective::gap_falls([first, pcn_first], [last, pcn_last]),
            measured.clone(),
        )
        .published(published),
        Finding::new(
            format!("β = {beta}: at the largest width pCN has more effective draws of weights than {name}"),
            &pcn_last.above(last),
            measured,
        )
        .published(published),
    ]
}

/// β = 0.01, at which a draw of a walk that is always accepted is worth 0.0006 independent ones.
fn smallest(table: &Table) -> Finding {
    let (small, large) = (0.01, 0.1);
    let mut judged = Vec::new();
    let mut measured = Vec::new();
    for method in ["pcn", "pcnl"] {
        let [low, high] = [small, large].map(|beta| by_width(table, WEIGHTS, method, beta));
        judged.extend(high.iter().zip(&low).map(|(high, low)| high.above(low)));
        if !low.is_empty() {
            measured.push(format!("{method} {}", Effective::listed(&low)));
        }
    }
    if judged.is_empty() {
        let none = Estimate::exact(f64::NAN).doubted("β = 0.01 is not measured at this size");
        judged.push(Judgement::above(&none, &none));
        measured.push(format!(
            "not measured at this size: a walk that is always accepted has {}, and chains of N draws tell no less than 15/N",
            Value::from(accepted_walk(small))
        ));
    }
    Finding::new(
        "at β = 0.01 pCN and pCNL have fewer effective draws of weights than at 0.1, at every width",
        &Judgement::all(judged),
        measured.join("; "),
    )
    .published("extremely few (Section 4.3)")
}
