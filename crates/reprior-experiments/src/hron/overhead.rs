//! Figure 6: what a step costs with repriorisation, over what it costs without.
//!
//! Medians of interleaved rounds of ℓ with its gradient at a draw of the prior, on one thread: a Langevin step is one of them.

use std::sync::Arc;
use std::time::Instant;

use reprior::compute::{Purpose, Stream};
use reprior::model::InputReduction;
use reprior::posterior::{Posterior, Target};

use super::steps::residual;
use super::{COORDINATES, coordinates};
use crate::findings::{estimates, results};
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Judgement, Paper, Row,
    Size, Table, Value,
};

pub(super) struct Overhead;

const DENSE: &str = "fully connected";
const CONVOLUTIONAL: &str = "residual, depth 8";
const PUBLISHED: f64 = 1.5;

/// The median.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The median of values with its standard error, from the middle half of them: what other programs do on the machine makes times long.
fn middle_of(mut values: Vec<f64>) -> Estimate {
    values.sort_by(f64::total_cmp);
    let quarter = values.len() / 4;
    let spread = values[values.len() - 1 - quarter] - values[quarter];
    // of normal values the middle half is 1.35 standard deviations wide, and a median has 1.25 times the error of a mean
    let error = 1.25 * spread / 1.35 / (values.len() as f64).sqrt();
    Estimate {
        degrees: values.len() as f64 - 1.0,
        ..Estimate::new(median(values), error)
    }
}

impl Experiment for Overhead {
    fn about(&self) -> About {
        About {
            name: "hron2022-fig6",
            paper: Paper::Hron,
            figure: "Figure 6",
            what: "time of a step (ℓ with its gradient) in repriorised over standard coordinates, three hidden layers with all inputs, and a residual network",
            data: Some("cifar10"),
            cost: ["5 s", "3 min", "20 min", "20 min"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let dense = [
            (256, 32),
            (256, 128),
            (256, 512),
            (256, 1024),
            (64, 512),
            (1024, 512),
        ];
        let convolutional = [(64, 4), (64, 16), (64, 64), (256, 16)];
        let (dense, convolutional) = size.pick(
            (&[(64, 32), (64, 128)][..], &[(32, 4)][..]),
            (&dense, &convolutional[..2]),
            (&dense, &convolutional),
            (&dense, &convolutional),
        );
        let of = |network: &'static str, pairs: &[(usize, usize)]| -> Vec<Cell> {
            let cell = |&(n, width): &(usize, usize)| {
                Cell::new()
                    .with("network", network)
                    .with("n", n)
                    .with("width", width)
            };
            pairs.iter().map(cell).collect()
        };
        [of(DENSE, dense), of(CONVOLUTIONAL, convolutional)].concat()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let (n, width) = (cell.count("n"), cell.count("width"));
        let images = bench.data.images("cifar10", n)?;
        let model = match cell.text("network") {
            CONVOLUTIONAL => residual(&images, 8, width)?,
            _ => images.model::<f32>(&[width; 3], &[], InputReduction::Off)?,
        };
        let targets = COORDINATES.map(|name| Posterior::new(Arc::clone(&model), coordinates(name)));
        let targets: Result<Vec<_>, _> = targets.into_iter().collect();
        let mut targets = targets?;
        let mut z = vec![0.0; targets[0].dim()];
        Stream::new(1, 0, Purpose::Initial, 0).fill_normal(&mut z);
        let mut gradient = z.clone();
        let mut times = [Vec::new(), Vec::new()];
        let rounds = bench.size.pick(15, 15, 30, 30);
        for round in 0..rounds {
            for (target, times) in targets.iter_mut().zip(&mut times) {
                let start = Instant::now();
                target.log_ratio_and_gradient(&z, &mut gradient)?;
                times.push(start.elapsed().as_secs_f64());
            }
            bench.advance(f64::from(round) / f64::from(rounds))?;
        }
        let ratios: Vec<f64> = times[1].iter().zip(&times[0]).map(|(a, b)| a / b).collect();
        let [standard, repriorised] = times.map(median);
        Ok(vec![
            cell.choices(&["network"])
                .with("n", n)
                .with("width", width)
                .with("standard, ms", 1e3 * standard)
                .with("repriorised, ms", 1e3 * repriorised)
                .with_estimate("ratio", &middle_of(ratios))
                .with("published, at most", PUBLISHED),
        ])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let most = Estimate::exact(PUBLISHED);
        let finding = |network: Value| {
            let ratios = table.estimates("ratio", &[("network", network.clone())]);
            let each = ratios.iter().map(|ratio| Judgement::below(ratio, &most));
            Finding::new(
                format!("{network}: a step costs at most half as much again"),
                &Judgement::all(each),
                estimates(&ratios),
            )
            .published("Figure 6: never more than 1.5 times")
        };
        table.distinct("network").into_iter().map(finding).collect()
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "overhead",
                "Time of a step, repriorised over standard",
                "1 is no overhead; the paper found at most 1.5.",
                ("width", "width"),
                ("ratio", "time over that in standard coordinates"),
                &["network", "n"],
            )
            .errors("± ratio")
            .limits(&[("published, at most", "published, at most")])
            .logarithmic(true, false),
        ]
    }
}
