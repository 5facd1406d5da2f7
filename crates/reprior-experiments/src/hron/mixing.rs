//! Figure 7: effective draws of Langevin steps against width and against the number of data.

use reprior::chain::Schedule;
use reprior::model::InputReduction;

use super::{COORDINATES, coordinates, langevin, model};
use crate::chains::sample;
use crate::experiment::{listed, results};
use crate::{About, Bench, Cell, Experiment, Failure, Figure, Finding, Paper, Row, Size, Table};

/// Steps between draws, as published.
const THIN: u64 = 25;

pub(super) struct Mixing;

impl Experiment for Mixing {
    fn about(&self) -> About {
        About {
            name: "hron2022-fig7",
            paper: Paper::Hron,
            figure: "Figure 7",
            what: "effective draws per thinned draw (every 25th step) of Langevin steps with tuned step sizes against width and n, three hidden layers; at quick and default size chains live on the weights that the data touch",
            data: Some("cifar10"),
            cost: ["15 s", "25 min", "weeks"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let (widths, rows): (&[usize], &[usize]) = size.pick(
            (&[16, 64, 256], &[]),
            (&[32, 128, 512, 1024], &[64, 1024]),
            (&[32, 64, 128, 256, 512, 1024], &[64, 128, 512, 1024, 2048]),
        );
        let n = size.pick(24_usize, 256, 256);
        let by_width = widths.iter().map(|&width| ("width", n, width));
        let by_rows = rows.iter().map(|&n| ("n", n, size.pick(64, 128, 512)));
        let cell = |(varied, n, width): (&'static str, usize, usize)| {
            COORDINATES.map(|name| {
                // as many of each: chains that stand still have a few effective draws whatever their length
                let steps: u64 = size.pick(1500, 2000, 3_000_000);
                Cell::new()
                    .with("varied", varied)
                    .with("n", n)
                    .with("width", width)
                    .with("coordinates", name)
                    .with("steps", steps)
            })
        };
        by_width.chain(by_rows).flat_map(cell).collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let images = bench.data.images("cifar10", cell.count("n"), 0)?;
        let width = cell.count("width");
        let reduction = bench.size.pick(
            InputReduction::Auto,
            InputReduction::Auto,
            InputReduction::Off,
        );
        let model = model(&images, &[width; 3], reduction)?;
        let steps = cell.count("steps") as u64;
        let schedule = Schedule {
            chains: 2,
            warmup: bench.size.pick(500, steps / 4, 20_000),
            draws: steps / THIN,
            thin: THIN,
            seed: 5,
        };
        let mut plan = langevin(coordinates(cell.text("coordinates")), schedule);
        // of chains that start at the prior, standard ones would spend all of these steps on their way
        plan.settings.arrival = bench.size.pick(Some(60), Some(20), Some(0));
        let sampled = sample(&model, &plan, bench)?;
        let weights = sampled.ess_per_draw(&sampled.weights);
        let predictions = sampled.ess_per_draw(&sampled.predictions);
        let row = Row::new()
            .with("varied", cell.text("varied"))
            .with("coordinates", cell.text("coordinates"))
            .with("n", images.rows())
            .with("width", width)
            .with("step size", sampled.step_size)
            .with("acceptance", sampled.acceptance)
            .with("R-hat", sampled.rhat(&sampled.weights).mean)
            .with("ess weights", weights.mean)
            .with("least", weights.min)
            .with("greatest", weights.max)
            .with("ess predictions", predictions.mean)
            .with(
                "steps per second",
                sampled.transitions as f64 / sampled.seconds,
            );
        Ok(vec![
            row.in_table(&format!("by-{}", cell.text("varied"))),
            row,
        ])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let of = |name: &str, varied: &str, column: &str| {
            table.numbers(
                column,
                &[("coordinates", name.into()), ("varied", varied.into())],
            )
        };
        let gains = |varied: &str| -> Vec<f64> {
            let [standard, repriorised] = COORDINATES.map(|name| of(name, varied, "ess weights"));
            repriorised
                .iter()
                .zip(&standard)
                .map(|(a, b)| a / b)
                .collect()
        };
        let by_width = gains("width");
        let ends = by_width.first().zip(by_width.last());
        let mut findings = vec![
            Finding::new(
                "repriorised chains have more effective draws of weights at every width",
                !by_width.is_empty() && by_width.iter().all(|&gain| gain > 1.0),
                format!("repriorised over standard: {}", listed(&by_width)),
            ),
            Finding::new(
                "the gain grows with width",
                ends.is_some_and(|(first, last)| last > first),
                format!("repriorised over standard: {}", listed(&by_width)),
            ),
            Finding::new(
                "repriorised chains mix the faster the wider the network",
                {
                    let ess = of("repriorised", "width", "ess weights");
                    ess.first()
                        .zip(ess.last())
                        .is_some_and(|(first, last)| last > first)
                },
                format!(
                    "effective draws per draw: {}",
                    listed(&of("repriorised", "width", "ess weights"))
                ),
            ),
        ];
        let by_rows = gains("n");
        if !by_rows.is_empty() {
            findings.push(Finding::new(
                "repriorised chains have more effective draws at every n",
                by_rows.iter().all(|&gain| gain > 1.0),
                format!("repriorised over standard: {}", listed(&by_rows)),
            ));
        }
        findings
    }

    fn figures(&self) -> Vec<Figure> {
        let figure = |name, table, title, x, y: (&'static str, &'static str)| Figure {
            table,
            logarithmic: [true, true],
            ..Figure::lines(
                name,
                title,
                "Higher is better; 1 is an independent draw every 25 steps.",
                x,
                y,
                &["coordinates"],
            )
        };
        let (width, n) = (("width", "width"), ("n", "training images"));
        let ess = ("ess weights", "effective draws per draw");
        vec![
            figure(
                "ess-by-width",
                "by-width",
                "Effective draws of weights",
                width,
                ess,
            ),
            figure("ess-by-n", "by-n", "Effective draws of weights", n, ess),
            Figure {
                guide: "Higher is better: longer steps at the same acceptance.",
                ..figure(
                    "step-size",
                    "by-width",
                    "Tuned step size",
                    width,
                    ("step size", "step size"),
                )
            },
        ]
    }
}
