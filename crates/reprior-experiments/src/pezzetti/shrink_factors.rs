//! Figure 3: R-hat against steps.

use super::METHODS;
use super::mixing::{CHOICES, THIN, cells, chains};
use crate::findings::{listed, results};
use crate::{About, Bench, Cell, Experiment, Failure, Figure, Finding, Paper, Row, Size, Table};

/// Figure 3.
pub(super) struct ShrinkFactors;

impl Experiment for ShrinkFactors {
    fn about(&self) -> About {
        About {
            name: "pezzetti2024-fig3",
            paper: Paper::Pezzetti,
            figure: "Figure 3",
            what: "R-hat of predictions (potential scale reduction of 3 chains from the prior, no warm-up) against steps at β = 0.1",
            data: Some("cifar10"),
            cost: ["15 s", "25 min", "5 h", "5 h"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        match size {
            Size::Quick => cells(&[32, 256], &[0.1], [0, 2500]),
            Size::Default => cells(&[128, 512], &[0.1], [0, 8000]),
            Size::Long | Size::Full => cells(&[512, 1024, 2096, 4192], &[0.1], [0, 20_000]),
        }
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let sampled = chains(cell, bench, 3, 0)?;
        let length = sampled.length();
        let parts = 8;
        let row = |part: usize| {
            let end = length * part / parts;
            // the second half of what was drawn: the first holds the way from the prior
            let rhat = sampled.over(&sampled.predictions, end / 2..end, |draws| {
                draws.potential_scale_reduction()
            });
            cell.choices(CHOICES)
                .with("steps", end as u64 * THIN)
                .with("R-hat", rhat.mean)
                .with("largest", rhat.max)
        };
        Ok((1..=parts).map(row).collect())
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let last = |method: &str, width: &crate::Value| {
            table.last(
                "R-hat",
                &[("method", method.into()), ("width", width.clone())],
            )
        };
        let widths = table.distinct("width");
        let (Some(narrow), Some(wide)) = (widths.first(), widths.last()) else {
            return Vec::new();
        };
        let [pcn, pcnl, langevin] =
            METHODS.map(|method| [last(method, narrow), last(method, wide)]);
        vec![
            Finding::unjudged(
                "pCN's chains agree better the wider the network",
                pcn[1] < pcn[0],
                format!("last R-hat at widths {narrow} and {wide}: {}", listed(&pcn)),
            ),
            Finding::unjudged(
                "chains of pCN and pCNL agree at the largest width (R-hat below 1.2)",
                pcn[1] < 1.2 && pcnl[1] < 1.2,
                format!(
                    "pcn {:.3}, pcnl {:.3}, langevin {:.3}",
                    pcn[1], pcnl[1], langevin[1]
                ),
            ),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "rhat",
                "R-hat against steps",
                "1 means that chains cannot be told apart; below 1.2 was the paper's bar.",
                ("steps", "steps of each chain"),
                ("R-hat", "R-hat, mean over predictions"),
                &["method"],
            )
            .panels("width"),
        ]
    }
}
