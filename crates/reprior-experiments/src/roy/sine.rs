//! Roy, Miani et al. (2024), Figure 2: a network that fits a sine, and the functions that Laplace approximations, linearised ones and
//! diffusions draw: all of a draw, its part along the kernel, and its part off the kernel.
//!
//! y = sin(5x + 1) + N(0, 0.01²), 50 points x ~ U(0, 1), 1-10-10-1 with tanh, α = 10. Their code leaves the noise's precision out of the
//! curvature; here it is in.

use std::sync::Arc;

use super::toy::{cells, of, outputs};
use crate::findings::{mean, mean_and_sd, named, results};
use crate::toys;
use crate::{About, Bench, Cell, Experiment, Failure, Figure, Finding, Paper, Row, Size, Table};

/// Figure 2.
pub struct Sine;

/// Points of the grid, from −1 to 2.
const GRID: usize = 100;
/// Functions that are drawn.
const SHOWN: usize = 5;

impl Experiment for Sine {
    fn about(&self) -> About {
        About {
            name: "roy2024-fig2",
            paper: Paper::Roy,
            figure: "Figure 2",
            what: "functions that approximations of a network's posterior draw after it has learned a sine, along the kernel of the curvature and off it",
            data: None,
            cost: ["10 seconds", "a minute", "10 minutes", "10 minutes"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        cells(
            &Row::new()
                .with("seed", 0_usize)
                .with("updates", size.pick(10_000_usize, 20_000, 40_000, 40_000))
                .with("draws", size.pick(10_usize, 50, 50, 50)),
            size.pick(50, 200, 1000, 1000),
        )
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let mut toy = toys::sine(cell.long("seed"), cell.count("updates"))?;
        bench.advance(0.0)?;
        let targets = Arc::clone(&toy.data.targets);
        let rows = targets.len();
        let grid = (0..GRID).map(|at| -1.0 + 3.0 * at as f64 / (GRID - 1) as f64);
        let mut points = toy.data.inputs.to_vec();
        points.extend(grid);
        let all = outputs(&mut toy, cell, &points, bench)?;
        let error = |f: &Vec<f64>| {
            let pairs = f.iter().zip(&*targets);
            pairs.map(|(f, y)| (f - y).powi(2)).sum::<f64>() / rows as f64
        };
        let (mode, draws) = (&all[0], &all[1..]);
        let at = |point: usize| {
            let values: Vec<f64> = draws.iter().map(|f| f[point]).collect();
            mean_and_sd(&values)
        };
        let errors: Vec<f64> = draws.iter().map(error).collect();
        let root = |from: usize, to: usize, is_counted: &dyn Fn(f64) -> bool| {
            let counted = (from..to).filter(|&point| is_counted(points[point]));
            let squares: Vec<f64> = counted.map(|point| at(point).1.powi(2)).collect();
            mean(&squares).sqrt()
        };
        let mut found = vec![
            cell.choices(&["method", "part", "steps"])
                .with("error", mean(&errors))
                .with("error of the mode", error(mode))
                .with("sd at data", root(0, rows, &|_| true))
                .with(
                    "sd outside",
                    root(rows, rows + GRID, &|x| !(0.0..=1.0).contains(&x)),
                ),
        ];
        let chosen = cell.choices(&["method", "part"]).in_table("grid");
        let panel = format!("{}, {}", cell.text("method"), cell.text("part"));
        for (point, &x) in points.iter().enumerate().skip(rows) {
            let (mean, sd) = at(point);
            let row = chosen.clone().with("x", x);
            found.push(row.with("mean", mean).with("sd", sd));
        }
        for (index, f) in draws.iter().take(SHOWN).enumerate() {
            for (&x, &f) in points.iter().zip(f).skip(rows) {
                let row = Row::of("functions").with("panel", panel.clone());
                found.push(row.with("draw", index + 1).with("x", x).with("f", f));
            }
        }
        Ok(found)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let of = |method, part, column| of(table, method, part, column);
        let mode = of("sampled", "all", "error of the mode");
        let sampled = of("sampled", "all", "error");
        let along = of("sampled", "kernel", "error");
        let off = of("sampled", "non-kernel", "error");
        let linearised = of("linearised", "all", "error");
        let diffusion = of("diffusion", "non-kernel", "error");
        let [fixed, free] = ["sd at data", "sd outside"].map(|sd| of("linearised", "kernel", sd));
        let heun = ["sd at data", "sd outside"].map(|sd| of("diffusion", "kernel, Heun", sd));
        vec![
            Finding::unjudged(
                "sampled Laplace underfits: its error at the data is over fifty times the mode's",
                sampled > 50.0 * mode,
                named([("sampled", sampled), ("mode", mode)]),
            ),
            Finding::unjudged(
                "the kernel makes it underfit: that part alone has most of the error, the rest a tenth at most",
                along > 0.5 * sampled && off < 0.1 * sampled,
                named([("all", sampled), ("kernel", along), ("non-kernel", off)]),
            ),
            Finding::unjudged(
                "linearised Laplace does not underfit: its error is below twice the mode's",
                linearised < 2.0 * mode,
                named([("linearised", linearised), ("mode", mode)]),
            ),
            Finding::unjudged(
                "the non-kernel diffusion does not underfit: its error is a hundredth of sampled Laplace's",
                diffusion < 0.01 * sampled,
                named([("diffusion", diffusion), ("sampled", sampled)]),
            ),
            Finding::unjudged(
                "along the kernel linearised functions do not move at the data, but outside",
                fixed < 0.02 * free,
                named([("sd at data", fixed), ("outside", free)]),
            ),
            Finding::unjudged(
                "along the kernel diffusions move much less at the data than outside (Heun's steps: the theorem's diffusion)",
                heun[0] < 0.2 * heun[1],
                named([("sd at data", heun[0]), ("outside", heun[1])]),
            ),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "grid",
                "Mean and standard deviation of functions",
                "The data lie in [0, 1]",
                ("x", "x"),
                ("mean", "f"),
                &["part"],
            )
            .of("grid")
            .errors("sd")
            .panels("method"),
            Figure::lines(
                "functions",
                "Functions",
                "A line a draw; the data lie in [0, 1]",
                ("x", "x"),
                ("f", "f"),
                &["draw"],
            )
            .of("functions")
            .panels("panel"),
        ]
    }
}
