//! Figure 3: in function space the posterior tends to that of the NNGP as the network widens.

use std::sync::Arc;

use reprior::chain::Schedule;
use reprior::compute::matrix;
use reprior::gaussian_process::GaussianProcess;
use reprior::model::{InputReduction, Model};
use reprior::network::infinite::{InfiniteNetwork, Kinds};
use reprior::network::{Activation, Composition};
use reprior::posterior::DrawRecord;

use crate::chains::{ChainPlan, KeepDraws};
use crate::data::NOISE;
use crate::findings::{ends, listed, mean, results};
use crate::{About, Bench, Cell, Experiment, Failure, Figure, Finding, Paper, Row, Size, Table};

/// Points at which functions are compared.
const GRID: usize = 41;
const LIMIT: &str = "NNGP";

pub(super) struct Widths;

/// Five points of a curve, and the grid on [−2, 2].
fn problem() -> ([f64; 5], [f64; 5], Vec<f64>) {
    let x = [-1.5, -0.9, 0.0, 0.6, 1.4];
    let y = x.map(|x: f64| (2.0 * x).sin());
    let grid = (0..GRID)
        .map(|i| -2.0 + 4.0 * i as f64 / (GRID - 1) as f64)
        .collect();
    (x, y, grid)
}

fn network(width: usize) -> Composition {
    let mut network = Composition::fully_connected(1, &[width], 1, Activation::Gelu);
    // a bias as large as the slope: functions of one input that are not all lines through the origin
    network.hidden_scales_mut()[0].bias = 1.0;
    network
}

impl Experiment for Widths {
    fn about(&self) -> About {
        About {
            name: "hron2022-fig3",
            paper: Paper::Hron,
            figure: "Figure 3",
            what: "posterior mean and standard deviation of a function of one input given five points, against the exact posterior of the infinitely wide network (NNGP)",
            data: None,
            cost: ["5 s", "2 min", "20 min", "20 min"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let widths: &[usize] = size.pick(
            &[4, 32, 256],
            &[2, 4, 16, 64, 256, 1024],
            &[2, 4, 16, 64, 256, 1024, 4096],
            &[2, 4, 16, 64, 256, 1024, 4096],
        );
        let draws: usize = size.pick(600, 4000, 20_000, 20_000);
        let cells = Cell::new().each("width", widths).into_iter();
        cells.map(|cell| cell.with("draws", draws)).collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let (_, _, grid) = problem();
        let width = cell.count("width");
        let (means, sds) = posterior(width, cell.long("draws"), bench)?;
        let (limit_means, limit_sds) = limit()?;
        let distance = |a: &[f64], b: &[f64]| {
            let squares: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
            (squares / a.len() as f64).sqrt()
        };
        let mut rows = vec![
            cell.choices(&["width"])
                .with("distance of means", distance(&means, &limit_means))
                .with("distance of sds", distance(&sds, &limit_sds))
                .with("mean sd", mean(&sds)),
        ];
        let mut curve = |name: String, mean: &[f64], sd: &[f64]| {
            for ((&x, mean), sd) in grid.iter().zip(mean).zip(sd) {
                rows.push(
                    Row::of("curves")
                        .with("network", name.clone())
                        .with("x", x)
                        .with("mean", *mean)
                        .with("sd", *sd),
                );
            }
        };
        curve(format!("width {width}"), &means, &sds);
        if *cell == self.cells(bench.size, false)[0] {
            curve(LIMIT.to_owned(), &limit_means, &limit_sds);
        }
        Ok(rows)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let columns = ["distance of means", "distance of sds"];
        let [means, sds] = columns.map(|column| table.numbers(column, &[]));
        let falls = |values: &[f64]| ends(values, |first, last| last < 0.5 * first);
        vec![Finding::unjudged(
            "the posterior over functions tends to the NNGP's as the width grows",
            falls(&means) && falls(&sds),
            format!(
                "distances of means: {}; of sds: {}",
                listed(&means),
                listed(&sds)
            ),
        )]
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
        };
        vec![
            lines("means", "Posterior means", "mean", "mean of f(x)"),
            lines("sds", "Posterior standard deviations", "sd", "sd of f(x)"),
            Figure::lines(
                "distances",
                "Distance of the posterior mean from the NNGP's",
                "A straight fall is a power of the width.",
                ("width", "width"),
                ("distance of means", "root mean squared distance"),
                &[],
            )
            .logarithmic(true, true),
        ]
    }
}

/// Sums of the means and of the mean squares of draws' predictions.
#[derive(Default)]
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
}

impl KeepDraws<f64> for Sums {
    fn keep(&mut self, record: &DrawRecord<f64>) {
        let squares = record.mean.iter().zip(&record.variance);
        let squares: Vec<f64> = squares.map(|(mean, v)| mean * mean + v).collect();
        self.add(1.0, &record.mean, &squares);
    }
}

/// Posterior mean and standard deviation of the finite network.
fn posterior(width: usize, draws: u64, bench: &Bench<'_>) -> Result<(Vec<f64>, Vec<f64>), Failure> {
    let (x, y, grid) = problem();
    let (network, y) = (network(width), y.to_vec());
    let model = Model::<f64>::new(network, NOISE, &x, y, &grid, InputReduction::Auto)?;
    let plan = ChainPlan::marginal(Schedule {
        chains: 2,
        warmup: 300,
        draws: draws / 2,
        thin: 1,
        seed: 12,
    });
    let mut sums = Sums::default();
    for (_, recording) in plan.record(&Arc::new(model), bench, Sums::default)? {
        let Sums {
            count,
            mean,
            square,
        } = &recording.kept;
        sums.add(*count, mean, square);
    }
    let mean: Vec<f64> = sums.mean.iter().map(|sum| sum / sums.count).collect();
    let squares = sums.square.iter().zip(&mean);
    let sd = squares.map(|(sum, mean)| (sum / sums.count - mean * mean).sqrt());
    let sd = sd.collect();
    Ok((mean, sd))
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
