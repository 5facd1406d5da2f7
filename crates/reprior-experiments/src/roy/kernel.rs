//! Roy, Miani et al. (2024), Theorem 5.1: diffusions along the kernel leave the functions at the training inputs alone. So they do in
//! the limit of small steps if the steps are Heun's, which converge to the Brownian motion on the manifold (Stratonovich's integral);
//! the published algorithm's are Euler's, which converge to another process: its outputs at the training inputs drift.

use std::sync::Arc;

use reprior::compute::{Purpose, Stream};
use reprior::laplace::diffusion::{Decomposition, Diffusion, DiffusionKind, Integrator};
use reprior::model::likelihood::Gaussian;
use reprior::network::{Activation, Composition};
use reprior::stochastic::data::MinibatchData;

use crate::findings::results;
use crate::trained::TrainedNetwork;
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Judgement, Paper, Row,
    Size, Table,
};

/// Theorem 5.1.
pub struct Kernel;

/// Training rows, and as many others.
const ROWS: usize = 6;
/// Of the first layer: 49 weights in all.
const WIDTH: usize = 12;
/// α.
const PRECISION: f64 = 0.6;

impl Experiment for Kernel {
    fn about(&self) -> About {
        About {
            name: "roy2024-theorem5.1",
            paper: Paper::Roy,
            figure: "Theorem 5.1",
            what: "mean squared change of a network's outputs along kernel diffusions of T steps, at the training inputs and elsewhere",
            data: None,
            cost: ["5 seconds", "a minute", "10 minutes", "10 minutes"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let longest = size.pick(2, 3, 4, 4);
        let mut cells = Vec::new();
        for integrator in ["Euler", "Heun"] {
            for power in 0..=longest {
                cells.push(
                    Row::new()
                        .with("integrator", integrator)
                        .with("steps", 4_usize * 5_usize.pow(power))
                        .with("paths", size.pick(40_usize, 200, 1000, 1000))
                        .with("seed", 5_usize),
                );
            }
        }
        cells
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let normals = |length: usize, index: u64| {
            let mut values = vec![0.0; length];
            Stream::new(1, 0, Purpose::Simulation, index).fill_normal(&mut values);
            values
        };
        let network = Composition::fully_connected(2, &[WIDTH], 1, Activation::Tanh);
        let weights = normals(network.parameters(), 1);
        // two normals of each row, all first ones before all second ones
        let [train, new] = [2, 3].map(|index| {
            let values = normals(2 * ROWS, index);
            let row = |at: usize| [values[at], values[ROWS + at]];
            (0..ROWS).flat_map(row).collect::<Vec<f64>>()
        });
        let data = MinibatchData {
            inputs: Arc::new(train.clone()),
            targets: Arc::default(),
            likelihood: Arc::new(Gaussian),
            scales: vec![0.4],
        };
        let mut network = TrainedNetwork::new(&network, weights, data, PRECISION)?;
        let settings = Diffusion {
            kind: DiffusionKind::Kernel,
            steps: cell.long("steps"),
            precision: PRECISION,
            integrator: match cell.text("integrator") {
                "Heun" => Integrator::Heun,
                _ => Integrator::Euler,
            },
            decomposition: Decomposition::Exact(1e-10),
        };
        let (paths, seed) = (cell.long("paths"), cell.long("seed"));
        let advance = |done| bench.advance(done);
        let paths = network.diffusions(settings, None, seed, paths, advance)?;
        let mut draws = network.at_mode();
        draws.extend(paths.iter().map(|path| path.position.clone()));
        let mut found = Vec::new();
        for (name, x) in [("training inputs", &train), ("others", &new)] {
            let mut all: Vec<Vec<f64>> = Vec::new();
            network.predict(&draws, false, x, |f| {
                all.push(f.to_vec());
                Ok(())
            })?;
            let (before, after) = (&all[0], &all[1..]);
            let change = |f: &Vec<f64>| {
                let squares = f.iter().zip(before).map(|(a, b)| (a - b).powi(2));
                squares.sum::<f64>() / ROWS as f64
            };
            let changes: Vec<f64> = after.iter().map(change).collect();
            let row = cell.choices(&["integrator", "steps"]).with("inputs", name);
            found.push(row.with_estimate("squared change", &Estimate::mean(&changes)));
        }
        Ok(found)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let of = |integrator: &str, inputs: &str| {
            let wanted = [("integrator", integrator.into()), ("inputs", inputs.into())];
            table.estimates("squared change", &wanted)
        };
        let heun = of("Heun", "training inputs");
        let euler = of("Euler", "training inputs");
        let others = of("Heun", "others");
        let steps = table.distinct("steps");
        let words = |values: &[Estimate]| {
            let each = values.iter().zip(&steps);
            let each = each.map(|(change, steps)| format!("{change} at T = {steps}"));
            each.collect::<Vec<_>>().join(", ")
        };
        let last = |values: &[Estimate]| {
            let last = values.last().cloned();
            last.unwrap_or_else(|| Estimate::exact(f64::NAN)).ln()
        };
        // from the shortest T to the longest: what does not tend to 0 does not fall; the bar is a power of −1/2
        let falls = |values: &[Estimate]| {
            let ends = values.first().zip(values.last()).map(|(first, last)| {
                let ratio = 5_f64.powi(values.len() as i32 - 1);
                last.ln().minus(&first.ln()).times(ratio.ln().recip())
            });
            ends.map_or_else(
                || Judgement::all([]),
                |power| Judgement::below(&power, &Estimate::exact(-0.5)),
            )
        };
        vec![
            Finding::new(
                "with Heun's steps the change at the training inputs tends to 0: it falls faster than T^(−1/2)",
                &falls(&heun),
                words(&heun),
            )
            .published("Theorem 5.1: it is 0"),
            Finding::new(
                "at the longest T it is below that elsewhere",
                &Judgement::below(&last(&heun), &last(&others)),
                format!("{}; elsewhere {}", words(&heun), words(&others)),
            )
            .published("Theorem 5.1"),
            Finding::new(
                "with Euler's steps, the published algorithm's, it still falls so from the longest T but one to the longest",
                &falls(&euler[euler.len().saturating_sub(2)..]),
                words(&euler),
            )
            .published("Section 5 takes it to"),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "change",
                "Squared change of outputs along the kernel",
                "The theorem says that it tends to 0 at the training inputs",
                ("steps", "steps T"),
                ("squared change", "mean squared change"),
                &["integrator", "inputs"],
            )
            .errors("± squared change")
            .logarithmic(true, true),
        ]
    }
}
