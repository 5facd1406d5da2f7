//! Figures 8 and 9: effective draws and R̂² against the number of steps, fully connected and residual networks.
//!
//! The residual network is Section 4.2.2's: blocks scaled as by Shao et al. (2020) with c = 1, σ_w² = 2.2 and σ_b = 0 below
//! the readout, and repriorised with λ = n·σ², where the fully connected one has λ = σ².

use std::sync::Arc;

use reprior::chain::Schedule;
use reprior::model::{InputReduction, Model};
use reprior::network::named::{NamedNetwork, Scaling};
use reprior::network::{Activation, LayerScale};
use reprior::posterior::Regulariser;

use super::{COORDINATES, langevin};
use crate::data::{NOISE, shape};
use crate::findings::{listed, results};
use crate::{
    About, Bench, Cell, Experiment, Failure, Figure, Finding, Images, Paper, Row, Size, Table,
    Value,
};

/// How the residual network's branches are scaled: c = 1.
const SCALING: Scaling = Scaling::ProgressiveOne;
/// λ of the residual network in repriorised coordinates: n·σ².
const LAMBDA: Regulariser = Regulariser::PerRow(1.0);

/// Figures 8, left, and 9.
pub(super) struct FullyConnected;
/// Figure 8, right.
pub(super) struct Residual;

impl Experiment for FullyConnected {
    fn about(&self) -> About {
        About {
            name: "hron2022-fig8",
            paper: Paper::Hron,
            figure: "Figures 8, left, and 9",
            what: "R̂² − 1 (their eq. 6, three chains from the prior) and effective draws against steps, a fully connected network of three hidden layers, many data",
            data: Some("cifar10"),
            cost: ["10 s", "25 min", "weeks", "weeks"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let (rows, width, steps): (&[usize], usize, u64) = size.pick(
            (&[48], 64, 3000),
            (&[1000], 128, 5000),
            (&[1000, 10_000, 40_000], 1024, 300_000),
            (&[1000, 10_000, 40_000], 1024, 300_000),
        );
        cells(rows, width, steps)
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let images = bench.data.images("cifar10", cell.count("n"))?;
        let reduction = bench.size.pick(
            InputReduction::Auto,
            InputReduction::Auto,
            InputReduction::Off,
            InputReduction::Off,
        );
        let hidden = [cell.count("width"); 3];
        let model = images.model(&hidden, &images.midpoints(20), reduction)?;
        by_steps(cell, &model, Regulariser::Matched, bench)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        findings(tables, f64::INFINITY)
    }

    fn figures(&self) -> Vec<Figure> {
        figures()
    }
}

impl Experiment for Residual {
    fn about(&self) -> About {
        About {
            name: "hron2022-fig9",
            paper: Paper::Hron,
            figure: "Figure 8, right",
            what: "R̂² − 1 and effective draws against steps of a wide residual network without normalisation, λ = n·σ² (quick and default: depth 8; full: depth 20)",
            data: Some("cifar10"),
            cost: ["30 s", "25 min", "weeks", "weeks"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let (rows, width, steps): (&[usize], usize, u64) = size.pick(
            (&[20], 4, 600),
            (&[64], 8, 1500),
            (&[1000, 10_000], 128, 300_000),
            (&[1000, 10_000], 128, 300_000),
        );
        // what decides the law and its coordinates is part of the record
        let published = |cell: Cell| {
            cell.with("scaling", SCALING.to_string())
                .with("λ", LAMBDA.to_string())
        };
        let cells = cells(rows, width, steps);
        cells.into_iter().map(published).collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let images = bench.data.images("cifar10", cell.count("n"))?;
        let model = residual(&images, bench.size.pick(8, 8, 20, 20), cell.count("width"))?;
        by_steps(cell, &model, LAMBDA, bench)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        findings(tables, 1000.0)
    }

    fn figures(&self) -> Vec<Figure> {
        figures()
    }
}

fn cells(rows: &[usize], width: usize, steps: u64) -> Vec<Cell> {
    let cells = Cell::new().each("n", rows).into_iter();
    cells
        .flat_map(|cell| cell.with("width", width).each("coordinates", &COORDINATES))
        .map(|cell| cell.with("steps", steps))
        .collect()
}

/// σ_w² = 2.2, σ_b = 0 within, as published.
fn residual(images: &Images, depth: usize, width: usize) -> Result<Arc<Model<f32>>, Failure> {
    let named = NamedNetwork::Resnet {
        depth,
        width,
        scaling: SCALING,
    };
    let scale = LayerScale {
        weight: 2.2_f64.sqrt(),
        bias: 0.0,
    };
    let (shape, classes) = (shape(&images.train), images.classes());
    let network = named.network(shape, classes, Activation::Gelu, scale)?;
    let test = images.midpoints(10);
    let [x, test] = [&images.inputs, &test].map(|inputs| images.by_pixels(inputs));
    let y = images.targets.clone();
    let model = Model::new(network, NOISE, &x, y, &test, InputReduction::Auto);
    Ok(Arc::new(model?))
}

/// Three chains, looked at after each tenth of their steps.
fn by_steps(
    cell: &Cell,
    model: &Arc<Model<f32>>,
    regulariser: Regulariser,
    bench: &Bench<'_>,
) -> Result<Vec<Row>, Failure> {
    let steps = cell.long("steps");
    let thin = bench.size.pick(5, 25, 100, 100);
    let schedule = Schedule {
        chains: 3,
        warmup: bench.size.pick(steps / 5, steps / 5, 20_000, 20_000),
        draws: steps / thin,
        thin,
        seed: 6,
    };
    let mut plan = langevin(cell, schedule);
    plan.posterior.regulariser = regulariser;
    let sampled = plan.sample(model, bench)?;
    let length = sampled.length();
    let row = |tenth: usize| {
        let end = length * tenth / 10;
        let rhat = sampled.rhat_squared(&sampled.predictions, end);
        let weights = sampled.rhat_squared(&sampled.weights, end);
        let mut row = cell
            .choices(&["coordinates"])
            .with("n", model.rows())
            .with("step", end as u64 * thin)
            .with("R̂² − 1, predictions", rhat.mean - 1.0)
            .with("R̂² − 1, weights", weights.mean - 1.0);
        if tenth == 10 {
            row = row
                .with("ess weights", sampled.ess_per_draw(&sampled.weights).mean)
                .with(
                    "ess predictions",
                    sampled.ess_per_draw(&sampled.predictions).mean,
                )
                .with("step size", sampled.step_size)
                .with("acceptance", sampled.acceptance);
        }
        row
    };
    Ok((1..=10).map(row).collect())
}

fn findings(tables: &[Table], largest: f64) -> Vec<Finding> {
    let table = results(tables);
    let mut findings = Vec::new();
    for n in table.distinct("n") {
        // the paper has no gain of residual networks beyond some number of data
        if matches!(n, Value::Number(n) if n > largest) {
            continue;
        }
        let last = |name: &str, column: &str| {
            table.last(column, &[("coordinates", name.into()), ("n", n.clone())])
        };
        let rhat = COORDINATES.map(|name| last(name, "R̂² − 1, predictions"));
        let ess = COORDINATES.map(|name| last(name, "ess weights"));
        findings.push(Finding::unjudged(
            format!(
                "n = {n}: repriorised chains agree sooner: R̂² − 1 is lower after the same steps"
            ),
            rhat[1] < rhat[0],
            format!(
                "R̂² − 1 of predictions, standard and repriorised: {}",
                listed(&rhat)
            ),
        ));
        findings.push(Finding::unjudged(
            format!("n = {n}: and have more effective draws of weights"),
            ess[1] > ess[0],
            format!(
                "effective draws per draw, standard and repriorised: {}",
                listed(&ess)
            ),
        ));
    }
    findings
}

fn figures() -> Vec<Figure> {
    vec![
        Figure::lines(
            "rhat",
            "R̂² − 1 of predictions against steps",
            "Lower is better: at 0 chains cannot be told apart.",
            ("step", "steps of each chain"),
            ("R̂² − 1, predictions", "R̂² − 1, mean over predictions"),
            &["coordinates"],
        )
        .panels("n")
        .logarithmic(false, true),
    ]
}
