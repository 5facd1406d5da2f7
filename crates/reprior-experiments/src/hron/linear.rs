//! Figure 2 and Appendix D: what repriorisation does to a linear model, where everything is known.
//!
//! With Ψ the scaled inputs the posterior precision of θ is I + ΨᵀΨ/σ²; φ is N(0, I) exactly. A leapfrog step is stable below
//! 2/√(largest precision), so that steps may be √(1 + s²/σ²) times longer, s the largest singular value of Ψ.

use std::sync::Arc;

use reprior::chain::Schedule;
use reprior::compute::kernels::symmetric_eigen;
use reprior::compute::{Purpose, Stream};
use reprior::model::{InputReduction, Model};
use reprior::network::{Activation, Composition};
use reprior::posterior::{Coordinates, Posterior, Recorder};

use super::{COORDINATES, langevin};
use crate::data::NOISE;
use crate::findings::{every, listed, ratios, results};
use crate::{About, Bench, Cell, Experiment, Failure, Figure, Finding, Paper, Row, Size, Table};

/// Figure 2.
pub(super) struct Map;

impl Experiment for Map {
    fn about(&self) -> About {
        About {
            name: "hron2022-fig2",
            paper: Paper::Hron,
            figure: "Figure 2",
            what: "the posterior of a line's slope and intercept (20 points) before and after repriorisation: draws, covariance, condition number",
            data: None,
            cost: ["1 s", "1 s", "2 s", "2 s"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        vec![Cell::new().with("draws", size.pick(2000_usize, 5000, 20_000, 20_000))]
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let (rows, mut stream) = (20, Stream::new(1, 0, Purpose::Initial, 0));
        let mut noise = vec![0.0; rows];
        stream.fill_normal(&mut noise);
        let x: Vec<f64> = (0..rows).map(|i| 0.5 + i as f64 / rows as f64).collect();
        let y = x
            .iter()
            .zip(&noise)
            .map(|(x, e)| 0.8 * x - 0.2 + NOISE * e)
            .collect();
        let network = Composition::fully_connected(1, &[], 1, Activation::Gelu);
        let model = Model::<f64>::new(network, NOISE, &x, y, &[], InputReduction::Off);
        let model = Arc::new(model?);
        let mut posterior = Posterior::new(Arc::clone(&model), Coordinates::Repriorised)?;
        let mut recorder = Recorder::new(Arc::clone(&model));
        let (mut phis, mut thetas) = (Vec::new(), Vec::new());
        for draw in 0..cell.count("draws") {
            let mut stream = Stream::new(2, 0, Purpose::Transition, draw as u64);
            let mut phi = vec![0.0; 2];
            stream.fill_normal(&mut phi);
            let record = recorder.record(&mut posterior, &phi, &mut stream);
            thetas.push(record?.weights.clone());
            phis.push(phi);
        }
        bench.advance(0.5)?;
        let mut rows = Vec::new();
        for (name, draws) in [("standard", &thetas), ("repriorised", &phis)] {
            let covariance = covariance(draws);
            rows.push(
                Row::new()
                    .with("coordinates", name)
                    .with("sd of 1st", covariance[0].sqrt())
                    .with("sd of 2nd", covariance[3].sqrt())
                    .with(
                        "correlation",
                        covariance[1] / (covariance[0] * covariance[3]).sqrt(),
                    )
                    .with("condition number", condition(&covariance)?),
            );
            for draw in draws.iter().take(400) {
                rows.push(
                    Row::of("draws")
                        .with("coordinates", name)
                        .with("slope", draw[0])
                        .with("intercept", draw[1]),
                );
            }
        }
        // what the posterior's covariance must be: (I + ΨᵀΨ/σ²)⁻¹ with Ψ = [x, 0.1]
        let psi: Vec<[f64; 2]> = x.iter().map(|&x| [x, 0.1]).collect();
        let entry = |i: usize, j: usize| {
            let sum: f64 = psi.iter().map(|row| row[i] * row[j]).sum();
            f64::from(u8::from(i == j)) + sum / (NOISE * NOISE)
        };
        let precision = [entry(0, 0), entry(0, 1), entry(1, 0), entry(1, 1)];
        let determinant = precision[0] * precision[3] - precision[1] * precision[2];
        rows.push(
            Row::new()
                .with("coordinates", "standard, exact")
                .with("sd of 1st", (precision[3] / determinant).sqrt())
                .with("sd of 2nd", (precision[0] / determinant).sqrt())
                .with(
                    "correlation",
                    -precision[1] / (precision[0] * precision[3]).sqrt(),
                )
                .with("condition number", condition(&precision)?),
        );
        Ok(rows)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let of = |name: &str, column: &str| table.number(column, &[("coordinates", name.into())]);
        let [before, after, exact] =
            ["standard", "repriorised", "standard, exact"].map(|name| of(name, "condition number"));
        let both = |column| ["standard", "standard, exact"].map(|name| of(name, column));
        let [sd, correlation] = ["sd of 1st", "correlation"].map(both);
        vec![
            Finding::unjudged(
                "repriorised weights are N(0, I): round, where the posterior itself is narrow",
                after < 1.2 && before > 10.0 * after,
                format!("condition number {before:.1} before, {after:.3} after"),
            ),
            Finding::unjudged(
                "the map takes N(0, I) to the exact posterior's covariance",
                (before / exact - 1.0).abs() < 0.15
                    && (sd[0] / sd[1] - 1.0).abs() < 0.1
                    && (correlation[0] - correlation[1]).abs() < 0.02,
                format!(
                    "condition number {before:.1}, exactly {exact:.1}; sd of the slope {:.4}, exactly {:.4}",
                    sd[0], sd[1]
                ),
            ),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![Figure::lines(
                "draws",
                "Posterior draws",
                "Standard weights lie on a thin streak, repriorised ones in a round cloud, which is easy to sample.",
                ("slope", "first weight"),
                ("intercept", "second weight"),
                &["coordinates"],
            ).of("draws").scatter()]
    }
}

/// 2 × 2, column-major.
fn covariance(draws: &[Vec<f64>]) -> [f64; 4] {
    let n = draws.len() as f64;
    let mean = [0, 1].map(|i| draws.iter().map(|draw| draw[i]).sum::<f64>() / n);
    let entry = |i: usize, j: usize| {
        let products = draws
            .iter()
            .map(|draw| (draw[i] - mean[i]) * (draw[j] - mean[j]));
        products.sum::<f64>() / n
    };
    [entry(0, 0), entry(1, 0), entry(0, 1), entry(1, 1)]
}

fn condition(matrix: &[f64; 4]) -> Result<f64, Failure> {
    let (eigenvalues, _) = symmetric_eigen(matrix, 2).map_err(Failure::failed)?;
    Ok(eigenvalues[1] / eigenvalues[0])
}

/// Appendix D.
pub(super) struct StepSizes;

impl Experiment for StepSizes {
    fn about(&self) -> About {
        About {
            name: "hron2022-appendix-d",
            paper: Paper::Hron,
            figure: "Appendix D",
            what: "how much longer Langevin steps may be in repriorised coordinates of a linear model: step sizes tuned for the same acceptance, against √(1 + s²/σ²)",
            data: Some("cifar10"),
            cost: ["3 s", "1 min", "5 min", "5 min"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let rows: &[usize] = size.pick(
            &[16, 64, 256],
            &[16, 64, 256],
            &[16, 64, 256, 1024],
            &[16, 64, 256, 1024],
        );
        let cells = Cell::new().each("n", rows).into_iter();
        cells
            .flat_map(|cell| cell.each("coordinates", &COORDINATES))
            .collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let images = bench.data.images("cifar10", cell.count("n"))?;
        let model = images.model::<f32>(&[], &images.midpoints(20), InputReduction::Off)?;
        let schedule = Schedule {
            chains: 2,
            warmup: bench.size.pick(400, 1000, 1000, 1000),
            draws: bench.size.pick(100, 300, 300, 300),
            thin: 1,
            seed: 9,
        };
        let mut plan = langevin(cell, schedule);
        // a step that is nearly unstable: no Metropolis correction notices smaller ones in few dimensions
        plan.settings.target_acceptance = Some(0.7);
        let sampled = plan.sample(&model, bench)?;
        // largest eigenvalue of K = ΨΨᵀ
        let (n, d) = (images.rows(), images.columns());
        let scale = 1.0 / d as f64;
        let mut kernel = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                let pairs = images.inputs[i * d..][..d]
                    .iter()
                    .zip(&images.inputs[j * d..][..d]);
                let value = scale * pairs.map(|(a, b)| a * b).sum::<f64>() + 0.01;
                (kernel[j * n + i], kernel[i * n + j]) = (value, value);
            }
        }
        let (eigenvalues, _) = symmetric_eigen(&kernel, n).map_err(Failure::failed)?;
        let largest = 1.0 + eigenvalues[n - 1] / (NOISE * NOISE);
        Ok(vec![
            Row::new()
                .with("n", n)
                .with("coordinates", cell.text("coordinates"))
                .with("step size", sampled.step_size)
                .with("acceptance", sampled.acceptance)
                .with("√(1 + s²/σ²)", largest.sqrt())
                .with("√n/σ", (n as f64).sqrt() / NOISE),
        ])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let [standard, repriorised] =
            COORDINATES.map(|name| table.numbers("step size", &[("coordinates", name.into())]));
        let gains = ratios(&repriorised, &standard);
        let wanted = [("coordinates", "standard".into())];
        let roots = table.numbers("√n/σ", &wanted);
        let growth: Vec<f64> = gains
            .windows(2)
            .zip(roots.windows(2))
            .map(|(gain, root)| gain[1] / gain[0] * root[0] / root[1])
            .collect();
        let predicted = table.numbers("√(1 + s²/σ²)", &wanted);
        let shares = ratios(&gains, &predicted);
        vec![
            Finding::unjudged(
                "steps may be longer the more data there are, as √n (within a factor of 1.5 from one n to the next)",
                growth.len() > 1 && every(&growth, |ratio| (1.0 / 1.5..1.5).contains(&ratio)),
                format!(
                    "gains: {}; growth over that of √n: {}",
                    listed(&gains),
                    listed(&growth)
                ),
            ),
            Finding::unjudged(
                "the gain is of the order of √(1 + s²/σ²), where stability alone would have it: a third of it at least",
                every(&shares, |share| (0.33..1.1).contains(&share)),
                format!("gains over it: {}", listed(&shares)),
            ),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "step-size",
                "Tuned step size of Langevin steps on a linear model",
                "In repriorised coordinates the step need not shrink as data come in.",
                ("n", "training images"),
                ("step size", "step size"),
                &["coordinates"],
            )
            .logarithmic(true, true),
        ]
    }
}
