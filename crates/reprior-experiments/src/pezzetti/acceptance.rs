//! Figure 1: acceptance rates against width and β.
//!
//! Measured from stationary draws: `hmc-infinite` in marginal coordinates gives nearly independent draws of the inner weights,
//! φ_out is N(0, I) exactly, and from each draw a few steps are made. Langevin steps are made in all coordinates, also those
//! that the data do not touch (D = (d₀ + 1 + C)·width + C): their energy error grows with √D.
//!
//! Published algorithm: its pCNL takes −log p(y | T(φ)) for the potential, and so counts the likelihood twice. Its law is not the
//! posterior, of which the draws are: what is measured is how it accepts in its first steps from these.
//!
//! Errors are over draws. All methods start from the same draws, so that errors of differences are if anything too large.

use std::sync::Arc;

use reprior::chain::Schedule;
use reprior::compute::kernels::matrix_mut;
use reprior::compute::{Purpose, Stream, matrix};
use reprior::model::design::{TestDesign, whole_weights};
use reprior::model::{InputReduction, Model};
use reprior::posterior::{Coordinates, Posterior, Target};
use reprior::sampler::SamplerSettings;

use super::published::PublishedPotential;
use super::{PUBLISHED, images, methods, settings};
use crate::chains::ChainPlan;
use crate::findings::{estimates, results};
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Judgement, Paper, Row,
    Size, Table,
};

pub(super) struct Acceptance;

const BETAS: [f64; 3] = [0.2, 0.1, 0.01];
/// Narrower networks reject Langevin steps because their posterior is curved, not because it has many dimensions; the paper's have 512 and more.
const WIDE: f64 = 256.0;

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
        let methods = methods(as_published);
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
                PUBLISHED => Box::new(PublishedPotential::new(model)?),
                _ => Box::new(Posterior::new(model, Coordinates::Repriorised)?),
            })
        };
        let mut rows = Vec::new();
        for beta in BETAS {
            let rates = rates(&target, &settings(method, beta), &starts, steps, bench)?;
            rows.push(
                Row::new()
                    .with("method", cell.text("method"))
                    .with("beta", beta)
                    .with("width", hidden[0])
                    .with_estimate("acceptance", &Estimate::mean(&rates)),
            );
        }
        Ok(rows)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        BETAS
            .into_iter()
            .flat_map(|beta| of_beta(table, beta))
            .collect()
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
            .errors("± acceptance")
            .panels("beta")
            .logarithmic(true, false),
        ]
    }
}

/// The claims at one β.
fn of_beta(table: &Table, beta: f64) -> Vec<Finding> {
    let rates = |method: &str, least_width: f64| -> Vec<Estimate> {
        let wanted = [("method", method.into()), ("beta", beta.into())];
        let mut rows = table.sorted("width", &wanted);
        rows.retain(|row| row.number("width") >= least_width);
        rows.iter().map(|row| row.estimate("acceptance")).collect()
    };
    let [pcn, pcnl, published] = ["pcn", "pcnl", PUBLISHED].map(|method| rates(method, 0.0));
    let mut findings = Vec::new();
    for (name, rates, theorem) in [("pCN", &pcn, "2.1"), ("pCNL", &pcnl, "2.2")] {
        findings.push(
            Finding::new(
                format!("β = {beta}: {name}'s acceptance rises with width"),
                &Judgement::rises(rates),
                estimates(rates),
            )
            .published(format!("it does (Figure 1), towards 1 (Theorem {theorem})")),
        );
    }
    let langevin = rates("langevin", WIDE);
    findings.push(
        Finding::new(
            format!(
                "β = {beta}: the acceptance of Langevin steps falls with width (from {WIDE} on)"
            ),
            &Judgement::falls(&langevin),
            estimates(&langevin),
        )
        .published("it does (Figure 1)"),
    );
    let langevin = rates("langevin", 0.0);
    let each = pcn.iter().zip(&langevin).zip(&pcnl);
    let best = each.flat_map(|((pcn, langevin), pcnl)| {
        [pcn, langevin].map(|other| Judgement::above(pcnl, other))
    });
    findings.push(
        Finding::new(
            format!("β = {beta}: pCNL is accepted more than pCN and Langevin steps at every width"),
            &Judgement::all(best),
            format!(
                "pCNL {}; pCN {}; Langevin {}",
                estimates(&pcnl),
                estimates(&pcn),
                estimates(&langevin)
            ),
        )
        .published("the best of the three (Figure 1, caption)"),
    );
    findings.extend(gap(beta, &pcn, "pCNL", &pcnl));
    findings.extend(gap(beta, &pcn, PUBLISHED, &published));
    if let (Some(theirs), Some(ours)) = (published.last(), pcnl.last()) {
        findings.push(Finding::new(
            format!("β = {beta}: {PUBLISHED}, which counts the likelihood twice, accepts less than pCNL at the largest width, from the same draws"),
            &Judgement::below(theirs, ours),
            format!("{} against {}", estimates(&published), estimates(&pcnl)),
        ));
    }
    findings
}

/// What is said of pCN against pCNL: the gap reduces with width, and inverts.
fn gap(beta: f64, pcn: &[Estimate], name: &str, other: &[Estimate]) -> Vec<Finding> {
    let gaps: Vec<Estimate> = other.iter().zip(pcn).map(|(b, a)| b.minus(a)).collect();
    let Some(last) = gaps.last() else {
        return Vec::new();
    };
    let published = "the gap gets smaller, or even turns (Section 4.1)";
    vec![
        Finding::new(
            format!("β = {beta}: the acceptance of {name} is ahead of pCN's by less and less as the network widens"),
            &Judgement::falls(&gaps),
            estimates(&gaps),
        )
        .published(published),
        Finding::new(
            format!("β = {beta}: at the largest width pCN is accepted more than {name}"),
            &Judgement::below(last, &Estimate::exact(0.0)),
            format!("ahead by {}", last.times(-1.0)),
        )
        .published(published),
    ]
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
