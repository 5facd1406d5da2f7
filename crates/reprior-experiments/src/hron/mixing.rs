//! Figure 7: effective draws of Langevin steps against width and against the number of data.

use reprior::chain::Schedule;
use reprior::model::InputReduction;

use super::langevin::{langevin, onto, with_tuned_damping};
use super::{COORDINATES, FLOORS};
use crate::effective::Effective;
use crate::findings::results;
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Judgement, Paper, Row,
    Size, Table,
};

/// Steps between draws, as published.
const THIN: u64 = 25;

pub(super) struct Mixing;

impl Experiment for Mixing {
    fn about(&self) -> About {
        About {
            name: "hron2022-fig7",
            paper: Paper::Hron,
            figure: "Figure 7",
            what: "effective draws per thinned draw (every 25th step) of Langevin steps with tuned step sizes and dampings against width and n, three hidden layers; except at full size, chains live on the weights that the data touch and begin where a few transitions of hmc-infinite arrived, there are two of 4,000 (default) to 100,000 steps (long) where the paper has one of 3 million, and n varies at width 128, not 512; quick: n = 24, widths to 256",
            data: Some("cifar10"),
            cost: ["15 s", "25 min", "4 h", "years"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let published = (
            &[32_usize, 64, 128, 384, 512, 768, 1024][..],
            &[64_usize, 128, 512, 1024, 2048][..],
        );
        let (widths, rows) = size.pick(
            (&[16, 64, 256][..], &[6, 48][..]),
            (&[32, 128, 512], &[64, 512]),
            (&[32, 64, 128, 512, 1024], &[64, 1024]),
            published,
        );
        let n = size.pick(24_usize, 256, 256, 256);
        let by_width = widths.iter().map(|&width| ("width", n, width));
        let by_rows = rows.iter().map(|&n| ("n", n, size.pick(32, 128, 128, 512)));
        let cell = |(varied, n, width): (&'static str, usize, usize)| {
            let cell = Cell::new().with("varied", varied).with("n", n);
            let cells = cell.with("width", width).each("coordinates", &COORDINATES);
            cells.into_iter().map(move |cell| {
                let is_standard = cell.text("coordinates") == "standard";
                // what stands still takes long chains: below three times its floor an estimate says nothing
                let long: u64 = match (width, is_standard) {
                    (..=128, _) => 100_000,
                    (..=512, true) => 50_000,
                    (..=512, false) => 15_000,
                    (_, true) => 25_000,
                    (_, false) => 5000,
                };
                let quick = if is_standard || width < 64 {
                    12_500
                } else {
                    4000
                };
                cell.with("steps", size.pick(quick, 4000, long, 3_000_000))
            })
        };
        by_width.chain(by_rows).flat_map(cell).collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let images = bench.data.images("cifar10", cell.count("n"))?;
        let hidden = [cell.count("width"); 3];
        let reduction = match bench.size {
            Size::Full => InputReduction::Off,
            _ => InputReduction::Auto,
        };
        let model = images.model::<f32>(&hidden, &images.midpoints(20), reduction)?;
        let steps = cell.long("steps");
        let schedule = Schedule {
            chains: bench.size.pick(2, 2, 2, 1),
            warmup: bench.size.pick(500, steps / 4, steps / 10, 20_000),
            draws: steps / THIN,
            thin: THIN,
            seed: 5,
        };
        let mut plan = langevin(cell, schedule);
        // of chains that start at the prior, standard ones would spend all of these steps on their way
        plan.settings.arrival = bench.size.pick(Some(60), Some(20), Some(30), Some(0));
        let plan = with_tuned_damping(plan, &model, bench)?;
        let sampled = plan.sample(&model, bench)?;
        let row = cell
            .choices(&["varied", "coordinates"])
            .with("n", images.rows())
            .with("width", hidden[0]);
        let row = onto(row, &plan, &sampled);
        Ok(vec![
            row.in_table(&format!("by-{}", cell.text("varied"))),
            row,
        ])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let of = |name: &str, varied: &str, column: &str| -> Vec<Effective> {
            let wanted = [("coordinates", name.into()), ("varied", varied.into())];
            let rows = table.sorted(varied, &wanted).into_iter();
            rows.map(|row| Effective::of(row, column)).collect()
        };
        let words = |standard: &[Effective], repriorised: &[Effective]| {
            let [standard, repriorised] = [standard, repriorised].map(Effective::listed);
            format!("standard {standard}; repriorised {repriorised}")
        };
        let mut findings = Vec::new();
        for (varied, by) in [("width", "width"), ("n", "number of data")] {
            let mut all_fall = Vec::new();
            for what in ["weights", "predictions"] {
                let [standard, repriorised] =
                    COORDINATES.map(|name| of(name, varied, &format!("ess {what}")));
                if standard.is_empty() {
                    continue;
                }
                let pairs = standard.iter().zip(&repriorised);
                findings.push(
                    Finding::new(
                        format!(
                            "repriorised chains have more effective draws of {what} at every {by}"
                        ),
                        &Judgement::all(pairs.map(|(a, b)| b.above(a))),
                        words(&standard, &repriorised),
                    )
                    .published("Figure 7: significantly higher in all cases"),
                );
                all_fall.push((what, standard, repriorised));
            }
            if varied == "n" && !all_fall.is_empty() {
                let falls = all_fall.iter().flat_map(|(_, a, b)| [a, b]);
                let measured = all_fall.iter();
                let measured = measured.map(|(what, a, b)| format!("{what}: {}", words(a, b)));
                findings.push(
                    Finding::new(
                        "effective draws of weights and predictions fall as data come in, in both coordinates",
                        &Judgement::all(falls.map(|values| Effective::fall(values))),
                        measured.collect::<Vec<_>>().join("; "),
                    )
                    .published("Figure 7, right: as expected"),
                );
            }
        }
        let [standard, repriorised] = COORDINATES.map(|name| of(name, "width", "ess weights"));
        let gains: Vec<Estimate> = standard
            .iter()
            .zip(&repriorised)
            .map(|(a, b)| b.estimate.ln().minus(&a.estimate.ln()))
            .collect();
        let measured = words(&standard, &repriorised);
        findings.push(
            Finding::new(
                "the gain grows with width",
                &Judgement::rises(&gains),
                measured.as_str(),
            )
            .published("Figure 7, left"),
        );
        findings.push(
            Finding::new(
                "repriorised chains mix the faster the wider the network",
                &Effective::grow(&repriorised),
                measured.as_str(),
            )
            .published("Figure 7, left: near 1 at the widest"),
        );
        if let Some(gain) = gains
            .last()
            .filter(|_| !table.select(&[("width", 1024.0.into())]).is_empty())
        {
            findings.push(
                Finding::new(
                    "at width 1,024 repriorised chains have fifty times the effective draws, to within a factor of two",
                    &Judgement::within(gain, &Estimate::exact(50_f64.ln()), 2_f64.ln()),
                    format!("{:.1} times", gain.value.exp()),
                )
                .published("Section 4.2.1: 50 times at width 1,024, n = 256"),
            );
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
        let predictions = ("ess predictions", "effective draws per draw");
        let step_size = ("step size", "step size");
        let of = "Effective draws of weights";
        vec![
            figure("ess-by-width", "by-width", of, width, ess)
                .band("least, weights", "greatest, weights")
                .limits(FLOORS),
            figure("ess-by-n", "by-n", of, n, ess)
                .band("least, weights", "greatest, weights")
                .limits(FLOORS),
            figure(
                "predictions-by-width",
                "by-width",
                "Effective draws of predictions",
                width,
                predictions,
            )
            .band("least, predictions", "greatest, predictions")
            .limits(FLOORS),
            Figure {
                guide: "Higher is better: longer steps at the same acceptance.",
                ..figure("step-size", "by-width", "Tuned step size", width, step_size)
            },
        ]
    }
}
