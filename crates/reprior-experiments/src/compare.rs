//! Every sampler in every coordinate system on one posterior, with the papers' methods marked.
//!
//! ESS is of directions of the predictions halfway between training images (their means given the inner weights, which runs
//! keep), chain by chain. Chains begin where a few transitions of
//! `hmc-infinite` arrived, all at the same state of affairs: what is compared is how they go on, not how they get there. Step
//! sizes are adapted to each method's own target acceptance, except of the methods as the papers ran them.

use reprior::chain::Schedule;
use reprior::model::InputReduction;
use reprior::posterior::Coordinates;
use reprior::sampler::{Method, SamplerSettings};

use crate::chains::ChainPlan;
use crate::effective::Effective;
use crate::findings::results;
use crate::{
    About, Bench, Cell, Experiment, Failure, Figure, Finding, Judgement, Paper, Row, Size, Table,
};

pub(crate) const EXPERIMENTS: &[&dyn Experiment] = &[&Compare];

/// Who published a method with these settings.
const HRON: &str = "Hron et al.";
const PEZZETTI: &str = "Pezzetti et al.";
const CORRECTED: &str = "Pezzetti et al., corrected";

/// The library's default: a sampler and coordinates of its own.
const DEFAULT: [&str; 2] = ["hmc-infinite", "marginal"];

/// Run as the papers did.
fn is_published(row: &Row) -> bool {
    row.text("published by") != "-"
}

fn is_default(row: &Row) -> bool {
    !is_published(row) && [row.text("method"), row.text("coordinates")] == DEFAULT
}

/// A sampler of the papers in coordinates that they have it in, with what this library adds: reduced inputs and adapted step sizes.
fn is_tuned(row: &Row) -> bool {
    let theirs = match row.text("method") {
        "pcn" => ["repriorised", "marginal"],
        "pcnl" => ["repriorised", "repriorised"],
        "langevin" => ["repriorised", "standard"],
        _ => return false,
    };
    !is_published(row) && theirs.contains(&row.text("coordinates"))
}

/// Each of one list with each of another.
fn pairs<'a>(first: &[&'a Row], second: &[&'a Row]) -> Vec<(&'a Row, &'a Row)> {
    let with = |a: &&'a Row| second.iter().map(|b| (*a, *b)).collect::<Vec<_>>();
    first.iter().flat_map(with).collect()
}

/// That in every pair the first gives more.
fn more(column: &str, claim: String, pairs: &[(&Row, &Row)]) -> Finding {
    let of = |row: &Row| {
        let ess = Effective::of(row, "ess");
        ess.times(row.number(column) / row.number("ess"))
    };
    let judged = pairs.iter().map(|(a, b)| of(a).above(&of(b)));
    let name = |row: &Row| {
        let published = match is_published(row) {
            true => format!(" ({})", row.text("published by")),
            false => String::new(),
        };
        let [method, coordinates] = ["method", "coordinates"].map(|name| row.text(name));
        let value = Effective::listed(&[of(row)]);
        format!("{method} in {coordinates}{published} {value}")
    };
    let words: Vec<String> = pairs
        .iter()
        .map(|(a, b)| format!("{} against {}", name(a), name(b)))
        .collect();
    Finding::new(claim, &Judgement::all(judged), words.join("; "))
}

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
            Method::HmcInfinite | Method::Hmc | Method::Mams | Method::Nuts => {
                (length / 8, length / 4, 1)
            }
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
        // of the means given the inner weights, as runs keep them
        let ess = sampled.effective_draws(&sampled.means);
        let evaluations = (sampled.n_gradients + sampled.n_evaluations) as f64;
        let steps = sampled.transitions as f64;
        let draws = (sampled.length() * sampled.chains) as f64;
        let per = |unit: f64| ess.times(draws / unit);
        let gradients = per(sampled.n_gradients as f64 / 1e3).value;
        Ok(vec![
            cell.choices(&["method", "coordinates", "inputs"])
                .with(
                    "published by",
                    if published.is_empty() { "-" } else { published },
                )
                .with("step size", sampled.step_size)
                .with("acceptance", sampled.acceptance)
                .with("R-hat", sampled.rhat(&sampled.means).mean)
                .with("draws", sampled.length())
                .with_estimate("ess", &ess)
                .with_estimate("ess per step", &per(steps))
                .with("ess per 1000 gradients", gradients)
                .with_estimate("ess per 1000 evaluations", &per(evaluations / 1e3))
                .with_estimate("ess per second", &per(sampled.seconds)),
        ])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let mut findings = Vec::new();
        for column in ["ess per second", "ess per 1000 evaluations"] {
            let published: Vec<&Row> = table.rows.iter().filter(|row| is_published(row)).collect();
            let tuned: Vec<&Row> = table.rows.iter().filter(|row| is_tuned(row)).collect();
            let default: Vec<&Row> = table.rows.iter().filter(|row| is_default(row)).collect();
            findings.push(more(
                column,
                format!("the default of this library, {} in {}, gives more {column} than every method as the papers ran it", DEFAULT[0], DEFAULT[1]),
                &pairs(&default, &published),
            ));
            findings.push(more(
                column,
                format!("it gives more {column} than every method of the papers with the step size adapted, on reduced inputs"),
                &pairs(&default, &tuned),
            ));
            let same = |(tuned, published): &(&Row, &Row)| {
                ["method", "coordinates"]
                    .iter()
                    .all(|name| tuned.text(name) == published.text(name))
            };
            let mut themselves = pairs(&tuned, &published);
            themselves.retain(same);
            findings.push(more(
                column,
                format!("every method of the papers gives more {column} with the step size adapted and on reduced inputs than as they ran it"),
                &themselves,
            ));
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
