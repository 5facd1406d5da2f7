//! Figure 3: R-hat against steps.
//!
//! Of three chains in the paper, of six here but at the full size: the error of R-hat is the jackknife's over chains. Chains start at
//! draws of the prior and nothing of them is left out. Which components the paper's is of is not said: here there are weights and predictions.

use super::mixing::{CHOICES, Length, THIN, cells_of_all, chains};
use super::{METHODS, PUBLISHED};
use crate::findings::{estimates, results};
use crate::sampled::MOST_RHAT;
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Judgement, Paper, Row,
    Size, Table,
};

/// Figure 3.
pub(super) struct ShrinkFactors;

/// Steps of the paper's chains.
const PUBLISHED_STEPS: f64 = 20_000.0;
/// What is watched: columns are `R-hat of weights`, `spread of weights` and so on.
const WATCHED: [&str; 2] = ["weights", "predictions"];

impl Experiment for ShrinkFactors {
    fn about(&self) -> About {
        About {
            name: "pezzetti2024-fig3",
            paper: Paper::Pezzetti,
            figure: "Figure 3",
            what: "R-hat (potential scale reduction) of weights and predictions, mean and standard deviation over directions, of chains from the prior against steps at β = 0.1, n = 256; six chains for the paper's three, below the full size on the weights that the data touch; default: 8,000 steps at widths 512 and 1,024, quick: β = 0.2, 2,500 steps at widths 32 and 256",
            data: Some("cifar10"),
            cost: ["15 s", "20 min", "4 h", "2 weeks"],
        }
    }

    fn cells(&self, size: Size, as_published: bool) -> Vec<Cell> {
        let widths: &[usize] = size.pick(
            &[32, 256],
            &[512, 1024],
            &[512, 1024, 2096, 4192],
            &[512, 1024, 2096, 4192],
        );
        let length = Length {
            warmup: 0,
            steps: size.pick(2500, 8000, 20_000, 20_000),
            chains: size.pick(6, 6, 6, 3),
        };
        cells_of_all(
            widths,
            &[size.pick(0.2, 0.1, 0.1, 0.1)],
            as_published,
            length,
        )
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let sampled = chains(cell, bench, 0)?;
        let (length, parts) = (sampled.length(), 4);
        let row = |part: usize| {
            let end = length * part / parts;
            let mut row = cell.choices(CHOICES).with("steps", end as u64 * THIN);
            for (name, directions) in WATCHED
                .into_iter()
                .zip([&sampled.weights, &sampled.predictions])
            {
                let [mean, spread] = sampled.scale_reduction(directions, 0..end);
                let [low, high] = [-1.0, 1.0].map(|side| mean.value + side * spread.value);
                row = row
                    .with_estimate(&format!("R-hat of {name}"), &mean)
                    .with_estimate(&format!("spread of {name}"), &spread)
                    .with(&format!("low {name}"), low)
                    .with(&format!("high {name}"), high);
            }
            row.with("bar", MOST_RHAT)
        };
        Ok((1..=parts).map(row).collect())
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        WATCHED
            .into_iter()
            .flat_map(|what| of(results(tables), what))
            .collect()
    }

    fn figures(&self) -> Vec<Figure> {
        let figure = |name, title, column: (&'static str, &'static str)| {
            Figure::lines(
                name,
                title,
                "1 means that chains cannot be told apart. Bands are one standard deviation over directions to either side.",
                ("steps", "steps of each chain"),
                column,
                &["method"],
            )
            .limits(&[("bar", "1.2, the usual bar")])
            .panels("width")
        };
        vec![
            figure(
                "rhat-weights",
                "R-hat of weights",
                ("R-hat of weights", "R-hat, mean over directions"),
            )
            .band("low weights", "high weights"),
            figure(
                "rhat-predictions",
                "R-hat of predictions",
                ("R-hat of predictions", "R-hat, mean over directions"),
            )
            .band("low predictions", "high predictions"),
        ]
    }
}

/// A method's at the last number of steps, by width.
fn last(table: &Table, method: &str, column: &str) -> Vec<Estimate> {
    let rows = table.sorted("width", &[("method", method.into())]);
    let ends = rows.iter().enumerate().filter(|(index, row)| {
        let next = rows.get(index + 1);
        next.is_none_or(|next| next.get("width") != row.get("width"))
    });
    ends.map(|(_, row)| row.estimate(column)).collect()
}

/// The claims of weights or of predictions.
fn of(table: &Table, what: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mean = |method: &str| last(table, method, &format!("R-hat of {what}"));
    let spread = |method: &str| last(table, method, &format!("spread of {what}"));
    let [pcn, pcnl, langevin] = METHODS.map(mean);
    let [pcn_spread, langevin_spread] = ["pcn", "langevin"].map(spread);
    let said = |values: &[Estimate]| format!("by width: {}", estimates(values));
    findings.push(
        Finding::new(
            format!("pCN's R-hat of {what} falls with width"),
            &Judgement::falls(&pcn),
            said(&pcn),
        )
        .published("closer to 1 and less variable the wider the network (Appendix B.1)"),
    );
    findings.push(
        Finding::new(
            format!("Langevin's R-hat of {what} grows with width"),
            &Judgement::rises(&langevin),
            said(&langevin),
        )
        .published("mean and standard deviation grow with width (Appendix B.1)"),
    );
    findings.push(
        Finding::new(
            format!("the standard deviation of pCN's R-hat over {what} falls with width"),
            &Judgement::falls(&pcn_spread),
            said(&pcn_spread),
        )
        .published("less variable the wider the network (Appendix B.1)"),
    );
    findings.push(
        Finding::new(
            format!("the standard deviation of Langevin's R-hat over {what} grows with width"),
            &Judgement::rises(&langevin_spread),
            said(&langevin_spread),
        )
        .published("it does (Appendix B.1)"),
    );
    let bar = Estimate::exact(MOST_RHAT);
    let below = |values: &[Estimate]| {
        let judged = values.iter().map(|value| Judgement::below(value, &bar));
        Judgement::all(judged.collect::<Vec<_>>())
    };
    let published = mean(PUBLISHED);
    for (name, rhat) in [("pCNL", &pcnl), (PUBLISHED, &published)] {
        if rhat.is_empty() {
            continue;
        }
        findings.push(
            Finding::new(
                format!("{name}: R-hat of {what} is below 1.2 at every width"),
                &below(rhat),
                said(rhat),
            )
            .published("always close to 1 (Appendix B.1)"),
        );
    }
    let steps = table.numbers("steps", &[]).into_iter().fold(0.0, f64::max);
    let bar = match steps < PUBLISHED_STEPS {
        // the end of shorter chains is not the end that is meant
        true => bar.doubted(format!("chains have {steps} of {PUBLISHED_STEPS} steps")),
        false => bar,
    };
    let below = |values: &[Estimate]| {
        let judged = values.iter().map(|value| Judgement::below(value, &bar));
        Judgement::all(judged.collect::<Vec<_>>())
    };
    findings.push(
        Finding::new(
            format!("in the end R-hat of {what} is below 1.2 for every method and width"),
            &below(&[pcn.clone(), pcnl.clone(), langevin.clone()].concat()),
            format!(
                "pCN {}; pCNL {}; Langevin {}",
                estimates(&pcn),
                estimates(&pcnl),
                estimates(&langevin)
            ),
        )
        .published("after 20,000 steps all are (Figure 3, caption)"),
    );
    findings
}
