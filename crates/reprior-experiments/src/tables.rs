//! What people get for their own table without a flag: the default of the program on regressions of the UCI repository, beside what is
//! published on the same splits.
//!
//! Every split is written as a table whose last rows are the test rows, and sampled as `reprior sample --data TABLE` does it. Published
//! numbers: Gal's repository DropoutUncertaintyExps (dropout with a grid search), Lakshminarayanan, Pritzel & Blundell 2017, Table 1
//! (probabilistic backpropagation, ensembles of five), the baselines of google/uncertainty-baselines (ensembles of ten, variational
//! inference), and the benchmark of sklearn-contrib-bde for airfoil, whose targets are standardised. A published mean without a standard
//! error counts as exact.

use std::fs;
use std::path::Path;
use std::time::Duration;

use reprior::chain::Progress;
use reprior_run::{Level, MethodName, Metrics, Options, Settings, Watcher, sample_in_memory};

use crate::findings::{estimates, results};
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Judgement, Paper, Row,
    Size, Table,
};

pub(crate) const EXPERIMENTS: &[&dyn Experiment] = &[&Tables];

/// Bounds of the share of test rows in their 90 % intervals.
const COVERAGE: [f64; 2] = [0.86, 0.94];
/// Largest R-hat of predictions that agree.
const RHAT: f64 = 1.01;

/// A data set, and what is published of it: whose, root mean squared error, negative log-likelihood and its standard error.
struct Set {
    name: &'static str,
    target: &'static str,
    /// Whether published numbers are of targets in units of their standard deviation.
    is_standardised: bool,
    published: &'static [(&'static str, f64, f64, f64)],
}

const NONE: f64 = f64::NAN;
const DROPOUT: &str = "dropout, grid search (Gal)";
const PBP: &str = "probabilistic backpropagation";
const ENSEMBLE: &str = "ensemble of five (Lakshminarayanan et al.)";
const TEN: &str = "ensemble of ten (uncertainty-baselines)";
const VI: &str = "refined variational inference";
const MATRIX_GAUSSIAN: &str = "matrix-Gaussian variational inference";
const PBP_MV: &str = "PBP-MV";

const SETS: [Set; 7] = [
    Set {
        name: "concrete",
        target: "strength",
        is_standardised: false,
        published: &[
            (DROPOUT, 4.82, 2.93, 0.02),
            (PBP, 5.67, 3.16, 0.0),
            (ENSEMBLE, 6.03, 3.06, 0.0),
            (TEN, NONE, 3.20, 0.0),
            (VI, NONE, 3.08, 0.0),
            (MATRIX_GAUSSIAN, NONE, 3.01, 0.0),
            (PBP_MV, NONE, 3.04, 0.0),
        ],
    },
    Set {
        name: "energy",
        target: "heating_load",
        is_standardised: false,
        published: &[
            (DROPOUT, 0.54, 1.21, 0.01),
            (PBP, 1.80, 2.04, 0.0),
            (ENSEMBLE, 2.09, 1.38, 0.0),
            (TEN, NONE, 0.61, 0.0),
            (VI, NONE, 0.75, 0.0),
            (MATRIX_GAUSSIAN, NONE, 1.06, 0.0),
            (PBP_MV, NONE, 1.01, 0.0),
        ],
    },
    Set {
        name: "kin8nm",
        target: "y",
        is_standardised: false,
        published: &[
            (DROPOUT, 0.08, -1.14, 0.01),
            (PBP, 0.10, -0.90, 0.0),
            (ENSEMBLE, 0.09, -1.20, 0.0),
            (TEN, NONE, -1.17, 0.0),
            (VI, NONE, -1.06, 0.0),
            (MATRIX_GAUSSIAN, NONE, -1.10, 0.0),
            (PBP_MV, NONE, -1.28, 0.0),
        ],
    },
    Set {
        name: "naval",
        target: "compressor_decay",
        is_standardised: false,
        published: &[
            (DROPOUT, NONE, -4.45, 0.0),
            (TEN, NONE, -5.17, 0.0),
            (VI, NONE, -6.33, 0.0),
            (MATRIX_GAUSSIAN, NONE, -2.46, 0.0),
            (PBP_MV, NONE, -4.85, 0.0),
        ],
    },
    Set {
        name: "power_plant",
        target: "PE",
        is_standardised: false,
        published: &[
            (DROPOUT, 4.01, 2.80, 0.01),
            (PBP, 4.12, 2.84, 0.0),
            (ENSEMBLE, 4.11, 2.79, 0.0),
            (TEN, NONE, 3.18, 0.0),
            (VI, NONE, 2.83, 0.0),
            (MATRIX_GAUSSIAN, NONE, 2.82, 0.0),
            (PBP_MV, NONE, 2.78, 0.0),
        ],
    },
    Set {
        name: "wine_red",
        target: "quality",
        is_standardised: false,
        published: &[
            (DROPOUT, 0.62, 0.93, 0.01),
            (PBP, 0.64, 0.97, 0.0),
            (ENSEMBLE, 0.64, 0.94, 0.0),
            (TEN, NONE, 0.97, 0.0),
            (VI, NONE, 0.97, 0.0),
            (MATRIX_GAUSSIAN, NONE, 0.95, 0.0),
            (PBP_MV, NONE, 0.97, 0.0),
        ],
    },
    Set {
        name: "airfoil",
        target: "sound_pressure",
        is_standardised: true,
        published: &[
            ("random forest", 0.2560, 0.0567, 0.0),
            ("XGBoost, one σ", 0.2025, -0.1782, 0.0),
            ("CatBoost", 0.2393, 0.1479, 0.0),
            ("ensemble of ten", 0.3650, 0.1760, 0.0),
            ("TabPFN v2", 0.1359, -0.9338, 0.0),
            ("sklearn-contrib-bde, σ of the inputs", 0.1215, -0.9126, 0.0),
        ],
    },
];

/// The built-in table that stands for the others where there is no folder.
const STAND_IN_NAME: &str = "friedman";
/// Rows of the table that stands for others where there is no folder: training rows, test rows.
const STAND_IN: [usize; 2] = [80, 40];

fn set(name: &str) -> Option<&'static Set> {
    SETS.iter().find(|set| set.name == name)
}

/// A table as a file, whose last rows are for testing.
struct Written {
    file: tempfile::NamedTempFile,
    train: usize,
    test: usize,
    /// Of the training rows' targets.
    deviation: f64,
}

/// Split number `split` of a set in the folder `uci`.
fn written(folder: &Path, set: &Set, split: usize) -> Result<Written, Failure> {
    let path = folder.join(format!("{}.csv", set.name));
    let text = fs::read_to_string(&path).map_err(Failure::io(&path))?;
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let header = lines.next().unwrap_or_default();
    let rows: Vec<&str> = lines.collect();
    let test = test_rows(folder, set, split, rows.len())?;
    let mut is_test = vec![false; rows.len()];
    for &row in &test {
        *is_test.get_mut(row).ok_or_else(|| wrong(&path))? = true;
    }
    let column = header.split(',').position(|name| name == set.target);
    let column = column.ok_or_else(|| wrong(&path))?;
    let target = |row: &str| row.split(',').nth(column)?.trim().parse::<f64>().ok();
    let train: Vec<&str> = (0..rows.len())
        .filter(|&row| !is_test[row])
        .map(|row| rows[row])
        .collect();
    let targets: Option<Vec<f64>> = train.iter().map(|row| target(row)).collect();
    let targets = targets.ok_or_else(|| wrong(&path))?;
    let all = train
        .iter()
        .copied()
        .chain(test.iter().map(|&row| rows[row]));
    let lines: Vec<&str> = std::iter::once(header).chain(all).collect();
    let file = tempfile::Builder::new()
        .suffix(".csv")
        .tempfile()
        .map_err(Failure::failed)?;
    fs::write(file.path(), lines.join("\n") + "\n").map_err(Failure::io(file.path()))?;
    Ok(Written {
        file,
        train: train.len(),
        test: test.len(),
        deviation: crate::findings::mean_and_sd(&targets).1,
    })
}

/// The rows that a split tests on. Of airfoil there is one split: its last rows, after the first 1,202.
fn test_rows(folder: &Path, set: &Set, split: usize, rows: usize) -> Result<Vec<usize>, Failure> {
    if set.is_standardised {
        return Ok((1202.min(rows)..rows).collect());
    }
    let path = folder.join(format!("splits/{}_test_rows.csv", set.name));
    let text = fs::read_to_string(&path).map_err(Failure::io(&path))?;
    let line = text.lines().nth(split).ok_or_else(|| wrong(&path))?;
    let numbers: Result<Vec<usize>, _> = line.split(',').map(|word| word.trim().parse()).collect();
    numbers.map_err(|_| wrong(&path))
}

fn wrong(path: &Path) -> Failure {
    Failure::Request(format!(
        "{} is not as it should be: a table with the target's column, and one line of row numbers a split",
        path.display()
    ))
}

/// Hands a run's progress to the bench.
struct Relay<'a, 'b>(&'a Bench<'b>);

impl Watcher for Relay<'_, '_> {
    fn update(&self, progress: Progress) {
        let part = progress.transition as f64 / progress.total.max(1) as f64;
        // a stop ends the run by the same flag
        let _ = self.0.advance(part.min(1.0));
    }
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
        let options = Options {
            threads: Some(bench.threads),
            checkpoint_every: Duration::MAX,
            stop: bench.stop,
            watcher: &Relay(bench),
            more: None,
        };
        let made = sample_in_memory(settings, &options);
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
        let is_chain = matches!(summary.method.parse(), Ok(MethodName::Chain(_)));
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
                .with("method", if is_chain { "chains" } else { "minibatches" })
                .with("warm-up", summary.warmup)
                .with("draws", summary.draws)
                .with(
                    "believed",
                    if summary.verdict.level < Level::Bad {
                        "yes"
                    } else {
                        "no"
                    },
                )
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
            let mean = Estimate::mean(&values);
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
                .map(|(whose, _, nll, _)| format!("{whose} {nll}"))
                .collect();
            findings.push(
                Finding::new(
                    format!(
                        "{}: the mean test NLL is below every published one",
                        set.name
                    ),
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
        let honest = |row: &Row| row.number("R-hat") <= RHAT || row.text("believed") == "no";
        let count = |is: &dyn Fn(&Row) -> bool| table.rows.iter().filter(|row| is(row)).count();
        let believed = count(&|row| row.text("believed") == "yes");
        findings.push(Finding::new(
            format!("predictions are believed only where their R-hat is at most {RHAT}"),
            &Judgement::all(table.rows.iter().map(|row| Judgement::fact(honest(row)))),
            format!(
                "{believed} of {} runs are believed, {} have such an R-hat",
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
        // chains that disagree, and a verdict that says so
        assert_eq!(verdicts(rows("concrete", &good, 0.9, 1.3, "no"))[2], Holds);
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

    #[test]
    fn splits_are_written_with_their_test_rows_last() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::create_dir(path.join("splits")).unwrap();
        let table = "AT,V,PE\n1,2,10\n3,4,20\n5,6,30\n7,8,50\n";
        fs::write(path.join("power_plant.csv"), table).unwrap();
        fs::write(path.join("splits/power_plant_test_rows.csv"), "0\n3,1\n").unwrap();
        let set = set("power_plant").unwrap();
        let made = written(path, set, 1).unwrap();
        assert_eq!([made.train, made.test], [2, 2]);
        assert!((made.deviation - 10.0).abs() < 1e-12);
        let text = fs::read_to_string(made.file.path()).unwrap();
        assert_eq!(text, "AT,V,PE\n1,2,10\n5,6,30\n7,8,50\n3,4,20\n");
        assert!(written(path, set, 2).is_err());
        fs::write(path.join("splits/power_plant_test_rows.csv"), "9\n").unwrap();
        assert!(written(path, set, 0).is_err());
    }
}
