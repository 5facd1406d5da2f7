//! Figure 1: acceptance rates against width and β.
//!
//! Measured from stationary draws: `hmc-infinite` in marginal coordinates gives nearly independent draws of the inner weights,
//! φ_out is N(0, I) exactly, and from each draw a few steps are made. Langevin steps are made in all coordinates, also those
//! that the data do not touch (D = (d₀ + 1 + C)·width + C): their energy error grows with √D.
//!
//! Published algorithm: its pCNL takes −log p(y | T(φ)) for the potential, and so counts the likelihood twice. Its law is not the
//! posterior, of which the draws are: what is measured is how it accepts in its first steps from these.

use std::sync::Arc;

use reprior::chain::Schedule;
use reprior::compute::kernels::matrix_mut;
use reprior::compute::{Purpose, Stream, matrix};
use reprior::model::design::{TestDesign, whole_weights};
use reprior::model::{InputReduction, Model};
use reprior::posterior::{Coordinates, Posterior, Target};
use reprior::sampler::SamplerSettings;

use super::published::PublishedPotential;
use super::{METHODS, images, settings};
use crate::chains::ChainPlan;
use crate::findings::{listed, mean, results, rises};
use crate::{
    About, Bench, Cell, Experiment, Failure, Figure, Finding, Paper, Row, Size, Table, Value,
};

pub(super) struct Acceptance;

const PUBLISHED: &str = "pcnl as published";

impl Experiment for Acceptance {
    fn about(&self) -> About {
        About {
            name: "pezzetti2024-fig1",
            paper: Paper::Pezzetti,
            figure: "Figure 1",
            what: "acceptance rates of pCN, pCNL and Langevin steps against width at step sizes β = 0.2, 0.1, 0.01, at stationarity, n = 256",
            data: Some("cifar10"),
            cost: ["5 s", "10 min", "2 h", "2 h"],
        }
    }

    fn cells(&self, size: Size, as_published: bool) -> Vec<Cell> {
        let widths: &[usize] = size.pick(
            &[64, 256, 1024],
            &[512, 1024, 2048, 4096, 8192],
            &[512, 1024, 2048, 4096, 8192],
            &[512, 1024, 2048, 4096, 8192],
        );
        let draws = size.pick(8_usize, 8, 64, 64);
        let mut methods = METHODS.to_vec();
        methods.extend(as_published.then_some(PUBLISHED));
        let cells = Cell::new().each("width", widths).into_iter();
        cells
            .flat_map(|cell| cell.each("method", &methods))
            .map(|cell| cell.with("draws", draws))
            .collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let images = images(bench)?;
        let (hidden, test) = ([cell.count("width")], images.midpoints(20));
        let model = |reduction| images.model::<f32>(&hidden, &test, reduction);
        let reduced = model(InputReduction::Auto)?;
        let mut starts = stationary(&reduced, cell.long("draws"), bench)?;
        let (method, steps) = match cell.text("method") {
            "langevin" => ("langevin", bench.size.pick(20, 4, 100, 100)),
            PUBLISHED => ("pcnl", bench.size.pick(20, 25, 200, 200)),
            other => (other, bench.size.pick(20, 25, 200, 200)),
        };
        let mut whole = Arc::clone(&reduced);
        if method == "langevin" {
            whole = model(InputReduction::Off)?;
            let lift = whole_weights(&reduced.architecture, &reduced.design, &images.inputs);
            for (index, start) in starts.iter_mut().enumerate() {
                *start = lifted(start, lift.as_ref(), &reduced, index);
            }
        }
        let target = || -> Result<Box<dyn Target<Real = f32>>, Failure> {
            let model = Arc::clone(&whole);
            Ok(match cell.text("method") {
                PUBLISHED => Box::new(PublishedPotential::new(model)),
                _ => Box::new(Posterior::new(model, Coordinates::Repriorised)?),
            })
        };
        let mut rows = Vec::new();
        for beta in [0.2, 0.1, 0.01] {
            let rates = rates(&target, &settings(method, beta), &starts, steps, bench)?;
            let (n, mean) = (rates.len() as f64, mean(&rates));
            let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (n - 1.0);
            rows.push(
                Row::new()
                    .with("method", cell.text("method"))
                    .with("beta", beta)
                    .with("width", hidden[0])
                    .with("acceptance", mean)
                    .with("standard error", (variance / n).sqrt()),
            );
        }
        Ok(rows)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let rates = |method: &str, beta: f64| {
            let wanted = [("method", method.into()), ("beta", beta.into())];
            table.numbers("acceptance", &wanted)
        };
        let mut findings = Vec::new();
        for method in ["pcn", "pcnl"] {
            // at 0.01 every rate is above 0.99: differences are Monte-Carlo errors
            let by_beta = [0.2, 0.1].map(|beta| rates(method, beta));
            findings.push(Finding::unjudged(
                format!("{method}'s acceptance rises with width (Theorems 2.1 and 2.2)"),
                by_beta.iter().all(|rates| rises(rates, 0.02)),
                format!(
                    "β = 0.2: {}; 0.1: {}",
                    listed(&by_beta[0]),
                    listed(&by_beta[1])
                ),
            ));
        }
        // narrower networks reject because their posterior is curved, not because it has many dimensions
        let wide = |width: &Value| matches!(width, Value::Number(width) if *width >= 256.0);
        let widths = table.distinct("width");
        let langevin: Vec<f64> = rates("langevin", 0.2)
            .into_iter()
            .zip(&widths)
            .filter_map(|(rate, width)| wide(width).then_some(rate))
            .collect();
        findings.push(Finding::unjudged(
            "the acceptance of Langevin steps falls with width (from 256 on)",
            rises(&langevin.iter().map(|rate| -rate).collect::<Vec<_>>(), 0.01),
            format!("β = 0.2: {}", listed(&langevin)),
        ));
        let published = rates(PUBLISHED, 0.2);
        if let (Some(&theirs), Some(&ours)) = (published.last(), rates("pcnl", 0.2).last()) {
            findings.push(Finding::unjudged(
                "pCNL as published, which counts the likelihood twice, accepts less than pCNL at the largest width, from the same draws",
                theirs < ours,
                format!("β = 0.2: {} against {}", listed(&published), listed(&rates("pcnl", 0.2))),
            ));
        }
        findings
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "acceptance",
                "Acceptance rate against width",
                "Higher is better: lines that rise keep their step size as the network widens.",
                ("width", "width"),
                ("acceptance", "acceptance rate"),
                &["method"],
            )
            .errors("standard error")
            .panels("beta")
            .logarithmic(true, false),
        ]
    }
}

/// Draws of the inner weights in reduced coordinates, each with a φ_out ~ N(0, I).
fn stationary(
    model: &Arc<Model<f32>>,
    draws: u64,
    bench: &Bench<'_>,
) -> Result<Vec<Vec<f32>>, Failure> {
    let plan = ChainPlan::marginal(Schedule {
        chains: 2,
        warmup: bench.size.pick(40, 8, 20, 20),
        draws: draws / 2,
        thin: bench.size.pick(5, 1, 1, 1),
        seed: 31,
    });
    let readout = model.architecture.readout_parameters();
    let with_readout = |(index, mut z): (usize, Vec<f32>)| {
        let mut phi = vec![0.0; readout];
        Stream::new(32, index as u64, Purpose::Recording, 0).fill_normal(&mut phi);
        z.extend(phi);
        z
    };
    let positions = plan.positions(model, bench)?.into_iter();
    Ok(positions.enumerate().map(with_readout).collect())
}

/// The same draw in the network's own coordinates: what reduced inputs leave out is N(0, I).
fn lifted(
    z: &[f32],
    lift: Option<&TestDesign<f32>>,
    reduced: &Model<f32>,
    index: usize,
) -> Vec<f32> {
    let Some(lift) = lift else {
        return z.to_vec();
    };
    let (columns, width) = (
        reduced.design.columns(),
        reduced.architecture.hidden_widths()[0],
    );
    let (inner, readout) = z.split_at(columns * width);
    let mut noise = vec![0.0; lift.residual_columns() * width];
    Stream::new(33, index as u64, Purpose::Recording, 0).fill_normal(&mut noise);
    let mut weights = vec![0.0; lift.rows() * width];
    lift.forward(
        matrix_mut(&mut weights, lift.rows(), width),
        matrix(inner, columns, width),
        matrix(&noise, lift.residual_columns(), width),
    );
    weights.extend(readout);
    weights
}

/// Mean acceptance rates of so many steps from each of `starts`.
fn rates(
    target: &(dyn Fn() -> Result<Box<dyn Target<Real = f32>>, Failure> + Sync),
    settings: &SamplerSettings,
    starts: &[Vec<f32>],
    steps: u64,
    bench: &Bench<'_>,
) -> Result<Vec<f64>, Failure> {
    let half = |first: usize| -> Result<Vec<f64>, Failure> {
        let mut target = target()?;
        let rate = |index: usize| -> Result<f64, Failure> {
            let mut sampler = settings.sampler();
            let mut state = sampler.init(&mut *target, starts[index].clone())?;
            let mut sum = 0.0;
            for step in 0..steps {
                let mut stream = Stream::new(34, index as u64, Purpose::Transition, step);
                let info = sampler.step(&mut *target, &mut state, &mut stream)?;
                sum += info.acceptance_rate;
                bench.advance(index as f64 / starts.len() as f64)?;
            }
            Ok(sum / steps as f64)
        };
        (first..starts.len()).step_by(2).map(rate).collect()
    };
    if bench.threads == 1 {
        return Ok([half(0)?, half(1)?].concat());
    }
    let [even, odd] = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        let own = half(0);
        let other = other.join();
        [
            own,
            other.unwrap_or_else(|_| Err(Failure::failed("a thread failed"))),
        ]
    });
    Ok([even?, odd?].concat())
}
