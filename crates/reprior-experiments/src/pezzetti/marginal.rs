//! Section 3: the marginal-conditional scheme, which the authors propose and never ran.
//!
//! pCN on the inner weights alone, the readout drawn afresh from its conditional at every step. The acceptance is that of joint
//! pCN, whose ratio does not depend on φ_out; but draws of the readout are as independent as the inner weights let them be.

use reprior::chain::Schedule;
use reprior::model::InputReduction;
use reprior::posterior::Coordinates;

use super::{images, settings};
use crate::chains::ChainPlan;
use crate::findings::{every, listed, ratios, results};
use crate::{About, Bench, Cell, Experiment, Failure, Figure, Finding, Paper, Row, Size, Table};

pub(super) struct Marginal;

const SCHEMES: [&str; 2] = ["joint", "marginal-conditional"];

impl Experiment for Marginal {
    fn about(&self) -> About {
        About {
            name: "pezzetti2024-section3",
            paper: Paper::Pezzetti,
            figure: "Section 3",
            what: "the marginal-conditional scheme (pCN on the inner weights, the readout drawn exactly) against joint pCN",
            data: Some("cifar10"),
            cost: ["10 s", "5 min", "2 h", "2 h"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let widths: &[usize] = size.pick(
            &[256],
            &[128, 512, 1024],
            &[512, 1024, 2048, 4096],
            &[512, 1024, 2048, 4096],
        );
        let steps: u64 = size.pick(4000, 4000, 100_000, 100_000);
        let cells = Cell::new().each("width", widths).into_iter();
        cells
            .flat_map(|cell| cell.each("scheme", &SCHEMES))
            .map(|cell| cell.with("steps", steps))
            .collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let beta = bench.size.pick(0.2, 0.1, 0.1, 0.1);
        let images = images(bench)?;
        let (hidden, test) = ([cell.count("width")], images.midpoints(20));
        let model = images.model::<f32>(&hidden, &test, InputReduction::Auto)?;
        let mut settings = settings("pcn", beta);
        settings.arrival = Some(40);
        let coordinates = match cell.text("scheme") {
            "joint" => Coordinates::Repriorised,
            _ => Coordinates::Marginal,
        };
        let schedule = Schedule {
            chains: 2,
            warmup: 80,
            draws: cell.long("steps") / 5,
            thin: 5,
            seed: 6,
        };
        let plan = ChainPlan::new(settings, coordinates, schedule);
        let sampled = plan.sample(&model, bench)?;
        let per_step = |directions| sampled.ess_per_step(directions);
        Ok(vec![
            cell.choices(&["scheme", "width"])
                .with("beta", beta)
                .with("acceptance", sampled.acceptance)
                .with("readout ess per step", per_step(&sampled.readout))
                .with("weights ess per step", per_step(&sampled.weights))
                .with("predictions ess per step", per_step(&sampled.predictions))
                .with("steps per second", sampled.steps_per_second()),
        ])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let of = |scheme: &str, column: &str| table.numbers(column, &[("scheme", scheme.into())]);
        let [joint, marginal] = SCHEMES.map(|scheme| of(scheme, "acceptance"));
        let pairs = joint.iter().zip(&marginal);
        let gap = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        let [joint, marginal] = SCHEMES.map(|scheme| of(scheme, "readout ess per step"));
        let gains = ratios(&marginal, &joint);
        vec![
            Finding::unjudged(
                "both schemes accept alike",
                gap < 0.05,
                format!("largest difference of acceptance rates: {gap:.3}"),
            ),
            Finding::unjudged(
                "drawing the readout afresh gives more effective draws of it",
                every(&gains, |gain| gain > 1.5),
                format!(
                    "effective draws of the readout against joint pCN: {} times",
                    listed(&gains)
                ),
            ),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "readout-ess",
                "Effective draws of the readout per step",
                "Higher is better; both schemes sample the same posterior.",
                ("width", "width"),
                ("readout ess per step", "effective draws per step"),
                &["scheme"],
            )
            .logarithmic(true, true),
        ]
    }
}
