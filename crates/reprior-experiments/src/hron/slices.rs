//! Figure 5: two-dimensional slices of the log posterior through three trained networks, before and after repriorisation, against width
//! and against the number of data, one hidden layer.
//!
//! Three networks are trained from random weights by gradient ascent of the log posterior. A slice has a point for each (a, b): the direction
//! between the three of them by spherical linear interpolation, a of the way from the first to the second and b from there to the third, the
//! norm interpolated linearly. Repriorised slices go through the same three networks, φ = T⁻¹(θ).
//!
//! What is measured is how much the log posterior varies over the slice beyond what the prior's own does: the standard deviation of ℓ,
//! the log density less the prior's. Of an infinitely wide repriorised network it is 0. Independent triples of networks give its error.

use std::sync::Arc;

use reprior::compute::kernels::{dot, norm_squared};
use reprior::compute::{Purpose, Stream};
use reprior::model::{InputReduction, Model};
use reprior::posterior::{Coordinates, Posterior, Target};

use super::inverse::Inverse;
use super::{COORDINATES, coordinates};
use crate::findings::{estimates, mean_and_sd, results};
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Judgement, Paper, Row,
    Size, Table,
};

pub(super) struct Slices;

impl Experiment for Slices {
    fn about(&self) -> About {
        About {
            name: "hron2022-fig5",
            paper: Paper::Hron,
            figure: "Figure 5",
            what: "how much the log posterior varies over two-dimensional slices through three trained networks of one hidden layer, standard and repriorised, against width (n = 128) and against n (width 128)",
            data: Some("cifar10"),
            cost: ["10 s", "5 min", "20 min", "20 min"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let (n, width) = size.pick((24, 32), (128, 128), (128, 128), (128, 128));
        let widths: &[usize] = size.pick(
            &[16, 64, 256],
            &[32, 128, 512, 2048],
            &[32, 128, 512, 2048, 8192],
            &[32, 128, 512, 2048, 8192],
        );
        let rows: &[usize] = size.pick(
            &[8, 96],
            &[32, 128, 512],
            &[32, 128, 512, 2000],
            &[32, 128, 512, 2000],
        );
        let cell = |varied: &str, n: usize, width: usize| {
            Cell::new()
                .with("varied", varied)
                .with("n", n)
                .with("width", width)
                .with("triples", size.pick(3_usize, 4, 5, 5))
                .with("side", size.pick(9_usize, 17, 25, 25))
        };
        let by_width = widths.iter().map(|&width| cell("width", n, width));
        let by_rows = rows.iter().map(|&n| cell("n", n, width));
        by_width.chain(by_rows).collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let images = bench.data.images("cifar10", cell.count("n"))?;
        let model = images.model::<f64>(&[cell.count("width")], &[], InputReduction::Auto)?;
        let mut inverse = Inverse::new(&model)?;
        let triples = cell.count("triples");
        let mut spreads: [Vec<f64>; 2] = Default::default();
        let mut rows = Vec::new();
        for triple in 0..triples {
            let mut ends: [Vec<Vec<f64>>; 2] = Default::default();
            for corner in 0..3 {
                let index = (3 * triple + corner) as u64;
                let theta = train(&model, index)?;
                bench.advance(index as f64 / (3 * triples) as f64)?;
                ends[1].push(inverse.of(&theta)?);
                ends[0].push(theta);
            }
            for (at, name) in COORDINATES.into_iter().enumerate() {
                let mut target = Posterior::new(Arc::clone(&model), coordinates(name))?;
                let slice = Slice::of(&mut target, &ends[at], cell.count("side"))?;
                let ratios: Vec<f64> = slice.points.iter().map(|point| point.ratio).collect();
                spreads[at].push(mean_and_sd(&ratios).1);
                if triple == 0 {
                    rows.extend(slice.rows(cell, name, images.rows()));
                }
            }
        }
        for (name, spreads) in COORDINATES.into_iter().zip(&spreads) {
            let row = cell
                .choices(&["varied", "width"])
                .with("n", images.rows())
                .with("coordinates", name)
                .with_estimate("departure", &Estimate::mean(spreads));
            rows.push(row.in_table(&format!("by-{}", cell.text("varied"))));
            rows.push(row);
        }
        Ok(rows)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let of = |name: &str, varied: &str| {
            let wanted = [("coordinates", name.into()), ("varied", varied.into())];
            table.estimates("departure", &wanted)
        };
        let [standard, repriorised] = COORDINATES.map(|name| of(name, "width"));
        let [few, many] = COORDINATES.map(|name| of(name, "n"));
        let pairs = standard.iter().zip(&repriorised);
        vec![
            Finding::new(
                "slices of the repriorised posterior are smoother at every width",
                &Judgement::all(pairs.map(|(a, b)| Judgement::above(a, b))),
                format!(
                    "departure from the prior's, standard {}; repriorised {}",
                    estimates(&standard),
                    estimates(&repriorised)
                ),
            )
            .published("Figure 5, left"),
            Finding::new(
                "repriorised slices are the smoother the wider the network",
                &Judgement::falls(&repriorised),
                estimates(&repriorised),
            )
            .published("Figure 5, left: their structure vanishes"),
            Finding::new(
                "they become less smooth as data come in",
                &Judgement::rises(&many),
                format!(
                    "repriorised {}; standard {}",
                    estimates(&many),
                    estimates(&few)
                ),
            )
            .published("Figure 5, right"),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        let departure = |name, table, x| {
            Figure::lines(
                name,
                "Departure of slices from the prior",
                "Lower is simpler: 0 is the prior's own log density.",
                x,
                ("departure", "standard deviation of ℓ over a slice"),
                &["coordinates"],
            )
            .of(table)
            .errors("± departure")
            .logarithmic(true, true)
        };
        vec![
            departure("departure-by-width", "by-width", ("width", "width")),
            departure("departure-by-n", "by-n", ("n", "training images")),
            Figure::lines(
                "slices",
                "Log posterior",
                "The three networks are at the corners (0, 0) and (1, 0) and along the top.",
                ("a", "from the first network to the second"),
                ("b", "to the third"),
                &[],
            )
            .of("slices")
            .panels("panel")
            .map("log density"),
        ]
    }
}

/// Steps of gradient ascent.
const STEPS: usize = 300;

/// A network trained by Adam (step size 0.03, falling to 0) on its log posterior.
fn train(model: &Arc<Model<f64>>, index: u64) -> Result<Vec<f64>, Failure> {
    let mut target = Posterior::new(Arc::clone(model), Coordinates::Standard)?;
    let mut z = vec![0.0; target.dim()];
    Stream::new(21, index, Purpose::Initial, 0).fill_normal(&mut z);
    let mut gradient = z.clone();
    let (mut first, mut second) = (vec![0.0; z.len()], vec![0.0; z.len()]);
    for step in 0..STEPS {
        target.log_ratio_and_gradient(&z, &mut gradient)?;
        let rate = 0.03 * (1.0 - step as f64 / STEPS as f64);
        let power = step as i32 + 1;
        let (one, two) = (1.0 - 0.9_f64.powi(power), 1.0 - 0.999_f64.powi(power));
        for (((z, g), m), v) in z.iter_mut().zip(&gradient).zip(&mut first).zip(&mut second) {
            let g = g - *z;
            *m = 0.9 * *m + 0.1 * g;
            *v = 0.999 * *v + 0.001 * g * g;
            *z += rate * (*m / one) / ((*v / two).sqrt() + 1e-8);
        }
    }
    Ok(z)
}

/// A point of a slice.
struct Point {
    a: f64,
    b: f64,
    /// ℓ.
    ratio: f64,
    log_density: f64,
}

/// A slice.
struct Slice {
    points: Vec<Point>,
}

impl Slice {
    fn of(target: &mut Posterior<f64>, ends: &[Vec<f64>], side: usize) -> Result<Self, Failure> {
        let norms: Vec<f64> = ends.iter().map(|end| norm_squared(end).sqrt()).collect();
        let units: Vec<Vec<f64>> = ends
            .iter()
            .zip(&norms)
            .map(|(end, norm)| end.iter().map(|x| x / norm).collect())
            .collect();
        let mut points = Vec::new();
        for i in 0..side {
            for j in 0..side {
                let [a, b] = [i, j].map(|at| at as f64 / (side - 1) as f64);
                let between = slerp(&units[0], &units[1], a);
                let unit = slerp(&between, &units[2], b);
                let norm = (1.0 - b) * ((1.0 - a) * norms[0] + a * norms[1]) + b * norms[2];
                let z: Vec<f64> = unit.iter().map(|x| norm * x).collect();
                let ratio = target.log_ratio(&z)?;
                points.push(Point {
                    a,
                    b,
                    ratio,
                    log_density: ratio - 0.5 * norm_squared(&z),
                });
            }
        }
        Ok(Self { points })
    }

    fn rows(&self, cell: &Cell, coordinates: &str, n: usize) -> Vec<Row> {
        let panel = format!("{coordinates}, n {n}, width {}", cell.count("width"));
        let row = |point: &Point| {
            Row::of("slices")
                .with("panel", panel.clone())
                .with("a", point.a)
                .with("b", point.b)
                .with("log density", point.log_density)
        };
        self.points.iter().map(row).collect()
    }
}

/// A unit vector `part` of the way along the great circle between two.
fn slerp(from: &[f64], to: &[f64], part: f64) -> Vec<f64> {
    let angle = dot(from, to).clamp(-1.0, 1.0).acos();
    let (first, second) = if angle < 1e-9 {
        (1.0 - part, part)
    } else {
        let whole = angle.sin();
        (
            ((1.0 - part) * angle).sin() / whole,
            (part * angle).sin() / whole,
        )
    };
    from.iter()
        .zip(to)
        .map(|(a, b)| first * a + second * b)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn great_circles() {
        let (x, y) = ([1.0, 0.0], [0.0, 1.0]);
        let half = slerp(&x, &y, 0.5);
        assert!((half[0] - half[1]).abs() < 1e-12 && (norm_squared(&half) - 1.0).abs() < 1e-12);
        assert_eq!(slerp(&x, &x, 0.3), [1.0, 0.0]);
    }
}
