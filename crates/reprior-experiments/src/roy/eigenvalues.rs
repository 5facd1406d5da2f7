//! Roy, Miani et al. (2024), Figure 6: how fast the eigenvalues of the curvature of the small convolutional network fall.
//!
//! What the figure shows is known here from a summary of the paper only: the eigenvalues of such a network on MNIST, which fall fast.

use super::small::{Small, cells};
use crate::experiment::{listed, results};
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
            cost: ["5 seconds", "a minute", "5 minutes"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let first = |cell: &Cell| cell.number("seed") == 0.0;
        cells(size).into_iter().filter(first).collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let mut small = Small::new(cell, bench)?;
        let values = small.eigenvalues()?;
        let total: f64 = values.iter().sum();
        let count = values.len();
        let per_class = cell.count("per class");
        let share = |part: usize| values[..count / part].iter().sum::<f64>() / total;
        let mut rows = vec![
            Row::new()
                .with("per class", per_class)
                .with("weights", count)
                .with("largest", values.first().copied().unwrap_or(f64::NAN))
                .with(
                    "at a tenth",
                    values.get(count / 10).copied().unwrap_or(f64::NAN),
                )
                .with("median", values.get(count / 2).copied().unwrap_or(f64::NAN))
                .with("share of the first tenth", share(10)),
        ];
        // rounding is no eigenvalue
        let largest = values.first().copied().unwrap_or(0.0);
        for (index, &value) in values.iter().enumerate() {
            if value > 1e-12 * largest {
                let row = Row::of("eigenvalues").with("per class", per_class);
                rows.push(row.with("index", index + 1).with("eigenvalue", value));
            }
        }
        Ok(rows)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let shares = table.numbers("share of the first tenth", &[]);
        let pairs = table.rows.iter();
        let falls: Vec<f64> = pairs
            .map(|row| row.number("at a tenth") / row.number("largest"))
            .collect();
        vec![
            Finding::new(
                "few directions have most of the curvature: a tenth of the eigenvalues over three quarters of the trace",
                !shares.is_empty() && shares.iter().all(|&share| share > 0.75),
                listed(&shares),
            ),
            Finding::new(
                "they fall fast: after a tenth of them below a twentieth of the largest",
                !falls.is_empty() && falls.iter().all(|&part| part < 0.05),
                listed(&falls),
            ),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        let mut figure = Figure::lines(
            "eigenvalues",
            "Eigenvalues of the Gauss-Newton matrix",
            "The rest of them is rounding",
            ("index", "index"),
            ("eigenvalue", "eigenvalue"),
            &["per class"],
        );
        figure.table = "eigenvalues";
        figure.logarithmic = [false, true];
        vec![figure]
    }
}
