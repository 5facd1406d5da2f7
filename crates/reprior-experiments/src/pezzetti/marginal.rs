//! Section 3: the marginal-conditional scheme, which the authors propose and never ran.
//!
//! pCN on the inner weights alone, the readout drawn afresh from its conditional at every step. The acceptance is that of joint
//! pCN, whose ratio does not depend on φ_out; but draws of the readout are as independent as the inner weights let them be.

use reprior::chain::Schedule;
use reprior::model::InputReduction;
use reprior::posterior::{Coordinates, Regulariser};

use super::{images, model, settings};
use crate::chains::{ChainPlan, sample};
use crate::experiment::results;
use crate::{About, Bench, Cell, Experiment, Failure, Figure, Finding, Paper, Row, Size, Table};

pub(super) struct Marginal;

impl Experiment for Marginal {
    fn about(&self) -> About {
        About {
            name: "pezzetti2024-section3",
            paper: Paper::Pezzetti,
            figure: "Section 3",
            what: "the marginal-conditional scheme (pCN on the inner weights, the readout drawn exactly) against joint pCN",
            data: Some("cifar10"),
            cost: ["10 s", "5 min", "2 h"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let widths: &[usize] = size.pick(&[256], &[128, 512, 1024], &[512, 1024, 2048, 4096]);
        let steps: u64 = size.pick(4000, 4000, 100_000);
        let cell = |&width: &usize| {
            ["joint", "marginal-conditional"].map(|scheme| {
                Cell::new()
                    .with("width", width)
                    .with("scheme", scheme)
                    .with("steps", steps)
            })
        };
        widths.iter().flat_map(cell).collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let beta = bench.size.pick(0.2, 0.1, 0.1);
        let images = images(bench)?;
        let model = model(&images, cell.count("width"), InputReduction::Auto)?;
        let mut settings = settings("pcn", beta);
        settings.arrival = Some(40);
        let plan = ChainPlan {
            settings,
            coordinates: match cell.text("scheme") {
                "joint" => Coordinates::Repriorised,
                _ => Coordinates::Marginal,
            },
            regulariser: Regulariser::Matched,
            schedule: Schedule {
                chains: 2,
                warmup: 80,
                draws: cell.count("steps") as u64 / 5,
                thin: 5,
                seed: 6,
            },
        };
        let sampled = sample(&model, &plan, bench)?;
        let per_step =
            |directions: &[Vec<f64>]| sampled.ess(directions).mean / sampled.transitions as f64;
        Ok(vec![
            Row::new()
                .with("scheme", cell.text("scheme"))
                .with("width", cell.count("width"))
                .with("beta", beta)
                .with("acceptance", sampled.acceptance)
                .with("readout ess per step", per_step(&sampled.readout))
                .with("weights ess per step", per_step(&sampled.weights))
                .with("predictions ess per step", per_step(&sampled.predictions))
                .with(
                    "steps per second",
                    sampled.transitions as f64 / sampled.seconds,
                ),
        ])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let of = |scheme: &str, column: &str| table.numbers(column, &[("scheme", scheme.into())]);
        let schemes = ["joint", "marginal-conditional"];
        let [joint, marginal] = schemes.map(|scheme| of(scheme, "acceptance"));
        let gap = joint
            .iter()
            .zip(&marginal)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f64::max);
        let [readout_joint, readout] = schemes.map(|scheme| of(scheme, "readout ess per step"));
        let gains: Vec<f64> = readout
            .iter()
            .zip(&readout_joint)
            .map(|(a, b)| a / b)
            .collect();
        vec![
            Finding::new(
                "both schemes accept alike",
                gap < 0.05,
                format!("largest difference of acceptance rates: {gap:.3}"),
            ),
            Finding::new(
                "drawing the readout afresh gives more effective draws of it",
                !gains.is_empty() && gains.iter().all(|&gain| gain > 1.5),
                format!(
                    "effective draws of the readout against joint pCN: {} times",
                    crate::experiment::listed(&gains)
                ),
            ),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![Figure {
            logarithmic: [true, true],
            ..Figure::lines(
                "readout-ess",
                "Effective draws of the readout per step",
                "Higher is better; both schemes sample the same posterior.",
                ("width", "width"),
                ("readout ess per step", "effective draws per step"),
                &["scheme"],
            )
        }]
    }
}
