//! Marceau-Caron & Ollivier (2017), Table 1: ensembles and posterior means of natural-gradient Langevin dynamics on MNIST, beside SGD and
//! dropout.
//!
//! As in the paper and its code: pixels from 0 to 1, two hidden layers of ReLU, batches of 100, weights from N(0, 1/fan-in), priors of
//! variance 0.01, 0.1 or 1 on them and N(0, 1) on biases, ε = 1e-4, averages with γ_t = 1/√t, step sizes halved every 10,000 updates (but those
//! of SGD and dropout), members of the ensemble every 101 updates from update 601 on, posterior means with μ_t = 1/√t. Step size and
//! prior are those of the best accuracy on validation rows, the last 10,000 training rows, over the paper's grid, seed by seed; then
//! the network is trained on all rows. The number of epochs is not published: 40 here. Below the full size the runs of the grid
//! are shorter than the run itself, and the halving comes as much sooner.

use super::paired::{BLOCKS, Predictor, blocks, difference};
use super::runs::{CONJUGATE, Runs, SELECTION, VARIANCES, is_baseline};
use crate::pictures::Pictures;
use crate::scores::Scores;
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Judgement, Paper, Row,
    Size, Table, Value,
};

/// Table 1.
pub struct Table1;

/// Preconditioners, from none to most.
const PRECONDITIONERS: [&str; 4] = ["identity", "rmsprop", "diagonal", "quasi-diagonal"];
const QUASI_DIAGONAL: &str = PRECONDITIONERS[3];
/// Priors of which the grid has the best.
const GAUSSIAN: &str = "gaussian";
const ENSEMBLE: &str = "ensemble";
const POSTERIOR_MEAN: &str = "posterior mean";
const LAST: &str = "last position";

/// NLL and accuracy on training rows, on test rows.
fn published(method: &str, predictor: &str) -> Option<[f64; 4]> {
    Some(match (method, predictor) {
        ("sgd", _) => [0.0003, 1.0, 0.0584, 0.9824],
        ("dropout", _) => [0.0006, 1.0, 0.0519, 0.9861],
        ("identity", "ensemble") => [0.0357, 0.9963, 0.0726, 0.9810],
        ("rmsprop", "ensemble") => [0.0415, 0.9947, 0.0742, 0.9817],
        ("diagonal", "ensemble") => [0.0292, 0.9969, 0.0660, 0.9813],
        ("quasi-diagonal", "ensemble") => [0.0229, 0.9985, 0.0591, 0.9838],
        ("identity", "posterior mean") => [0.0281, 0.9912, 0.1240, 0.9716],
        ("rmsprop", "posterior mean") => [0.0299, 0.9907, 0.1134, 0.9721],
        ("diagonal", "posterior mean") => [0.0243, 0.9920, 0.1389, 0.9720],
        ("quasi-diagonal", "posterior mean") => [0.0292, 0.9960, 0.3429, 0.9814],
        _ => return None,
    })
}

impl Experiment for Table1 {
    fn about(&self) -> About {
        About {
            name: "marceau2017-table1",
            paper: Paper::Marceau,
            figure: "Table 1",
            what: "NLL and accuracy of ensembles and posterior means of preconditioned Langevin dynamics, SGD and dropout, three seeds, step size and prior by validation accuracy over the paper's grid, of those that do not diverge; default: 6 epochs, of the grid 1; long: 40 and 3; quick: 1,500 built-in images, 30 units a layer, 40 epochs",
            data: Some("mnist"),
            cost: ["15 s", "10 min", "2 h", "15 h"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let of = |quick: usize, default: usize, long: usize, full: usize| {
            size.pick(quick, default, long, full)
        };
        let baselines = ["sgd", "dropout"].map(|method| (method, "none"));
        let langevin = PRECONDITIONERS.map(|method| (method, GAUSSIAN));
        let all = baselines
            .into_iter()
            .chain(langevin)
            .chain([(QUASI_DIAGONAL, CONJUGATE)]);
        let mut cells = Vec::new();
        for seed in 0..3_usize {
            for (method, prior) in all.clone() {
                cells.push(
                    Row::new()
                        .with("method", method)
                        .with("prior", prior)
                        .with("seed", seed)
                        .with("hidden", of(30, 400, 400, 400))
                        .with("epochs", of(40, 6, 40, 40))
                        .with("selection epochs", of(4, 1, 3, 40))
                        .with("batch", 100_usize)
                        .with("halve every", of(300, 1500, 10_000, 10_000))
                        .with("from", of(301, 601, 601, 601))
                        .with("every", of(11, 101, 101, 101))
                        .with("train", of(1500, 60_000, 60_000, 60_000))
                        .with("validation", of(300, 10_000, 10_000, 10_000))
                        .with("test", of(1000, 10_000, 10_000, 10_000))
                        .with("scored", of(500, 5000, 10_000, 60_000)),
                );
            }
        }
        cells
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let split = bench.data.split("mnist")?;
        let train = Pictures::new(&split.train).first(cell.count("train"));
        let test = Pictures::new(&split.test).first(cell.count("test"));
        let scored = train.first(cell.count("scored"));
        let classes = split.train.targets.outputs();
        drop(split);
        let runs = Runs::new(cell, &train, classes, bench)?;
        let (choices, mut rows) = runs.select(&train)?;
        let (choice, mut ended) = runs.whole(choices, &train, &[&scored, &test])?;
        let method = cell.text("method");
        let predictors: &[&str] = if is_baseline(method) {
            &[LAST]
        } else {
            &[ENSEMBLE, POSTERIOR_MEAN, LAST]
        };
        for &predictor in predictors {
            let choices = cell
                .choices(&["method", "prior", "seed"])
                .with("predictor", predictor);
            let mut row = choices
                .clone()
                .with("chosen prior", choice.name.as_str())
                .with("step size", choice.step_size);
            let is_papers = bench.data.path.is_some() && cell.text("prior") != CONJUGATE;
            let published = published(method, predictor).filter(|_| is_papers);
            let sides = ["train", "test"].into_iter().zip([&scored, &test]);
            for (at, ((side, pictures), ensemble)) in sides.zip(&mut ended.ensembles).enumerate() {
                let probabilities = match predictor {
                    ENSEMBLE => ensemble.mean(),
                    POSTERIOR_MEAN => ensemble.predict(&ended.mean).to_vec(),
                    _ => ensemble.predict(&ended.position).to_vec(),
                };
                if side == "test" {
                    rows.push(blocks(&choices, &probabilities, &pictures.labels, classes)?);
                }
                let scores = Scores::new(&probabilities, &pictures.labels, classes)?;
                let theirs = |index: usize| published.map_or(f64::NAN, |all| all[2 * at + index]);
                row = row
                    .with_estimate(&format!("{side} nll"), &scores.nll)
                    .with(&format!("published {side} nll"), theirs(0))
                    .with_estimate(&format!("{side} accuracy"), &scores.accuracy)
                    .with(&format!("published {side} accuracy"), theirs(1));
            }
            let members = match predictor {
                ENSEMBLE => Value::from(ended.ensembles[1].members()),
                _ => Value::Missing,
            };
            rows.push(row.with("members", members));
        }
        Ok(rows)
    }

    fn judged_tables(&self) -> &'static [&'static str] {
        &[Row::RESULTS, BLOCKS, SELECTION]
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let ensemble = |method| [method, GAUSSIAN, ENSEMBLE];
        let quasi_diagonal = ensemble(QUASI_DIAGONAL);
        let mut findings = vec![
            better(
                tables,
                "of the ensembles the quasi-diagonal one has the best test NLL and accuracy",
                &PRECONDITIONERS[..3]
                    .iter()
                    .map(|&method| (quasi_diagonal, ensemble(method)))
                    .collect::<Vec<_>>(),
            )
            .published("0.0591 / 0.9838 against 0.0660-0.0742 / 0.9810-0.9817 (Table 1)"),
        ];
        for method in PRECONDITIONERS {
            findings.push(
                better(
                    tables,
                    format!(
                        "{method}: the ensemble is better than the posterior mean on test rows"
                    ),
                    &[(ensemble(method), [method, GAUSSIAN, POSTERIOR_MEAN])],
                )
                .published("so for all four (Table 1)"),
            );
        }
        let [dropout, sgd] = ["dropout", "sgd"].map(|method| [method, "none", LAST]);
        findings.push(
            better(
                tables,
                "dropout is better than SGD on test rows",
                &[(dropout, sgd)],
            )
            .published("0.0519 / 0.9861 against 0.0584 / 0.9824 (Table 1)"),
        );
        let worse = PRECONDITIONERS[..3].iter().map(|&method| ensemble(method));
        let means = PRECONDITIONERS
            .iter()
            .map(|&method| [method, GAUSSIAN, POSTERIOR_MEAN]);
        findings.push(
            better(
                tables,
                "dropout is better than every posterior mean and every ensemble but the quasi-diagonal one",
                &means.chain(worse).map(|other| (dropout, other)).collect::<Vec<_>>(),
            )
            .published("so (Table 1)"),
        );
        findings.extend(diagonal(tables));
        findings.push(conjugate(tables));
        findings
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "scores",
                "Test rows: NLL and accuracy",
                "Left and up is better; a point of each seed",
                ("test nll", "test NLL"),
                ("test accuracy", "test accuracy"),
                &["method", "prior", "predictor"],
            )
            .published_at("published test nll", "published test accuracy")
            .scatter(),
        ]
    }
}

/// That in every pair the first has the better NLL and accuracy on test rows.
fn better(
    tables: &[Table],
    claim: impl Into<String>,
    pairs: &[(Predictor<'_>, Predictor<'_>)],
) -> Finding {
    let (mut judged, mut words) = (Vec::new(), Vec::new());
    let none = Estimate::exact(0.0);
    for &(first, second) in pairs {
        let nll = difference(tables, "nll", first, second);
        let accuracy = difference(tables, "accuracy", first, second);
        words.push(format!(
            "{} less {}: NLL {nll}, accuracy {accuracy}",
            named(first),
            named(second)
        ));
        judged.extend([
            Judgement::below(&nll, &none),
            Judgement::above(&accuracy, &none),
        ]);
    }
    Finding::new(claim, &Judgement::all(judged), words.join("; "))
}

/// `rmsprop, ensemble`, the prior only where it is not the Gaussian one.
fn named([method, prior, predictor]: Predictor<'_>) -> String {
    match (prior, predictor) {
        (CONJUGATE, _) => format!("{method}, {prior}, {predictor}"),
        (_, LAST) => method.to_owned(),
        _ => format!("{method}, {predictor}"),
    }
}

/// That the diagonal metric has no advantage over RMSProp, in accuracy, which is what hyperparameters are chosen by, and in NLL.
///
/// None: less than half of the advantage that Table 1 publishes of the quasi-diagonal metric over RMSProp.
fn diagonal(tables: &[Table]) -> Vec<Finding> {
    let [diagonal, rmsprop] = ["diagonal", "rmsprop"].map(|method| [method, GAUSSIAN, ENSEMBLE]);
    let half_advantage = |at: usize| {
        let of = |method: &str| published(method, ENSEMBLE).map_or(f64::NAN, |all| all[at]);
        0.5 * (of(QUASI_DIAGONAL) - of("rmsprop")).abs()
    };
    let finding = |measure: &str, sign: f64, margin: f64, published: &str| {
        let gain = difference(tables, measure, diagonal, rmsprop).times(sign);
        Finding::new(
            format!("the ensemble of the diagonal metric is no better in test {measure} than that of RMSProp: by less than half of the advantage that is published of the quasi-diagonal one"),
            &Judgement::below(&gain, &Estimate::exact(margin)),
            format!("better by {gain}, margin {}", Value::from(margin)),
        )
        .published(published)
    };
    vec![
        finding(
            "accuracy",
            1.0,
            half_advantage(3),
            "no advantage in the text; 0.9813 against 0.9817 (Table 1)",
        ),
        finding(
            "nll",
            -1.0,
            half_advantage(2),
            "no advantage in the text; but 0.0660 against 0.0742 (Table 1)",
        ),
    ]
}

/// That the prior whose variances are integrated out needs no grid: its validation NLL is better than the mean over the variances, each at
/// its own best step size.
fn conjugate(tables: &[Table]) -> Finding {
    let empty = Vec::new();
    let rows = (tables.iter())
        .find(|table| table.name == SELECTION)
        .map_or(&empty, |table| &table.rows);
    let best = |prior: &str, seed: f64| {
        let own = rows.iter().filter(|row| {
            row.text("method") == QUASI_DIAGONAL
                && row.word("prior") == prior
                && row.number("seed") == seed
        });
        let values = own.map(|row| row.number("validation nll"));
        values
            .filter(|nll| nll.is_finite())
            .fold(f64::INFINITY, f64::min)
    };
    let mut seeds: Vec<f64> = rows.iter().map(|row| row.number("seed")).collect();
    seeds.sort_by(f64::total_cmp);
    seeds.dedup();
    let (mut gains, mut words) = (Vec::new(), Vec::new());
    for seed in seeds {
        let gaussian = VARIANCES.map(|variance| best(&variance.to_string(), seed));
        let own = best(CONJUGATE, seed);
        gains.push(gaussian.iter().sum::<f64>() / 3.0 - own);
        words.push(format!(
            "{} against {}",
            Value::from(own),
            gaussian.map(|nll| Value::from(nll).to_string()).join(", ")
        ));
    }
    let gain = Estimate::mean(&gains);
    Finding::new(
        "quasi-diagonal: a normal-inverse-gamma prior has a better validation NLL than Gaussian ones have in the mean over the variances 0.01, 0.1, 1",
        &Judgement::above(&gain, &Estimate::exact(0.0)),
        format!("better by {gain}; seed by seed: {}", words.join("; ")),
    )
    .published("close enough to the best variance that none need be chosen (in the text, without numbers)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    /// The claim about priors, of tables as they are measured and as they are read again.
    #[test]
    fn priors_are_told_apart_in_tables_that_were_kept() {
        let row = |seed: usize, prior: &str, nll: f64| {
            Row::of(SELECTION)
                .with("method", QUASI_DIAGONAL)
                .with("seed", seed)
                .with("prior", prior)
                .with("validation nll", nll)
        };
        let mut rows = Vec::new();
        for seed in 0..3 {
            for variance in VARIANCES {
                rows.push(row(seed, &variance.to_string(), 0.2 + 0.001 * seed as f64));
            }
            rows.push(row(seed, CONJUGATE, 0.1));
        }
        let measured = Table::all(rows);
        let kept = Table::of_csv(SELECTION, &measured[0].csv()).unwrap();
        let finding = conjugate(&measured);
        assert_eq!(finding.verdict, Verdict::Holds);
        assert_eq!(conjugate(&[kept]), finding);
    }
}
