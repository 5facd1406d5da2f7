//! Figure 6: what a step costs with repriorisation, over what it costs without.
//!
//! Shortest of interleaved rounds of ℓ with its gradient at a draw of the prior, on one thread: a Langevin step is one of them.

use std::sync::Arc;
use std::time::Instant;

use reprior::compute::{Purpose, Stream};
use reprior::model::InputReduction;
use reprior::posterior::{Posterior, Target};

use super::{COORDINATES, coordinates};
use crate::findings::{every, listed, results};
use crate::{About, Bench, Cell, Experiment, Failure, Figure, Finding, Paper, Row, Size, Table};

pub(super) struct Overhead;

impl Experiment for Overhead {
    fn about(&self) -> About {
        About {
            name: "hron2022-fig6",
            paper: Paper::Hron,
            figure: "Figure 6",
            what: "time of a step (ℓ with its gradient) in repriorised over standard coordinates, three hidden layers, all inputs",
            data: Some("cifar10"),
            cost: ["5 s", "3 min", "20 min", "20 min"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let pairs: &[(usize, usize)] = size.pick(
            &[(64, 32), (64, 128)],
            &[(256, 128), (256, 512), (256, 1024), (64, 512), (1024, 512)],
            &[
                (256, 32),
                (256, 128),
                (256, 512),
                (256, 1024),
                (64, 512),
                (1024, 512),
                (4096, 512),
            ],
            &[
                (256, 32),
                (256, 128),
                (256, 512),
                (256, 1024),
                (64, 512),
                (1024, 512),
                (4096, 512),
            ],
        );
        let cell = |&(n, width): &(usize, usize)| Cell::new().with("n", n).with("width", width);
        pairs.iter().map(cell).collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let (n, width) = (cell.count("n"), cell.count("width"));
        let images = bench.data.images("cifar10", n)?;
        let test = images.midpoints(20);
        let model = images.model::<f32>(&[width; 3], &test, InputReduction::Off)?;
        let targets = COORDINATES.map(|name| Posterior::new(Arc::clone(&model), coordinates(name)));
        let targets: Result<Vec<_>, _> = targets.into_iter().collect();
        let mut targets = targets?;
        let mut z = vec![0.0; targets[0].dim()];
        Stream::new(1, 0, Purpose::Initial, 0).fill_normal(&mut z);
        let mut gradient = z.clone();
        let mut best = [f64::INFINITY; 2];
        let rounds = bench.size.pick(15, 15, 30, 30);
        for round in 0..rounds {
            for (target, best) in targets.iter_mut().zip(&mut best) {
                let start = Instant::now();
                target.log_ratio_and_gradient(&z, &mut gradient)?;
                *best = best.min(start.elapsed().as_secs_f64());
            }
            bench.advance(f64::from(round) / f64::from(rounds))?;
        }
        Ok(vec![
            Row::new()
                .with("n", images.rows())
                .with("width", width)
                .with("standard, ms", 1e3 * best[0])
                .with("repriorised, ms", 1e3 * best[1])
                .with("ratio", best[1] / best[0])
                .with("published, at most", 1.5),
        ])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let ratios = results(tables).numbers("ratio", &[]);
        vec![Finding::unjudged(
            "a step costs at most half as much again",
            every(&ratios, |ratio| ratio < 1.5),
            format!("ratios: {}", listed(&ratios)),
        )]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "overhead",
                "Time of a step, repriorised over standard",
                "1 is no overhead; the paper found at most 1.5.",
                ("width", "width"),
                ("ratio", "time over that in standard coordinates"),
                &["n"],
            )
            .logarithmic(true, false),
        ]
    }
}
