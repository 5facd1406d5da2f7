//! Roy, Miani et al. (2024), Figures 4 and 6: the higher the rank of the curvature, the less sampled Laplace underfits; and how fast its
//! eigenvalues fall. A small convolutional network on 10 to 300 images of each class, as in the paper.
//!
//! The rank is taken to be the number of eigenvalues above α, the directions in which the data say more than the prior: in double
//! precision hardly any eigenvalue is zero, however few the images. Those above 1e-6 of the largest are counted too.
//!
//! Two 3 × 3 convolutions of 4 channels with stride 2, each with tanh and a 2 × 2 maximum, then the readout: 358 weights for 28 × 28
//! pixels. Adam with step size 0.01, 100 epochs; the prior is that of the approximations (theirs has none in training). What Figure 6
//! shows is known here from summaries of the paper only: the eigenvalues of such a network's curvature, which fall fast.

use reprior::compute::{MatrixMut, Purpose, Stream, matrix};
use reprior::laplace::{
    Decomposition, Diffusion, DiffusionData, DiffusionKind, DiffusionPath, GaussNewton,
    HessianStructure, Integrator, Laplace, LaplaceData, OutputCurvature, PriorPrecision, Spectrum,
    Subset,
};
use reprior::model::likelihood::Categorical;
use reprior::network::layer::{Convolution, Layer, MaxPool, Padding, Shape, Window};
use reprior::network::{Activation, Composition, Executor, LayerScale};
use reprior::stochastic::Layout;

use super::lenet::Fit;
use crate::experiment::results;
use crate::pictures::{Pictures, Scores, shape};
use crate::{
    About, Bench, Cell, Experiment, Failure, Figure, Finding, Paper, Row, Size, Table, Value,
};

/// Figure 4.
pub struct Rank;
/// Figure 6.
pub struct Eigenvalues;

/// An eigenvalue is not zero if it is above this part of the largest: their network is in single precision.
const THRESHOLD: f64 = 1e-6;

/// A trained network and its curvature.
struct Small {
    executor: Executor<f64>,
    layout: Layout,
    mode: Vec<f64>,
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
        layers.push(Layer::MaxPool(MaxPool {
            window: halve(2, Padding::Valid),
        }));
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
    fn new(cell: &Cell, bench: &Bench<'_>) -> Result<Self, Failure> {
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
            layout: Layout::new(&network),
            mode: mode.iter().map(|&w| f64::from(w)).collect(),
            pixels: pictures.pixels.iter().map(|&x| f64::from(x)).collect(),
            pictures,
            classes,
        })
    }

    /// All eigenvalues of the curvature, the largest first.
    fn eigenvalues(&mut self) -> Result<Vec<f64>, Failure> {
        let (rows, size) = (self.pictures.rows, self.mode.len());
        let columns = self.executor.inputs_count();
        let mut operator = GaussNewton {
            executor: &mut self.executor,
            weights: &self.mode,
            inputs: matrix(&self.pixels, columns, rows).transpose(),
            curvature: &OutputCurvature::Categorical,
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
    fn scores(&mut self, draws: &[Vec<f64>], is_linearised: bool) -> Result<Scores, Failure> {
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
    fn laplace(&mut self, cell: &Cell) -> Result<Vec<Vec<f64>>, Failure> {
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
            curvature: &OutputCurvature::Categorical,
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
    fn diffusion(&mut self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Vec<f64>>, Failure> {
        let columns = self.executor.inputs_count();
        let data = DiffusionData {
            inputs: matrix(&self.pixels, columns, self.pictures.rows).transpose(),
            curvature: &OutputCurvature::Categorical,
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
fn cells(size: Size) -> Vec<Cell> {
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

impl Experiment for Rank {
    fn about(&self) -> About {
        About {
            name: "roy2024-fig4",
            paper: Paper::Roy,
            figure: "Figure 4",
            what: "fit of training images by sampled and linearised Laplace and diffusions against the rank of the curvature of a small convolutional network",
            data: Some("mnist"),
            cost: ["10 seconds", "5 minutes", "an hour"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        cells(size)
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let mut small = Small::new(cell, bench)?;
        let values = small.eigenvalues()?;
        let largest = values.first().copied().unwrap_or(0.0);
        let above = |least: f64| values.iter().filter(|&&v| v > least).count();
        let (rank, not_zero) = (above(cell.number("alpha")), above(THRESHOLD * largest));
        let laplace = small.laplace(cell)?;
        let ends = small.diffusion(cell, bench)?;
        let mode = vec![small.mode.clone()];
        let methods = [
            ("map", small.scores(&mode, false)?),
            ("sampled", small.scores(&laplace, false)?),
            ("linearised", small.scores(&laplace, true)?),
            ("diffusion", small.scores(&ends, false)?),
        ];
        Ok(methods
            .map(|(method, scores)| {
                Row::new()
                    .with("per class", cell.count("per class"))
                    .with("seed", cell.count("seed"))
                    .with("rank", rank)
                    .with("not zero", not_zero)
                    .with("weights", values.len())
                    .with("method", method)
                    .with("train accuracy", scores.accuracy)
                    .with("train nll", scores.nll)
            })
            .into())
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let numbers = table.distinct("per class");
        let means = |method: &str, column: &str| -> Vec<f64> {
            let of = |number: &Value| {
                let wanted = [("per class", number.clone()), ("method", method.into())];
                let values = table.numbers(column, &wanted);
                values.iter().sum::<f64>() / values.len() as f64
            };
            numbers.iter().map(of).collect()
        };
        let ranks = means("map", "rank");
        let sampled = means("sampled", "train accuracy");
        let words =
            |name: &str, values: &[f64]| format!("{name} {}", crate::experiment::listed(values));
        let nll = means("sampled", "train nll");
        let both = |method: &str| {
            let values = means(method, "train nll");
            format!("{}; {}", words("sampled", &nll), words(method, &values))
        };
        let is_better = |method: &str| {
            let pairs = means(method, "train nll").into_iter().zip(&nll);
            !nll.is_empty() && pairs.into_iter().all(|(own, other)| own < *other)
        };
        vec![
            Finding::new(
                "the rank rises with the number of images",
                crate::experiment::rises(&ranks, 0.0),
                words("rank", &ranks),
            ),
            Finding::new(
                "sampled Laplace fits the training images better the higher the rank: accuracy rises",
                crate::experiment::rises(&sampled, 0.02),
                format!("{}; {}", words("rank", &ranks), words("accuracy", &sampled)),
            ),
            Finding::new(
                "the diffusion fits better than sampled Laplace at every rank: its NLL is lower",
                is_better("diffusion"),
                both("diffusion"),
            ),
            Finding::new(
                "so does linearised Laplace",
                is_better("linearised"),
                both("linearised"),
            ),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        let mut figure = Figure::lines(
            "accuracy",
            "Fit of the training images",
            "The more directions have curvature, the less sampled Laplace underfits",
            ("rank", "eigenvalues of the Gauss-Newton matrix above α"),
            ("train accuracy", "training accuracy"),
            &["method"],
        );
        figure.is_scatter = true;
        vec![figure]
    }
}

impl Experiment for Eigenvalues {
    fn about(&self) -> About {
        About {
            name: "roy2024-fig6",
            paper: Paper::Roy,
            figure: "Figure 6",
            what: "eigenvalues of the curvature of a small convolutional network, the largest first",
            data: Some("mnist"),
            cost: ["5 seconds", "a minute", "5 minutes"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let first = |cell: &Cell| cell.number("seed") == 0.0;
        cells(size).into_iter().filter(first).collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let mut small = Small::new(cell, bench)?;
        let values = small.eigenvalues()?;
        let total: f64 = values.iter().sum();
        let count = values.len();
        let per_class = cell.count("per class");
        let share = |part: usize| values[..count / part].iter().sum::<f64>() / total;
        let mut rows = vec![
            Row::new()
                .with("per class", per_class)
                .with("weights", count)
                .with("largest", values.first().copied().unwrap_or(f64::NAN))
                .with(
                    "at a tenth",
                    values.get(count / 10).copied().unwrap_or(f64::NAN),
                )
                .with("median", values.get(count / 2).copied().unwrap_or(f64::NAN))
                .with("share of the first tenth", share(10)),
        ];
        // rounding is no eigenvalue
        let largest = values.first().copied().unwrap_or(0.0);
        for (index, &value) in values.iter().enumerate() {
            if value > 1e-12 * largest {
                let row = Row::of("eigenvalues").with("per class", per_class);
                rows.push(row.with("index", index + 1).with("eigenvalue", value));
            }
        }
        Ok(rows)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let shares = table.numbers("share of the first tenth", &[]);
        let pairs = table.rows.iter();
        let falls: Vec<f64> = pairs
            .map(|row| row.number("at a tenth") / row.number("largest"))
            .collect();
        vec![
            Finding::new(
                "few directions have most of the curvature: a tenth of the eigenvalues over three quarters of the trace",
                !shares.is_empty() && shares.iter().all(|&share| share > 0.75),
                crate::experiment::listed(&shares),
            ),
            Finding::new(
                "they fall fast: after a tenth of them below a twentieth of the largest",
                !falls.is_empty() && falls.iter().all(|&part| part < 0.05),
                crate::experiment::listed(&falls),
            ),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        let mut figure = Figure::lines(
            "eigenvalues",
            "Eigenvalues of the Gauss-Newton matrix",
            "The rest of them is rounding",
            ("index", "index"),
            ("eigenvalue", "eigenvalue"),
            &["per class"],
        );
        figure.table = "eigenvalues";
        figure.logarithmic = [false, true];
        vec![figure]
    }
}
