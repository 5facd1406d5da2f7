//! Marceau-Caron & Ollivier (2017), Table 1: ensembles and posterior means of natural-gradient Langevin dynamics on MNIST, beside SGD and
//! dropout.
//!
//! As in the paper and its code: pixels from 0 to 1, two hidden layers of ReLU, batches of 100, weights from N(0, 1/fan-in) with the
//! prior N(0, 0.1) on them and N(0, 1) on biases, ε = 1e-4, averages with γ_t = 1/√t, step sizes halved every 10,000 updates (but those
//! of SGD and dropout), members of the ensemble every 101 updates from update 601 on, posterior means with μ_t = 1/√t. Neither their
//! step sizes nor the number of epochs are published; ours are the best of two or three. Below the full size Langevin dynamics
//! has fewer epochs, the halving comes as much sooner, and training scores are those of the first rows.

use std::sync::Arc;

use reprior::compute::{Purpose, Stream};
use reprior::model::likelihood::Categorical;
use reprior::network::{Activation, Composition};
use reprior::stochastic::average::{Averaging, PosteriorMean};
use reprior::stochastic::ensemble::Ensemble;
use reprior::stochastic::objective::Objective;
use reprior::stochastic::preconditioner::elementwise::Elementwise;
use reprior::stochastic::preconditioner::identity::Identity;
use reprior::stochastic::preconditioner::quasi_diagonal::QuasiDiagonal;
use reprior::stochastic::preconditioner::{Preconditioner, Regularisation};
use reprior::stochastic::update::StochasticGradient;
use reprior::stochastic::{Dynamics, Prior, StepSize, StochasticGradientSettings};

use crate::findings::results;
use crate::pictures::Pictures;
use crate::scores::Scores;
use crate::training::update;
use crate::{
    About, Bench, Cell, Experiment, Failure, Figure, Finding, Paper, Row, Size, Table, Value,
};

/// Table 1.
pub struct Table1;

/// Preconditioners, from none to most.
const PRECONDITIONERS: [&str; 4] = ["identity", "rmsprop", "diagonal", "quasi-diagonal"];

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

/// Step sizes for the built-in images and for MNIST, and epochs of the full size.
fn tuned(method: &str) -> ([f64; 2], usize) {
    match method {
        "identity" => ([0.5, 0.5], 50),
        "rmsprop" => ([0.01, 0.005], 20),
        "diagonal" => ([0.002, 0.0005], 25),
        "quasi-diagonal" => ([0.005, 0.0005], 40),
        _ => ([0.1, 0.1], 30),
    }
}

fn is_baseline(method: &str) -> bool {
    matches!(method, "sgd" | "dropout")
}

fn preconditioner(method: &str) -> Result<Box<dyn Preconditioner<f32>>, Failure> {
    Ok(match method {
        "sgd" | "dropout" | "identity" => Box::new(Identity),
        "rmsprop" => Box::new(Elementwise::rms_prop(Regularisation::default())),
        "diagonal" => Box::new(Elementwise::diagonal(Regularisation::default())),
        "quasi-diagonal" => Box::new(QuasiDiagonal::default()),
        other => return Err(Failure::Request(format!("unknown method `{other}`"))),
    })
}

/// A chain's settings.
fn settings(cell: &Cell, rows: usize) -> StochasticGradientSettings {
    let is_baseline = is_baseline(cell.text("method"));
    // 1e12: as good as none
    let [weights, biases] = if is_baseline { [1e12; 2] } else { [0.1, 1.0] };
    StochasticGradientSettings {
        step_size: cell.number("step size"),
        schedule: if is_baseline {
            StepSize::Constant
        } else {
            StepSize::Halving {
                every: cell.long("halve every"),
            }
        },
        batch: cell.count("batch").min(rows),
        dynamics: Dynamics::Langevin,
        decay: Default::default(),
        labels: Default::default(),
        priors: vec![Prior::Gaussian { weights, biases }],
        seed: cell.long("seed"),
        chain: 0,
        temperature: if is_baseline { 0.0 } else { 1.0 },
        dropout: if cell.text("method") == "dropout" {
            0.5
        } else {
            0.0
        },
    }
}

impl Experiment for Table1 {
    fn about(&self) -> About {
        About {
            name: "marceau2017-table1",
            paper: Paper::Marceau,
            figure: "Table 1",
            what: "NLL and accuracy of ensembles and posterior means of preconditioned Langevin dynamics, SGD and dropout",
            data: Some("mnist"),
            cost: ["10 seconds", "15 minutes", "10 hours", "10 hours"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let of = |quick: usize, default: usize, full: usize| size.pick(quick, default, full, full);
        let mut cells = Vec::new();
        for seed in 0..of(1, 1, 3) {
            for method in ["sgd", "dropout"].into_iter().chain(PRECONDITIONERS) {
                let (step_sizes, epochs) = tuned(method);
                // dropout pays only where SGD has begun to overfit
                let few = if is_baseline(method) { epochs } else { 6 };
                let step_size =
                    size.pick(step_sizes[0], step_sizes[1], step_sizes[1], step_sizes[1]);
                cells.push(
                    Row::new()
                        .with("method", method)
                        .with("seed", seed)
                        .with("hidden", of(100, 400, 400))
                        .with("step size", step_size)
                        .with("epochs", of(200, few, epochs))
                        .with("batch", 100_usize)
                        .with("halve every", of(1000, 1500, 10_000))
                        .with("from", of(601, 601, 601))
                        .with("every", of(41, 101, 101))
                        .with("train", of(1500, 60_000, 60_000))
                        .with("test", of(1000, 10_000, 10_000))
                        .with("scored", of(500, 5000, 60_000)),
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
        let (classes, hidden) = (split.train.targets.outputs(), cell.count("hidden"));
        let columns = split.train.columns;
        drop(split);
        let network =
            Composition::fully_connected(columns, &[hidden; 2], classes, Activation::Relu)
                .in_standard_parametrisation()?;
        let settings = settings(cell, train.rows);
        let threads = train.threads(bench);
        let objective = Objective::new(&network, train.minibatches(classes), threads)?;
        let mut stream = Stream::new(settings.seed, 0, Purpose::Initial, 0);
        let start: Vec<f32> = objective.layout().draw_by_fan_in(1.0, &mut stream);
        let mut mean = PosteriorMean::new(Averaging::Forgetting, start.len());
        let method = cell.text("method");
        let mut chain =
            StochasticGradient::new(objective, preconditioner(method)?, settings, start)?;
        let ensemble = |of: &Pictures| {
            let (likelihood, pixels) = (Arc::new(Categorical), Arc::clone(&of.pixels));
            Ensemble::new(&network, likelihood, pixels, threads).map_err(Failure::failed)
        };
        let mut ensembles = [ensemble(&scored)?, ensemble(&test)?];
        let updates = cell.long("epochs") * chain.updates_per_epoch();
        let (from, every) = (cell.long("from"), cell.long("every"));
        let advance = |done| bench.advance(done);
        update(&mut chain, updates, advance, |update, position| {
            mean.add(position);
            if !is_baseline(method) && update >= from && (update - from).is_multiple_of(every) {
                ensembles
                    .iter_mut()
                    .for_each(|ensemble| ensemble.add(position));
            }
        })?;
        let position = chain.state().position.clone();
        let mut rows = Vec::new();
        let predictors: &[&str] = if is_baseline(method) {
            &["last position"]
        } else {
            &["ensemble", "posterior mean", "last position"]
        };
        for &predictor in predictors {
            let mut row = cell
                .choices(&["method", "seed"])
                .with("predictor", predictor);
            let published = published(method, predictor).filter(|_| bench.data.path.is_some());
            let sides = ["train", "test"].into_iter().zip([&scored, &test]);
            for (at, ((side, pictures), ensemble)) in sides.zip(&mut ensembles).enumerate() {
                let probabilities = match predictor {
                    "ensemble" => ensemble.mean(),
                    "posterior mean" => ensemble.predict(&mean.mean).to_vec(),
                    _ => ensemble.predict(&position).to_vec(),
                };
                let scores = Scores::new(&probabilities, &pictures.labels, classes)?;
                let theirs = |index: usize| published.map_or(f64::NAN, |all| all[2 * at + index]);
                row = row
                    .with_estimate(&format!("{side} nll"), &scores.nll)
                    .with(&format!("published {side} nll"), theirs(0))
                    .with_estimate(&format!("{side} accuracy"), &scores.accuracy)
                    .with(&format!("published {side} accuracy"), theirs(1));
            }
            let members = match predictor {
                "ensemble" => Value::from(ensembles[1].members()),
                _ => Value::Missing,
            };
            rows.push(row.with("members", members));
        }
        Ok(rows)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let mean = |method: &str, predictor: &str, column: &str| {
            let wanted = [("method", method.into()), ("predictor", predictor.into())];
            table.mean(column, &wanted)
        };
        let test = |method: &str, predictor: &str| {
            ["test nll", "test accuracy"].map(|column| mean(method, predictor, column))
        };
        let words = |what: &str, [nll, accuracy]: [f64; 2]| {
            format!("{what} {} / {}", Value::from(nll), Value::from(accuracy))
        };
        let each = PRECONDITIONERS.map(|method| (method, test(method, "ensemble")));
        let best = each[3].1;
        let others = &each[..3];
        let mut findings = vec![Finding::unjudged(
            "of the ensembles the quasi-diagonal one has the best test NLL and accuracy",
            others
                .iter()
                .all(|(_, other)| best[0] < other[0] && best[1] > other[1]),
            each.map(|(method, scores)| words(method, scores))
                .join(", "),
        )];
        for method in PRECONDITIONERS {
            let [ensemble, at_mean] =
                ["ensemble", "posterior mean"].map(|predictor| test(method, predictor));
            findings.push(Finding::unjudged(
                format!("{method}: the ensemble is better than the posterior mean on test rows"),
                ensemble[0] < at_mean[0] && ensemble[1] > at_mean[1],
                format!(
                    "{}, {}",
                    words("ensemble", ensemble),
                    words("posterior mean", at_mean)
                ),
            ));
        }
        let [dropout, sgd] = ["dropout", "sgd"].map(|method| test(method, "last position"));
        findings.push(Finding::unjudged(
            "dropout has a better test NLL than SGD",
            dropout[0] < sgd[0],
            format!("{}, {}", words("dropout", dropout), words("sgd", sgd)),
        ));
        findings
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "scores",
                "Test rows: NLL and accuracy",
                "Left and up is better",
                ("test nll", "test NLL"),
                ("test accuracy", "test accuracy"),
                &["method", "predictor"],
            )
            .scatter(),
        ]
    }
}
