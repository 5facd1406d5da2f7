//! Figure 2: effective draws against width; and what Figures 2 to 6 have in common: their cells and chains.

use reprior::chain::Schedule;
use reprior::model::InputReduction;
use reprior::posterior::Coordinates;

use super::{METHODS, images, settings};
use crate::chains::ChainPlan;
use crate::findings::{listed, results, rises};
use crate::sampled::Sampled;
use crate::{About, Bench, Cell, Experiment, Failure, Figure, Finding, Paper, Row, Size, Table};

/// Transitions between draws, as published.
pub(super) const THIN: u64 = 25;

/// A cell of every method, width and β.
pub(super) fn cells(widths: &[usize], betas: &[f64], length: [u64; 2]) -> Vec<Cell> {
    let cells = Cell::new().each("width", widths).into_iter();
    cells
        .flat_map(|cell| cell.each("beta", betas))
        .flat_map(|cell| cell.each("method", &METHODS))
        .map(|cell| cell.with("warm-up", length[0]).with("steps", length[1]))
        .collect()
}

/// Runs a cell's chains: from a draw of the prior, or after `arrival` transitions of hmc-infinite.
pub(super) fn chains(
    cell: &Cell,
    bench: &Bench<'_>,
    chains: usize,
    arrival: u64,
) -> Result<Sampled, Failure> {
    let images = images(bench)?;
    let (hidden, test) = ([cell.count("width")], images.midpoints(20));
    let model = images.model::<f32>(&hidden, &test, InputReduction::Off)?;
    let mut settings = settings(cell.text("method"), cell.number("beta"));
    settings.arrival = Some(arrival);
    let schedule = Schedule {
        chains,
        warmup: cell.long("warm-up"),
        draws: cell.long("steps") / THIN,
        thin: THIN,
        seed: 4,
    };
    ChainPlan::new(settings, Coordinates::Repriorised, schedule).sample(&model, bench)
}

/// A cell's choices that rows begin with.
pub(super) const CHOICES: &[&str] = &["method", "beta", "width"];

/// Figure 2.
pub(super) struct EffectiveSamples;

impl Experiment for EffectiveSamples {
    fn about(&self) -> About {
        About {
            name: "pezzetti2024-fig2",
            paper: Paper::Pezzetti,
            figure: "Figure 2",
            what: "effective draws per thinned draw (every 25th step) of weights and predictions against width, n = 256; at quick and default size chains start where hmc-infinite arrived",
            data: Some("cifar10"),
            cost: ["20 s", "10 min", "weeks", "weeks"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        match size {
            Size::Quick => cells(&[64, 256, 1024], &[0.2], [60, 1000]),
            Size::Default => cells(&[512, 1024], &[0.2, 0.1], [30, 1000]),
            Size::Long | Size::Full => cells(
                &[512, 1024, 2048, 4096],
                &[0.2, 0.1, 0.01],
                [20_000, 1_000_000],
            ),
        }
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let sampled = chains(cell, bench, 2, bench.size.pick(40, 20, 0, 0))?;
        let weights = sampled.ess_per_draw(&sampled.weights);
        let predictions = sampled.ess_per_draw(&sampled.predictions);
        let (r, beta) = (THIN as f64 / 2.0, cell.number("beta"));
        let memory = (1.0 - beta * beta).powf(r);
        let row = cell
            .choices(CHOICES)
            .with("acceptance", sampled.acceptance)
            .with("R-hat", sampled.rhat(&sampled.weights).mean)
            .with("ess weights", weights.mean)
            .with("least", weights.min)
            .with("greatest", weights.max)
            .with("ess predictions", predictions.mean);
        Ok(vec![match cell.text("method") {
            "pcn" => row.with("wide limit", (1.0 - memory) / (1.0 + memory)),
            _ => row,
        }])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let of = |method: &str, beta: f64, column: &str| {
            table.numbers(column, &[("method", method.into()), ("beta", beta.into())])
        };
        // chains that never moved have no number of effective draws
        let moved = |beta: f64| -> Vec<f64> {
            let ess = of("pcn", beta, "ess weights");
            ess.into_iter().filter(|ess| ess.is_finite()).collect()
        };
        let weights = moved(0.2);
        let mut findings = Vec::new();
        for beta in [0.2, 0.1] {
            let ess = moved(beta);
            if ess.len() > 1 {
                findings.push(Finding::unjudged(
                    format!("β = {beta}: pCN's effective draws grow with width"),
                    rises(&ess, 0.02),
                    format!("weights: {}", listed(&ess)),
                ));
            }
        }
        let (last, limit) = (weights.last(), of("pcn", 0.2, "wide limit"));
        if let (Some(&last), Some(&limit)) = (last, limit.last()) {
            findings.push(Finding::unjudged(
                "pCN's effective draws of weights stay at or below those of an accepted walk, (1 − r)/(1 + r) with r = (1 − β²)^12.5",
                last < 1.4 * limit,
                format!("β = 0.2: {last:.3} at the largest width, limit {limit:.3}"),
            ));
        }
        // with fewer dimensions than a few hundred thousand steps of h = 0.2 are accepted well
        let [rates, langevin] =
            ["acceptance", "ess weights"].map(|column| of("langevin", 0.2, column));
        if let (Some(&pcn), Some(&rate), Some(&langevin)) =
            (weights.last(), rates.last(), langevin.last())
            && rate < 0.75
        {
            findings.push(Finding::unjudged(
                "at the largest width and β = 0.2 pCN gives more effective draws of weights than Langevin steps",
                pcn > langevin,
                format!("{pcn:.4} against {langevin:.4}, whose acceptance is {rate:.3}"),
            ));
        }
        let slow: Vec<f64> = METHODS
            .iter()
            .flat_map(|m| of(m, 0.01, "ess weights"))
            .collect();
        if !slow.is_empty() {
            // a chain that hardly moves has an effective draw or two however it is looked at
            let largest = slow.iter().copied().fold(0.0, f64::max);
            findings.push(Finding::unjudged(
                "at β = 0.01 effective draws are few whatever the method",
                largest < 0.1,
                format!("largest per thinned draw: {largest:.3}"),
            ));
        }
        findings
    }

    fn figures(&self) -> Vec<Figure> {
        let guide = "Higher is better; 1 is an independent draw every 25 steps.";
        let figure = |name, column: (&'static str, &'static str), title| {
            Figure::lines(name, title, guide, ("width", "width"), column, &["method"])
                .panels("beta")
                .logarithmic(true, true)
        };
        vec![
            figure(
                "ess-weights",
                ("ess weights", "effective draws per draw"),
                "Effective draws of weights",
            ),
            figure(
                "ess-predictions",
                ("ess predictions", "effective draws per draw"),
                "Effective draws of predictions",
            ),
        ]
    }
}
