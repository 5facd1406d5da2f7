//! Figure 5: the log density along lines through a posterior draw, before and after repriorisation.
//!
//! Along a unit direction v the prior's log density is a parabola of curvature −1. What is measured is how far the log density is
//! from that parabola: the spread of ℓ, the log density less the prior's, over t in [−3, 3].

use std::sync::Arc;

use reprior::chain::Schedule;
use reprior::compute::kernels::norm_squared;
use reprior::compute::{Purpose, Stream};
use reprior::model::{InputReduction, Model};
use reprior::posterior::{Coordinates, Posterior, Recorder, Target};

use super::{COORDINATES, coordinates};
use crate::chains::ChainPlan;
use crate::findings::{ends, every, listed, mean, mean_and_sd, ratios, results};
use crate::{About, Bench, Cell, Experiment, Failure, Figure, Finding, Paper, Row, Size, Table};

/// Points along a line.
const POINTS: usize = 25;

pub(super) struct Slices;

impl Experiment for Slices {
    fn about(&self) -> About {
        About {
            name: "hron2022-fig5",
            paper: Paper::Hron,
            figure: "Figure 5",
            what: "the log posterior along random lines through a posterior draw in standard and repriorised coordinates, against the prior's parabola",
            data: Some("cifar10"),
            cost: ["5 s", "3 min", "20 min", "20 min"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let widths: &[usize] = size.pick(
            &[16, 64, 256],
            &[32, 128, 512, 2048],
            &[32, 128, 512, 2048, 8192],
            &[32, 128, 512, 2048, 8192],
        );
        Cell::new().each("width", widths)
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let count = bench.size.pick(32, 256, 256, 256);
        let images = bench.data.images("cifar10", count)?;
        let width = cell.count("width");
        let model = images.model::<f64>(&[width], &[], InputReduction::Auto)?;
        let (phi, theta) = stationary(&model, bench)?;
        let (mut rows, mut slices) = (Vec::new(), Vec::new());
        for name in COORDINATES {
            let mut target = Posterior::new(Arc::clone(&model), coordinates(name))?;
            let centre = if name == "standard" { &theta } else { &phi };
            let lines = bench.size.pick(6, 10, 20, 20);
            let mut spreads = Vec::new();
            for line in 0..lines {
                let mut direction = vec![0.0; centre.len()];
                Stream::new(5, line, Purpose::Projection, 0).fill_normal(&mut direction);
                let scale = norm_squared(&direction).sqrt().recip();
                let (mut ratios, mut densities) = (Vec::new(), Vec::new());
                for point in 0..POINTS {
                    let t = -3.0 + 6.0 * point as f64 / (POINTS - 1) as f64;
                    let pairs = centre.iter().zip(&direction);
                    let z: Vec<f64> = pairs.map(|(z, v)| z + t * scale * v).collect();
                    let ratio = target.log_ratio(&z)?;
                    ratios.push(ratio);
                    densities.push((t, ratio - 0.5 * norm_squared(&z)));
                    bench.advance(line as f64 / lines as f64)?;
                }
                // centred at the middle of each line, so that lines can be laid over one another
                let (_, middle) = densities[POINTS / 2];
                for (t, density) in densities.into_iter().filter(|_| line < 3) {
                    slices.push(
                        Row::of("slices")
                            .with("coordinates", name)
                            .with("width", width)
                            .with("line", line)
                            .with("t", t)
                            .with("log density", density)
                            .with("centred", density - middle),
                    );
                }
                spreads.push(mean_and_sd(&ratios).1);
            }
            rows.push(
                Row::new()
                    .with("width", width)
                    .with("coordinates", name)
                    .with("departure from the prior", mean(&spreads)),
            );
        }
        rows.reverse();
        rows.extend(slices);
        Ok(rows)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let [standard, repriorised] = COORDINATES
            .map(|name| table.numbers("departure from the prior", &[("coordinates", name.into())]));
        let gains = ratios(&standard, &repriorised);
        vec![
            Finding::unjudged(
                "slices of the repriorised posterior are nearer to the prior's parabola at every width",
                every(&gains, |gain| gain > 1.0),
                format!("departure, standard over repriorised: {}", listed(&gains)),
            ),
            Finding::unjudged(
                "and nearer the wider the network",
                ends(&repriorised, |first, last| last < first),
                format!(
                    "repriorised: {}; standard: {}",
                    listed(&repriorised),
                    listed(&standard)
                ),
            ),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "departure",
                "Departure of slices from the prior",
                "Lower is simpler: 0 would be the prior's own parabola.",
                ("width", "width"),
                ("departure from the prior", "spread of ℓ along a line"),
                &["coordinates"],
            )
            .logarithmic(true, true),
            Figure::lines(
                "slices",
                "Log posterior along lines",
                "Repriorised slices are all alike; standard ones are steep and uneven.",
                ("t", "distance from the draw"),
                ("centred", "log density, less that at the draw"),
                &["width", "line"],
            )
            .of("slices")
            .panels("coordinates"),
        ]
    }
}

/// A draw of the posterior in repriorised and in standard coordinates.
fn stationary(model: &Arc<Model<f64>>, bench: &Bench<'_>) -> Result<(Vec<f64>, Vec<f64>), Failure> {
    let plan = ChainPlan::marginal(Schedule {
        chains: 1,
        warmup: bench.size.pick(60, 15, 15, 15),
        draws: 1,
        thin: 1,
        seed: 3,
    });
    let mut phi = plan.positions(model, bench)?.swap_remove(0);
    let inner = phi.len();
    phi.resize(inner + model.architecture.readout_parameters(), 0.0);
    let mut stream = Stream::new(4, 0, Purpose::Recording, 0);
    stream.fill_normal(&mut phi[inner..]);
    let mut posterior = Posterior::new(Arc::clone(model), Coordinates::Repriorised)?;
    let mut recorder = Recorder::new(Arc::clone(model));
    let record = recorder.record(&mut posterior, &phi, &mut stream);
    let theta = record?.weights.clone();
    Ok((phi, theta))
}
