//! Sections 3.2 and 4.2.1: the regulariser λ of the map T, which interpolates between repriorisation at λ = σ² and no reparametrisation at
//! λ = ∞. The paper tuned it, found λ = σ² the best at every width, and says that tuned it is never worse than none.

use reprior::chain::Schedule;
use reprior::model::InputReduction;
use reprior::posterior::Regulariser;

use super::langevin::{langevin, onto, with_tuned_damping};
use crate::data::NOISE;
use crate::effective::Effective;
use crate::findings::results;
use crate::{
    About, Bench, Cell, Experiment, Failure, Figure, Finding, Judgement, Paper, Row, Size, Table,
    Value,
};

/// λ over σ²; 0 stands for no reparametrisation.
const MULTIPLES: [f64; 6] = [0.1, 1.0, 10.0, 100.0, 1000.0, 0.0];
/// What the latter is called.
const NONE: &str = "∞: none";
/// By what part effective draws may be fewer where they are called no worse.
const WORSE: f64 = 0.1;
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
            what: "effective draws of Langevin steps against the regulariser λ, from a tenth of σ² to none at all, at networks of three hidden layers of width 32 and 128 on the weights that the data touch (full: Figure 7's widths and steps on all weights); n = 24 (quick), 64 (default), 256",
            data: Some("cifar10"),
            cost: ["20 s", "30 min", "2 h", "years"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let all = &[32, 64, 128, 384, 512, 768, 1024][..];
        let widths = size.pick(&[32_usize][..], &[32, 128], &[32, 128], all);
        let n = size.pick(24_usize, 64, 256, 256);
        let steps: u64 = size.pick(6000, 25_000, 100_000, 3_000_000);
        let cells = Cell::new().with("n", n).each("width", widths).into_iter();
        cells
            .flat_map(|cell| cell.each("λ over σ²", &MULTIPLES))
            .map(|cell| cell.with("steps", steps))
            .collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let images = bench.data.images("cifar10", cell.count("n"))?;
        let hidden = [cell.count("width"); 3];
        let reduction = match bench.size {
            Size::Full => InputReduction::Off,
            _ => InputReduction::Auto,
        };
        let model = images.model::<f32>(&hidden, &images.midpoints(20), reduction)?;
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
        let plan = with_tuned_damping(plan, &model, bench)?;
        let sampled = plan.sample(&model, bench)?;
        let lambda: Value = match multiple {
            0.0 => NONE.into(),
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
            let of = |row: &&Row| {
                let lambda = row.get("λ over σ²").unwrap_or(&Value::Missing);
                (lambda.clone(), Effective::of(row, "ess weights"))
            };
            let all: Vec<(Value, Effective)> = rows.iter().map(of).collect();
            let one = |wanted: Value| all.iter().find(|(lambda, _)| *lambda == wanted);
            let (Some((_, matched)), Some((_, none))) = (one(1.0.into()), one(NONE.into())) else {
                continue;
            };
            let words = |(lambda, own): &(Value, Effective)| {
                let own = Effective::listed(std::slice::from_ref(own));
                format!("{own} at {lambda}")
            };
            let measured = all.iter().map(words).collect::<Vec<_>>().join(", ");
            let others = all.iter().filter(|(lambda, _)| *lambda != 1.0.into());
            findings.push(
                Finding::new(
                    format!("width {width}: λ = σ² has more effective draws than any other λ"),
                    &Judgement::all(others.map(|(_, own)| matched.above(own))),
                    measured.as_str(),
                )
                .published("Section 4.2.1: best even for the narrowest network"),
            );
            let finite = all.iter().filter(|(lambda, _)| *lambda != NONE.into());
            findings.push(
                Finding::new(
                    format!("width {width}: the best λ is no worse than no reparametrisation, to within a tenth"),
                    &Judgement::any(finite.map(|(_, own)| own.above(&none.times(1.0 - WORSE)))),
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
