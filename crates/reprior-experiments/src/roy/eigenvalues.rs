//! Roy, Miani et al. (2024), Figure 6: how fast the eigenvalues of the curvature of the small convolutional network fall.
//!
//! What the figure shows is known here from a summary of the paper only: the eigenvalues of such a network on MNIST, which fall fast.

use super::small::{Small, cells};
use crate::findings::{every, listed, ratios, results};
use crate::{About, Bench, Cell, Experiment, Failure, Figure, Finding, Paper, Row, Size, Table};

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
        let first = |cell: &Cell| cell.number("seed") == 0.0;
        cells(size).into_iter().filter(first).collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let mut small = Small::new(cell, bench)?;
        let values = small.network.eigenvalues()?;
        let total: f64 = values.iter().sum();
        let count = values.len();
        let largest = values[0];
        let share = |part: usize| values[..count / part].iter().sum::<f64>() / total;
        let mut rows = vec![
            cell.choices(&["per class"])
                .with("weights", count)
                .with("largest", largest)
                .with("at a tenth", values[count / 10])
                .with("median", values[count / 2])
                .with("share of the first tenth", share(10)),
        ];
        // rounding is no eigenvalue
        for (index, &value) in values.iter().enumerate() {
            if value > 1e-12 * largest {
                let row = cell.choices(&["per class"]).in_table("eigenvalues");
                rows.push(row.with("index", index + 1).with("eigenvalue", value));
            }
        }
        Ok(rows)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let shares = table.numbers("share of the first tenth", &[]);
        let [tenth, largest] = ["at a tenth", "largest"].map(|name| table.numbers(name, &[]));
        let falls = ratios(&tenth, &largest);
        vec![
            Finding::unjudged(
                "few directions have most of the curvature: a tenth of the eigenvalues over three quarters of the trace",
                every(&shares, |share| share > 0.75),
                listed(&shares),
            ),
            Finding::unjudged(
                "they fall fast: after a tenth of them below a twentieth of the largest",
                every(&falls, |part| part < 0.05),
                listed(&falls),
            ),
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
