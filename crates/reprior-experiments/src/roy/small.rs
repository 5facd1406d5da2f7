//! The small convolutional network of Roy, Miani et al. (2024), Figures 4 and 6, trained on some images of each class.
//!
//! Two 3 × 3 convolutions of 4 channels with stride 2, each with tanh and a 2 × 2 maximum, then the readout: 358 weights for 28 × 28
//! pixels. Adam with step size 0.01, 100 epochs; the prior is that of the approximations (theirs has none in training).

use reprior::compute::kernels::MatrixMut;
use reprior::compute::{Purpose, Stream, matrix};
use reprior::laplace::curvature::GaussNewton;
use reprior::laplace::diffusion::{
    Decomposition, Diffusion, DiffusionData, DiffusionKind, DiffusionPath, Integrator,
};
use reprior::laplace::spectrum::Spectrum;
use reprior::laplace::{
    FisherInformation, HessianStructure, Laplace, LaplaceData, PriorPrecision, Subset,
};
use reprior::model::likelihood::Categorical;
use reprior::network::layer::{Convolution, Layer, Padding, Shape, Window};
use reprior::network::parameters::ParameterLayout;
use reprior::network::{Activation, Composition, Executor, LayerScale};

use super::lenet::Fit;
use crate::pictures::{Pictures, Scores, shape};
use crate::{Bench, Cell, Failure, Row, Size};

/// An eigenvalue is not zero if it is above this part of the largest: their network is in single precision.
pub const THRESHOLD: f64 = 1e-6;

/// A trained network and its curvature.
pub struct Small {
    executor: Executor<f64>,
    layout: ParameterLayout,
    /// ŵ.
    pub mode: Vec<f64>,
    pictures: Pictures,
    /// Row-major.
    pixels: Vec<f64>,
    classes: usize,
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
    network.shapes().map_err(Failure::failed)?;
    network
        .in_standard_parametrisation()
        .map_err(Failure::failed)
}

impl Small {
    /// Trained on the first images of each class.
    pub fn new(cell: &Cell, bench: &Bench<'_>) -> Result<Self, Failure> {
        let split = bench.data.split("mnist")?;
        let (shape, classes) = (shape(&split.train), split.train.targets.outputs());
        let wanted = cell.count("per class");
        let mut counts = vec![0; classes];
        let labels = crate::data::labels(&split.train).iter().enumerate();
        let chosen: Vec<usize> = labels
            .filter(|&(_, &label)| {
                let count = &mut counts[label as usize];
                *count += 1;
                *count <= wanted
            })
            .map(|(row, _)| row)
            .collect();
        let pictures = Pictures::new(&split.train.select(&chosen));
        let network = network(shape, classes)?;
        let fit = Fit {
            seed: cell.count("seed") as u64,
            step_size: 0.01,
            batch: 100,
            epochs: cell.count("epochs"),
            precision: cell.number("alpha"),
        };
        let mode = fit.mode(&network, &pictures, classes, bench)?;
        Ok(Self {
            executor: Executor::new(&network).map_err(Failure::failed)?,
            layout: ParameterLayout::new(&network),
            mode: mode.iter().map(|&w| f64::from(w)).collect(),
            pixels: pictures.pixels.iter().map(|&x| f64::from(x)).collect(),
            pictures,
            classes,
        })
    }

    /// All eigenvalues of the curvature, the largest first.
    pub fn eigenvalues(&mut self) -> Result<Vec<f64>, Failure> {
        let (rows, size) = (self.pictures.rows, self.mode.len());
        let columns = self.executor.inputs_count();
        let mut operator = GaussNewton {
            executor: &mut self.executor,
            weights: &self.mode,
            inputs: matrix(&self.pixels, columns, rows).transpose(),
            curvature: &FisherInformation {
                likelihood: &Categorical,
                scales: &[],
            },
            scale: 1.0,
        };
        let all: Vec<usize> = (0..size).collect();
        let dense = operator.dense(&all);
        let spectrum = Spectrum::<f64>::of_dense(&dense, size, 0.0).map_err(Failure::failed)?;
        let mut values = spectrum.values;
        values.resize(size, 0.0);
        Ok(values)
    }

    /// Accuracy and NLL of the mean of the draws' probabilities on the training images; of the network linearised at the mode.
    pub fn scores(&mut self, draws: &[Vec<f64>], is_linearised: bool) -> Result<Scores, Failure> {
        let (rows, classes) = (self.pictures.rows, self.classes);
        let columns = self.executor.inputs_count();
        let x = matrix(&self.pixels, columns, rows).transpose();
        let mut mean = vec![0.0; rows * classes];
        let mut f = vec![0.0; rows * classes];
        let mut at_mode = f.clone();
        let out = MatrixMut::from_row_major_slice_mut(&mut at_mode, rows, classes);
        self.executor.outputs(&self.mode, x, out);
        for draw in draws {
            let out = MatrixMut::from_row_major_slice_mut(&mut f, rows, classes);
            if is_linearised {
                let away: Vec<f64> = draw.iter().zip(&self.mode).map(|(w, m)| w - m).collect();
                self.executor.jvp(&self.mode, x, Some(&away), None, out);
                f.iter_mut().zip(&at_mode).for_each(|(f, mode)| *f += mode);
            } else {
                self.executor.outputs(draw, x, out);
            }
            for (mean, f) in mean.chunks_exact_mut(classes).zip(f.chunks_exact(classes)) {
                let largest = f.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let total: f64 = f.iter().map(|f| (f - largest).exp()).sum();
                for (mean, f) in mean.iter_mut().zip(f) {
                    *mean += (f - largest).exp() / (total * draws.len() as f64);
                }
            }
        }
        Scores::new(&mean, &self.pictures.labels, classes)
    }

    /// Draws of the Laplace approximation with all of the curvature.
    pub fn laplace(&mut self, cell: &Cell) -> Result<Vec<Vec<f64>>, Failure> {
        let (rows, classes) = (self.pictures.rows, self.classes);
        let mut targets = vec![0.0; rows * classes];
        for (row, &label) in self.pictures.labels.iter().enumerate() {
            targets[label as usize * rows + row] = 1.0;
        }
        let columns = self.executor.inputs_count();
        let data = LaplaceData {
            inputs: matrix(&self.pixels, columns, rows).transpose(),
            targets: &targets,
            likelihood: &Categorical,
            scales: &vec![1.0; classes],
            curvature: &FisherInformation {
                likelihood: &Categorical,
                scales: &[],
            },
            scale: 1.0,
        };
        let seed = cell.count("seed") as u64;
        let laplace = Laplace::fit(
            &mut self.executor,
            &self.layout,
            &self.mode,
            data,
            HessianStructure::Full(1 << 32),
            Subset::All,
            &PriorPrecision::Scalar(cell.number("alpha")),
            &mut Stream::new(seed, 0, Purpose::Curvature, 0),
        )
        .map_err(Failure::failed)?;
        let draws = (0..cell.count("draws") as u64).map(|index| {
            let mut draw = self.mode.clone();
            let mut stream = Stream::new(seed, 0, Purpose::Recording, index);
            laplace.draw(&mut stream, &mut draw);
            draw
        });
        Ok(draws.collect())
    }

    /// Ends of non-kernel diffusions.
    pub fn diffusion(&mut self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Vec<f64>>, Failure> {
        let columns = self.executor.inputs_count();
        let data = DiffusionData {
            inputs: matrix(&self.pixels, columns, self.pictures.rows).transpose(),
            curvature: &FisherInformation {
                likelihood: &Categorical,
                scales: &[],
            },
            scale: 1.0,
        };
        let settings = Diffusion {
            kind: DiffusionKind::NonKernel,
            steps: cell.count("steps") as u64,
            precision: cell.number("alpha"),
            integrator: Integrator::Euler,
            decomposition: Decomposition::Exact(THRESHOLD),
        };
        let mut ends = Vec::new();
        let (paths, seed) = (cell.count("paths") as u64, cell.count("seed") as u64);
        for chain in 0..paths {
            let mut path = DiffusionPath::new(settings, &self.mode, seed, chain);
            while !path.is_over() {
                path.advance(&mut self.executor, data)
                    .map_err(Failure::failed)?;
                let done = chain as f64 + path.steps() as f64 / settings.steps as f64;
                bench.advance(done / paths as f64)?;
            }
            ends.push(path.position().to_vec());
        }
        Ok(ends)
    }
}

/// Numbers of images of each class, and the rest.
pub fn cells(size: Size) -> Vec<Cell> {
    let numbers: &[usize] = size.pick(
        &[15, 30, 60],
        &[10, 30, 100, 300],
        &[10, 20, 40, 60, 80, 100, 150, 200, 250, 300],
    );
    let mut cells = Vec::new();
    for seed in 0..size.pick(2_usize, 3, 5) {
        for &per_class in numbers {
            cells.push(
                Row::new()
                    .with("per class", per_class)
                    .with("seed", seed)
                    .with("epochs", 100_usize)
                    .with("alpha", 1.0)
                    .with("draws", size.pick(50_usize, 100, 100))
                    .with("steps", size.pick(5_usize, 10, 20))
                    .with("paths", size.pick(4_usize, 5, 20)),
            );
        }
    }
    cells
}
