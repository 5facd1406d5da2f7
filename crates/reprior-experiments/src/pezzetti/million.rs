//! Figure 2, one cell at the paper's own length: a million steps of pCN at β = 0.2, of which every 25th is a draw.

use super::effective_draws::{PREDICTIONS, WEIGHTS, against, of_draws};
use super::mixing::{Length, accepted_walk, cells, chains};
use crate::effective::Effective;
use crate::findings::results;
use crate::{
    About, Bench, Cell, Experiment, Failure, Figure, Finding, Paper, Row, Size, Table, Value,
};

/// A chain of the published length.
pub(super) struct Million;

/// The least and the greatest over directions.
const EXTREMES: [&str; 2] = ["least", "greatest"];

impl Experiment for Million {
    fn about(&self) -> About {
        About {
            name: "pezzetti2024-million",
            paper: Paper::Pezzetti,
            figure: "Figure 2, a million steps",
            what: "effective draws per thinned draw (every 25th step) of weights and predictions, least and greatest over directions, read after more and more draws of one chain of a million pCN steps from the prior at β = 0.2, width 1,024, n = 256, on the weights that the data touch (quick: 40,000 steps at width 256)",
            data: Some("cifar10"),
            cost: ["10 s", "90 min", "90 min", "90 min"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let [warmup, steps] = size.pick(
            [1000, 40_000],
            [20_000, 1_000_000],
            [20_000, 1_000_000],
            [20_000, 1_000_000],
        );
        let length = Length {
            warmup,
            steps,
            chains: 1,
        };
        let width = size.pick(256, 1024, 1024, 1024);
        cells(&[width], &[0.2], &["pcn"], length)
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let sampled = chains(cell, bench, 0)?;
        let limit = accepted_walk(cell.number("beta"));
        let row = |length| of_draws(cell, &sampled, length).with("accepted walk", limit);
        Ok(lengths(sampled.length()).into_iter().map(row).collect())
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let of_row = |row: &Row| {
            let limit = row.number("accepted walk");
            let said = |column: &str| {
                let what = column.trim_start_matches("ess ");
                let [least, greatest] =
                    EXTREMES.map(|end| Value::from(row.number(&format!("{end} {what}"))));
                let all = Effective::listed(&[Effective::of(row, column)]);
                format!("{what} {all} ({least} to {greatest})")
            };
            Finding::new(
                "effective draws of weights are below those of a walk that is always accepted, (1 − r)/(1 + r) with r = (1 − β²)^12.5",
                &Effective::of(row, WEIGHTS).below(limit),
                format!(
                    "{}; {}; acceptance {:.3}; R-hat of halves {:.4}; limit {limit:.4}",
                    said(WEIGHTS),
                    said(PREDICTIONS),
                    row.number("acceptance"),
                    row.number("R-hat")
                ),
            )
        };
        // of the whole chain
        let longest = |row: &&Row| row.number("draws");
        let rows = results(tables).rows.iter();
        let whole = rows.max_by(|a, b| longest(a).total_cmp(&longest(b)));
        whole.map(of_row).into_iter().collect()
    }

    fn figures(&self) -> Vec<Figure> {
        let guide = "The same chain, read after more and more draws. The dashed line is a pCN walk that is always accepted. Lines are means over directions, bands go from least to greatest.";
        against(("draws", "draws of the chain, each after 25 steps"), guide).into()
    }
}

/// The whole of a chain, half of it, a quarter and so on, while a hundred draws are left.
fn lengths(all: usize) -> Vec<usize> {
    let halves = std::iter::successors(Some(all), |length| Some(length / 2));
    let mut lengths: Vec<usize> = halves.take_while(|&length| length >= 100).collect();
    lengths.reverse();
    lengths
}
