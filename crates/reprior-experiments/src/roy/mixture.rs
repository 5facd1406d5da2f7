//! Roy, Miani et al. (2024), Figure 7: where approximations of a classifier of two Gaussians are uncertain: all of a draw, its part
//! along the kernel, and its part off the kernel.
//!
//! N((∓3.15, ±3.15), 0.6²·I), 2-16-16-2 with tanh (their code's network, not the paper's), α = 1; `all` of a diffusion alternates. The
//! uncertainty is theirs: the standard deviation over draws of a class's probability, summed over classes.

use super::toy::{cells, outputs, spread};
use crate::experiment::results;
use crate::toys::Toy;
use crate::{
    About, Bench, Cell, Experiment, Failure, Figure, Finding, Paper, Row, Size, Table, Value,
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
            cost: ["10 seconds", "3 minutes", "20 minutes"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        cells(
            &Row::new()
                .with("seed", 0_usize)
                .with("per class", size.pick(40_usize, 100, 100))
                .with("updates", 2000_usize)
                .with("draws", size.pick(20_usize, 40, 40))
                .with("steps", size.pick(10_usize, 20, 100))
                .with("grid", size.pick(9_usize, 29, 57)),
        )
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let (seed, updates) = (cell.count("seed") as u64, cell.count("updates") as u64);
        let toy = Toy::mixture(seed, cell.count("per class"), updates)?;
        bench.advance(0.0)?;
        let (own, side) = (toy.inputs.len() / 2, cell.count("grid"));
        let place = |at: usize| -HALF + 2.0 * HALF * at as f64 / (side - 1) as f64;
        let mut places: Vec<[f64; 2]> = (0..own)
            .map(|row| [toy.inputs[row], toy.inputs[own + row]])
            .collect();
        places.extend((0..side * side).map(|at| [place(at % side), place(at / side)]));
        // through the middle of both classes
        places.extend((0..side).map(|at| [place(at), -place(at)]));
        let mut points: Vec<f64> = places.iter().map(|place| place[0]).collect();
        points.extend(places.iter().map(|place| place[1]));
        let all = outputs(&toy, cell, &points, bench)?;
        let second = |f: &Vec<f64>, at: usize| 1.0 / (1.0 + (f[2 * at] - f[2 * at + 1]).exp());
        let at = |point: usize| {
            let (mean, sd) = spread(all[1..].iter().map(|f| second(f, point)));
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
        let [method, part] = ["method", "part"].map(|name| cell.text(name).to_owned());
        let named = |row: Row| {
            row.with("method", method.clone())
                .with("part", part.clone())
        };
        let mut found = vec![
            named(Row::new())
                .with("steps", cell.count("steps"))
                .with("train accuracy", right)
                .with("train nll", nll)
                .with("uncertainty at data", near)
                .with(
                    "uncertainty away",
                    away.iter().sum::<f64>() / away.len() as f64,
                ),
        ];
        for point in grid.clone() {
            let (mean, uncertainty) = at(point);
            let [x, y] = places[point];
            let row = named(Row::of("grid")).with("x", x).with("y", y);
            found.push(row.with("mean", mean).with("uncertainty", uncertainty));
        }
        for (point, place) in places.iter().enumerate().skip(grid.end) {
            let row = named(Row::of("diagonal")).with("x", place[0]);
            found.push(row.with("uncertainty", at(point).1));
        }
        Ok(found)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let of = |method: &str, part: &str, column: &str| {
            table.number(column, &[("method", method.into()), ("part", part.into())])
        };
        let nll = [
            ("sampled", "all"),
            ("linearised", "all"),
            ("diffusion", "non-kernel"),
        ]
        .map(|(method, part)| of(method, part, "train nll"));
        let ratio = |method: &str, part: &str| {
            of(method, part, "uncertainty away") / of(method, part, "uncertainty at data")
        };
        let ratios = [ratio("diffusion", "non-kernel"), ratio("sampled", "all")];
        let sampled = of("sampled", "all", "uncertainty at data");
        let along = of("sampled", "kernel", "uncertainty at data");
        vec![
            Finding::new(
                "sampled Laplace underfits: its NLL at the data is over three times that of linearised Laplace and of the diffusion",
                nll[0] > 3.0 * nll[1].max(nll[2]),
                format!(
                    "sampled {}, linearised {}, diffusion {}",
                    Value::from(nll[0]),
                    Value::from(nll[1]),
                    Value::from(nll[2])
                ),
            ),
            Finding::new(
                "the kernel makes it so: that part alone has over half of the uncertainty at the data",
                along > 0.5 * sampled,
                format!(
                    "kernel {}, all {}",
                    Value::from(along),
                    Value::from(sampled)
                ),
            ),
            Finding::new(
                "the diffusion is over 1.4 times as uncertain away from the data as at them, sampled Laplace below 1.2 times",
                ratios[0] > 1.4 && ratios[1] < 1.2,
                format!(
                    "diffusion {}, sampled {}",
                    Value::from(ratios[0]),
                    Value::from(ratios[1])
                ),
            ),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        let mut figure = Figure::lines(
            "diagonal",
            "Uncertainty along the line through both classes",
            "The classes are at −3.15 and 3.15",
            ("x", "x (y = −x)"),
            ("uncertainty", "uncertainty"),
            &["part"],
        );
        figure.table = "diagonal";
        figure.panel = Some("method");
        vec![figure]
    }
}
