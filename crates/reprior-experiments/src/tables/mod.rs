//! What people get for their own table without a flag: the default of the program on regressions of the UCI repository, beside what is
//! published on the same splits.
//!
//! Every split is sampled as `reprior sample --data TABLE` does it.

mod calibration;
mod published;
mod splits;

use std::time::Duration;

use reprior::chain::Progress;
use reprior_run::{Level, Metrics, Options, Settings, Summary, Watcher, sample_in_memory};

use self::published::{SETS, Set, set};
use self::splits::written;
use crate::findings::{estimates, results};
use crate::{
    About, Bench, Cell, DataFolder, Estimate, Experiment, Failure, Figure, Finding, Judgement,
    Paper, Row, Size, Table,
};

pub(crate) const EXPERIMENTS: &[&dyn Experiment] = &[&Tables, &calibration::Calibration];

/// Bounds of the share of test rows in their 90 % intervals.
const COVERAGE: [f64; 2] = [0.86, 0.94];
/// Test rows are looked for up to this number.
const MOST_ROWS: usize = 100_000;
/// Largest R-hat of predictions that agree.
const RHAT: f64 = 1.01;

/// The built-in table that stands for the others where there is no folder.
const STAND_IN_NAME: &str = "friedman";
/// Rows of the table that stands for others where there is no folder: training rows, test rows.
const STAND_IN: [usize; 2] = [80, 40];

/// Hands a run's progress to the bench.
struct Relay<'a, 'b>(&'a Bench<'b>);

impl Watcher for Relay<'_, '_> {
    fn update(&self, progress: Progress) {
        let part = progress.transition as f64 / progress.total.max(1) as f64;
        // a stop ends the run by the same flag
        let _ = self.0.advance(part.min(1.0));
    }
}

/// Runs something with the bench's threads, stop and progress; nothing is written in between.
fn with_options<T>(bench: &Bench<'_>, run: impl FnOnce(&Options<'_>) -> T) -> T {
    run(&Options {
        threads: Some(bench.threads),
        checkpoint_every: Duration::MAX,
        stop: bench.stop,
        watcher: &Relay(bench),
        more: None,
        is_part: false,
    })
}

/// Whether the verdict says to believe the run.
fn believed(summary: &Summary) -> &'static str {
    match summary.verdict.level {
        Level::Bad => "no",
        // the verdict names what to keep in mind
        Level::Caution => "with a warning",
        _ => "yes",
    }
}

/// A share of the same test rows whatever the seed, with the error of rows beside that of seeds. So few rows at least have such shares.
fn with_rows(seeds: &Estimate, shares: &[f64]) -> Estimate {
    let is_count = |count: f64| (count - count.round()).abs() < 1e-6;
    let rows = (1..=MOST_ROWS).find(|&rows| {
        let mut counts = shares.iter().map(|share| share * rows as f64);
        counts.all(is_count)
    });
    let Some(rows) = rows else {
        return seeds.clone().doubted("shares of no number of rows");
    };
    seeds.with_rows(&Estimate::proportion(seeds.value, rows))
}

struct Tables;

impl Experiment for Tables {
    fn about(&self) -> About {
        About {
            name: "tables",
            paper: Paper::Ours,
            figure: "the default on tables",
            what: "test NLL, RMSE, coverage, R-hat and seconds of `reprior sample --data TABLE` without a flag on regressions of the UCI repository, beside published numbers on the same splits; one split a set, long: five, full: all twenty (of airfoil one, with other seeds)",
            data: Some("uci"),
            cost: ["20 s", "10 min", "40 min", "3 h"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let sets = &SETS[..size.pick(2, SETS.len(), SETS.len(), SETS.len())];
        let splits: usize = size.pick(2, 1, 5, 20);
        let of_set = |set: &Set| {
            let cell = Cell::new().with("set", set.name);
            (0..splits).map(move |split: usize| cell.clone().with("split", split))
        };
        sets.iter().flat_map(of_set).collect()
    }

    fn check_data(&self, _: Size, cells: &[Cell], data: &DataFolder) -> Result<(), Failure> {
        data.expect("uci")?;
        let Some(folder) = &data.path else {
            return Ok(());
        };
        let sets = cells.iter().map(|cell| (set(cell.text("set")), cell));
        for (set, cell) in sets {
            if let Some(set) = set {
                written(&folder.join("uci"), set, cell.count("split"))?;
            }
        }
        Ok(())
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let (name, split) = (cell.text("set"), cell.count("split"));
        let Some(set) = set(name) else {
            return Err(Failure::failed(format!("there is no set {name}")));
        };
        let mut settings = Settings::default();
        settings.run.seed = split as u64;
        let (table, unit) = match &bench.data.path {
            Some(folder) => {
                let table = written(&folder.join("uci"), set, split)?;
                settings.data.source = table.file.path().display().to_string();
                settings.data.target = Some(vec![set.target.to_owned()]);
                settings.data.train = Some(table.train);
                settings.data.test = Some(table.test);
                settings.data.no_shuffle = Some(true);
                let unit = if set.is_standardised {
                    table.deviation
                } else {
                    1.0
                };
                (Some(table), unit)
            }
            None => {
                settings.data.source = STAND_IN_NAME.to_owned();
                settings.data.train = Some(STAND_IN[0]);
                settings.data.test = Some(STAND_IN[1]);
                settings.data.shuffle = Some(split as u64);
                (None, 1.0)
            }
        };
        if bench.size == Size::Quick {
            settings.run.minutes = Some(0.04);
            // the table of a set in a folder may have thousands of rows
            settings.data.train = settings.data.train.map(|rows| rows.min(STAND_IN[0]));
            settings.data.test = settings.data.test.map(|rows| rows.min(STAND_IN[1]));
        }
        let made = with_options(bench, |options| sample_in_memory(settings, options));
        bench.advance(1.0)?;
        let (_, summary) = made.map_err(Failure::failed)?;
        let Some(Metrics::Regression {
            nll,
            rmse,
            coverage_90,
        }) = summary.metrics
        else {
            return Err(Failure::failed("the run has no metrics of a regression"));
        };
        let predictions = summary.ess.prediction.as_ref();
        Ok(vec![
            cell.choices(&["set", "split"])
                .with("data", if table.is_some() { name } else { STAND_IN_NAME })
                .with("rmse", rmse / unit)
                .with("nll", nll - unit.ln())
                .with("coverage", coverage_90)
                .with("R-hat", predictions.map_or(f64::NAN, |ess| ess.rhat_max))
                .with(
                    "effective draws",
                    predictions.map_or(f64::NAN, |ess| ess.min),
                )
                .with("method", summary.method.as_str())
                .with("warm-up", summary.warmup)
                .with("draws", summary.draws)
                .with("believed", believed(&summary))
                .with("seconds", summary.seconds),
        ])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let of = |set: &Set, column: &str| {
            let rows: Vec<&Row> = table
                .rows
                .iter()
                .filter(|row| row.text("set") == set.name)
                .collect();
            let values: Vec<f64> = rows.iter().map(|row| row.number(column)).collect();
            let mut mean = Estimate::mean(&values);
            if set.is_one_split() && column == "coverage" {
                mean = with_rows(&mean, &values);
            }
            match rows.iter().any(|row| row.text("data") == STAND_IN_NAME) {
                true => mean.doubted(format!("the table is {STAND_IN_NAME}, in place of the set")),
                false => mean,
            }
        };
        let is_measured = |set: &&Set| table.rows.iter().any(|row| row.text("set") == set.name);
        let sets: Vec<&Set> = SETS.iter().filter(is_measured).collect();
        let mut findings: Vec<Finding> = Vec::new();
        for set in &sets {
            let own = of(set, "nll");
            let better = set
                .published
                .iter()
                .map(|&(_, _, nll, error)| Judgement::below(&own, &Estimate::new(nll, error)));
            let published: Vec<String> = set
                .published
                .iter()
                .map(|&(whose, rmse, nll, _)| match rmse.is_finite() {
                    true => format!("{whose} {nll}, RMSE {rmse}"),
                    false => format!("{whose} {nll}"),
                })
                .collect();
            findings.push(
                Finding::new(
                    match set.is_one_split() {
                        // as are the published ones: the error is that of seeds
                        true => format!(
                            "{}: on the test rows of its one split the mean NLL is below every published one",
                            set.name
                        ),
                        false => format!(
                            "{}: the mean test NLL is below every published one",
                            set.name
                        ),
                    },
                    &Judgement::all(better),
                    format!("{own}, RMSE {}", of(set, "rmse")),
                )
                .published(published.join("; ")),
            );
        }
        let coverage: Vec<Estimate> = sets.iter().map(|set| of(set, "coverage")).collect();
        let [low, high] = COVERAGE.map(Estimate::exact);
        let within = coverage
            .iter()
            .map(|own| Judgement::all([Judgement::above(own, &low), Judgement::below(own, &high)]));
        findings.push(Finding::new(
            format!(
                "the share of test rows in their 90 % intervals is between {} and {} on every set",
                COVERAGE[0], COVERAGE[1]
            ),
            &Judgement::all(within),
            estimates(&coverage),
        ));
        let count = |is: &dyn Fn(&Row) -> bool| table.rows.iter().filter(|row| is(row)).count();
        let is_believed = |row: &&Row| row.text("believed") == "yes";
        // where none is believed nothing was measured
        let believed: Vec<&Row> = table.rows.iter().filter(is_believed).collect();
        let agree = believed
            .iter()
            .map(|row| Judgement::fact(row.number("R-hat") <= RHAT));
        findings.push(Finding::new(
            format!(
                "predictions are believed without a warning only where their R-hat is at most {RHAT}"
            ),
            &Judgement::all(agree),
            format!(
                "{} of {} runs are believed without one, {} have such an R-hat",
                believed.len(),
                table.rows.len(),
                count(&|row| row.number("R-hat") <= RHAT)
            ),
        ));
        findings
    }

    fn figures(&self) -> Vec<Figure> {
        let caption = "Each point is a split: the share of test rows in their 90 % intervals, and whether the chains agree.";
        let figure = Figure::lines(
            "coverage",
            "Coverage against the largest R-hat of predictions",
            caption,
            ("R-hat", "largest R-hat of predictions"),
            ("coverage", "coverage of 90 % intervals"),
            &["set"],
        );
        vec![figure.scatter()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    /// Rows of a set, one a split.
    fn rows(set: &str, nll: &[f64], coverage: f64, rhat: f64, believed: &str) -> Vec<Row> {
        let row = |(split, nll): (usize, &f64)| {
            Row::new()
                .with("set", set)
                .with("split", split)
                .with("nll", *nll)
                .with("rmse", 1.0)
                .with("coverage", coverage + 0.001 * split as f64)
                .with("R-hat", rhat)
                .with("believed", believed)
        };
        nll.iter().enumerate().map(row).collect()
    }

    fn verdicts(rows: Vec<Row>) -> Vec<Verdict> {
        let table = Table {
            name: Row::RESULTS.to_owned(),
            rows,
        };
        let findings = Tables.findings(&[table]);
        findings.iter().map(|finding| finding.verdict).collect()
    }

    #[test]
    fn folders_without_the_tables_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder {
            path: Some(folder.path().to_path_buf()),
        };
        let check = |data: &DataFolder| {
            let cells = Tables.cells(Size::Quick, false);
            Tables.check_data(Size::Quick, &cells, data)
        };
        assert!(check(&DataFolder::default()).is_ok());
        assert!(
            check(&data)
                .unwrap_err()
                .to_string()
                .contains("no folder uci")
        );
        std::fs::create_dir(folder.path().join("uci")).unwrap();
        assert!(
            check(&data)
                .unwrap_err()
                .to_string()
                .contains("concrete.csv")
        );
    }

    /// Five seeds on the same 301 rows: what they cover differs by less than what other rows would have.
    #[test]
    fn a_split_with_other_seeds_has_the_error_of_its_rows() {
        let shares: Vec<f64> = [275.0, 277.0, 276.0, 278.0, 274.0]
            .iter()
            .map(|count| count / 301.0)
            .collect();
        let seeds = Estimate::mean(&shares);
        let found = with_rows(&seeds, &shares);
        let of_rows = (found.value * (1.0 - found.value) / 301.0).sqrt();
        assert_eq!(found.value, seeds.value);
        assert!((found.error / of_rows.hypot(seeds.error) - 1.0).abs() < 0.05);
        assert!(found.error > 3.0 * seeds.error && found.degrees > 100.0);
        // that 0.917 is below 0.94 is not known by 301 rows; by five splits it is
        let verdict = |set: &str| {
            let own = rows(set, &[1.0; 5], 0.9, 1.0, "yes").into_iter();
            let own = own.zip(&shares);
            verdicts(
                own.map(|(row, &share)| row.replaced("coverage", share))
                    .collect(),
            )[1]
        };
        assert_eq!(verdict("airfoil"), Verdict::CannotBeTold);
        assert_eq!(verdict("energy"), Verdict::Holds);
    }

    #[test]
    fn claims_hold_where_they_are_so_and_only_there() {
        use Verdict::{CannotBeTold, DoesNotHold, Holds};
        let good = [2.60, 2.62, 2.61, 2.59];
        assert_eq!(
            verdicts(rows("concrete", &good, 0.9, 1.005, "yes")),
            [Holds; 3]
        );
        // worse than one of those published, too sure, believed where chains disagree
        let bad = [3.31, 3.28, 3.30, 3.29];
        assert_eq!(
            verdicts(rows("concrete", &bad, 0.7, 1.3, "yes")),
            [DoesNotHold; 3]
        );
        // chains that disagree, and verdicts that say so: of what is believed nothing was seen
        assert_eq!(
            verdicts(rows("concrete", &good, 0.9, 1.3, "no"))[2],
            CannotBeTold
        );
        // of one split nothing can be told, nor of splits that differ too much
        assert_eq!(
            verdicts(rows("concrete", &good[..1], 0.9, 1.005, "yes"))[..2],
            [CannotBeTold; 2]
        );
        let wild = [1.0, 4.0, 2.0, 3.0];
        assert_eq!(
            verdicts(rows("concrete", &wild, 0.9, 1.0, "yes"))[0],
            CannotBeTold
        );
    }
}
