//! Sections 3.2 and 4.2.1: the regulariser λ of the map T, which interpolates between repriorisation at λ = σ² and no reparametrisation at
//! λ = ∞. The paper tuned it, found λ = σ² the best at every width, and says that tuned it is never worse than none.

use reprior::chain::Schedule;
use reprior::model::InputReduction;
use reprior::posterior::Regulariser;

use super::{langevin, onto};
use crate::data::NOISE;
use crate::findings::{named, results};
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Judgement, Paper, Row,
    Size, Table, Value,
};

/// λ over σ²; 0 stands for no reparametrisation.
const MULTIPLES: [f64; 6] = [0.1, 1.0, 10.0, 100.0, 1000.0, 0.0];
/// Steps between draws.
const THIN: u64 = 25;

/// The sweep.
pub(super) struct Sweep;

impl Experiment for Sweep {
    fn about(&self) -> About {
        About {
            name: "hron2022-lambda",
            paper: Paper::Hron,
            figure: "Sections 3.2 and 4.2.1",
            what: "effective draws of Langevin steps against the regulariser λ, from a tenth of σ² to none at all, at a narrow and a wide network of three hidden layers",
            data: Some("cifar10"),
            cost: ["20 s", "20 min", "1 h", "1 h"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let widths = size.pick(&[32_usize][..], &[32, 128], &[32, 128], &[32, 128]);
        let n = size.pick(24_usize, 64, 256, 256);
        let steps: u64 = size.pick(6000, 50_000, 100_000, 100_000);
        let cells = Cell::new().with("n", n).each("width", widths).into_iter();
        cells
            .flat_map(|cell| cell.each("λ over σ²", &MULTIPLES))
            .map(|cell| cell.with("steps", steps))
            .collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let images = bench.data.images("cifar10", cell.count("n"))?;
        let hidden = [cell.count("width"); 3];
        let model = images.model::<f32>(&hidden, &images.midpoints(20), InputReduction::Auto)?;
        let multiple = cell.number("λ over σ²");
        let coordinates = if multiple == 0.0 {
            "standard"
        } else {
            "repriorised"
        };
        let schedule = Schedule {
            chains: 2,
            warmup: 1000,
            draws: cell.long("steps") / THIN,
            thin: THIN,
            seed: 15,
        };
        let mut plan = langevin(&cell.replaced("coordinates", coordinates), schedule);
        plan.settings.arrival = Some(60);
        if multiple != 0.0 && multiple != 1.0 {
            plan.posterior.regulariser = Regulariser::Value(multiple * NOISE * NOISE);
        }
        let sampled = plan.sample(&model, bench)?;
        let lambda: Value = match multiple {
            0.0 => "∞: none".into(),
            multiple => multiple.into(),
        };
        let row = cell.choices(&["width"]).with("λ over σ²", lambda);
        Ok(vec![onto(row, &plan, &sampled)])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let mut findings = Vec::new();
        for width in table.distinct("width") {
            let rows = table.select(&[("width", width.clone())]);
            let of = |row: &&Row| (row.get("λ over σ²").cloned(), row.estimate("ess weights"));
            let all: Vec<(Option<Value>, Estimate)> = rows.iter().map(of).collect();
            let is = |value: &Option<Value>, wanted: Value| value.as_ref() == Some(&wanted);
            let matched = all.iter().find(|(value, _)| is(value, 1.0.into()));
            let none = all.iter().find(|(value, _)| is(value, "∞: none".into()));
            let (Some((_, matched)), Some((_, none))) = (matched, none) else {
                continue;
            };
            let words = |(value, own): &(Option<Value>, Estimate)| {
                let value = value.clone().unwrap_or(Value::Missing);
                (value.to_string(), own.value)
            };
            let measured = named(all.iter().map(words));
            let others = all.iter().filter(|(value, _)| !is(value, 1.0.into()));
            findings.push(
                Finding::new(
                    format!("width {width}: λ = σ² has more effective draws than any other λ"),
                    &Judgement::all(others.map(|(_, own)| Judgement::above(matched, own))),
                    measured.as_str(),
                )
                .published("Section 4.2.1: best even for the narrowest network"),
            );
            let finite = all.iter().filter(|(value, _)| !is(value, "∞: none".into()));
            findings.push(
                Finding::new(
                    format!("width {width}: the best λ is better than no reparametrisation"),
                    &Judgement::any(finite.map(|(_, own)| Judgement::above(own, none))),
                    measured,
                )
                .published("Section 3.2: never worse"),
            );
        }
        findings
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "ess",
                "Effective draws of weights against λ",
                "Higher is better; λ = σ² is at 1, and no reparametrisation is λ = ∞.",
                ("λ over σ²", "λ/σ²"),
                ("ess weights", "effective draws per draw"),
                &["width"],
            )
            .errors("± ess weights")
            .logarithmic(true, true),
        ]
    }
}
