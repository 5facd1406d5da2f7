//! Roy, Miani et al. (2024), Figure 2: a network that fits a sine, and the functions that Laplace approximations, linearised ones and
//! diffusions draw: all of a draw, its part along the kernel, and its part off the kernel.
//!
//! y = sin(5x + 1) + N(0, 0.01²), 50 points x ~ U(0, 1), 1-10-10-1 with tanh, α = 10. Their code leaves the noise's precision out of the
//! curvature; here it is in.

use std::sync::Arc;

use super::toy::{cells, outputs};
use crate::findings::{mean, mean_and_sd, results};
use crate::toys;
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Judgement, Paper, Row,
    Size, Table,
};

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
            cost: ["10 seconds", "5 minutes", "half an hour", "half an hour"],
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
        // root mean square over points of the standard deviations of draws, with the error that draws give it
        let spread = |is_counted: &dyn Fn(usize, f64) -> bool| {
            let counted: Vec<usize> = (0..points.len())
                .filter(|&point| is_counted(point, points[point]))
                .collect();
            let of = |left_out: Option<usize>| {
                let squares = counted.iter().map(|&point| {
                    let values = draws.iter().enumerate();
                    let values = values.filter(|(index, _)| Some(*index) != left_out);
                    let values: Vec<f64> = values.map(|(_, f)| f[point]).collect();
                    mean_and_sd(&values).1.powi(2)
                });
                mean(&squares.collect::<Vec<_>>()).sqrt()
            };
            let without: Vec<f64> = (0..draws.len()).map(|index| of(Some(index))).collect();
            Estimate::jackknife(of(None), &without)
        };
        let mut found = vec![
            cell.choices(&["method", "part", "steps"])
                .with_estimate("error", &Estimate::mean(&errors))
                .with("error of the mode", error(mode))
                .with_estimate("sd at data", &spread(&|point, _| point < rows))
                .with_estimate(
                    "sd outside",
                    &spread(&|point, x| point >= rows && !(0.0..=1.0).contains(&x)),
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
        let of = |method: &str, part: &str, column: &str| {
            table.estimate(column, &[("method", method.into()), ("part", part.into())])
        };
        let error = |method: &str, part: &str| of(method, part, "error").ln();
        let sampled = error("sampled", "all");
        let [along, off] = ["kernel", "non-kernel"].map(|part| error("sampled", part));
        let linearised = error("linearised", "all");
        let diffusion = error("diffusion", "non-kernel");
        let words = |panels: &[(&str, &str)]| {
            let each = panels
                .iter()
                .map(|(method, part)| format!("{method}, {part} {}", of(method, part, "error")));
            each.collect::<Vec<_>>().join("; ")
        };
        let spreads = |method: &str, part: &str| {
            ["sd at data", "sd outside"].map(|column| of(method, part, column))
        };
        let lies_still = |method: &str, part: &str, claim: &str| {
            let [at_data, outside] = spreads(method, part);
            Finding::new(
                claim,
                &Judgement::below(&at_data, &outside),
                format!("sd at data {at_data}, outside {outside}"),
            )
        };
        let all = ("sampled", "all");
        vec![
            Finding::new(
                "sampled Laplace underfits: its error at the data is above linearised Laplace's",
                &Judgement::above(&sampled, &linearised),
                words(&[all, ("linearised", "all")]),
            )
            .published("Figure 2"),
            Finding::new(
                "the kernel makes it underfit: that part alone has a larger error than the rest",
                &Judgement::above(&along, &off),
                words(&[("sampled", "kernel"), ("sampled", "non-kernel"), all]),
            )
            .published("Figure 2, Section 3"),
            Finding::new(
                "the non-kernel diffusion does not underfit as sampled Laplace does: its error is lower",
                &Judgement::below(&diffusion, &sampled),
                words(&[("diffusion", "non-kernel"), all]),
            )
            .published("Figure 2"),
            Finding::new(
                "the diffusion's error is below linearised Laplace's",
                &Judgement::below(&diffusion, &linearised),
                words(&[("diffusion", "non-kernel"), ("linearised", "all")]),
            )
            .published("not of this figure; Section 7 has it of images"),
            lies_still(
                "linearised",
                "kernel",
                "along the kernel linearised functions move less at the data than outside",
            )
            .published("Figure 2"),
            lies_still(
                "diffusion",
                "kernel, Heun",
                "so do diffusions along the kernel (Heun's steps: the theorem's diffusion)",
            )
            .published("Figure 2, Theorem 5.1"),
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
