//! Figures 2 to 6: effective draws against width, R-hat against steps, traces of the first two principal components.

use reprior::chain::Schedule;
use reprior::model::InputReduction;
use reprior::posterior::Coordinates;

use super::{METHODS, images, settings};
use crate::chains::ChainPlan;
use crate::findings::{ends, listed, results, rises};
use crate::sampled::{Sampled, principal_components};
use crate::{About, Bench, Cell, Experiment, Failure, Figure, Finding, Paper, Row, Size, Table};

/// Transitions between draws, as published.
const THIN: u64 = 25;

/// A cell of every method, width and β.
fn cells(widths: &[usize], betas: &[f64], length: [u64; 2]) -> Vec<Cell> {
    let cells = Cell::new().each("width", widths).into_iter();
    cells
        .flat_map(|cell| cell.each("beta", betas))
        .flat_map(|cell| cell.each("method", &METHODS))
        .map(|cell| cell.with("warm-up", length[0]).with("steps", length[1]))
        .collect()
}

/// Runs a cell's chains: from a draw of the prior, or after `arrival` transitions of hmc-infinite.
fn chains(cell: &Cell, bench: &Bench<'_>, chains: usize, arrival: u64) -> Result<Sampled, Failure> {
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
const CHOICES: &[&str] = &["method", "beta", "width"];

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
            cost: ["20 s", "10 min", "weeks"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        match size {
            Size::Quick => cells(&[64, 256, 1024], &[0.2], [60, 1000]),
            Size::Default => cells(&[512, 1024], &[0.2, 0.1], [30, 1000]),
            Size::Full => cells(
                &[512, 1024, 2048, 4096],
                &[0.2, 0.1, 0.01],
                [20_000, 1_000_000],
            ),
        }
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let sampled = chains(cell, bench, 2, bench.size.pick(40, 20, 0))?;
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
                findings.push(Finding::new(
                    format!("β = {beta}: pCN's effective draws grow with width"),
                    rises(&ess, 0.02),
                    format!("weights: {}", listed(&ess)),
                ));
            }
        }
        let (last, limit) = (weights.last(), of("pcn", 0.2, "wide limit"));
        if let (Some(&last), Some(&limit)) = (last, limit.last()) {
            findings.push(Finding::new(
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
            findings.push(Finding::new(
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
            findings.push(Finding::new(
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

/// Figure 3.
pub(super) struct ShrinkFactors;

impl Experiment for ShrinkFactors {
    fn about(&self) -> About {
        About {
            name: "pezzetti2024-fig3",
            paper: Paper::Pezzetti,
            figure: "Figure 3",
            what: "R-hat of predictions (potential scale reduction of 3 chains from the prior, no warm-up) against steps at β = 0.1",
            data: Some("cifar10"),
            cost: ["15 s", "25 min", "5 h"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        match size {
            Size::Quick => cells(&[32, 256], &[0.1], [0, 2500]),
            Size::Default => cells(&[128, 512], &[0.1], [0, 8000]),
            Size::Full => cells(&[512, 1024, 2096, 4192], &[0.1], [0, 20_000]),
        }
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let sampled = chains(cell, bench, 3, 0)?;
        let length = sampled.length();
        let parts = 8;
        let row = |part: usize| {
            let end = length * part / parts;
            // the second half of what was drawn: the first holds the way from the prior
            let rhat = sampled.over(&sampled.predictions, end / 2..end, |draws| {
                draws.potential_scale_reduction()
            });
            cell.choices(CHOICES)
                .with("steps", end as u64 * THIN)
                .with("R-hat", rhat.mean)
                .with("largest", rhat.max)
        };
        Ok((1..=parts).map(row).collect())
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let last = |method: &str, width: &crate::Value| {
            table.last(
                "R-hat",
                &[("method", method.into()), ("width", width.clone())],
            )
        };
        let widths = table.distinct("width");
        let (Some(narrow), Some(wide)) = (widths.first(), widths.last()) else {
            return Vec::new();
        };
        let [pcn, pcnl, langevin] =
            METHODS.map(|method| [last(method, narrow), last(method, wide)]);
        vec![
            Finding::new(
                "pCN's chains agree better the wider the network",
                pcn[1] < pcn[0],
                format!("last R-hat at widths {narrow} and {wide}: {}", listed(&pcn)),
            ),
            Finding::new(
                "chains of pCN and pCNL agree at the largest width (R-hat below 1.2)",
                pcn[1] < 1.2 && pcnl[1] < 1.2,
                format!(
                    "pcn {:.3}, pcnl {:.3}, langevin {:.3}",
                    pcn[1], pcnl[1], langevin[1]
                ),
            ),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "rhat",
                "R-hat against steps",
                "1 means that chains cannot be told apart; below 1.2 was the paper's bar.",
                ("steps", "steps of each chain"),
                ("R-hat", "R-hat, mean over predictions"),
                &["method"],
            )
            .panels("width"),
        ]
    }
}

/// Figures 4 to 6.
pub(super) struct Traces;

impl Experiment for Traces {
    fn about(&self) -> About {
        About {
            name: "pezzetti2024-fig4",
            paper: Paper::Pezzetti,
            figure: "Figures 4-6",
            what: "traces of the first two principal components of the weights' projections, three chains of each method at β = 0.1 (quick: 0.2)",
            data: Some("cifar10"),
            cost: ["10 s", "15 min", "5 h"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        match size {
            Size::Quick => cells(&[64, 256], &[0.2], [0, 4000]),
            Size::Default => cells(&[128, 512], &[0.1], [0, 5000]),
            Size::Full => cells(&[512, 4096], &[0.1], [0, 20_000]),
        }
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let sampled = chains(cell, bench, 3, 0)?;
        let (length, mut rows) = (sampled.length(), Vec::new());
        let components = principal_components(&sampled.weights, 2);
        // how far chains are apart, and how much each moves, in the second half
        let [first, second] = [0, 1].map(|index| {
            sampled
                .over(&components[index..=index], length / 2..length, |draws| {
                    draws.potential_scale_reduction()
                })
                .mean
        });
        rows.push(
            cell.choices(CHOICES)
                .with("acceptance", sampled.acceptance)
                .with("R-hat of 1st", first)
                .with("R-hat of 2nd", second),
        );
        for chain in 0..sampled.chains {
            for draw in 0..length {
                let index = chain * length + draw;
                rows.push(
                    cell.choices(CHOICES)
                        .in_table("traces")
                        .with(
                            "panel",
                            format!("{} {}", cell.text("method"), cell.count("width")),
                        )
                        .with("chain", chain)
                        .with("step", (draw as u64 + 1) * THIN)
                        .with("1st component", components[0][index])
                        .with("2nd component", components[1][index]),
                );
            }
        }
        Ok(rows)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let rhat = |method: &str| table.numbers("R-hat of 1st", &[("method", method.into())]);
        let [pcn, pcnl, langevin] = METHODS.map(rhat);
        vec![Finding::new(
            "chains of pCN share one range the sooner the wider the network",
            ends(&pcn, |first, last| last < 1.5 && last < first),
            format!(
                "R-hat of the first component by width: pcn {}; pcnl {}; langevin {}",
                listed(&pcn),
                listed(&pcnl),
                listed(&langevin)
            ),
        )]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![Figure::lines(
                "trace",
                "First principal component",
                "Chains that mix cross one another again and again; lines that keep apart have not found the posterior.",
                ("step", "step"),
                ("1st component", "first principal component"),
                &["chain"],
            ).of("traces").panels("panel")]
    }
}
