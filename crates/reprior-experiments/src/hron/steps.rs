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

use super::langevin::{langevin, of_accepted, with_tuned_damping};
use super::{COORDINATES, convergence};
use crate::data::{NOISE, shape};
use crate::sampled::{FLOOR, Sampled};
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Images, Paper, Row, Size,
    Table,
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
            name: "hron2022-fig8-left",
            paper: Paper::Hron,
            figure: "Figures 8, left, and 9",
            what: "R̂² − 1 (their eq. 6, three chains from the prior) and effective draws against steps, a fully connected network of three hidden layers, many data; except at full size on the weights that the data touch; quick: 48 images, width 64; default: 512, width 128, 6,000 steps; long: 512 and 1,024, width 256, 30,000 steps; the paper: 1,024 to 40,960, width 1,024, 3 million steps",
            data: Some("cifar10"),
            cost: ["20 s", "45 min", "6 h", "years"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let (rows, width, steps): (&[usize], usize, u64) = size.pick(
            (&[48], 64, 6000),
            (&[512], 128, 6000),
            (&[512, 1024], 256, 30_000),
            (&[1024, 10_240, 40_960], 1024, 3_000_000),
        );
        cells(rows, width, steps)
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let images = bench.data.images("cifar10", cell.count("n"))?;
        let reduction = match bench.size {
            Size::Full => InputReduction::Off,
            _ => InputReduction::Auto,
        };
        let hidden = [cell.count("width"); 3];
        let model = images.model(&hidden, &images.midpoints(20), reduction)?;
        by_steps(cell, &model, Regulariser::Matched, bench)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        convergence::findings(tables, f64::INFINITY, true)
    }

    fn figures(&self) -> Vec<Figure> {
        convergence::figures(true)
    }
}

impl Experiment for Residual {
    fn about(&self) -> About {
        About {
            name: "hron2022-fig8-right",
            paper: Paper::Hron,
            figure: "Figure 8, right",
            what: "R̂² − 1 and effective draws against steps of a wide residual network without normalisation, λ = n·σ², except at full size of depth 8, with 8 channels, 64 images and 25,000 steps (default: 4, 32 and 3,000; quick: 4, 20 and 600); the paper: depth 20, 128 channels, 1,024 and 10,240 images, 3 million steps",
            data: Some("cifar10"),
            cost: ["30 s", "1 h", "6 h", "millennia"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let (rows, width, steps): (&[usize], usize, u64) = size.pick(
            (&[20], 4, 600),
            (&[32], 4, 3000),
            (&[64], 8, 25_000),
            (&[1024, 10_240], 128, 3_000_000),
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
        let model = residual(&images, bench.size.pick(8, 8, 8, 20), cell.count("width"))?;
        by_steps(cell, &model, LAMBDA, bench)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        convergence::findings(tables, 5000.0, false)
    }

    fn figures(&self) -> Vec<Figure> {
        convergence::figures(false)
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
pub(super) fn residual(
    images: &Images,
    depth: usize,
    width: usize,
) -> Result<Arc<Model<f32>>, Failure> {
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

/// Looks at chains, as many for each decade of steps.
const LOOKS: usize = 12;

/// Three chains from the prior, looked at again and again as they get longer.
fn by_steps(
    cell: &Cell,
    model: &Arc<Model<f32>>,
    regulariser: Regulariser,
    bench: &Bench<'_>,
) -> Result<Vec<Row>, Failure> {
    let steps = cell.long("steps");
    let thin = bench.size.pick(5, 25, 25, 100);
    let schedule = Schedule {
        chains: 3,
        warmup: bench.size.pick(steps / 5, steps / 5, 2000, 20_000),
        draws: steps / thin,
        thin,
        seed: 6,
    };
    let mut plan = langevin(cell, schedule);
    plan.posterior.regulariser = regulariser;
    let plan = with_tuned_damping(plan, model, bench)?;
    let sampled = plan.sample(model, bench)?;
    let length = sampled.length();
    let look = |index: usize| {
        // from a hundredth of the chain to all of it, evenly on a logarithmic axis
        let part = 100_f64.powf(index as f64 / LOOKS as f64 - 1.0);
        let end = ((part * length as f64) as usize).clamp(4, length);
        let mut row = cell
            .choices(&["coordinates"])
            .with("n", model.rows())
            .with("step", end as u64 * thin)
            .with("draws", end);
        for (name, series) in [
            ("predictions", &sampled.predictions),
            ("weights", &sampled.weights),
        ] {
            let so_far = sampled.first(series, end);
            let rhat = so_far.rhat_squared(&so_far.weights, end);
            let [mean, least] = [
                so_far.effective_draws(&so_far.weights),
                so_far.least_effective_draws(&so_far.weights),
            ]
            .map(|estimate| of_accepted(estimate, &plan, &sampled));
            row = row
                .with_estimate(&format!("ess {name}"), &mean)
                .with_estimate(&format!("least, {name}"), &least)
                .with(
                    &format!("greatest, {name}"),
                    so_far.ess_per_draw(&so_far.weights).max,
                )
                .with_estimate(&format!("R̂² − 1, {name}"), &excess(&so_far))
                .with(&format!("largest R̂² − 1, {name}"), rhat.max - 1.0);
        }
        row.with("floor", FLOOR / end as f64)
            .with("step size", sampled.step_size)
            .with("damping", plan.settings.damping.unwrap_or(f64::NAN))
            .with("acceptance", sampled.acceptance)
    };
    Ok((0..=LOOKS).map(look).collect())
}

/// The mean of R̂² − 1 over directions, with the error that it has from one set of chains to another, by the jackknife over chains.
fn excess(sampled: &Sampled) -> Estimate {
    let of = |sampled: &Sampled| {
        let rhat = sampled.rhat_squared(&sampled.weights, sampled.length());
        // E of the variance of M means, divided by M, is (M − 1)/M of theirs
        let chains = sampled.chains as f64;
        (rhat.mean - 1.0) * chains / (chains - 1.0)
    };
    let count = sampled.chains;
    let without: Vec<f64> = (0..count)
        .map(|chain| of(&sampled.without(chain)))
        .collect();
    let mean = without.iter().sum::<f64>() / count as f64;
    let squares: f64 = without.iter().map(|x| (x - mean).powi(2)).sum();
    let degrees = count as f64 - 1.0;
    let unbiased = Estimate {
        degrees,
        ..Estimate::new(of(sampled), (squares * degrees / count as f64).sqrt())
    };
    unbiased.times(degrees / count as f64)
}
