//! Figures 4 to 6: traces of the first two principal components.

use super::METHODS;
use super::mixing::{CHOICES, THIN, cells, chains};
use crate::findings::{ends, listed, results};
use crate::sampled::principal_components;
use crate::{About, Bench, Cell, Experiment, Failure, Figure, Finding, Paper, Row, Size, Table};

/// Figures 4 to 6.
pub(super) struct Traces;

impl Experiment for Traces {
    fn about(&self) -> About {
        About {
            name: "pezzetti2024-fig4",
            paper: Paper::Pezzetti,
            figure: "Figures 4-6",
            what: "traces of the first two principal components of the weights' projections, three chains of each method at β = 0.1 (quick: 0.2)",
            data: Some("cifar10"),
            cost: ["10 s", "15 min", "5 h", "5 h"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        match size {
            Size::Quick => cells(&[64, 256], &[0.2], [0, 4000]),
            Size::Default => cells(&[128, 512], &[0.1], [0, 5000]),
            Size::Long | Size::Full => cells(&[512, 4096], &[0.1], [0, 20_000]),
        }
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let sampled = chains(cell, bench, 3, 0)?;
        let (length, mut rows) = (sampled.length(), Vec::new());
        let components = principal_components(&sampled.weights, 2);
        // how far chains are apart, and how much each moves, in the second half
        let [first, second] = [0, 1].map(|index| {
            sampled
                .over(&components[index..=index], length / 2..length, |draws| {
                    draws.potential_scale_reduction()
                })
                .mean
        });
        rows.push(
            cell.choices(CHOICES)
                .with("acceptance", sampled.acceptance)
                .with("R-hat of 1st", first)
                .with("R-hat of 2nd", second),
        );
        for chain in 0..sampled.chains {
            for draw in 0..length {
                let index = chain * length + draw;
                rows.push(
                    cell.choices(CHOICES)
                        .in_table("traces")
                        .with(
                            "panel",
                            format!("{} {}", cell.text("method"), cell.count("width")),
                        )
                        .with("chain", chain)
                        .with("step", (draw as u64 + 1) * THIN)
                        .with("1st component", components[0][index])
                        .with("2nd component", components[1][index]),
                );
            }
        }
        Ok(rows)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let rhat = |method: &str| table.numbers("R-hat of 1st", &[("method", method.into())]);
        let [pcn, pcnl, langevin] = METHODS.map(rhat);
        vec![Finding::unjudged(
            "chains of pCN share one range the sooner the wider the network",
            ends(&pcn, |first, last| last < 1.5 && last < first),
            format!(
                "R-hat of the first component by width: pcn {}; pcnl {}; langevin {}",
                listed(&pcn),
                listed(&pcnl),
                listed(&langevin)
            ),
        )]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![Figure::lines(
                "trace",
                "First principal component",
                "Chains that mix cross one another again and again; lines that keep apart have not found the posterior.",
                ("step", "step"),
                ("1st component", "first principal component"),
                &["chain"],
            ).of("traces").panels("panel")]
    }
}
