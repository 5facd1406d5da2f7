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
use reprior::posterior::{Coordinates, Posterior, Recorder, Target};

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

/// T⁻¹ at λ = σ². T is affine in the readout, θ = Aφ + μ with A·Aᵀ = Σ, so that φ = A⁻¹(θ − μ) = AᵀΣ⁻¹(θ − μ); and Σ⁻¹ = I + ΨᵀΨ/σ², where
/// ΨᵀΨ(θ − μ)/σ² is the difference of the log-likelihood's gradients at μ and θ.
struct Inverse {
    model: Arc<Model<f64>>,
    standard: Posterior<f64>,
    repriorised: Posterior<f64>,
    recorder: Recorder<f64>,
}

impl Inverse {
    fn new(model: &Arc<Model<f64>>) -> Result<Self, Failure> {
        Ok(Self {
            model: Arc::clone(model),
            standard: Posterior::new(Arc::clone(model), Coordinates::Standard)?,
            repriorised: Posterior::new(Arc::clone(model), Coordinates::Repriorised)?,
            recorder: Recorder::new(Arc::clone(model)),
        })
    }

    /// T(φ) of inner weights and φ_out.
    fn map(&mut self, phi: &[f64]) -> Result<Vec<f64>, Failure> {
        let mut stream = Stream::new(22, 0, Purpose::Recording, 0);
        let record = self
            .recorder
            .record(&mut self.repriorised, phi, &mut stream)?;
        Ok(record.weights.clone())
    }

    /// T⁻¹(θ).
    fn of(&mut self, theta: &[f64]) -> Result<Vec<f64>, Failure> {
        let inner = self.model.inner_parameters();
        let outputs = self.model.architecture.outputs;
        let rows = self.model.architecture.readout_rows();
        let mut phi = theta.to_vec();
        phi[inner..].fill(0.0);
        let mean = self.map(&phi)?;
        let [mut at_theta, mut at_mean] = [theta.to_vec(), theta.to_vec()];
        self.standard.log_ratio_and_gradient(theta, &mut at_theta)?;
        self.standard.log_ratio_and_gradient(&mean, &mut at_mean)?;
        let weighted: Vec<f64> = (inner..theta.len())
            .map(|at| theta[at] - mean[at] + at_mean[at] - at_theta[at])
            .collect();
        // as many columns of A at a time as there are outputs
        let mut out = vec![0.0; rows * outputs];
        for first in (0..rows).step_by(outputs) {
            phi[inner..].fill(0.0);
            let columns = first..rows.min(first + outputs);
            for (output, column) in columns.clone().enumerate() {
                phi[inner + output * rows + column] = 1.0;
            }
            let theta = self.map(&phi)?;
            for (output, column) in columns.enumerate() {
                let own = inner + output * rows;
                let column_of_root: Vec<f64> =
                    (own..own + rows).map(|at| theta[at] - mean[at]).collect();
                for (to, own) in out.chunks_exact_mut(rows).zip(weighted.chunks_exact(rows)) {
                    to[column] = dot(&column_of_root, own);
                }
            }
        }
        phi[inner..].copy_from_slice(&out);
        Ok(phi)
    }
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
    use reprior::network::{Activation, Composition};

    use super::*;

    #[test]
    fn the_inverse_undoes_the_map() {
        let network = Composition::fully_connected(3, &[7], 2, Activation::Gelu);
        let mut stream = Stream::new(3, 0, Purpose::Initial, 0);
        let (mut x, mut y) = (vec![0.0; 15], vec![0.0; 10]);
        stream.fill_normal(&mut x);
        stream.fill_normal(&mut y);
        let model = Model::<f64>::new(network, 0.3, &x, y, &[], InputReduction::Auto).unwrap();
        let mut inverse = Inverse::new(&Arc::new(model)).unwrap();
        let mut phi = vec![0.0; inverse.repriorised.dim()];
        stream.fill_normal(&mut phi);
        let theta = inverse.map(&phi).unwrap();
        let back = inverse.of(&theta).unwrap();
        for (a, b) in back.iter().zip(&phi) {
            assert!((a - b).abs() < 1e-8, "{a} {b}");
        }
    }

    #[test]
    fn great_circles() {
        let (x, y) = ([1.0, 0.0], [0.0, 1.0]);
        let half = slerp(&x, &y, 0.5);
        assert!((half[0] - half[1]).abs() < 1e-12 && (norm_squared(&half) - 1.0).abs() < 1e-12);
        assert_eq!(slerp(&x, &x, 0.3), [1.0, 0.0]);
    }
}
