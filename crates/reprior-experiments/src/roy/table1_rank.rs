//! What Roy, Miani et al. (2024), Table 1, rests on: fit against the number of eigenpairs of the curvature, for sampled and linearised
//! Laplace and the Laplace diffusion, with the conventions of the equations and with those of the published code.
//!
//! The table's claim is that the diffusion fits better than linearised Laplace. A cut at k eigenpairs acts on the two in opposite ways: it
//! holds the diffusion, which moves along these k only, near the mode, and it gives linearised Laplace the prior's variance in all other
//! directions. So the order depends on k; on α, which is that of training or, as theirs, the one with which sampled Laplace predicts
//! validation images best; and on the conventions: half the covariance, T − 1 steps, and averaged logits.
//!
//! Draws of Laplace approximations with fewer eigenpairs are of the leading ones of one decomposition; diffusions are run for each number.
//! All eigenpairs are those of the first 300 images, which stand for the others: more of them than the network has weights cannot be had
//! exactly.

use super::fit_by_rank::{DERIVED, Fit, TRAINED, TUNED, conventions};
use super::lenet::{LeNet, begin, settings, trained};
use super::low_rank::{Covariance, diffusion, leading, tuned_precision};
use super::methods::{PRECISIONS, PUBLISHED, network};
use crate::findings::results;
use crate::pictures::Pictures;
use crate::scores::{Averaged, DrawnLogits, Scores};
use crate::{About, Bench, Cell, Experiment, Failure, Figure, Finding, Paper, Row, Size, Table};

/// Fit against the number of eigenpairs.
pub struct Table1Rank;

const ONE_PATH: &str = "of one path it is not known how much paths differ";

/// Eigenpairs (0: all), paths of diffusions and their steps.
type Rank = (usize, usize, usize);

impl Experiment for Table1Rank {
    fn about(&self) -> About {
        About {
            name: "roy2024-table1-rank",
            paper: Paper::Roy,
            figure: "Table 1, against the rank",
            what: "test NLL and accuracy of LeNet's sampled and linearised Laplace approximations and Laplace diffusions against the number of eigenpairs of the curvature, with the α of training and that of validation, with the conventions of the equations and of the published code; one seed; default: up to 500 pairs of 1,000 rows, five steps; long: up to 2,000 pairs of 10,000 rows, three to five steps, one path from 1,000 pairs on; full: 60,000 rows, 20 steps, 20 paths",
            data: Some("mnist"),
            cost: ["20 s", "75 min", "8 h", "months"],
        }
    }

    fn data(&self, size: Size) -> Vec<&'static str> {
        let both = vec!["mnist", "fashion-mnist"];
        size.pick(vec!["mnist"], vec!["mnist"], both.clone(), both)
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let long: &[Rank] = &[
            (50, 5, 5),
            (150, 5, 5),
            (500, 3, 3),
            (1000, 1, 3),
            (2000, 1, 3),
        ];
        let full: &[Rank] = &[
            (50, 20, 20),
            (150, 20, 20),
            (500, 20, 20),
            (1000, 20, 20),
            (2000, 20, 20),
        ];
        let ranks: Vec<(usize, &[Rank])> = size.pick(
            vec![(80, &[(20, 5, 2), (200, 5, 2)])],
            vec![(1000, &[(50, 5, 5), (150, 5, 5), (500, 3, 5)])],
            vec![(10_000, long), (300, &[(50, 5, 5), (500, 5, 5), (0, 5, 5)])],
            vec![(60_000, full)],
        );
        let mut cells = Vec::new();
        for data in self.data(size) {
            for &(rows, ranks) in &ranks {
                let all = ranks.iter().map(|&(rank, ..)| rank);
                let most = all.max_by_key(|&rank| if rank == 0 { usize::MAX } else { rank });
                let base = || settings(size, data, 0).replaced("curvature rows", rows);
                let most = base().replaced("rank", most.unwrap_or(0));
                let names: Vec<String> = ranks.iter().map(|(rank, ..)| rank.to_string()).collect();
                cells.push(
                    most.with("method", "laplace")
                        .with("ranks", names.join(" ")),
                );
                for &(rank, paths, steps) in ranks {
                    let cell = base()
                        .replaced("rank", rank)
                        .replaced("paths", paths)
                        .replaced("steps", steps)
                        .with("method", "diffusion");
                    // one after the other, so that both have one decomposition at the mode
                    cells.extend(cell.each("α of", &[TRAINED, TUNED]));
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
            let work = cell.count("paths") * cell.count("steps") * rank * rows;
            usize::from(is_diffusion) * work
        });
        cells
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let lenet = trained(cell, bench)?;
        let test = Pictures::new(&lenet.test).first(cell.count("test"));
        let own = Measurement {
            cell,
            bench,
            lenet: &lenet,
            test: &test,
        };
        match cell.text("method") {
            "laplace" => own.laplace(),
            _ => own.diffusions(),
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
            .panels("conventions")
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

/// A cell with what it is measured with.
struct Measurement<'a> {
    cell: &'a Cell,
    bench: &'a Bench<'a>,
    lenet: &'a LeNet,
    test: &'a Pictures,
}

impl Measurement<'_> {
    /// Rows of the curvature: as many as there are, at most.
    fn rows(&self) -> usize {
        self.cell.count("curvature rows").min(self.lenet.train.rows)
    }

    /// A row of scores. What is neither all of the equations' conventions nor all of the published ones is in a table of its own.
    fn row(&self, method: &str, pairs: usize, convention: &str, choice: &str) -> Row {
        let row = begin(&self.cell.replaced("method", method), self.bench)
            .with("rows", self.rows())
            .with("pairs", pairs)
            .with("conventions", conventions(convention, choice));
        match [DERIVED, PUBLISHED].contains(&convention) {
            true => row,
            false => row.in_table("single conventions"),
        }
    }

    /// The mode and the Laplace approximations of a cell's ranks.
    fn laplace(&self) -> Result<Vec<Row>, Failure> {
        let cell = self.cell;
        let alpha = cell.number("alpha");
        let network = network(self.lenet, cell.count("curvature rows"), alpha)?;
        let mut network = network.with_threads(self.lenet.threads);
        let look = || self.bench.advance(0.9);
        let labels = &self.test.labels;
        let mode = network.at_mode();
        let at_mode = network.logits(&mode, false, &self.test.pixels, look)?;
        let at_mode = at_mode.scores(Averaged::Probabilities, labels)?;
        let spectrum = leading(&mut network, self.lenet, cell, self.bench.stop)?;
        let all = spectrum.values.len();
        let values = spectrum.values.iter();
        let above = values.filter(|&&value| value > alpha).count();
        let [first, last] = [spectrum.values.first(), spectrum.values.last()];
        let mut found = vec![
            Row::of("spectra")
                .with("data", self.bench.data.shown(cell.text("data")))
                .with("trained on", self.lenet.train.rows)
                .with("rows", self.rows())
                .with("pairs", all)
                .with("products", spectrum.products)
                .with("unconverged", spectrum.unconverged)
                .with("largest", first.copied().unwrap_or(f64::NAN))
                .with("least", last.copied().unwrap_or(f64::NAN))
                .with("above α", above),
        ];
        let ranks = cell.text("ranks").split(' ');
        let ranks: Vec<usize> = ranks.filter_map(|rank| rank.parse().ok()).collect();
        for &rank in &ranks {
            let pairs = if rank == 0 { all } else { rank.min(all) };
            let tuned = tuned_precision(&mut network, self.lenet, &spectrum, rank, false, cell)?;
            for (choice, alpha) in [(TRAINED, alpha), (TUNED, tuned)] {
                for convention in [DERIVED, PUBLISHED] {
                    let row = self.row("map", pairs, convention, choice);
                    found.push(at_mode.onto(row).with("alpha", alpha));
                }
                for (method, is_linearised) in [("sampled", false), ("linearised", true)] {
                    for is_published in [false, true] {
                        let covariance = Covariance::of(is_published, alpha);
                        let draws = covariance.draws(&self.lenet.mode, &spectrum, rank, cell);
                        let logits =
                            network.logits(&draws, is_linearised, &self.test.pixels, look)?;
                        for (convention, scores) in
                            self.scores(&logits, is_published.then_some("half the covariance"))?
                        {
                            let row = self.row(method, pairs, convention, choice);
                            found.push(scores.onto(row).with("alpha", alpha));
                        }
                    }
                }
            }
        }
        // α swept with the most eigenpairs
        for precision in PRECISIONS {
            for (method, is_linearised) in [("sampled", false), ("linearised", true)] {
                let draws = Covariance::of(false, precision);
                let draws = draws.draws(&self.lenet.mode, &spectrum, 0, cell);
                let logits = network.logits(&draws, is_linearised, &self.test.pixels, look)?;
                let row = self.row(method, all, DERIVED, TRAINED).in_table("alpha");
                let scores = logits.scores(Averaged::Probabilities, labels)?;
                found.push(scores.onto(row.with("alpha", precision)));
            }
        }
        Ok(found)
    }

    /// Scores of averaged probabilities and of averaged logits with what these are called: draws are those of the equations, or differ
    /// by one published convention.
    fn scores(
        &self,
        logits: &DrawnLogits,
        differs: Option<&'static str>,
    ) -> Result<[(&'static str, Scores); 2], Failure> {
        let names = match differs {
            None => [DERIVED, "logits averaged"],
            Some(convention) => [convention, PUBLISHED],
        };
        let of = |averaged| logits.scores(averaged, &self.test.labels);
        let [probabilities, averages] = [of(Averaged::Probabilities)?, of(Averaged::Logits)?];
        Ok([(names[0], probabilities), (names[1], averages)])
    }

    /// Diffusions, after all their steps and after all but one.
    fn diffusions(&self) -> Result<Vec<Row>, Failure> {
        let cell = self.cell;
        let network = network(
            self.lenet,
            cell.count("curvature rows"),
            cell.number("alpha"),
        )?;
        let mut network = network.with_threads(self.lenet.threads);
        let at_mode = leading(&mut network, self.lenet, cell, self.bench.stop)?;
        let rank = cell.count("rank");
        let choice = cell.text("α of");
        let alpha = match choice {
            TUNED => tuned_precision(&mut network, self.lenet, &at_mode, rank, false, cell)?,
            _ => cell.number("alpha"),
        };
        let (seed, paths) = (cell.long("seed"), cell.long("paths"));
        let advance = |done| self.bench.advance(0.95 * done);
        let settings = diffusion(cell, alpha);
        let ends = network.diffusions(settings, Some(at_mode), seed, paths, advance)?;
        let least = ends.iter().map(|end| end.least_rank).min().unwrap_or(0);
        let unconverged: u64 = ends.iter().map(|end| end.unconverged).sum();
        let pairs = if rank == 0 { least } else { rank };
        let (last, before): (Vec<_>, Vec<_>) = ends
            .into_iter()
            .map(|end| (end.position, end.before))
            .unzip();
        let mut found = Vec::new();
        for (positions, differs) in [(last, None), (before, Some("T − 1 steps"))] {
            let logits = network.logits(&positions, false, &self.test.pixels, || Ok(()))?;
            for (convention, mut scores) in self.scores(&logits, differs)? {
                if paths < 2 {
                    for estimate in [&mut scores.nll, &mut scores.accuracy, &mut scores.brier] {
                        *estimate = estimate.clone().doubted(ONE_PATH);
                    }
                }
                let row = scores.onto(self.row("diffusion", pairs, convention, choice));
                let row = row.with("alpha", alpha).with("paths", paths);
                let row = row.with("steps", cell.long("steps"));
                found.push(
                    row.with("least pairs", least)
                        .with("unconverged", unconverged),
                );
            }
        }
        Ok(found)
    }
}
