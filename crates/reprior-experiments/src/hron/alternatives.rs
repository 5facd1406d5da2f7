//! Figure 10: repriorisation by the tangent kernel.

use std::sync::Arc;

use reprior::chain::Schedule;
use reprior::compute::{Purpose, Stream};
use reprior::model::{InputReduction, Model};
use reprior::network::{Activation, Composition};
use reprior::sampler::{Method, SamplerSettings};

use super::coordinates;
use crate::chains::ChainPlan;
use crate::data::NOISE;
use crate::findings::{every, listed, ratios, results};
use crate::{About, Bench, Cell, Experiment, Failure, Figure, Finding, Paper, Row, Size, Table};

/// Each width in each coordinates.
fn cells(widths: &[usize], coordinates: &[&str], steps: u64) -> Vec<Cell> {
    let widths = Cell::new().each("width", widths).into_iter();
    widths
        .flat_map(|cell| cell.each("coordinates", coordinates))
        .map(|cell| cell.with("steps", steps))
        .collect()
}

/// Figure 10.
pub(super) struct Tangent;

impl Experiment for Tangent {
    fn about(&self) -> About {
        About {
            name: "hron2022-fig10",
            paper: Paper::Hron,
            figure: "Figure 10",
            what: "repriorisation of the readout (NNGP) against that of all weights (NTK, determinant exact): pCN on a small regression, effective draws per step and per second",
            data: None,
            cost: ["15 s", "10 min", "3 h", "3 h"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let widths: &[usize] = size.pick(&[32], &[16, 32, 60], &[16, 32, 60], &[16, 32, 60]);
        let steps: u64 = size.pick(3000, 20_000, 200_000, 200_000);
        cells(widths, &["standard", "repriorised", "tangent"], steps)
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        // one input column: 3·width + 1 parameters, so that the determinant can be exact
        let rows = 8;
        let mut noise = vec![0.0; rows];
        Stream::new(1, 0, Purpose::Initial, 0).fill_normal(&mut noise);
        let x: Vec<f64> = (0..rows)
            .map(|i| -1.5 + 3.0 * i as f64 / (rows - 1) as f64)
            .collect();
        let y = x
            .iter()
            .zip(&noise)
            .map(|(x, e)| (2.0 * x).sin() + NOISE * e)
            .collect();
        let network = Composition::fully_connected(1, &[cell.count("width")], 1, Activation::Gelu);
        let test = [-1.0, 0.1, 0.9];
        let model = Model::<f64>::new(network, NOISE, &x, y, &test, InputReduction::Off);
        let model = Arc::new(model?);
        let steps = cell.long("steps");
        let settings = SamplerSettings {
            method: Method::Pcn,
            arrival: Some(0),
            ..SamplerSettings::default()
        };
        let schedule = Schedule {
            chains: 2,
            warmup: steps / 2,
            draws: steps / 5,
            thin: 5,
            seed: 8,
        };
        let plan = ChainPlan::new(settings, coordinates(cell.text("coordinates")), schedule);
        let sampled = plan.sample(&model, bench)?;
        let weights = sampled.ess_per_step(&sampled.weights);
        Ok(vec![
            cell.choices(&["coordinates", "width"])
                .with("step size", sampled.step_size)
                .with("acceptance", sampled.acceptance)
                .with("ess of weights per step", weights)
                .with(
                    "ess of predictions per step",
                    sampled.ess_per_step(&sampled.predictions),
                )
                .with(
                    "ess of weights per second",
                    weights * sampled.steps_per_second(),
                ),
        ])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let of = |name: &str, column: &str| table.numbers(column, &[("coordinates", name.into())]);
        let ratio =
            |over: &str, column: &str| ratios(&of("repriorised", column), &of(over, column));
        let seconds = ratio("tangent", "ess of weights per second");
        let steps = ratio("standard", "ess of weights per step");
        vec![
            Finding::unjudged(
                "repriorisation of the readout is preferable to that of all weights (whose exact determinant takes a dense matrix a step)",
                every(&seconds, |ratio| ratio > 1.0),
                format!(
                    "effective draws per second, NNGP over NTK: {}",
                    listed(&seconds)
                ),
            ),
            Finding::unjudged(
                "and better than none",
                every(&steps, |ratio| ratio > 1.0),
                format!(
                    "effective draws per step, repriorised over standard: {}",
                    listed(&steps)
                ),
            ),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "ess",
                "Effective draws of weights per second",
                "Higher is better.",
                ("width", "width"),
                ("ess of weights per second", "effective draws per second"),
                &["coordinates"],
            )
            .logarithmic(true, true),
        ]
    }
}
