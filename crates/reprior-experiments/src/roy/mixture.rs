//! Roy, Miani et al. (2024), Figure 7: where approximations of a classifier of two Gaussians are uncertain: all of a draw, its part
//! along the kernel, and its part off the kernel.
//!
//! N((∓3.15, ±3.15), 0.6²·I), 2-16-16-2 with tanh (their code's network, not the paper's), α = 1; `all` of a diffusion alternates. The
//! uncertainty is theirs: the standard deviation over draws of a class's probability, summed over classes.

use super::toy::{cells, of, outputs};
use crate::findings::{mean, mean_and_sd, named, results};
use crate::toys;
use crate::{About, Bench, Cell, Experiment, Failure, Figure, Finding, Paper, Row, Size, Table};

/// Figure 7.
pub struct Mixture;

/// Half the width of the grid.
const HALF: f64 = 7.0;

impl Experiment for Mixture {
    fn about(&self) -> About {
        About {
            name: "roy2024-fig7",
            paper: Paper::Roy,
            figure: "Figure 7",
            what: "uncertainty of a classifier of two Gaussians over the plane, along the kernel of the curvature and off it",
            data: None,
            cost: ["10 seconds", "3 minutes", "20 minutes", "20 minutes"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        cells(
            &Row::new()
                .with("seed", 0_usize)
                .with("per class", size.pick(40_usize, 100, 100, 100))
                .with("updates", 2000_usize)
                .with("draws", size.pick(20_usize, 40, 40, 40))
                .with("grid", size.pick(9_usize, 29, 57, 57)),
            size.pick(10, 20, 100, 100),
        )
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let [per_class, updates] = ["per class", "updates"].map(|name| cell.count(name));
        let mut toy = toys::mixture(cell.long("seed"), per_class, updates)?;
        bench.advance(0.0)?;
        let (own, side) = (toy.data.inputs.len() / 2, cell.count("grid"));
        let place = |at: usize| -HALF + 2.0 * HALF * at as f64 / (side - 1) as f64;
        let (data, _) = toy.data.inputs.as_chunks::<2>();
        let mut places = data.to_vec();
        places.extend((0..side * side).map(|at| [place(at % side), place(at / side)]));
        // through the middle of both classes
        places.extend((0..side).map(|at| [place(at), -place(at)]));
        let all = outputs(&mut toy, cell, places.as_flattened(), bench)?;
        let second = |f: &Vec<f64>, at: usize| 1.0 / (1.0 + (f[2 * at] - f[2 * at + 1]).exp());
        let at = |point: usize| {
            let values: Vec<f64> = all[1..].iter().map(|f| second(f, point)).collect();
            let (mean, sd) = mean_and_sd(&values);
            // of two classes both have the same
            (mean, 2.0 * sd)
        };
        let (mut right, mut nll, mut near) = (0.0, 0.0, 0.0);
        for row in 0..own {
            let (mean, uncertainty) = at(row);
            let p = if row % 2 == 1 { mean } else { 1.0 - mean };
            right += f64::from(u8::from(p > 0.5)) / own as f64;
            nll -= p.ln() / own as f64;
            near += uncertainty / own as f64;
        }
        let is_away = |&point: &usize| {
            let [x, y] = places[point];
            let distance = |sign: f64| (x - 3.15 * sign).hypot(y + 3.15 * sign);
            distance(1.0).min(distance(-1.0)) > 3.0
        };
        let grid = own..own + side * side;
        let away: Vec<f64> = grid
            .clone()
            .filter(is_away)
            .map(|point| at(point).1)
            .collect();
        let chosen = cell.choices(&["method", "part"]);
        let mut found = vec![
            cell.choices(&["method", "part", "steps"])
                .with("train accuracy", right)
                .with("train nll", nll)
                .with("uncertainty at data", near)
                .with("uncertainty away", mean(&away)),
        ];
        for point in grid.clone() {
            let (mean, uncertainty) = at(point);
            let [x, y] = places[point];
            let row = chosen.in_table("grid").with("x", x).with("y", y);
            found.push(row.with("mean", mean).with("uncertainty", uncertainty));
        }
        for (point, place) in places.iter().enumerate().skip(grid.end) {
            let row = chosen.in_table("diagonal").with("x", place[0]);
            found.push(row.with("uncertainty", at(point).1));
        }
        Ok(found)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let nll = [
            ("sampled", "all"),
            ("linearised", "all"),
            ("diffusion", "non-kernel"),
        ]
        .map(|(method, part)| (method, of(table, method, part, "train nll")));
        let uncertainty = |method: &str, part: &str| {
            ["uncertainty away", "uncertainty at data"].map(|at| of(table, method, part, at))
        };
        let ratio = |method: &str, part: &str| {
            let [away, at_data] = uncertainty(method, part);
            away / at_data
        };
        let [diffusion, sampled] = [ratio("diffusion", "non-kernel"), ratio("sampled", "all")];
        let [along, all] = ["kernel", "all"].map(|part| uncertainty("sampled", part)[1]);
        vec![
            Finding::unjudged(
                "sampled Laplace underfits: its NLL at the data is over three times that of linearised Laplace and of the diffusion",
                nll[0].1 > 3.0 * nll[1].1.max(nll[2].1),
                named(nll),
            ),
            Finding::unjudged(
                "the kernel makes it so: that part alone has over half of the uncertainty at the data",
                along > 0.5 * all,
                named([("kernel", along), ("all", all)]),
            ),
            Finding::unjudged(
                "the diffusion is over 1.4 times as uncertain away from the data as at them, sampled Laplace below 1.2 times",
                diffusion > 1.4 && sampled < 1.2,
                named([("diffusion", diffusion), ("sampled", sampled)]),
            ),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "diagonal",
                "Uncertainty along the line through both classes",
                "The classes are at −3.15 and 3.15",
                ("x", "x (y = −x)"),
                ("uncertainty", "uncertainty"),
                &["part"],
            )
            .of("diagonal")
            .panels("method"),
        ]
    }
}
