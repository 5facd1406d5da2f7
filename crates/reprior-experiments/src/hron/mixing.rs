//! Figure 7: effective draws of Langevin steps against width and against the number of data.

use reprior::chain::Schedule;
use reprior::model::InputReduction;

use super::{COORDINATES, langevin};
use crate::findings::{ends, every, listed, ratios, results};
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
            cost: ["15 s", "25 min", "weeks", "weeks"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let (widths, rows): (&[usize], &[usize]) = size.pick(
            (&[16, 64, 256], &[]),
            (&[32, 128, 512, 1024], &[64, 1024]),
            (&[32, 64, 128, 256, 512, 1024], &[64, 128, 512, 1024, 2048]),
            (&[32, 64, 128, 256, 512, 1024], &[64, 128, 512, 1024, 2048]),
        );
        let n = size.pick(24_usize, 256, 256, 256);
        let by_width = widths.iter().map(|&width| ("width", n, width));
        let by_rows = rows.iter().map(|&n| ("n", n, size.pick(64, 128, 512, 512)));
        let cell = |(varied, n, width): (&'static str, usize, usize)| {
            let cell = Cell::new().with("varied", varied).with("n", n);
            let cells = cell.with("width", width).each("coordinates", &COORDINATES);
            // as many steps of each: chains that stand still have a few effective draws whatever their length
            let steps: u64 = size.pick(1500, 2000, 3_000_000, 3_000_000);
            cells.into_iter().map(move |cell| cell.with("steps", steps))
        };
        by_width.chain(by_rows).flat_map(cell).collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let images = bench.data.images("cifar10", cell.count("n"))?;
        let hidden = [cell.count("width"); 3];
        let reduction = bench.size.pick(
            InputReduction::Auto,
            InputReduction::Auto,
            InputReduction::Off,
            InputReduction::Off,
        );
        let model = images.model::<f32>(&hidden, &images.midpoints(20), reduction)?;
        let steps = cell.long("steps");
        let schedule = Schedule {
            chains: 2,
            warmup: bench.size.pick(500, steps / 4, 20_000, 20_000),
            draws: steps / THIN,
            thin: THIN,
            seed: 5,
        };
        let mut plan = langevin(cell, schedule);
        // of chains that start at the prior, standard ones would spend all of these steps on their way
        plan.settings.arrival = bench.size.pick(Some(60), Some(20), Some(0), Some(0));
        let sampled = plan.sample(&model, bench)?;
        let weights = sampled.ess_per_draw(&sampled.weights);
        let predictions = sampled.ess_per_draw(&sampled.predictions);
        let row = cell
            .choices(&["varied", "coordinates"])
            .with("n", images.rows())
            .with("width", hidden[0])
            .with("step size", sampled.step_size)
            .with("acceptance", sampled.acceptance)
            .with("R-hat", sampled.rhat(&sampled.weights).mean)
            .with("ess weights", weights.mean)
            .with("least", weights.min)
            .with("greatest", weights.max)
            .with("ess predictions", predictions.mean)
            .with("steps per second", sampled.steps_per_second());
        Ok(vec![
            row.in_table(&format!("by-{}", cell.text("varied"))),
            row,
        ])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let of = |name: &str, varied: &str, column: &str| {
            let wanted = [("coordinates", name.into()), ("varied", varied.into())];
            table.numbers(column, &wanted)
        };
        let gains = |varied: &str| {
            let [standard, repriorised] = COORDINATES.map(|name| of(name, varied, "ess weights"));
            ratios(&repriorised, &standard)
        };
        let by_width = gains("width");
        let ess = of("repriorised", "width", "ess weights");
        let grows = |first: f64, last: f64| last > first;
        let mut findings = vec![
            Finding::unjudged(
                "repriorised chains have more effective draws of weights at every width",
                every(&by_width, |gain| gain > 1.0),
                format!("repriorised over standard: {}", listed(&by_width)),
            ),
            Finding::unjudged(
                "the gain grows with width",
                ends(&by_width, grows),
                format!("repriorised over standard: {}", listed(&by_width)),
            ),
            Finding::unjudged(
                "repriorised chains mix the faster the wider the network",
                ends(&ess, grows),
                format!("effective draws per draw: {}", listed(&ess)),
            ),
        ];
        let by_rows = gains("n");
        if !by_rows.is_empty() {
            findings.push(Finding::unjudged(
                "repriorised chains have more effective draws at every n",
                every(&by_rows, |gain| gain > 1.0),
                format!("repriorised over standard: {}", listed(&by_rows)),
            ));
        }
        findings
    }

    fn figures(&self) -> Vec<Figure> {
        let guide = "Higher is better; 1 is an independent draw every 25 steps.";
        let figure = |name, table, title, x, y: (&'static str, &'static str)| {
            Figure::lines(name, title, guide, x, y, &["coordinates"])
                .of(table)
                .logarithmic(true, true)
        };
        let (width, n) = (("width", "width"), ("n", "training images"));
        let ess = ("ess weights", "effective draws per draw");
        let step_size = ("step size", "step size");
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
                ..figure("step-size", "by-width", "Tuned step size", width, step_size)
            },
        ]
    }
}
