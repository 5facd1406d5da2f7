//! Figure 3 and Proposition 2.2: the functions f_T(φ), φ ~ N(0, I), against the posterior, and both against the posterior of the infinitely
//! wide network: one input, one output, three hidden layers, three data.
//!
//! Given the inner weights of a draw the mean and the variance of f are known; curves are made of these. Distances from the limit are root
//! mean squares over x, with the bias that noise gives them taken off by the jackknife over batches of draws.

use std::sync::Arc;

use reprior::chain::Schedule;
use reprior::compute::{Purpose, Stream, matrix};
use reprior::gaussian_process::GaussianProcess;
use reprior::model::{InputReduction, Model};
use reprior::network::infinite::{InfiniteNetwork, Kinds};
use reprior::network::{Activation, Composition};
use reprior::posterior::{Coordinates, DrawRecord, Posterior, Recorder};

use crate::chains::{ChainPlan, KeepDraws};
use crate::data::NOISE;
use crate::findings::{estimates, results};
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Judgement, Paper, Row,
    Size, Table,
};

/// Figure 3.
pub(super) struct Widths;

/// T of draws of the prior, and the posterior itself, by chains.
const LAWS: [&str; 2] = ["T of the prior", "posterior"];
const LIMIT: &str = "NNGP";
/// Batches of draws.
const BATCHES: usize = 20;

/// Three data, and a grid.
fn problem() -> ([f64; 3], [f64; 3], Vec<f64>) {
    let grid = (0..61).map(|index| -2.0 + 4.0 * f64::from(index) / 60.0);
    ([-1.2, 0.1, 1.0], [0.7, -0.5, 0.6], grid.collect())
}

fn network(width: usize) -> Composition {
    let mut network = Composition::fully_connected(1, &[width; 3], 1, Activation::Gelu);
    // a bias as large as the slope: functions of one input that are not all lines through the origin
    network.hidden_scales_mut()[0].bias = 1.0;
    network
}

impl Experiment for Widths {
    fn about(&self) -> About {
        About {
            name: "hron2022-fig3",
            paper: Paper::Hron,
            figure: "Figure 3 and Proposition 2.2",
            what: "functions of one input given three data: T of draws of the prior and the posterior itself, three hidden layers of each width, against the posterior of the infinitely wide network (NNGP)",
            data: None,
            cost: ["10 s", "16 min", "1 h", "1 h"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let all: &[usize] = &[4, 16, 64, 256, 1024];
        let widths = size.pick(&[4, 32, 128][..], &all[..4], all, all);
        let draws = size.pick(
            [4000_usize, 1000],
            [20_000, 4000],
            [40_000, 10_000],
            [40_000, 10_000],
        );
        let cells = Cell::new().each("width", widths).into_iter();
        cells
            .flat_map(|cell| {
                let laws = LAWS.iter().zip(draws);
                laws.map(move |(law, draws)| cell.clone().with("law", *law).with("draws", draws))
            })
            .collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let (x, y, grid) = problem();
        let network = network(cell.count("width"));
        let model = Model::new(network, NOISE, &x, y.to_vec(), &grid, InputReduction::Off)?;
        let model = Arc::new(model);
        let batches = match cell.text("law") {
            "posterior" => of_the_posterior(&model, cell, bench)?,
            _ => of_the_map(&model, cell, bench)?,
        };
        let (means, sds) = Sums::curves(&batches, None);
        let (limit_means, limit_sds) = limit()?;
        let distance = |pick: usize| {
            let from_limit = |left_out| {
                let (means, sds) = Sums::curves(&batches, left_out);
                let pairs = match pick {
                    0 => means.into_iter().zip(&limit_means),
                    _ => sds.into_iter().zip(&limit_sds),
                };
                let squares: f64 = pairs.map(|(a, b)| (a - b) * (a - b)).sum();
                (squares / grid.len() as f64).sqrt()
            };
            let without: Vec<f64> = (0..batches.len()).map(|at| from_limit(Some(at))).collect();
            Estimate::jackknife(from_limit(None), &without)
        };
        let mut rows = vec![
            cell.choices(&["width", "law"])
                .with_estimate("distance of means", &distance(0))
                .with_estimate("distance of sds", &distance(1)),
        ];
        let mut curve = |name: String, law: &str, mean: &[f64], sd: &[f64]| {
            for ((&x, mean), sd) in grid.iter().zip(mean).zip(sd) {
                rows.push(
                    Row::of("curves")
                        .with("law", law)
                        .with("network", name.clone())
                        .with("x", x)
                        .with("mean", *mean)
                        .with("sd", *sd)
                        .with("lower", mean - 2.0 * sd)
                        .with("upper", mean + 2.0 * sd),
                );
            }
        };
        let width = cell.count("width");
        curve(format!("width {width}"), cell.text("law"), &means, &sds);
        if width == 4 {
            curve(LIMIT.to_owned(), cell.text("law"), &limit_means, &limit_sds);
        }
        Ok(rows)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let finding = |law: &str, published: &str| {
            let of = |column: &str| table.estimates(column, &[("law", law.into())]);
            let [means, sds] = ["distance of means", "distance of sds"].map(of);
            Finding::new(
                format!("{law}: functions tend to the NNGP's posterior as the width grows"),
                &Judgement::all([Judgement::falls(&means), Judgement::falls(&sds)]),
                format!(
                    "distances of means {}; of sds {}",
                    estimates(&means),
                    estimates(&sds)
                ),
            )
            .published(published)
        };
        vec![
            finding(LAWS[0], "Proposition 2.2, Figure 3"),
            finding(LAWS[1], "Hron et al. 2020; Figure 3"),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        let lines = |name, title, column, label| {
            Figure::lines(
                name,
                title,
                "Lines of wide networks lie on that of the NNGP.",
                ("x", "x"),
                (column, label),
                &["network"],
            )
            .of("curves")
            .panels("law")
        };
        vec![
            lines(
                "means",
                "Means of functions",
                "mean",
                "mean of f(x), two sds",
            )
            .band("lower", "upper"),
            lines(
                "sds",
                "Standard deviations of functions",
                "sd",
                "sd of f(x)",
            ),
            Figure::lines(
                "distances",
                "Distance of the mean from the NNGP's",
                "A straight fall is a power of the width.",
                ("width", "width"),
                ("distance of means", "root mean squared distance"),
                &["law"],
            )
            .errors("± distance of means")
            .logarithmic(true, true),
        ]
    }
}

/// Sums of the means and of the mean squares of draws' functions.
#[derive(Debug, Clone, Default)]
struct Sums {
    count: f64,
    mean: Vec<f64>,
    square: Vec<f64>,
}

impl Sums {
    fn add(&mut self, count: f64, mean: &[f64], square: &[f64]) {
        self.count += count;
        for (sums, values) in [(&mut self.mean, mean), (&mut self.square, square)] {
            sums.resize(values.len(), 0.0);
            sums.iter_mut().zip(values).for_each(|(sum, x)| *sum += x);
        }
    }

    fn record(&mut self, record: &DrawRecord<f64>) {
        let squares = record.mean.iter().zip(&record.variance);
        let squares: Vec<f64> = squares.map(|(mean, v)| mean * mean + v).collect();
        self.add(1.0, &record.mean, &squares);
    }

    /// Mean and standard deviation at each x, of all batches but one.
    fn curves(batches: &[Self], left_out: Option<usize>) -> (Vec<f64>, Vec<f64>) {
        let mut all = Self::default();
        for (index, batch) in batches.iter().enumerate() {
            if Some(index) != left_out && batch.count > 0.0 {
                all.add(batch.count, &batch.mean, &batch.square);
            }
        }
        let mean: Vec<f64> = all.mean.iter().map(|sum| sum / all.count).collect();
        let squares = all.square.iter().zip(&mean);
        let sd = squares.map(|(sum, mean)| (sum / all.count - mean * mean).max(0.0).sqrt());
        let sd = sd.collect();
        (mean, sd)
    }
}

/// Batches of draws of one chain, in their order.
struct Batches {
    /// Draws of a batch.
    length: f64,
    all: Vec<Sums>,
}

impl KeepDraws<f64> for Batches {
    fn keep(&mut self, record: &DrawRecord<f64>) {
        match self.all.last_mut() {
            Some(last) if last.count < self.length => last.record(record),
            _ => {
                let mut fresh = Sums::default();
                fresh.record(record);
                self.all.push(fresh);
            }
        }
    }
}

/// f_T(φ) of draws of the prior.
fn of_the_map(
    model: &Arc<Model<f64>>,
    cell: &Cell,
    bench: &Bench<'_>,
) -> Result<Vec<Sums>, Failure> {
    let mut posterior = Posterior::new(Arc::clone(model), Coordinates::Repriorised)?;
    let mut recorder = Recorder::new(Arc::clone(model));
    let mut batches = vec![Sums::default(); BATCHES];
    let size = model.inner_parameters() + model.architecture.readout_parameters();
    let (mut phi, draws) = (vec![0.0; size], cell.count("draws"));
    for draw in 0..draws {
        let mut stream = Stream::new(12, cell.long("width"), Purpose::Initial, draw as u64);
        stream.fill_normal(&mut phi);
        let record = recorder.record(&mut posterior, &phi, &mut stream)?;
        batches[draw * BATCHES / draws].record(record);
        bench.advance(draw as f64 / draws as f64)?;
    }
    Ok(batches)
}

/// Functions of nearly independent draws of the posterior.
fn of_the_posterior(
    model: &Arc<Model<f64>>,
    cell: &Cell,
    bench: &Bench<'_>,
) -> Result<Vec<Sums>, Failure> {
    let draws = cell.long("draws");
    let plan = ChainPlan::marginal(Schedule {
        chains: 2,
        warmup: 300,
        draws: draws / 2,
        thin: 1,
        seed: 12,
    });
    let chains = plan.record(model, bench, || Batches {
        length: draws as f64 / BATCHES as f64,
        all: Vec::new(),
    })?;
    let batches = chains
        .into_iter()
        .flat_map(|(_, recording)| recording.kept.all);
    Ok(batches.collect())
}

/// The NNGP's posterior mean and standard deviation.
fn limit() -> Result<(Vec<f64>, Vec<f64>), Failure> {
    let (x, y, grid) = problem();
    let infinite = InfiniteNetwork::new(&network(1))?;
    let (train, test) = (matrix(&x, x.len(), 1), matrix(&grid, grid.len(), 1));
    let kernel = infinite.kernels(train, Kinds::Nngp, 1)?.nngp;
    let cross = infinite.cross_kernels(train, test, Kinds::Nngp, 1)?.nngp;
    let prior = infinite.diagonals(test, Kinds::Nngp, 1)?.nngp;
    let process = GaussianProcess::new(&kernel, x.len(), &y, NOISE)?;
    let variances = process.variance(&cross, &prior)?.values;
    let sd = variances.iter().map(|variance| variance.sqrt()).collect();
    Ok((process.mean(&cross)?, sd))
}
