//! Networks of Table 1, trained: with a step size and a prior that are given, or that a validation grid has chosen.

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

use crate::pictures::Pictures;
use crate::scores::Scores;
use crate::training::update;
use crate::{Bench, Cell, Failure, Row};

/// The table of choices by validation rows.
pub(super) const SELECTION: &str = "selection";
/// Variances of Gaussian priors on weights that are tried; biases have variance 1, as in the paper's code.
pub(super) const VARIANCES: [f64; 3] = [0.01, 0.1, 1.0];
/// The prior whose variances are integrated out.
pub(super) const CONJUGATE: &str = "normal-inverse-gamma";

pub(super) fn is_baseline(method: &str) -> bool {
    matches!(method, "sgd" | "dropout")
}

/// Step sizes that are tried.
fn step_sizes(method: &str) -> [f64; 4] {
    match method {
        "sgd" | "dropout" | "identity" => [0.001, 0.01, 0.1, 1.0],
        _ => [0.0001, 0.001, 0.01, 0.1],
    }
}

/// Priors that are tried, each with its name.
fn priors(cell: &Cell) -> Vec<(String, Prior)> {
    let gaussian = |weights: f64, biases: f64| Prior::Gaussian { weights, biases };
    if is_baseline(cell.text("method")) {
        // 1e12: as good as none
        return vec![("none".to_owned(), gaussian(1e12, 1e12))];
    }
    if cell.text("prior") == CONJUGATE {
        let prior = Prior::NormalInverseGamma {
            shape: 1.0,
            rate: 1.0,
            mean: 0.0,
        };
        return vec![(CONJUGATE.to_owned(), prior)];
    }
    VARIANCES
        .map(|variance| (variance.to_string(), gaussian(variance, 1.0)))
        .into()
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

/// What a run is made of, but its rows.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    /// η₀.
    pub step_size: f64,
    /// The prior's name.
    pub name: String,
    prior: Prior,
}

/// How long a run is.
#[derive(Debug, Clone, Copy)]
struct Length {
    epochs: u64,
    /// Updates after which the step size is halved.
    halve_every: u64,
    /// The ensemble's first member.
    from: u64,
}

/// Where a run ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// The last position.
    pub position: Vec<f32>,
    /// The posterior mean.
    pub mean: Vec<f32>,
    /// Predictions of the rows that were watched.
    pub ensembles: Vec<Ensemble<f32>>,
}

/// Runs of a cell.
pub(super) struct Runs<'a> {
    cell: &'a Cell,
    network: Composition,
    classes: usize,
    threads: usize,
    bench: &'a Bench<'a>,
}

impl<'a> Runs<'a> {
    /// Of a cell whose images have so many pixels and classes.
    ///
    /// # Errors
    /// A network that does not fit.
    pub fn new(
        cell: &'a Cell,
        train: &Pictures,
        classes: usize,
        bench: &'a Bench<'a>,
    ) -> Result<Self, Failure> {
        let hidden = [cell.count("hidden"); 2];
        let network =
            Composition::fully_connected(train.columns(), &hidden, classes, Activation::Relu);
        Ok(Self {
            cell,
            network: network.in_standard_parametrisation()?,
            classes,
            threads: train.threads(bench),
            bench,
        })
    }

    /// Step sizes with priors, by accuracy on the last rows after runs of few epochs on the others, the best first; and what every pair came to, as
    /// rows of the table `selection`. Langevin dynamics is judged by its ensemble. A run that leaves the range of numbers is none.
    ///
    /// # Errors
    /// What every run failed of; a request to stop.
    pub fn select(&self, train: &Pictures) -> Result<(Vec<Choice>, Vec<Row>), Failure> {
        let held_out = self.cell.count("validation");
        let rows = train.rows.saturating_sub(held_out);
        let (own, validation) = (train.first(rows), train.part(rows, held_out));
        let method = self.cell.text("method");
        let [epochs, whole] = ["selection epochs", "epochs"].map(|name| self.cell.long(name));
        let updates = epochs * (rows.div_ceil(self.cell.count("batch")) as u64);
        let length = Length {
            epochs,
            // as much sooner as the run is shorter
            halve_every: (self.cell.long("halve every") * epochs / whole).max(1),
            from: self.cell.long("from").min(updates / 2),
        };
        let (mut ranked, mut table) = (Vec::new(), Vec::new());
        let mut failure = Failure::failed("no step size was tried");
        for (name, prior) in priors(self.cell) {
            for step_size in step_sizes(method) {
                let choice = Choice {
                    step_size,
                    name: name.clone(),
                    prior,
                };
                let scores = match self.run(&choice, length, &own, &[&validation]) {
                    Ok(mut ended) => self.score(&mut ended, &validation),
                    Err(error) => Err(error),
                };
                let [nll, accuracy] = match scores {
                    Ok(scores) => [scores.nll.value, scores.accuracy.value],
                    Err(Failure::Stopped) => return Err(Failure::Stopped),
                    Err(error) => {
                        failure = error;
                        [f64::NAN; 2]
                    }
                };
                if accuracy.is_finite() {
                    ranked.push((choice, [accuracy, nll]));
                }
                table.push(
                    Row::of(SELECTION)
                        .with("method", method)
                        .with("seed", self.cell.long("seed"))
                        .with("prior", name.as_str())
                        .with("step size", step_size)
                        .with("validation nll", nll)
                        .with("validation accuracy", accuracy),
                );
            }
        }
        if ranked.is_empty() {
            return Err(failure);
        }
        // stable: of equals the first
        ranked.sort_by(|(_, [a, a_nll]), (_, [b, b_nll])| {
            b.total_cmp(a).then(a_nll.total_cmp(b_nll))
        });
        Ok((
            ranked.into_iter().map(|(choice, _)| choice).collect(),
            table,
        ))
    }

    /// The run of the whole length, with ensembles for `watched`, of the first choice with which it stays in the range of numbers: a step size
    /// that few epochs bear may be too large for others.
    ///
    /// # Errors
    /// What the run with the last choice failed of; a request to stop.
    pub fn whole(
        &self,
        choices: Vec<Choice>,
        train: &Pictures,
        watched: &[&Pictures],
    ) -> Result<(Choice, Ended), Failure> {
        let length = Length {
            epochs: self.cell.long("epochs"),
            halve_every: self.cell.long("halve every"),
            from: self.cell.long("from"),
        };
        let mut failure = Failure::failed("no step size was chosen");
        for choice in choices {
            match self.run(&choice, length, train, watched) {
                Ok(ended) => return Ok((choice, ended)),
                Err(Failure::Stopped) => return Err(Failure::Stopped),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    fn run(
        &self,
        choice: &Choice,
        length: Length,
        train: &Pictures,
        watched: &[&Pictures],
    ) -> Result<Ended, Failure> {
        let method = self.cell.text("method");
        let objective =
            Objective::new(&self.network, train.minibatches(self.classes), self.threads)?;
        let settings = self.settings(choice, length, train.rows);
        let mut stream = Stream::new(settings.seed, 0, Purpose::Initial, 0);
        let start: Vec<f32> = objective.layout().draw_by_fan_in(1.0, &mut stream);
        let mut mean = PosteriorMean::new(Averaging::Forgetting, start.len());
        let mut chain =
            StochasticGradient::new(objective, preconditioner(method)?, settings, start)?;
        let ensemble = |of: &&Pictures| {
            let (likelihood, pixels) = (Arc::new(Categorical), Arc::clone(&of.pixels));
            Ensemble::new(&self.network, likelihood, pixels, self.threads).map_err(Failure::failed)
        };
        let mut ensembles = watched
            .iter()
            .map(ensemble)
            .collect::<Result<Vec<_>, _>>()?;
        let updates = length.epochs * chain.updates_per_epoch();
        let every = self.cell.long("every");
        let advance = |done| self.bench.advance(done);
        update(&mut chain, updates, advance, |update, position| {
            mean.add(position);
            let is_member = update >= length.from && (update - length.from).is_multiple_of(every);
            if !is_baseline(method) && is_member {
                let each = ensembles.iter_mut();
                each.for_each(|ensemble| ensemble.add(position));
            }
        })?;
        Ok(Ended {
            position: chain.state().position.clone(),
            mean: mean.mean,
            ensembles,
        })
    }

    /// Scores of the ensemble, or of the last position of a baseline, for the only rows that were watched.
    fn score(&self, ended: &mut Ended, pictures: &Pictures) -> Result<Scores, Failure> {
        let probabilities = match is_baseline(self.cell.text("method")) {
            true => ended.ensembles[0].predict(&ended.position).to_vec(),
            false => ended.ensembles[0].mean(),
        };
        Scores::new(&probabilities, &pictures.labels, self.classes)
    }

    fn settings(&self, choice: &Choice, length: Length, rows: usize) -> StochasticGradientSettings {
        let method = self.cell.text("method");
        let is_baseline = is_baseline(method);
        StochasticGradientSettings {
            step_size: choice.step_size,
            schedule: if is_baseline {
                StepSize::Constant
            } else {
                StepSize::Halving {
                    every: length.halve_every,
                }
            },
            batch: self.cell.count("batch").min(rows),
            dynamics: Dynamics::Langevin,
            decay: Default::default(),
            labels: Default::default(),
            priors: vec![choice.prior],
            seed: self.cell.long("seed"),
            chain: 0,
            temperature: if is_baseline { 0.0 } else { 1.0 },
            dropout: if method == "dropout" { 0.5 } else { 0.0 },
        }
    }
}
