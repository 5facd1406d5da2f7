//! LeNet with tanh, trained to the mode as Roy, Miani et al. (2024) do: pixels from 0 to 1, Adam with step size 0.001 and batches of 128.
//!
//! Unlike in their code the prior of training is that of the approximations, α counts once, and the step size goes down half a cosine.

use std::sync::{Arc, Mutex, PoisonError};

use reprior::compute::{Purpose, Stream};
use reprior::model::dataset::Dataset;
use reprior::network::layer::Shape;
use reprior::network::named::NamedNetwork;
use reprior::network::parameters::ParameterLayout;
use reprior::network::{Activation, Composition, LayerScale};
use reprior::stochastic::objective::Objective;
use reprior::stochastic::preconditioner::identity::Identity;
use reprior::stochastic::swag::Swag;
use reprior::stochastic::update::StochasticGradient;
use reprior::stochastic::{Dynamics, Prior, StepSize, StochasticGradientSettings};

use crate::pictures::{Pictures, shape};
use crate::{Bench, Cell, Failure, Row, Size};

/// Updates between two looks at whether to stop.
const LOOK: u64 = 20;

/// A trained network with its data.
pub struct Trained {
    /// What was trained.
    pub network: Composition,
    /// Of the images.
    pub shape: Shape,
    /// How many.
    pub classes: usize,
    /// ŵ.
    pub mode: Vec<f32>,
    /// What it was trained on.
    pub train: Pictures,
    /// All test records as they came.
    pub test: Dataset,
    /// As for the mode.
    settings: StochasticGradientSettings,
}

/// The settings of a network and its approximations, to begin cells with: of `rank` eigenpairs of the curvature of `curvature rows`
/// rows, `paths` diffusions of `steps` steps, `draws` draws of everything else.
pub fn settings(size: Size, data: &str, seed: usize) -> Row {
    let of = |quick: usize, default: usize, full: usize| size.pick(quick, default, full);
    let epochs = match data {
        "mnist" => of(40, 15, 50),
        // as long a training in updates as there are fewer rows here
        _ => of(40, 20, 50),
    };
    Row::new()
        .with("data", data)
        .with("seed", seed)
        .with("train", of(1500, 60_000, 60_000))
        .with("test", of(500, 2000, 10_000))
        .with("epochs", epochs)
        .with("alpha", 1.0)
        .with("fitted rows", of(500, 20_000, 60_000))
        .with("curvature rows", of(150, 1000, 2000))
        .with("rank", of(50, 150, 300))
        .with("steps", of(2, 5, 20))
        .with("paths", of(2, 2, 5))
        .with("draws", of(20, 20, 20))
}

/// The last network that was trained, with what it was trained with: cells that follow one another share it.
static LAST: Mutex<Option<(String, Arc<Trained>)>> = Mutex::new(None);

/// The network of a cell.
///
/// # Errors
/// Data that are not there, images too small for LeNet, a training that leaves the range of numbers.
pub fn trained(cell: &Cell, bench: &Bench<'_>) -> Result<Arc<Trained>, Failure> {
    let values = ["seed", "train", "epochs", "alpha"].map(|name| cell.number(name));
    let data = bench.data.shown(cell.text("data"));
    let key = format!("{:?} {data} {values:?}", bench.data.path);
    let last = || LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, found)) = last().as_ref().filter(|(other, _)| *other == key) {
        return Ok(Arc::clone(found));
    }
    let found = Arc::new(train(cell, bench)?);
    *last() = Some((key, Arc::clone(&found)));
    Ok(found)
}

fn train(cell: &Cell, bench: &Bench<'_>) -> Result<Trained, Failure> {
    let split = bench.data.split(cell.text("data"))?;
    let rows = split.train.rows.min(cell.count("train"));
    let (shape, classes) = (shape(&split.train), split.train.targets.outputs());
    let train = Pictures::new(&split.train).first(rows);
    let named: NamedNetwork = "lenet".parse().map_err(Failure::Failed)?;
    let network = named
        .network(shape, classes, Activation::Tanh, LayerScale::HIDDEN)
        .and_then(|network| network.in_standard_parametrisation())
        .map_err(Failure::failed)?;
    let fit = Fit {
        seed: cell.count("seed") as u64,
        step_size: 0.001,
        batch: 128,
        epochs: cell.count("epochs"),
        precision: cell.number("alpha"),
    };
    let settings = fit.settings(rows);
    let mode = fit.mode(&network, &train, classes, bench)?;
    Ok(Trained {
        mode,
        network,
        shape,
        classes,
        train,
        test: split.test,
        settings,
    })
}

/// How a mode is found.
pub struct Fit {
    /// Of the start and the minibatches.
    pub seed: u64,
    /// Adam's, down half a cosine.
    pub step_size: f64,
    /// Rows of a minibatch.
    pub batch: usize,
    /// Passes over the rows.
    pub epochs: usize,
    /// α, of a Gaussian prior on weights and biases.
    pub precision: f64,
}

impl Fit {
    fn settings(&self, rows: usize) -> StochasticGradientSettings {
        let batch = self.batch.min(rows).max(1);
        let variance = 1.0 / self.precision;
        StochasticGradientSettings {
            step_size: self.step_size,
            schedule: StepSize::Cyclical {
                length: (self.epochs * rows.div_ceil(batch)) as u64,
                exploration: 0.0,
            },
            batch,
            dynamics: Dynamics::ADAM,
            decay: Default::default(),
            labels: Default::default(),
            priors: vec![Prior::Gaussian {
                weights: variance,
                biases: variance,
            }],
            seed: self.seed,
            chain: 0,
            temperature: 0.0,
            dropout: 0.0,
        }
    }

    /// The mode of a network for pictures.
    ///
    /// # Errors
    /// A training that leaves the range of numbers; being stopped.
    pub fn mode(
        &self,
        network: &Composition,
        pictures: &Pictures,
        classes: usize,
        bench: &Bench<'_>,
    ) -> Result<Vec<f32>, Failure> {
        let settings = self.settings(pictures.rows);
        let updates = self.epochs as u64 * pictures.rows.div_ceil(settings.batch) as u64;
        let data = pictures.minibatches(classes);
        let threads = pictures.threads(bench);
        let objective = Objective::new(network, data, threads).map_err(Failure::failed)?;
        let mut stream = Stream::new(self.seed, 0, Purpose::Initial, 0);
        let start = ParameterLayout::new(network).draw_by_fan_in::<f32>(1.0, &mut stream);
        let mut chain = StochasticGradient::new(objective, Box::new(Identity), settings, start)
            .map_err(Failure::failed)?;
        for update in 0..updates {
            chain.update().map_err(Failure::failed)?;
            if update % LOOK == 0 {
                bench.advance(0.8 * update as f64 / updates as f64)?;
            }
        }
        Ok(chain.state().position.clone())
    }
}

impl Trained {
    /// Stochastic weight averaging, Gaussian: as many more epochs of SGD with momentum 0.9 as there are positions, a position after
    /// each.
    ///
    /// # Errors
    /// A descent that leaves the range of numbers.
    pub fn swag(&self, positions: u64, bench: &Bench<'_>) -> Result<Swag<f32>, Failure> {
        let settings = StochasticGradientSettings {
            step_size: 0.01,
            schedule: StepSize::Constant,
            dynamics: Dynamics::Hamiltonian { friction: 0.1 },
            ..self.settings.clone()
        };
        let data = self.train.minibatches(self.classes);
        let threads = self.train.threads(bench);
        let objective = Objective::new(&self.network, data, threads).map_err(Failure::failed)?;
        let mut chain =
            StochasticGradient::new(objective, Box::new(Identity), settings, self.mode.clone())
                .map_err(Failure::failed)?;
        let mut swag = Swag::new(self.mode.len(), positions as usize);
        let epoch = chain.updates_per_epoch();
        for update in 1..=positions * epoch {
            chain.update().map_err(Failure::failed)?;
            if update % LOOK == 0 {
                bench.advance(0.8 * update as f64 / (positions * epoch) as f64)?;
            }
            if update % epoch == 0 {
                swag.add(&chain.state().position);
            }
        }
        Ok(swag)
    }
}
