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
    About, Bench, Cell, Experiment, Failure, Figure, Finding, Paper, Row, Size, Table, Value,
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
        let paths = network.diffusions(settings, seed, paths, advance)?;
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
            let mut change = 0.0;
            for f in after {
                let squares = f.iter().zip(before).map(|(a, b)| (a - b).powi(2));
                change += squares.sum::<f64>() / (after.len() * ROWS) as f64;
            }
            let row = cell.choices(&["integrator", "steps"]);
            found.push(row.with("inputs", name).with("squared change", change));
        }
        Ok(found)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let of = |integrator: &str, inputs: &str| {
            let wanted = [("integrator", integrator.into()), ("inputs", inputs.into())];
            let rows = table.select(&wanted);
            rows.iter()
                .map(|row| (row.number("steps"), row.number("squared change")))
                .collect::<Vec<_>>()
        };
        let (heun, euler) = (
            of("Heun", "training inputs"),
            of("Euler", "training inputs"),
        );
        let others = of("Heun", "others");
        let last = |values: &[(f64, f64)]| values.last().copied().unwrap_or((f64::NAN, f64::NAN));
        let words = |values: &[(f64, f64)]| {
            let each = values
                .iter()
                .map(|(steps, change)| format!("{} at T = {steps}", Value::from(*change)));
            each.collect::<Vec<_>>().join(", ")
        };
        // of order 1/T: steps five times as many, a fifth; twice that leaves room for chance
        let falls = heun.len() > 1
            && heun
                .windows(2)
                .all(|pair| pair[1].1 < 2.0 * pair[0].1 * pair[0].0 / pair[1].0);
        vec![
            Finding::unjudged(
                "with Heun's steps the change at the training inputs falls with T, as 1/T at least",
                falls,
                words(&heun),
            ),
            Finding::unjudged(
                "it is below a fiftieth of that elsewhere at the longest T",
                last(&heun).1 < 0.02 * last(&others).1,
                format!("{}; elsewhere {}", words(&heun), words(&others)),
            ),
            Finding::unjudged(
                "with Euler's, the published algorithm's, it does not: at the longest T it is over ten times Heun's, and over half of that at the T before",
                last(&euler).1 > 10.0 * last(&heun).1
                    && euler.len() > 1
                    && last(&euler).1 > 0.5 * euler[euler.len() - 2].1,
                words(&euler),
            ),
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
            .logarithmic(true, true),
        ]
    }
}
