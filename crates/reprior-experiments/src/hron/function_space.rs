//! Figure 3: in function space the posterior tends to that of the NNGP as the network widens.

use std::sync::Arc;

use reprior::chain::snapshot::Snapshot;
use reprior::chain::{Chain, Control, Observer, RunOutcome, Schedule, Statistics, run};
use reprior::compute::{Purpose, Stream, matrix};
use reprior::gaussian_process::GaussianProcess;
use reprior::model::{InputReduction, Model};
use reprior::network::infinite::{InfiniteNetwork, Kinds};
use reprior::network::{Activation, Composition};
use reprior::posterior::{Coordinates, Posterior, Recorder};
use reprior::sampler::{SamplerSettings, State};

use super::NOISE;
use crate::experiment::{listed, results};
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
            cost: ["5 s", "2 min", "20 min"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let widths: &[usize] = size.pick(
            &[4, 32, 256],
            &[2, 4, 16, 64, 256, 1024],
            &[2, 4, 16, 64, 256, 1024, 4096],
        );
        let draws: usize = size.pick(600, 4000, 20_000);
        widths
            .iter()
            .map(|&width| Cell::new().with("width", width).with("draws", draws))
            .collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let (x, y, grid) = problem();
        let width = cell.count("width");
        let (mean, sd) = posterior(width, cell.count("draws"), &x, &y, &grid, bench)?;
        let (limit_mean, limit_sd) = limit(&x, &y, &grid)?;
        let distance = |a: &[f64], b: &[f64]| {
            let squares: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
            (squares / a.len() as f64).sqrt()
        };
        let mut rows = vec![
            Row::new()
                .with("width", width)
                .with("distance of means", distance(&mean, &limit_mean))
                .with("distance of sds", distance(&sd, &limit_sd))
                .with("mean sd", sd.iter().sum::<f64>() / sd.len() as f64),
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
        curve(format!("width {width}"), &mean, &sd);
        if cell.count("width") == self.cells(bench.size, false)[0].count("width") {
            curve(LIMIT.to_owned(), &limit_mean, &limit_sd);
        }
        Ok(rows)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let columns = ["distance of means", "distance of sds"];
        let [means, sds] = columns.map(|column| table.numbers(column, &[]));
        let falls = |values: &[f64]| match (values.first(), values.last()) {
            (Some(first), Some(last)) => *last < 0.5 * first,
            _ => false,
        };
        vec![Finding::new(
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
        let lines = |name, title, column, label| Figure {
            table: "curves",
            ..Figure::lines(
                name,
                title,
                "Lines of wide networks lie on that of the NNGP.",
                ("x", "x"),
                (column, label),
                &["network"],
            )
        };
        vec![
            lines("means", "Posterior means", "mean", "mean of f(x)"),
            lines("sds", "Posterior standard deviations", "sd", "sd of f(x)"),
            Figure {
                logarithmic: [true, true],
                ..Figure::lines(
                    "distances",
                    "Distance of the posterior mean from the NNGP's",
                    "A straight fall is a power of the width.",
                    ("width", "width"),
                    ("distance of means", "root mean squared distance"),
                    &[],
                )
            },
        ]
    }
}

/// Mean and variance of every draw's prediction, summed.
struct Sums {
    recorder: Recorder<f64>,
    seed: u64,
    count: f64,
    mean: Vec<f64>,
    square: Vec<f64>,
    failure: Option<String>,
}

impl Observer<Posterior<f64>> for Sums {
    type Error = std::convert::Infallible;

    fn warmup(&mut self, _: &Statistics, _: [f64; 2]) -> Result<(), Self::Error> {
        Ok(())
    }

    fn draw(
        &mut self,
        target: &mut Posterior<f64>,
        state: &State<f64>,
        _: &Statistics,
        _: [f64; 2],
        transition: u64,
    ) -> Result<(), Self::Error> {
        let mut stream = Stream::new(self.seed, 0, Purpose::Recording, transition);
        match self.recorder.record(target, &state.position, &mut stream) {
            Ok(record) => {
                self.count += 1.0;
                for (index, (mean, variance)) in
                    record.mean.iter().zip(&record.variance).enumerate()
                {
                    self.mean[index] += mean;
                    self.square[index] += mean * mean + variance;
                }
            }
            Err(error) => self.failure = Some(error.to_string()),
        }
        Ok(())
    }

    fn checkpoint(&mut self, _: &Snapshot<f64>) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// Posterior mean and standard deviation of the finite network.
fn posterior(
    width: usize,
    draws: usize,
    x: &[f64],
    y: &[f64],
    grid: &[f64],
    bench: &Bench<'_>,
) -> Result<(Vec<f64>, Vec<f64>), Failure> {
    let model = Model::<f64>::new(
        network(width),
        NOISE,
        x,
        y.to_vec(),
        grid,
        InputReduction::Auto,
    );
    let model = Arc::new(model.map_err(Failure::failed)?);
    let schedule = Schedule {
        chains: 2,
        warmup: 300,
        draws: draws as u64 / 2,
        thin: 1,
        seed: 12,
    };
    let start = |index| {
        let target =
            Posterior::new(Arc::clone(&model), Coordinates::Marginal).map_err(Failure::failed)?;
        let chain = Chain::start(index, schedule, &SamplerSettings::default(), target);
        let sums = Sums {
            recorder: Recorder::new(Arc::clone(&model)),
            seed: index as u64,
            count: 0.0,
            mean: vec![0.0; grid.len()],
            square: vec![0.0; grid.len()],
            failure: None,
        };
        Ok((chain.map_err(Failure::failed)?, sums))
    };
    let walks = (0..2).map(start).collect::<Result<Vec<_>, Failure>>()?;
    let control = Control {
        threads: bench.threads,
        checkpoint_every: std::time::Duration::from_secs(3600),
        stop: bench.stop,
    };
    let total = schedule.transitions() as f64;
    let (walks, outcome) = run(walks, control, &|progress| {
        (bench.progress)(progress.transition as f64 / total);
    });
    if outcome.map_err(Failure::failed)? == RunOutcome::Stopped {
        return Err(Failure::Stopped);
    }
    let (mut count, mut mean, mut square) = (0.0, vec![0.0; grid.len()], vec![0.0; grid.len()]);
    for (_, sums) in walks {
        if let Some(failure) = sums.failure {
            return Err(Failure::Failed(failure));
        }
        count += sums.count;
        mean.iter_mut()
            .zip(&sums.mean)
            .for_each(|(out, value)| *out += value);
        square
            .iter_mut()
            .zip(&sums.square)
            .for_each(|(out, value)| *out += value);
    }
    mean.iter_mut().for_each(|value| *value /= count);
    let sd = square
        .iter()
        .zip(&mean)
        .map(|(square, mean)| (square / count - mean * mean).sqrt());
    let sd = sd.collect();
    Ok((mean, sd))
}

/// The NNGP's posterior mean and standard deviation.
fn limit(x: &[f64], y: &[f64], grid: &[f64]) -> Result<(Vec<f64>, Vec<f64>), Failure> {
    let infinite = InfiniteNetwork::new(&network(1)).map_err(Failure::failed)?;
    let (train, test) = (matrix(x, x.len(), 1), matrix(grid, grid.len(), 1));
    let kernel = infinite
        .kernels(train, Kinds::Nngp, 1)
        .map_err(Failure::failed)?
        .nngp;
    let cross = infinite
        .cross_kernels(train, test, Kinds::Nngp, 1)
        .map_err(Failure::failed)?
        .nngp;
    let prior = infinite
        .diagonals(test, Kinds::Nngp, 1)
        .map_err(Failure::failed)?
        .nngp;
    let process = GaussianProcess::new(&kernel, x.len(), y, NOISE).map_err(Failure::failed)?;
    let mean = process.mean(&cross).map_err(Failure::failed)?;
    let variances = process.variance(&cross, &prior).map_err(Failure::failed)?;
    Ok((
        mean,
        variances
            .values
            .iter()
            .map(|variance| variance.sqrt())
            .collect(),
    ))
}
