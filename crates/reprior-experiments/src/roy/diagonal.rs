//! Roy, Miani et al. (2024), Figure 9: predictive uncertainty of full and of diagonal Laplace approximations, of the network and linearised,
//! on the toy of Figure 2. Linearisation cures what the kernel of the curvature does; a diagonal curvature does not share that kernel with
//! the Jacobian, so that it helps less.

use reprior::laplace::{HessianStructure, Subset};

use crate::findings::{mean_and_sd, results};
use crate::toys;
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Judgement, Paper, Row,
    Size, Table,
};

/// Figure 9.
pub struct Diagonal;

/// Points of the grid, from −1 to 2.
const GRID: usize = 100;

impl Experiment for Diagonal {
    fn about(&self) -> About {
        About {
            name: "roy2024-fig9",
            paper: Paper::Roy,
            figure: "Figure 9",
            what: "predictive uncertainty of full and diagonal Laplace approximations after a network has learned a sine, of the network itself and linearised",
            data: None,
            cost: ["3 s", "10 s", "20 s", "20 s"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let cell = |structure: &'static str| {
            Row::new()
                .with("structure", structure)
                .with("seed", 0_usize)
                .with("updates", size.pick(10_000_usize, 20_000, 40_000, 40_000))
                .with("draws", size.pick(50_usize, 200, 200, 200))
                .each("predictive", &["network", "linearised"])
        };
        ["full", "diagonal"].into_iter().flat_map(cell).collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let mut toy = toys::sine(cell.long("seed"), cell.count("updates"))?;
        bench.advance(0.5)?;
        let structure = match cell.text("structure") {
            "full" => HessianStructure::Full(1 << 30),
            _ => HessianStructure::Diag,
        };
        let seed = cell.long("seed");
        let laplace = toy.laplace(structure, Subset::All, seed)?;
        let draws = toy.draws(&laplace, seed, cell.long("draws"));
        let targets = std::sync::Arc::clone(&toy.data.targets);
        let mut points = toy.data.inputs.to_vec();
        points.extend((0..GRID).map(|at| -1.0 + 3.0 * at as f64 / (GRID - 1) as f64));
        let is_linearised = cell.text("predictive") == "linearised";
        let (mut functions, mut errors) = (Vec::new(), Vec::new());
        toy.predict(&draws, is_linearised, &points, |f| {
            let pairs = f.iter().zip(&*targets);
            let squares: f64 = pairs.map(|(f, y)| (f - y).powi(2)).sum();
            errors.push((squares / targets.len() as f64).ln());
            functions.push(f.to_vec());
            Ok(())
        })?;
        let chosen = cell.choices(&["structure", "predictive"]);
        // errors of draws differ by orders of magnitude: their logarithms have a mean worth the name
        let mut found = vec![chosen.with_estimate("log error", &Estimate::mean(&errors))];
        let panel = format!("{}, {}", cell.text("structure"), cell.text("predictive"));
        for (at, &x) in points.iter().enumerate().skip(targets.len()) {
            let values: Vec<f64> = functions.iter().map(|f| f[at]).collect();
            let (mean, sd) = mean_and_sd(&values);
            let row = Row::of("grid").with("panel", panel.clone()).with("x", x);
            let row = row.with("mean", mean).with("sd", sd);
            found.push(
                row.with("lower", mean - 2.0 * sd)
                    .with("upper", mean + 2.0 * sd),
            );
        }
        Ok(found)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let of = |structure: &str, predictive: &str| {
            let wanted = [
                ("structure", structure.into()),
                ("predictive", predictive.into()),
            ];
            table.estimate("log error", &wanted)
        };
        let gain = |structure: &str| of(structure, "network").minus(&of(structure, "linearised"));
        let [full, diagonal] = ["full", "diagonal"].map(gain);
        let words = |structure: &str| {
            let [network, linearised] = ["network", "linearised"].map(|name| of(structure, name));
            format!("{structure}: log error of the network {network}, linearised {linearised}")
        };
        vec![
            Finding::new(
                "linearisation lowers the error of full Laplace at the data",
                &Judgement::above(&full, &Estimate::exact(0.0)),
                words("full"),
            )
            .published("Figure 9, top"),
            Finding::new(
                "it does not help the diagonal approximation to the same degree",
                &Judgement::below(&diagonal, &full),
                [words("full"), words("diagonal")].join("; "),
            )
            .published("Figure 9, Appendix E.4"),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "grid",
                "Mean and standard deviation of functions",
                "The data lie in [0, 1].",
                ("x", "x"),
                ("mean", "f"),
                &[],
            )
            .of("grid")
            .errors("sd")
            .panels("panel"),
        ]
    }
}
