//! Section 3: the marginal-conditional scheme, which the authors propose and never ran.
//!
//! pCN on the inner weights alone, the readout drawn afresh from its conditional at every step. The acceptance is that of joint
//! pCN, whose ratio does not depend on φ_out; but draws of the readout are as independent as the inner weights let them be.

use reprior::chain::Schedule;
use reprior::model::InputReduction;
use reprior::posterior::Coordinates;

use super::{images, settings};
use crate::chains::ChainPlan;
use crate::effective::Effective;
use crate::findings::{estimates, results};
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Judgement, Paper, Row,
    Size, Table, Value,
};

pub(super) struct Marginal;

const SCHEMES: [&str; 2] = ["joint", "marginal-conditional"];
/// Chains, over which rates have errors.
const CHAINS: usize = 6;
/// Part of a rate that a difference must stay below: effective draws are proportional to rates, so that by less than a tenth of them
/// neither scheme is worth choosing.
const MARGIN: f64 = 0.1;
/// The table of each chain's rate.
const CHAIN_BY_CHAIN: &str = "chains";

impl Experiment for Marginal {
    fn about(&self) -> About {
        About {
            name: "pezzetti2024-section3",
            paper: Paper::Pezzetti,
            figure: "Section 3",
            what: "the marginal-conditional scheme (pCN on the inner weights, the readout drawn exactly) against joint pCN",
            data: Some("cifar10"),
            cost: ["15 s", "5 min", "40 min", "4 h"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let widths: &[usize] = size.pick(
            &[256],
            &[512, 1024],
            &[512, 1024, 2048, 4096],
            &[512, 1024, 2048, 4096],
        );
        let steps: u64 = size.pick(2000, 4000, 20_000, 100_000);
        let cells = Cell::new().each("width", widths).into_iter();
        cells
            .flat_map(|cell| cell.each("scheme", &SCHEMES))
            .map(|cell| cell.with("steps", steps))
            .collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let beta = bench.size.pick(0.2, 0.1, 0.1, 0.1);
        let images = images(bench)?;
        let (hidden, test) = ([cell.count("width")], images.midpoints(20));
        let model = images.model::<f32>(&hidden, &test, InputReduction::Auto)?;
        let mut settings = settings("pcn", beta);
        settings.arrival = Some(40);
        let coordinates = match cell.text("scheme") {
            "joint" => Coordinates::Repriorised,
            _ => Coordinates::Marginal,
        };
        let schedule = Schedule {
            chains: CHAINS,
            warmup: 80,
            draws: cell.long("steps") / 5,
            thin: 5,
            seed: 6,
        };
        let plan = ChainPlan::new(settings, coordinates, schedule);
        let sampled = plan.sample(&model, bench)?;
        let ess = |directions| sampled.effective_draws(directions);
        let own = cell.choices(&["scheme", "width"]).with("beta", beta);
        let mut rows = vec![
            own.clone()
                .with("draws", sampled.length())
                .with_estimate("acceptance", &Estimate::mean(&sampled.acceptances))
                .with_estimate("readout ess", &ess(&sampled.readout))
                .with_estimate("weights ess", &ess(&sampled.weights))
                .with_estimate("predictions ess", &ess(&sampled.predictions))
                .with("steps per second", sampled.steps_per_second()),
        ];
        for (chain, rate) in sampled.acceptances.iter().enumerate() {
            let row = own.in_table(CHAIN_BY_CHAIN).with("chain", chain);
            rows.push(row.with("acceptance", *rate));
        }
        Ok(rows)
    }

    fn judged_tables(&self) -> &'static [&'static str] {
        &[Row::RESULTS, CHAIN_BY_CHAIN]
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let readout = SCHEMES
            .map(|scheme| Effective::by_width(table, "readout ess", &[("scheme", scheme.into())]));
        let [joint, marginal] = &readout;
        let more = joint.iter().zip(marginal);
        let more = more.map(|(joint, marginal)| marginal.above(joint));
        let rates =
            SCHEMES.map(|scheme| table.estimates("acceptance", &[("scheme", scheme.into())]));
        vec![
            Finding::new(
                format!(
                    "both schemes accept alike (the ratio of joint pCN does not depend on φ_out): mean rates differ by less than {MARGIN} of them"
                ),
                &Judgement::all(alike(tables, &rates[0])),
                format!(
                    "joint {}; marginal-conditional {}",
                    estimates(&rates[0]),
                    estimates(&rates[1])
                ),
            ),
            Finding::new(
                "drawing the readout afresh gives more effective draws of it",
                &Judgement::all(more),
                format!(
                    "joint {}; marginal-conditional {}",
                    Effective::listed(joint),
                    Effective::listed(marginal)
                ),
            )
            .published("proposed (Section 3), never run"),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "readout-ess",
                "Effective draws of the readout, every 5th step",
                "Higher is better; both schemes sample the same posterior.",
                ("width", "width"),
                ("readout ess", "effective draws per draw"),
                &["scheme"],
            )
            .errors("± readout ess")
            .logarithmic(true, true),
        ]
    }
}

/// Chain by chain, as both schemes have the same random numbers for the inner weights: that the differences of acceptance, width by
/// width, are less than a part of the `rates` of joint pCN.
fn alike(tables: &[Table], rates: &[Estimate]) -> Vec<Judgement> {
    let Some(table) = tables.iter().find(|table| table.name == CHAIN_BY_CHAIN) else {
        return Vec::new();
    };
    let of = |scheme: &str, width: &Value| {
        let wanted = [("scheme", scheme.into()), ("width", width.clone())];
        let rows = table.sorted("chain", &wanted).into_iter();
        rows.map(|row| row.number("acceptance"))
            .collect::<Vec<f64>>()
    };
    let widths = table.distinct("width").into_iter().zip(rates);
    let judged = widths.map(|(width, rate)| {
        let [joint, marginal] = SCHEMES.map(|scheme| of(scheme, &width));
        let pairs = joint.iter().zip(&marginal);
        let differences: Vec<f64> = pairs.map(|(a, b)| b - a).collect();
        Judgement::within(
            &Estimate::mean(&differences),
            &Estimate::exact(0.0),
            MARGIN * rate.value,
        )
    });
    judged.collect()
}
