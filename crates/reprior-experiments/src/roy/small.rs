//! The small convolutional network of Roy, Miani et al. (2024), Figures 4 and 6, trained on some images of each class.
//!
//! Two 3 × 3 convolutions of 4 channels with stride 2, each with tanh and a 2 × 2 maximum, then the readout: 358 weights for 28 × 28
//! pixels. Adam with step size 0.01, 100 epochs; the prior is that of the approximations (theirs has none in training).

use std::sync::Arc;

use reprior::laplace::diffusion::{Decomposition, Diffusion, DiffusionKind, Integrator};
use reprior::laplace::{HessianStructure, Subset};
use reprior::network::layer::{Convolution, Layer, Padding, Shape, Window};
use reprior::network::{Activation, Composition, LayerScale};
use reprior::stochastic::Dynamics;
use reprior::stochastic::data::MinibatchData;

use crate::data::{labels, shape};
use crate::pictures::Pictures;
use crate::scores::{Averaged, Scores};
use crate::trained::TrainedNetwork;
use crate::training::Training;
use crate::{Bench, Cell, Failure, Row, Size};

/// An eigenvalue is not zero if it is above this part of the largest: their network is in single precision.
pub const THRESHOLD: f64 = 1e-6;

/// A trained network with the classes of its images.
pub struct Small {
    /// Trained.
    pub network: TrainedNetwork<f64>,
    labels: Vec<u32>,
}

fn network(input: Shape, classes: usize) -> Result<Composition, Failure> {
    let halve = |size, padding| Window {
        size: [size; 2],
        stride: [2; 2],
        padding,
    };
    let mut layers = Vec::new();
    for _ in 0..2 {
        layers.push(Layer::Convolution(Convolution {
            channels: 4,
            window: halve(3, Padding::Same),
            scale: LayerScale::HIDDEN,
        }));
        layers.push(Layer::Activation {
            function: Activation::Tanh,
        });
        layers.push(Layer::MaxPool(halve(2, Padding::Valid)));
    }
    layers.push(Layer::Flatten);
    let network = Composition {
        input,
        layers,
        outputs: classes,
        readout_scale: LayerScale::READOUT,
    };
    Ok(network.in_standard_parametrisation()?)
}

impl Small {
    /// Trained on the first images of each class.
    pub fn new(cell: &Cell, bench: &Bench<'_>) -> Result<Self, Failure> {
        let split = bench.data.split("mnist")?;
        let (shape, classes) = (shape(&split.train), split.train.targets.outputs());
        let wanted = cell.count("per class");
        let mut counts = vec![0; classes];
        let all = labels(&split.train).iter().enumerate();
        let chosen: Vec<usize> = all
            .filter(|&(_, &label)| {
                let count = &mut counts[label as usize];
                *count += 1;
                *count <= wanted
            })
            .map(|(row, _)| row)
            .collect();
        let pictures = Pictures::new(&split.train.select(&chosen));
        let network = network(shape, classes)?;
        let training = Training {
            seed: cell.long("seed"),
            dynamics: Dynamics::ADAM,
            step_size: 0.01,
            gain: 1.0,
            batch: 100,
            epochs: cell.count("epochs"),
            precision: cell.number("alpha"),
        };
        let (data, threads) = (pictures.minibatches(classes), pictures.threads(bench));
        let advance = |done| bench.advance(0.8 * done);
        let mode = training.mode(&network, data.clone(), threads, advance)?;
        let [mode, pixels] = [&mode, &*pictures.pixels]
            .map(|values| values.iter().map(|&value| f64::from(value)).collect());
        let data = MinibatchData {
            inputs: Arc::new(pixels),
            targets: data.targets,
            likelihood: data.likelihood,
            scales: data.scales,
        };
        Ok(Self {
            network: TrainedNetwork::new(&network, mode, data, training.precision)?,
            labels: pictures.labels,
        })
    }

    /// Accuracy and NLL of the mean of the draws' probabilities on the training images; of the network linearised at the mode.
    pub fn scores(&mut self, draws: &[Vec<f64>], is_linearised: bool) -> Result<Scores, Failure> {
        let x = Arc::clone(&self.network.data.inputs);
        let logits = self.network.logits(draws, is_linearised, &x, || Ok(()))?;
        logits.scores(Averaged::Probabilities, &self.labels)
    }

    /// Draws of the Laplace approximation with all of the curvature.
    pub fn laplace(&mut self, cell: &Cell) -> Result<Vec<Vec<f64>>, Failure> {
        let structure = HessianStructure::Full(1 << 32);
        let (seed, draws) = (cell.long("seed"), cell.long("draws"));
        let laplace = self.network.laplace(structure, Subset::All, seed)?;
        Ok(self.network.draws(&laplace, seed, draws))
    }

    /// Ends of non-kernel diffusions.
    pub fn diffusion(&mut self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Vec<f64>>, Failure> {
        let settings = Diffusion {
            kind: DiffusionKind::NonKernel,
            steps: cell.long("steps"),
            precision: cell.number("alpha"),
            integrator: Integrator::Euler,
            decomposition: Decomposition::Exact(THRESHOLD),
        };
        let (seed, paths) = (cell.long("seed"), cell.long("paths"));
        let advance = |done| bench.advance(done);
        let ends = self
            .network
            .diffusions(settings, None, seed, paths, advance)?;
        Ok(ends.into_iter().map(|end| end.position).collect())
    }
}

/// Numbers of images of each class, and the rest.
pub fn cells(size: Size) -> Vec<Cell> {
    let numbers: &[usize] = size.pick(
        &[15, 60],
        &[10, 30, 100, 300],
        &[10, 20, 40, 60, 80, 100, 150, 200, 250, 300],
        &[10, 20, 40, 60, 80, 100, 150, 200, 250, 300],
    );
    let of_seed = |seed: usize| {
        let cells = Row::new().each("per class", numbers);
        cells.into_iter().map(move |cell| {
            cell.with("seed", seed)
                .with("epochs", 100_usize)
                .with("alpha", 1.0)
                .with("draws", size.pick(50_usize, 100, 100, 100))
                .with("steps", size.pick(5_usize, 10, 20, 20))
                .with("paths", size.pick(4_usize, 5, 20, 20))
        })
    };
    (0..5).flat_map(of_seed).collect()
}
