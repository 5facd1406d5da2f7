//! Figure 10: repriorisation of the readout against that of all weights by the network linearised at them.

use reprior::chain::Schedule;
use reprior::model::InputReduction;
use reprior::posterior::{Regulariser, TangentDeterminant};

use super::langevin::langevin;
use crate::findings::estimates;
use crate::sampled::Sampled;
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Judgement, Paper, Row,
    Size, Table,
};

/// Steps between draws.
const THIN: u64 = 5;
/// The two maps: T of the readout, R of all weights.
const MAPS: [&str; 2] = ["repriorised", "tangent"];
/// What effective draws are counted of: projections of θ, and ‖θ‖².
const STATISTICS: [&str; 2] = ["ess projections", "ess dots"];
/// The table of the best λ of each map and n.
const BEST: &str = "best";

pub(super) struct Tangent;

impl Experiment for Tangent {
    fn about(&self) -> About {
        About {
            name: "hron2022-fig10",
            paper: Paper::Hron,
            figure: "Figure 10",
            what: "effective draws per Langevin step of projections of all weights and of their squared norm, readout repriorised (T) against all weights (R, eq. 10, with the determinant of eqs 13 and 14: two terms, eight probes), λ swept; but the sizes of the networks, which are not published, are those that R allows here: one hidden layer, narrow, on the weights that the data touch",
            data: Some("cifar10"),
            cost: ["10 s", "20 min", "5 h", "weeks"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let rows: &[usize] = size.pick(&[4], &[4, 8, 16], &[4, 8, 16, 32], &[16, 64, 256, 1024]);
        let rows = Cell::new().each("n", rows).into_iter();
        rows.flat_map(|cell| cell.each("coordinates", &MAPS))
            .map(|cell| {
                cell.with("width", size.pick(16_usize, 32, 32, 512))
                    .with("steps", size.pick(600_u64, 4000, 20_000, 100_000))
            })
            .collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let images = bench.data.images("cifar10", cell.count("n"))?;
        let test = images.midpoints(3);
        let model = images.model::<f64>(&[cell.count("width")], &test, InputReduction::Auto)?;
        let steps = cell.long("steps");
        let exponents = bench.size.pick(-2..=-1, -4..=1, -4..=1, -4..=1);
        let count = exponents.clone().count() as f64;
        let mut rows: Vec<Row> = Vec::new();
        for (index, exponent) in exponents.enumerate() {
            let schedule = Schedule {
                chains: 2,
                warmup: steps / 2,
                draws: steps / THIN,
                thin: THIN,
                seed: 12,
            };
            let mut plan = langevin(cell, schedule);
            plan.posterior.regulariser = Regulariser::Value(10_f64.powi(exponent));
            if cell.text("coordinates") == "tangent" {
                plan.posterior.determinant = Some(TangentDeterminant::Hessian {
                    terms: 2,
                    probes: 8,
                });
            }
            let progress = |part: f64| (bench.progress)((index as f64 + part) / count);
            let own = Bench {
                progress: &progress,
                ..*bench
            };
            let sampled = plan.sample(&model, &own)?;
            let row = cell
                .choices(&["coordinates"])
                .with("n", images.rows())
                .with("width", cell.count("width"))
                .with("λ", format!("1e{exponent}"));
            rows.push(onto(row, &sampled));
        }
        let best = optimum(&rows);
        rows.extend(best);
        Ok(rows)
    }

    fn judged_tables(&self) -> &'static [&'static str] {
        &[BEST]
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let Some(best) = tables.iter().find(|table| table.name == BEST) else {
            return Vec::new();
        };
        let mut findings = Vec::new();
        for (statistic, words) in STATISTICS.into_iter().zip(["projections", "‖θ‖²"]) {
            let [readout, all] =
                MAPS.map(|map| best.estimates(statistic, &[("coordinates", map.into())]));
            let pairs: Vec<_> = readout.iter().zip(&all).collect();
            let measured = format!("T {}; R {}", estimates(&readout), estimates(&all));
            let every = pairs.iter().map(|(t, r)| Judgement::above(t, r));
            findings.push(
                Finding::new(
                    format!(
                        "T has more effective draws of {words} per step than R at every n, each at the λ that is best on the same chains"
                    ),
                    &Judgement::all(every),
                    measured.as_str(),
                )
                .published("Figure 10: T is clearly preferable"),
            );
            // one comparison that is chosen beforehand
            if let Some((t, r)) = pairs.first() {
                findings.push(
                    Finding::new(
                        format!("R is sometimes competitive: at the smallest n it has at least half as many of {words} as T, each at the λ that is best on the same chains"),
                        &Judgement::times_as_large(r, 0.5, t),
                        measured.as_str(),
                    )
                    .published("Figure 10: R is sometimes competitive"),
                );
            }
        }
        findings
    }

    fn figures(&self) -> Vec<Figure> {
        let guide =
            "Higher is better; 1 is an independent draw each step. Bars are standard errors.";
        let figure = |name, table, title, statistic, by| {
            let (x, y) = (
                ("n", "training images"),
                (statistic, "effective draws per step"),
            );
            Figure::lines(name, title, guide, x, y, by)
                .of(table)
                .logarithmic(true, true)
                .errors(match statistic {
                    "ess projections" => "± ess projections",
                    _ => "± ess dots",
                })
        };
        let [projections, dots] = STATISTICS;
        let [of_projections, of_dots] =
            ["Effective draws of projections", "Effective draws of ‖θ‖²"];
        vec![
            figure(
                "best-projections",
                BEST,
                of_projections,
                projections,
                &["coordinates"],
            ),
            figure("best-dots", BEST, of_dots, dots, &["coordinates"]),
            figure(
                "projections",
                Row::RESULTS,
                of_projections,
                projections,
                &["λ"],
            )
            .panels("coordinates"),
            figure("dots", Row::RESULTS, of_dots, dots, &["λ"]).panels("coordinates"),
        ]
    }
}

/// What is read off the chains of one λ.
fn onto(row: Row, sampled: &Sampled) -> Row {
    let mut row = row
        .with("step size", sampled.step_size)
        .with("acceptance", sampled.acceptance)
        .with("R-hat", sampled.rhat(&sampled.weights).mean)
        .with("R-hat of dots", sampled.rhat(&sampled.norms).mean);
    for (name, series) in STATISTICS
        .into_iter()
        .zip([&sampled.weights, &sampled.norms])
    {
        let estimate = sampled.effective_draws(series).times(1.0 / THIN as f64);
        row = row.with_estimate(name, &estimate);
    }
    row.with("steps per second", sampled.steps_per_second())
}

/// The most effective draws of each statistic over all λ, with the λ of the most of projections. Estimates that cannot be relied on
/// are passed over where there are others. The most of several is larger than that λ would have on other chains, on either side of a comparison:
/// claims name it.
fn optimum(rows: &[Row]) -> Option<Row> {
    let best = |statistic: &str| -> Option<(&Row, Estimate)> {
        let all = rows.iter().map(|row| (row, row.estimate(statistic)));
        all.max_by(|(_, a), (_, b)| {
            let key = |e: &Estimate| (e.doubt.is_none() && !e.value.is_nan(), e.value);
            let (a, b) = (key(a), key(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        })
    };
    let [(row, projections), (_, dots)] = [best(STATISTICS[0])?, best(STATISTICS[1])?];
    Some(
        row.choices(&["coordinates", "n", "width", "λ"])
            .with_estimate(STATISTICS[0], &projections)
            .with_estimate(STATISTICS[1], &dots)
            .in_table(BEST),
    )
}
