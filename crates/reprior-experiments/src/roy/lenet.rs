//! LeNet with tanh, trained to the mode as Roy, Miani et al. (2024) do: pixels from 0 to 1, Adam with step size 0.001 and batches of 128.
//!
//! A cell whose `network` is `resnet-small` has their residual network instead, see [`resnet`].
//!
//! Unlike in their code the prior of training is that of the approximations, α counts once, and the step size goes down half a cosine.

use std::sync::{Arc, Mutex, PoisonError};

use reprior::compute::{Purpose, Stream};
use reprior::model::dataset::Dataset;
use reprior::network::named::NamedNetwork;
use reprior::network::{Activation, Composition, LayerScale};
use reprior::stochastic::objective::Objective;
use reprior::stochastic::preconditioner::identity::Identity;
use reprior::stochastic::swag::Swag;
use reprior::stochastic::update::StochasticGradient;
use reprior::stochastic::{Dynamics, StepSize, StochasticGradientSettings};

use super::methods::PUBLISHED;
use super::resnet::{self, RESNET};
use crate::data::shape;
use crate::pictures::Pictures;
use crate::training::{Training, update};
use crate::{Bench, Cell, Failure, Row, Size};

/// Every method.
pub const METHODS: [&str; 10] = [
    "map",
    "swag",
    "last layer",
    "diag, sampled",
    "diag, linearised",
    "kron, sampled",
    "kron, linearised",
    "sampled",
    "linearised",
    "diffusion",
];

/// A trained network with its data.
pub struct LeNet {
    /// Of what it was trained on, and how.
    pub key: String,
    /// What was trained; batch normalisation has the statistics that training left.
    pub network: Composition,
    /// ŵ.
    pub mode: Vec<f32>,
    /// What it was trained on.
    pub train: Pictures,
    /// Images of the training file that it was not trained on.
    pub validation: Pictures,
    /// All test records as they came.
    pub test: Dataset,
    /// That evaluate it.
    pub threads: usize,
    training: Training,
}

/// The settings of a network and its approximations, to begin cells with: of `rank` eigenpairs of the curvature of `curvature rows`
/// rows, `paths` diffusions of `steps` steps, `draws` draws of everything else.
pub fn settings(size: Size, data: &str, seed: usize) -> Row {
    let of = |quick: usize, default: usize, long: usize, full: usize| {
        size.pick(quick, default, long, full)
    };
    let epochs = match data {
        "mnist" => of(40, 15, 15, 50),
        "cifar10" => of(40, 30, 60, 200),
        // as long a training in updates as there are fewer rows here
        _ => of(40, 20, 60, 50),
    };
    let row = Row::new()
        .with("data", data)
        .with("seed", seed)
        .with("train", of(1500, 54_000, 54_000, 54_000))
        .with("validation", of(300, 2000, 2000, 6000))
        .with("test", of(500, 2000, 10_000, 10_000))
        .with("epochs", epochs)
        .with("alpha", 1.0)
        .with("fitted rows", of(500, 20_000, 54_000, 54_000))
        .with("curvature rows", of(150, 1000, 10_000, 60_000))
        .with("rank", of(50, 150, 500, 2000))
        .with("steps", of(2, 5, 5, 20))
        .with("paths", of(5, 5, 5, 20))
        .with("draws", of(20, 20, 20, 20));
    if data != "cifar10" || size == Size::Quick {
        return row;
    }
    // their residual network; the curvature of so many weights takes what LeNet's does ten times over
    row.with("network", RESNET)
        .replaced("curvature rows", of(0, 200, 500, 50_000))
        .replaced("rank", of(0, 100, 300, 5000))
        .replaced("steps", of(0, 3, 5, 5))
}

/// A cell for each data set that a table has at a size, each seed and each method, and with the conventions of the published code as well.
pub fn table_cells(size: Size, as_published: bool) -> Vec<Cell> {
    let cell = |data: &'static str| {
        let seeds = 0..size.pick(1, 1, 1, 3);
        seeds.flat_map(move |seed| settings(size, data, seed).each("method", &METHODS))
    };
    let derived: Vec<Cell> = table_data(size).into_iter().flat_map(cell).collect();
    with_published(derived, as_published)
}

/// Cells, and if asked for the same ones with the conventions of the published code.
pub fn with_published(cells: Vec<Cell>, as_published: bool) -> Vec<Cell> {
    let published = cells.iter().filter(|_| as_published);
    let published: Vec<Cell> = published
        .map(|cell| cell.clone().with("convention", PUBLISHED))
        .collect();
    [cells, published].concat()
}

/// The data sets that a table has at a size.
pub fn table_data(size: Size) -> Vec<&'static str> {
    let all = vec!["mnist", "fashion-mnist", "cifar10"];
    size.pick(vec!["mnist"], vec!["mnist"], all.clone(), all)
}

/// The beginning of a row: data, seed and method.
pub fn begin(cell: &Cell, bench: &Bench<'_>) -> Row {
    let data = bench.data.shown(cell.text("data"));
    let method = match cell.text("convention") {
        "" => cell.text("method").to_owned(),
        convention => format!("{}, {convention}", cell.text("method")),
    };
    Row::new()
        .with("data", data)
        .with("seed", cell.count("seed"))
        .with("method", method)
}

/// The last network that was trained, with what it was trained with: cells that follow one another share it.
static LAST: Mutex<Option<Arc<LeNet>>> = Mutex::new(None);

/// The network of a cell.
///
/// # Errors
/// Data that are not there, images too small for LeNet, a training that leaves the range of numbers.
pub fn trained(cell: &Cell, bench: &Bench<'_>) -> Result<Arc<LeNet>, Failure> {
    let values = ["seed", "train", "epochs", "alpha"].map(|name| cell.number(name));
    let data = bench.data.shown(cell.text("data"));
    let network = cell.text("network");
    let key = format!("{:?} {data} {network} {values:?}", bench.data.path);
    let last = || LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = last().as_ref().filter(|other| other.key == key) {
        return Ok(Arc::clone(found));
    }
    let found = Arc::new(train(cell, key, bench)?);
    *last() = Some(Arc::clone(&found));
    Ok(found)
}

fn train(cell: &Cell, key: String, bench: &Bench<'_>) -> Result<LeNet, Failure> {
    let split = bench.data.split(cell.text("data"))?;
    let (shape, classes) = (shape(&split.train), split.train.targets.outputs());
    let all = Pictures::new(&split.train);
    // smaller data sets keep a tenth back as well
    let count = cell.count("train").min(all.rows * 9 / 10);
    let train = all.first(count);
    let validation = all.part(count, cell.count("validation"));
    drop(all);
    let (seed, epochs, alpha) = (
        cell.long("seed"),
        cell.count("epochs"),
        cell.number("alpha"),
    );
    let (network, training, threads) = match cell.text("network") {
        RESNET => {
            let network = resnet::network(shape, classes)?;
            // long updates, however few rows there are
            (
                network,
                resnet::training(seed, epochs, alpha),
                bench.threads,
            )
        }
        _ => {
            let named: NamedNetwork = "lenet".parse().map_err(Failure::Failed)?;
            let network = named.network(shape, classes, Activation::Tanh, LayerScale::HIDDEN)?;
            let training = Training {
                seed,
                dynamics: Dynamics::ADAM,
                step_size: 0.001,
                gain: 1.0,
                batch: 128,
                epochs,
                precision: alpha,
            };
            let threads = train.threads(bench);
            (network.in_standard_parametrisation()?, training, threads)
        }
    };
    let advance = |done| bench.advance(0.8 * done);
    let data = train.minibatches(classes);
    let (network, mode) = training.trained(&network, data, threads, advance)?;
    Ok(LeNet {
        key,
        threads,
        network,
        mode,
        train,
        validation,
        test: split.test,
        training,
    })
}

impl LeNet {
    /// So many draws of stochastic weight averaging, Gaussian: as many more epochs of SGD with momentum 0.9 as there are draws, a
    /// position after each. Batch normalisation has for each draw the statistics that a pass over the training rows finds; they are
    /// absorbed into γ and β, so that draws are of `network`.
    ///
    /// # Errors
    /// A descent that leaves the range of numbers.
    pub fn swag(&self, draws: u64, bench: &Bench<'_>) -> Result<Vec<Vec<f32>>, Failure> {
        let settings = StochasticGradientSettings {
            step_size: 0.01,
            schedule: StepSize::Constant,
            dynamics: Dynamics::Hamiltonian { friction: 0.1 },
            ..self.training.settings(self.train.rows)
        };
        let data = self.train.minibatches(self.network.outputs);
        let objective =
            Objective::new(&self.network, data, self.threads)?.with_batch_statistics(&self.network);
        let mut chain =
            StochasticGradient::new(objective, Box::new(Identity), settings, self.mode.clone())?;
        let mut swag = Swag::new(self.mode.len(), draws as usize);
        let epoch = chain.updates_per_epoch();
        let advance = |done| bench.advance(0.8 * done);
        update(&mut chain, draws * epoch, advance, |update, position| {
            if update.is_multiple_of(epoch) {
                swag.add(position);
            }
        })?;
        let mut stream = Stream::new(self.training.seed, 0, Purpose::Recording, 0);
        let mut draw = || {
            let mut draw = self.mode.clone();
            swag.draw(&mut stream, &mut draw);
            let statistics = chain.statistics_at(&draw);
            self.network.absorb_statistics(&statistics, &mut draw);
            draw
        };
        Ok((0..draws).map(|_| draw()).collect())
    }
}
