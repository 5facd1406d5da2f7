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
/// What effective draws are of, and their columns.
const KINDS: [(&str, &str); 4] = [
    ("weights", "ess weights"),
    ("predictions", "ess predictions"),
    ("the worst direction of the weights", "least, weights"),
    ("the worst prediction", "least, predictions"),
];
/// By how much the gain may differ from the fifty that are published.
const FACTOR: f64 = 2.0;

pub(super) struct Mixing;

/// The gain at the widest network. Standard chains may be at the estimator's floor: then only the least that it can be is told.
fn fifty_times(what: &str, standard: &Effective, repriorised: &Effective) -> [Finding; 2] {
    let published = "Section 4.2.1: 50 times at width 1,024, n = 256";
    let gain = repriorised.estimate.ln().minus(&standard.estimate.ln());
    let [own, other] =
        [standard, repriorised].map(|one| Effective::listed(std::slice::from_ref(one)));
    let measured = format!(
        "standard {own}, repriorised {other}: {:.1} times",
        gain.value.exp()
    );
    [
        Finding::new(
            format!("at width 1,024 repriorised chains have fifty times the effective draws of {what}, to within a factor of two"),
            &Judgement::within(&gain, &Estimate::exact(50_f64.ln()), FACTOR.ln()),
            measured.as_str(),
        )
        .published(published),
        Finding::new(
            format!("at width 1,024 they have at least {} times those of {what}", 50.0 / FACTOR),
            &repriorised.above(&standard.times(50.0 / FACTOR)),
            measured,
        )
        .published(published),
    ]
}

impl Experiment for Mixing {
    fn about(&self) -> About {
        About {
            name: "hron2022-fig7",
            paper: Paper::Hron,
            figure: "Figure 7",
            what: "effective draws per thinned draw (every 25th step) of Langevin steps with tuned step sizes and dampings against width and n, three hidden layers; except at full size, chains live on the weights that the data touch and begin where a few transitions of hmc-infinite arrived, there are two of 4,000 (default) to 50,000 steps (long) where the paper has one of 3 million, and n varies at width 128, not 512; quick: n = 24, widths to 256",
            data: Some("cifar10"),
            cost: ["15 s", "45 min", "1 h", "years"],
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
            (&[128, 512], &[64, 1024]),
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
                let long: u64 = match (n, width, is_standard) {
                    (1024.., ..) => 10_000,
                    (_, ..=128, _) => 50_000,
                    (_, _, true) => 15_000,
                    (_, _, false) => 5000,
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
            // of fewer, step sizes are now and then not what they were tuned for
            warmup: bench.size.pick(1500, steps / 4, steps / 10, 20_000),
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
            for (what, column) in KINDS {
                let [standard, repriorised] = COORDINATES.map(|name| of(name, varied, column));
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
                if column.starts_with("ess") {
                    all_fall.push((what, standard, repriorised));
                }
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
        let widest = [("width", 1024.0.into()), ("varied", "width".into())];
        for (what, column) in KINDS {
            let rows = COORDINATES.map(|name| {
                let wanted = [&widest[..], &[("coordinates", name.into())]].concat();
                let row = table.select(&wanted).into_iter().next();
                row.map(|row| Effective::of(row, column))
            });
            if let [Some(standard), Some(repriorised)] = rows {
                findings.extend(fifty_times(what, &standard, &repriorised));
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    /// Chains at width 1,024 with these effective draws of everything per draw.
    fn findings(standard: (f64, usize), repriorised: (f64, usize)) -> Vec<Finding> {
        let row = |name: &str, (ess, draws): (f64, usize)| {
            let mut row = Row::new()
                .with("varied", "width")
                .with("coordinates", name)
                .with("n", 256_usize)
                .with("width", 1024_usize)
                .with("draws", draws);
            for (_, column) in KINDS {
                let estimate = Estimate::new(ess, 0.1 * ess);
                let estimate = match crate::sampled::Sampled::is_floor(ess, draws) {
                    true => estimate.doubted("floor"),
                    false => estimate,
                };
                row = row.with_estimate(column, &estimate);
            }
            row
        };
        let rows = vec![row("standard", standard), row("repriorised", repriorised)];
        let all = Mixing.findings(&Table::all(rows));
        let of_widest = all
            .into_iter()
            .filter(|one| one.claim.starts_with("at width 1,024"));
        of_widest.collect()
    }

    fn verdicts(findings: &[Finding], part: &str) -> Vec<Verdict> {
        let own = findings.iter().filter(|one| one.claim.contains(part));
        own.map(|one| one.verdict).collect()
    }

    #[test]
    fn fifty_times_is_told_of_what_is_measured_and_at_least_of_what_is_bounded() {
        let fifty = findings((0.01, 4000), (0.5, 4000));
        assert_eq!(verdicts(&fifty, "fifty times"), [Verdict::Holds; 4]);
        assert_eq!(verdicts(&fifty, "at least 25"), [Verdict::Holds; 4]);
        // exchanged
        let opposite = findings((0.5, 4000), (0.01, 4000));
        assert_eq!(
            verdicts(&opposite, "fifty times"),
            [Verdict::DoesNotHold; 4]
        );
        assert_eq!(
            verdicts(&opposite, "at least 25"),
            [Verdict::DoesNotHold; 4]
        );
        // ten times and two hundred times are not fifty, to within a factor of two
        for (gain, at_least) in [(10.0, Verdict::DoesNotHold), (200.0, Verdict::Holds)] {
            let other = findings((0.004, 5000), (0.004 * gain, 5000));
            assert_eq!(verdicts(&other, "fifty times"), [Verdict::DoesNotHold; 4]);
            assert_eq!(verdicts(&other, "at least 25"), [at_least; 4]);
        }
        // at the floor of 1,000 draws there are at most 0.015: 0.6 is forty times that
        let bounded = findings((0.006, 1000), (0.6, 4000));
        assert_eq!(
            verdicts(&bounded, "fifty times"),
            [Verdict::CannotBeTold; 4]
        );
        assert_eq!(verdicts(&bounded, "at least 25"), [Verdict::Holds; 4]);
        // few draws tell nothing
        let few = findings((0.006, 160), (0.02, 160));
        assert_eq!(verdicts(&few, "at least 25"), [Verdict::CannotBeTold; 4]);
    }
}
