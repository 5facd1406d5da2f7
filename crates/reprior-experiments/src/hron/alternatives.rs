//! Figures 10 and 11: repriorisation by the tangent kernel, and a categorical likelihood.

use std::sync::Arc;

use reprior::chain::Schedule;
use reprior::compute::{Purpose, Stream};
use reprior::model::likelihood::Categorical as CategoricalLikelihood;
use reprior::model::{InputReduction, Model};
use reprior::network::{Activation, Composition};
use reprior::posterior::Regulariser;
use reprior::sampler::{Method, SamplerSettings};

use super::{COORDINATES, NOISE, coordinates, langevin};
use crate::chains::{ChainPlan, sample};
use crate::data::labels;
use crate::experiment::{listed, results};
use crate::{About, Bench, Cell, Experiment, Failure, Figure, Finding, Paper, Row, Size, Table};

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
            cost: ["15 s", "10 min", "3 h"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let widths: &[usize] = size.pick(&[32], &[16, 32, 60], &[16, 32, 60]);
        let steps: u64 = size.pick(3000, 20_000, 200_000);
        let cell = |&width: &usize| {
            ["standard", "repriorised", "tangent"].map(|name| {
                Cell::new()
                    .with("width", width)
                    .with("coordinates", name)
                    .with("steps", steps)
            })
        };
        widths.iter().flat_map(cell).collect()
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
        let model = Arc::new(model.map_err(Failure::failed)?);
        let steps = cell.count("steps") as u64;
        let plan = ChainPlan {
            settings: SamplerSettings {
                method: Method::Pcn,
                arrival: Some(0),
                ..SamplerSettings::default()
            },
            coordinates: coordinates(cell.text("coordinates")),
            regulariser: Regulariser::Matched,
            schedule: Schedule {
                chains: 2,
                warmup: steps / 2,
                draws: steps / 5,
                thin: 5,
                seed: 8,
            },
        };
        let sampled = sample(&model, &plan, bench)?;
        let per_step =
            |directions: &[Vec<f64>]| sampled.ess(directions).mean / sampled.transitions as f64;
        let weights = per_step(&sampled.weights);
        Ok(vec![
            Row::new()
                .with("coordinates", cell.text("coordinates"))
                .with("width", cell.count("width"))
                .with("step size", sampled.step_size)
                .with("acceptance", sampled.acceptance)
                .with("ess of weights per step", weights)
                .with(
                    "ess of predictions per step",
                    per_step(&sampled.predictions),
                )
                .with(
                    "ess of weights per second",
                    weights * sampled.transitions as f64 / sampled.seconds,
                ),
        ])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let of = |name: &str, column: &str| table.numbers(column, &[("coordinates", name.into())]);
        let ratio = |over: &str, column: &str| -> Vec<f64> {
            let pairs = of("repriorised", column).into_iter().zip(of(over, column));
            pairs.map(|(a, b)| a / b).collect()
        };
        let seconds = ratio("tangent", "ess of weights per second");
        let steps = ratio("standard", "ess of weights per step");
        vec![
            Finding::new(
                "repriorisation of the readout is preferable to that of all weights (whose exact determinant takes a dense matrix a step)",
                !seconds.is_empty() && seconds.iter().all(|&ratio| ratio > 1.0),
                format!(
                    "effective draws per second, NNGP over NTK: {}",
                    listed(&seconds)
                ),
            ),
            Finding::new(
                "and better than none",
                !steps.is_empty() && steps.iter().all(|&ratio| ratio > 1.0),
                format!(
                    "effective draws per step, repriorised over standard: {}",
                    listed(&steps)
                ),
            ),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![Figure {
            logarithmic: [true, true],
            ..Figure::lines(
                "ess",
                "Effective draws of weights per second",
                "Higher is better.",
                ("width", "width"),
                ("ess of weights per second", "effective draws per second"),
                &["coordinates"],
            )
        }]
    }
}

/// Figure 11.
pub(super) struct Categorical;

impl Experiment for Categorical {
    fn about(&self) -> About {
        About {
            name: "hron2022-fig11",
            paper: Paper::Hron,
            figure: "Figure 11",
            what: "effective draws of Langevin steps under a categorical likelihood, standard and repriorised with the likelihood's Gaussian approximation",
            data: Some("cifar10"),
            cost: ["10 s", "10 min", "days"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let widths: &[usize] = size.pick(&[128], &[32, 128, 512], &[32, 128, 512, 1024]);
        let steps: u64 = size.pick(2000, 5000, 100_000);
        let cell = |&width: &usize| {
            COORDINATES.map(|name| {
                Cell::new()
                    .with("width", width)
                    .with("coordinates", name)
                    .with("steps", steps)
            })
        };
        widths.iter().flat_map(cell).collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let images = bench
            .data
            .images("cifar10", bench.size.pick(300, 1000, 1000), 0)?;
        let (n, classes) = (images.rows(), images.classes());
        let hidden = [cell.count("width")];
        let network =
            Composition::fully_connected(images.columns(), &hidden, classes, Activation::Gelu);
        let mut targets = vec![0.0; n * classes];
        for (row, &label) in labels(&images.train).iter().enumerate() {
            targets[label as usize * n + row] = 1.0;
        }
        let (x, test) = (&images.inputs, images.midpoints(20));
        let model = Model::<f32>::new(network, 1.0, x, targets, &test, InputReduction::Auto);
        let model = model
            .map_err(Failure::failed)?
            .with_likelihood(Arc::new(CategoricalLikelihood));
        let steps = cell.count("steps") as u64;
        let schedule = Schedule {
            chains: 2,
            warmup: steps / 2,
            draws: steps / 10,
            thin: 10,
            seed: 10,
        };
        let mut plan = langevin(coordinates(cell.text("coordinates")), schedule);
        plan.settings.target_acceptance = Some(0.9);
        plan.settings.arrival = Some(40);
        let sampled = sample(&Arc::new(model), &plan, bench)?;
        Ok(vec![
            Row::new()
                .with("coordinates", cell.text("coordinates"))
                .with("width", cell.count("width"))
                .with("step size", sampled.step_size)
                .with("acceptance", sampled.acceptance)
                .with("R-hat", sampled.rhat(&sampled.weights).mean)
                .with("ess weights", sampled.ess_per_draw(&sampled.weights).mean)
                .with(
                    "ess predictions",
                    sampled.ess_per_draw(&sampled.predictions).mean,
                ),
        ])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let of = |name: &str, column: &str| table.numbers(column, &[("coordinates", name.into())]);
        let [standard, repriorised] = COORDINATES.map(|name| of(name, "ess weights"));
        let gains: Vec<f64> = repriorised
            .iter()
            .zip(&standard)
            .map(|(a, b)| a / b)
            .collect();
        vec![Finding::new(
            "repriorised chains have more effective draws of weights",
            !gains.is_empty() && gains.iter().all(|&gain| gain > 1.0),
            format!("repriorised over standard: {}", listed(&gains)),
        )]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![Figure {
            logarithmic: [true, true],
            ..Figure::lines(
                "ess",
                "Effective draws of weights, categorical likelihood",
                "Higher is better.",
                ("width", "width"),
                ("ess weights", "effective draws per draw"),
                &["coordinates"],
            )
        }]
    }
}
