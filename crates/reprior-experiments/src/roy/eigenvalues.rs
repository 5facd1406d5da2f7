//! Roy, Miani et al. (2024), Figure 6: how fast the eigenvalues of the curvature of the small convolutional network fall.

use super::small::{Small, cells};
use crate::findings::{estimates, results};
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Judgement, Paper, Row,
    Size, Table, Value,
};

/// Figure 6.
pub struct Eigenvalues;

impl Experiment for Eigenvalues {
    fn about(&self) -> About {
        About {
            name: "roy2024-fig6",
            paper: Paper::Roy,
            figure: "Figure 6",
            what: "eigenvalues of the curvature of a small convolutional network, the largest first",
            data: Some("mnist"),
            cost: ["5 seconds", "a minute", "5 minutes", "5 minutes"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        cells(size)
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let mut small = Small::new(cell, bench)?;
        let values = small.network.eigenvalues()?;
        let total: f64 = values.iter().sum();
        let count = values.len();
        let largest = values[0];
        let share = |part: usize| values[..count / part].iter().sum::<f64>() / total;
        let mut rows = vec![
            cell.choices(&["per class", "seed"])
                .with("weights", count)
                .with("largest", largest)
                .with("at a tenth", values[count / 10])
                .with("median", values[count / 2])
                .with("share of the first tenth", share(10)),
        ];
        // rounding is no eigenvalue
        for (index, &value) in values.iter().enumerate() {
            if value > 1e-12 * largest && cell.count("seed") == 0 {
                let row = cell.choices(&["per class"]).in_table("eigenvalues");
                rows.push(row.with("index", index + 1).with("eigenvalue", value));
            }
        }
        Ok(rows)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let share =
            |number: Value| table.estimate("share of the first tenth", &[("per class", number)]);
        let shares: Vec<Estimate> = table.distinct("per class").into_iter().map(share).collect();
        let half = Estimate::exact(0.5);
        vec![
            Finding::new(
                "the spectrum is dominated by its leading eigenvalues: the first tenth has more than half of the trace",
                &Judgement::all(shares.iter().map(|share| Judgement::above(share, &half))),
                estimates(&shares),
            )
            .published("Figure 6"),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "eigenvalues",
                "Eigenvalues of the Gauss-Newton matrix",
                "The rest of them is rounding",
                ("index", "index"),
                ("eigenvalue", "eigenvalue"),
                &["per class"],
            )
            .of("eigenvalues")
            .logarithmic(false, true),
        ]
    }
}
