//! Every sampler in every coordinate system on one posterior, with the papers' methods marked.
//!
//! ESS is of directions of the predictions halfway between training images (their means given the inner weights, which runs
//! keep; Vehtari et al. 2021), all chains together. Chains begin where a few transitions of
//! `hmc-infinite` arrived, all at the same state of affairs: what is compared is how they go on, not how they get there. Step
//! sizes are adapted to each method's own target acceptance, except of the methods as the papers ran them.

use reprior::chain::Schedule;
use reprior::model::InputReduction;
use reprior::posterior::Coordinates;
use reprior::sampler::{Method, SamplerSettings};

use crate::chains::ChainPlan;
use crate::findings::results;
use crate::{About, Bench, Cell, Experiment, Failure, Figure, Finding, Paper, Row, Size, Table};

pub(crate) const EXPERIMENTS: &[&dyn Experiment] = &[&Compare];

/// Who published a method with these settings.
const HRON: &str = "Hron et al.";
const PEZZETTI: &str = "Pezzetti et al.";
const CORRECTED: &str = "Pezzetti et al., corrected";

struct Compare;

impl Experiment for Compare {
    fn about(&self) -> About {
        About {
            name: "compare",
            paper: Paper::Ours,
            figure: "every sampler and coordinate",
            what: "effective draws of predictions per step, per gradient and per second of every sampler in every coordinate system; the papers' methods marked, on all inputs as they have it",
            data: Some("cifar10"),
            cost: ["30 s", "25 min", "5 h", "5 h"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let width: usize = size.pick(256, 1024, 4096, 4096);
        let length: u64 = size.pick(240, 400, 4000, 4000);
        let cell = |method: &str, coordinates: &str, inputs: &str, published: &str| {
            Cell::new()
                .with("method", method)
                .with("coordinates", coordinates)
                .with("inputs", inputs)
                .with("published by", published)
                .with("width", width)
                .with("length", length)
        };
        let mut cells = vec![
            cell("langevin", "repriorised", "all", HRON),
            cell("langevin", "standard", "all", HRON),
            cell("pcn", "repriorised", "all", PEZZETTI),
            cell("langevin", "repriorised", "all", PEZZETTI),
            // theirs counts the likelihood twice; this is the right one
            cell("pcnl", "repriorised", "all", CORRECTED),
        ];
        for method in Method::ALL {
            for coordinates in ["marginal", "repriorised", "standard"] {
                cells.push(cell(&method.to_string(), coordinates, "reduced", ""));
            }
        }
        cells
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let count = bench.size.pick(32, 256, 256, 256);
        let images = bench.data.images("cifar10", count)?;
        let reduction = match cell.text("inputs") {
            "all" => InputReduction::Off,
            _ => InputReduction::Auto,
        };
        let (hidden, test) = ([cell.count("width")], images.midpoints(20));
        let model = images.model::<f32>(&hidden, &test, reduction)?;
        let method: Method = cell.text("method").parse().map_err(Failure::failed)?;
        let published = cell.text("published by");
        let length = cell.long("length");
        // steps of one gradient at most are many, trajectories few
        let (warmup, draws, thin) = match method {
            Method::HmcInfinite | Method::Hmc | Method::Nuts => (length / 8, length / 4, 1),
            Method::Pcn | Method::Rwm | Method::Elliptical => (length, length / 2, 5),
            _ => (length / 2, length / 2, 2),
        };
        let mut settings = SamplerSettings {
            method,
            arrival: Some(bench.size.pick(40, 15, 15, 15)),
            ..SamplerSettings::default()
        };
        if published == PEZZETTI || published == CORRECTED {
            settings.step_size = Some(0.1);
            settings.damping = (method == Method::Langevin).then_some(0.01);
        } else if published == HRON {
            settings.target_acceptance = Some(0.98);
        }
        let coordinates: Coordinates = cell.text("coordinates").parse().unwrap_or_default();
        let schedule = Schedule {
            chains: 2,
            warmup: warmup.max(60),
            draws,
            thin,
            seed: 13,
        };
        let sampled = ChainPlan::new(settings, coordinates, schedule).sample(&model, bench)?;
        let ess = sampled.ess(&sampled.means);
        let evaluations = (sampled.n_gradients + sampled.n_evaluations) as f64;
        let steps = sampled.transitions as f64;
        Ok(vec![
            cell.choices(&["method", "coordinates", "inputs"])
                .with(
                    "published by",
                    if published.is_empty() { "-" } else { published },
                )
                .with("step size", sampled.step_size)
                .with("acceptance", sampled.acceptance)
                .with("R-hat", sampled.rhat(&sampled.means).mean)
                .with("ess per step", ess.mean / steps)
                .with(
                    "ess per 1000 gradients",
                    1e3 * ess.mean / sampled.n_gradients as f64,
                )
                .with("ess per 1000 evaluations", 1e3 * ess.mean / evaluations)
                .with("ess per second", ess.mean / sampled.seconds),
        ])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let best = |wanted: &dyn Fn(&Row) -> bool, column: &str| -> Option<(String, f64)> {
            let rows = table.rows.iter().filter(|row| wanted(row));
            let named = rows.map(|row| {
                let name = format!("{} in {}", row.text("method"), row.text("coordinates"));
                (name, row.number(column))
            });
            named
                .filter(|(_, value)| value.is_finite())
                .max_by(|a, b| a.1.total_cmp(&b.1))
        };
        let theirs = |row: &Row| row.text("published by") != "-";
        // chains that disagree have no effective draws worth the name
        let ours = |row: &Row| row.text("published by") == "-" && row.number("R-hat") < 1.1;
        let mut findings = Vec::new();
        for column in ["ess per second", "ess per 1000 evaluations"] {
            if let (Some(ours), Some(theirs)) = (best(&ours, column), best(&theirs, column)) {
                findings.push(Finding::unjudged(
                    format!("a method of this library gives more {column} than the papers' best"),
                    ours.1 > theirs.1,
                    format!(
                        "{} {:.4}, {} {:.4}: {:.1} times",
                        ours.0,
                        ours.1,
                        theirs.0,
                        theirs.1,
                        ours.1 / theirs.1
                    ),
                ));
            }
        }
        findings
    }

    fn figures(&self) -> Vec<Figure> {
        vec![Figure::lines(
                "compare",
                "Effective draws of predictions, per step and per second",
                "Up is faster on this machine, right is fewer steps; points of one colour are one coordinate system.",
                ("ess per step", "effective draws per step"),
                ("ess per second", "effective draws per second"),
                &["coordinates", "inputs"],
            ).logarithmic(true, true).scatter()]
    }
}
