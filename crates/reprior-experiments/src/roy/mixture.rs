//! Roy, Miani et al. (2024), Figure 7: where approximations of a classifier of two Gaussians are uncertain: all of a draw, its part
//! along the kernel, and its part off the kernel.
//!
//! N((∓3.15, ±3.15), 0.6²·I), 2-16-16-2 with tanh (their code's network, not the paper's), α = 1; `all` of a diffusion alternates. The
//! uncertainty is theirs: the standard deviation over draws of a class's probability, summed over classes.

use super::toy::{cells, outputs};
use crate::findings::{mean_and_sd, results};
use crate::toys;
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Judgement, Paper, Row,
    Size, Table,
};

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
        let draws = &all[1..];
        // of two classes both have the same standard deviation
        let of_draws = |point: usize, left_out: Option<usize>| {
            let kept = draws.iter().enumerate();
            let kept = kept.filter(|(index, _)| Some(*index) != left_out);
            let values: Vec<f64> = kept.map(|(_, f)| second(f, point)).collect();
            let (mean, sd) = mean_and_sd(&values);
            (mean, 2.0 * sd)
        };
        let at = |point: usize| of_draws(point, None);
        let grid = own..own + side * side;
        let is_away = |&point: &usize| {
            let [x, y] = places[point];
            let distance = |sign: f64| (x - 3.15 * sign).hypot(y + 3.15 * sign);
            distance(1.0).min(distance(-1.0)) > 3.0
        };
        let away: Vec<usize> = grid.clone().filter(is_away).collect();
        let jackknife = |of: &dyn Fn(Option<usize>) -> f64| {
            let without: Vec<f64> = (0..draws.len()).map(|index| of(Some(index))).collect();
            Estimate::jackknife(of(None), &without)
        };
        let nll = |left_out: Option<usize>| {
            let one = |row: usize| {
                let (mean, _) = of_draws(row, left_out);
                -(if row % 2 == 1 { mean } else { 1.0 - mean }).ln()
            };
            (0..own).map(one).sum::<f64>() / own as f64
        };
        let uncertainty = |points: &[usize], left_out: Option<usize>| {
            let each = points.iter().map(|&point| of_draws(point, left_out).1);
            each.sum::<f64>() / points.len() as f64
        };
        let data: Vec<usize> = (0..own).collect();
        let is_right = |&row: &usize| (at(row).0 > 0.5) == (row % 2 == 1);
        let right = data.iter().filter(|row| is_right(row)).count() as f64 / own as f64;
        let chosen = cell.choices(&["method", "part"]);
        let mut found = vec![
            cell.choices(&["method", "part", "steps"])
                .with("train accuracy", right)
                .with_estimate("train nll", &jackknife(&nll))
                .with_estimate(
                    "uncertainty at data",
                    &jackknife(&|left_out| uncertainty(&data, left_out)),
                )
                .with_estimate(
                    "uncertainty away",
                    &jackknife(&|left_out| uncertainty(&away, left_out)),
                ),
        ];
        for point in grid.clone() {
            let (mean, uncertainty) = at(point);
            let [x, y] = places[point];
            let panel = format!("{}, {}", cell.text("method"), cell.text("part"));
            let row = chosen.in_table("grid").with("panel", panel);
            let row = row.with("x", x).with("y", y);
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
        let of = |method: &str, part: &str, column: &str| {
            table.estimate(column, &[("method", method.into()), ("part", part.into())])
        };
        let sampled = of("sampled", "all", "train nll");
        let linearised = of("linearised", "all", "train nll");
        let diffusion = of("diffusion", "non-kernel", "train nll");
        // uncertainty away from the data over that at them
        let contrast = |method: &str, part: &str| {
            let [away, near] = ["uncertainty away", "uncertainty at data"]
                .map(|column| of(method, part, column).ln());
            away.minus(&near)
        };
        let [own, others] = [
            contrast("diffusion", "non-kernel"),
            contrast("sampled", "all"),
        ];
        let [along, off] =
            ["kernel", "non-kernel"].map(|part| of("sampled", part, "uncertainty at data"));
        let times = |contrast: &Estimate| format!("{:.2} times", contrast.value.exp());
        vec![
            Finding::new(
                "sampled Laplace underfits: its training NLL is above those of linearised Laplace and the diffusion",
                &Judgement::all([
                    Judgement::above(&sampled, &linearised),
                    Judgement::above(&sampled, &diffusion),
                ]),
                format!("sampled {sampled}, linearised {linearised}, diffusion {diffusion}"),
            )
            .published("Figure 7, Appendix E.2.1"),
            Finding::new(
                "the kernel makes it so: along it the uncertainty at the data is larger than off it",
                &Judgement::above(&along, &off),
                format!("kernel {along}, non-kernel {off}"),
            )
            .published("Figure 7"),
            Finding::new(
                "the diffusion is more certain at the data, compared with elsewhere, than sampled Laplace",
                &Judgement::above(&own, &others),
                format!("uncertainty away over that at the data: diffusion {}, sampled {}", times(&own), times(&others)),
            )
            .published("Figure 7"),
            Finding::new(
                "the diffusion fits better than linearised Laplace",
                &Judgement::below(&diffusion, &linearised),
                format!("diffusion {diffusion}, linearised {linearised}"),
            )
            .published("not of this figure; Section 7 has it of images"),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "map",
                "Uncertainty over the plane",
                "The classes are at (−3.15, 3.15) and (3.15, −3.15); darker is less certain.",
                ("x", "x"),
                ("y", "y"),
                &[],
            )
            .of("grid")
            .panels("panel")
            .map("uncertainty"),
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
