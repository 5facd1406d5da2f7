//! What Roy, Miani et al. (2024), Table 1, rests on: fit against the number of eigenpairs of the curvature, for sampled and linearised
//! Laplace and the Laplace diffusion, with the conventions of the equations and with those of the published code.
//!
//! The table's claim is that the diffusion fits better than linearised Laplace. A cut at k eigenpairs acts on the two in opposite ways: it
//! holds the diffusion, which moves along these k only, near the mode, and it gives linearised Laplace the prior's variance in all other
//! directions. So the order depends on k, and on the conventions: half the covariance, T − 1 steps, and averaged logits.
//!
//! Draws of Laplace approximations with fewer eigenpairs are of the leading ones of one decomposition; diffusions are run for each number.
//! All eigenpairs are those of the first 300 images, which stand for the others: more of them than the network has weights cannot be had
//! exactly.

use super::lenet::{begin, settings, trained};
use super::methods::{Covariance, PRECISIONS, PUBLISHED, diffusion, leading, network};
use crate::findings::results;
use crate::pictures::Pictures;
use crate::scores::{Averaged, DrawnLogits};
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Judgement, Paper, Row,
    Size, Table, Value,
};

/// Fit against the number of eigenpairs.
pub struct Table1Rank;

/// Conventions: of the equations, each of the published ones alone, and all of the published ones.
const DERIVED: &str = "of the equations";
const LOGITS: &str = "logits averaged";
const HALF: &str = "half the covariance";
const SHORT: &str = "T − 1 steps";

const ONE_PATH: &str = "of one path it is not known how much paths differ";

/// Rows of the curvature, and the numbers of eigenpairs of them (0: all) with so many paths of diffusions.
type Ranks = (usize, &'static [(usize, usize)]);

impl Experiment for Table1Rank {
    fn about(&self) -> About {
        About {
            name: "roy2024-table1-rank",
            paper: Paper::Roy,
            figure: "Table 1, against the rank",
            what: "test NLL and accuracy of LeNet's sampled and linearised Laplace approximations and Laplace diffusions against the number of eigenpairs of the curvature, with the conventions of the equations and of the published code",
            data: Some("mnist"),
            cost: ["20 s", "20 min", "6 h", "months"],
        }
    }

    fn data(&self, size: Size) -> Vec<&'static str> {
        let both = vec!["mnist", "fashion-mnist"];
        size.pick(vec!["mnist"], vec!["mnist"], both.clone(), both)
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let ranks: &[Ranks] = size.pick(
            &[(80, &[(20, 3), (200, 3)])],
            &[(1000, &[(50, 3), (150, 3), (500, 2)])],
            &[
                (10_000, &[(50, 3), (150, 3), (500, 2), (1000, 1), (2000, 1)]),
                (300, &[(50, 3), (500, 3), (0, 3)]),
            ],
            &[(
                60_000,
                &[(50, 20), (150, 20), (500, 20), (1000, 20), (2000, 20)],
            )],
        );
        let mut cells = Vec::new();
        for data in self.data(size) {
            for &(rows, pairs) in ranks {
                let all = pairs.iter().map(|&(rank, _)| rank);
                let most = all.max_by_key(|&rank| if rank == 0 { usize::MAX } else { rank });
                let base = || settings(size, data, 0).replaced("curvature rows", rows);
                let cell = |rank: usize, paths: usize| {
                    base().replaced("rank", rank).replaced("paths", paths)
                };
                let most = cell(most.unwrap_or(0), 1).with("method", "laplace");
                let ranks: Vec<String> = pairs.iter().map(|(rank, _)| rank.to_string()).collect();
                cells.push(most.with("ranks", ranks.join(" ")));
                for &(rank, paths) in pairs {
                    cells.push(cell(rank, paths).with("method", "diffusion"));
                }
            }
        }
        // the longest last
        cells.sort_by_key(|cell| {
            let rows = cell.count("curvature rows");
            let rank = match cell.count("rank") {
                0 => rows,
                rank => rank,
            };
            let is_diffusion = cell.text("method") == "diffusion";
            usize::from(is_diffusion) * cell.count("paths") * rank * rows
        });
        cells
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        match cell.text("method") {
            "laplace" => laplace(cell, bench),
            _ => diffusions(cell, bench),
        }
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let mut findings = Vec::new();
        for data in table.distinct("data") {
            for rows in table.distinct("rows") {
                let fit = Fit {
                    table,
                    data: &data,
                    rows: &rows,
                };
                findings.extend(fit.findings());
            }
        }
        findings
    }

    fn figures(&self) -> Vec<Figure> {
        let figure = |name, title, y| {
            Figure::lines(
                name,
                title,
                "Dashed lines and shapes tell methods apart; the mode is the network itself.",
                ("pairs", "eigenpairs of the curvature"),
                y,
                &["method", "data", "rows"],
            )
            .panels("convention")
        };
        vec![
            figure("nll", "Test NLL", ("nll", "test NLL"))
                .errors("± nll")
                .logarithmic(true, true),
            figure("accuracy", "Test accuracy", ("accuracy", "test accuracy"))
                .errors("± accuracy")
                .logarithmic(true, false),
        ]
    }
}

/// The beginning of a row.
fn start(cell: &Cell, method: &str, pairs: usize, convention: &str, bench: &Bench<'_>) -> Row {
    begin(&cell.replaced("method", method), bench)
        .with("rows", cell.count("curvature rows"))
        .with("pairs", pairs)
        .with("convention", convention)
}

/// The mode and the Laplace approximations of a cell's ranks.
fn laplace(cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let lenet = trained(cell, bench)?;
    let test = Pictures::new(&lenet.test).first(cell.count("test"));
    let alpha = cell.number("alpha");
    let mut network = network(&lenet, cell.count("curvature rows"), alpha)?
        .with_threads(lenet.train.threads(bench));
    let look = || bench.advance(0.9);
    let mode = network.at_mode();
    let at_mode = network.logits(&mode, false, &test.pixels, look)?;
    let at_mode = at_mode.scores(Averaged::Probabilities, &test.labels)?;
    let spectrum = leading(&mut network, &lenet, cell)?;
    let all = spectrum.values.len();
    let above = spectrum
        .values
        .iter()
        .filter(|&&value| value > alpha)
        .count();
    let mut found = vec![
        Row::of("spectra")
            .with("data", bench.data.shown(cell.text("data")))
            .with("rows", cell.count("curvature rows"))
            .with("pairs", all)
            .with("products", spectrum.products)
            .with("unconverged", spectrum.unconverged)
            .with(
                "largest",
                spectrum.values.first().copied().unwrap_or(f64::NAN),
            )
            .with("least", spectrum.values.last().copied().unwrap_or(f64::NAN))
            .with("above α", above),
    ];
    let ranks = cell
        .text("ranks")
        .split(' ')
        .filter_map(|rank| rank.parse().ok());
    let ranks: Vec<usize> = ranks.collect();
    let mut predict = |covariance: Covariance, rank, is_linearised| {
        let draws = covariance.draws(&lenet.mode, &spectrum, rank, cell);
        network.logits(&draws, is_linearised, &test.pixels, look)
    };
    for &rank in &ranks {
        let pairs = if rank == 0 { all } else { rank.min(all) };
        for convention in [DERIVED, PUBLISHED] {
            let row = start(cell, "map", pairs, convention, bench);
            found.push(at_mode.onto(row));
        }
        for (method, is_linearised) in [("sampled", false), ("linearised", true)] {
            for is_published in [false, true] {
                let covariance = Covariance::of(is_published, alpha);
                let logits = predict(covariance, rank, is_linearised)?;
                for averaged in [Averaged::Probabilities, Averaged::Logits] {
                    let convention = match (is_published, averaged) {
                        (false, Averaged::Probabilities) => DERIVED,
                        (false, Averaged::Logits) => LOGITS,
                        (true, Averaged::Probabilities) => HALF,
                        (true, Averaged::Logits) => PUBLISHED,
                    };
                    let row = start(cell, method, pairs, convention, bench);
                    found.push(logits.scores(averaged, &test.labels)?.onto(row));
                }
            }
        }
    }
    // α swept with the most eigenpairs
    for precision in PRECISIONS {
        for (method, is_linearised) in [("sampled", false), ("linearised", true)] {
            let logits = predict(Covariance::of(false, precision), 0, is_linearised)?;
            let row = start(cell, method, all, DERIVED, bench).in_table("alpha");
            let scores = logits.scores(Averaged::Probabilities, &test.labels)?;
            found.push(scores.onto(row.with("alpha", precision)));
        }
    }
    Ok(found)
}

/// Diffusions, after all their steps and after all but one.
fn diffusions(cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
    let lenet = trained(cell, bench)?;
    let test = Pictures::new(&lenet.test).first(cell.count("test"));
    let alpha = cell.number("alpha");
    let mut network = network(&lenet, cell.count("curvature rows"), alpha)?
        .with_threads(lenet.train.threads(bench));
    let (seed, paths) = (cell.long("seed"), cell.long("paths"));
    let advance = |done| bench.advance(0.95 * done);
    let ends = network.diffusions(diffusion(cell, alpha), seed, paths, advance)?;
    let least = ends.iter().map(|end| end.least_rank).min().unwrap_or(0);
    let unconverged: u64 = ends.iter().map(|end| end.unconverged).sum();
    let mut found = Vec::new();
    let mut add = |logits: &DrawnLogits, is_short: bool| -> Result<(), Failure> {
        for averaged in [Averaged::Probabilities, Averaged::Logits] {
            let convention = match (is_short, averaged) {
                (false, Averaged::Probabilities) => DERIVED,
                (false, Averaged::Logits) => LOGITS,
                (true, Averaged::Probabilities) => SHORT,
                (true, Averaged::Logits) => PUBLISHED,
            };
            let mut scores = logits.scores(averaged, &test.labels)?;
            if logits.draws.len() < 2 {
                for estimate in [&mut scores.nll, &mut scores.accuracy, &mut scores.brier] {
                    *estimate = estimate.clone().doubted(ONE_PATH);
                }
            }
            let pairs = match cell.count("rank") {
                0 => least,
                rank => rank,
            };
            let row = scores.onto(start(cell, "diffusion", pairs, convention, bench));
            let row = row.with("paths", paths).with("least pairs", least);
            found.push(row.with("unconverged", unconverged));
        }
        Ok(())
    };
    let (last, before): (Vec<_>, Vec<_>) = ends
        .into_iter()
        .map(|end| (end.position, end.before))
        .unzip();
    for (positions, is_short) in [(last, false), (before, true)] {
        let logits = network.logits(&positions, false, &test.pixels, || Ok(()))?;
        add(&logits, is_short)?;
    }
    Ok(found)
}

/// The rows of one data set's curvature.
struct Fit<'a> {
    table: &'a Table,
    data: &'a Value,
    rows: &'a Value,
}

impl Fit<'_> {
    /// Of each number of eigenpairs: the number and the estimate.
    fn by_pairs(&self, method: &str, convention: &str, column: &str) -> Vec<(f64, Estimate)> {
        let wanted = [
            ("data", self.data.clone()),
            ("rows", self.rows.clone()),
            ("method", method.into()),
            ("convention", convention.into()),
        ];
        let rows = self.table.select(&wanted).into_iter();
        let mut found: Vec<_> = rows
            .map(|row| (row.number("pairs"), row.estimate(column)))
            .collect();
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        found
    }

    fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for convention in [DERIVED, PUBLISHED] {
            let of = |method| self.by_pairs(method, convention, "nll");
            let [linearised, diffusion, sampled] = ["linearised", "diffusion", "sampled"].map(of);
            let (Some(fewest), Some(most)) = (diffusion.first(), diffusion.last()) else {
                continue;
            };
            for (pairs, own) in [fewest, most] {
                let at = |others: &[(f64, Estimate)]| {
                    let near = |a: &&(f64, Estimate), b: &&(f64, Estimate)| {
                        (a.0 - pairs).abs().total_cmp(&(b.0 - pairs).abs())
                    };
                    let found = others.iter().min_by(near);
                    found.map_or_else(|| Estimate::exact(f64::NAN), |found| found.1.clone())
                };
                let [linear, drawn] = [at(&linearised), at(&sampled)];
                let claim = format!(
                    "{}, {} rows, {pairs} eigenpairs, {convention}: the diffusion has a lower test NLL than",
                    self.data, self.rows
                );
                findings.push(
                    Finding::new(
                        format!("{claim} linearised Laplace"),
                        &Judgement::below(own, &linear),
                        format!("{own} against {linear}"),
                    )
                    .published("Table 1: it has, on every data set"),
                );
                findings.push(
                    Finding::new(
                        format!("{claim} sampled Laplace"),
                        &Judgement::below(own, &drawn),
                        format!("{own} against {drawn}"),
                    )
                    .published("Table 1: it has, on every data set"),
                );
            }
        }
        let accuracy = self.by_pairs("linearised", DERIVED, "accuracy");
        let values: Vec<Estimate> = accuracy.iter().map(|(_, value)| value.clone()).collect();
        let words = |all: &[(f64, Estimate)]| {
            let each = all
                .iter()
                .map(|(pairs, value)| format!("{value} at {pairs}"));
            each.collect::<Vec<_>>().join(", ")
        };
        findings.push(Finding::new(
            format!(
                "{}, {} rows: linearised Laplace is the more accurate the more eigenpairs",
                self.data, self.rows
            ),
            &Judgement::rises(&values),
            words(&accuracy),
        ));
        let nll = self.by_pairs("diffusion", DERIVED, "nll");
        let values: Vec<Estimate> = nll.iter().map(|(_, value)| value.clone()).collect();
        findings.push(Finding::new(
            format!(
                "{}, {} rows: the diffusion fits the worse the more eigenpairs it moves along",
                self.data, self.rows
            ),
            &Judgement::rises(&values),
            words(&nll),
        ));
        findings
    }
}
