//! Figure 2: repriorisation of a linear model with two weights and one datum, X = [0.9, 0.5], y = 2, σ² = 0.1.
//!
//! y = Xθ + N(0, σ²), θ ~ N(0, I): the posterior is N(μ, Σ) with Σ = (I + XᵀX/σ²)⁻¹ and μ = ΣXᵀy/σ². Posterior draws are made from
//! these formulas, and mapped by T⁻¹ as the library has T: then they must be N(0, I).

use std::sync::Arc;

use reprior::compute::{Purpose, Stream};
use reprior::model::{InputReduction, Model};
use reprior::network::{Activation, Composition, LayerScale};
use reprior::posterior::{Coordinates, Posterior, Recorder};

use crate::findings::results;
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Judgement, Paper, Row,
    Size, Table,
};

/// Figure 2.
pub(super) struct Map;

const X: [f64; 2] = [0.9, 0.5];
const Y: f64 = 2.0;
const VARIANCE: f64 = 0.1;
/// Draws that are drawn in the figure.
const SHOWN: usize = 300;
/// Differences of means, in standard deviations, and relative ones of standard deviations, that are too small to see in the figure.
const MARGIN: f64 = 0.05;

impl Experiment for Map {
    fn about(&self) -> About {
        About {
            name: "hron2022-fig2",
            paper: Paper::Hron,
            figure: "Figure 2",
            what: "prior and posterior of the two weights of a linear model given one datum, and the posterior after repriorisation",
            data: None,
            cost: ["1 s", "1 s", "1 s", "1 s"],
        }
    }

    fn cells(&self, _: Size, _: bool) -> Vec<Cell> {
        vec![Cell::new().with("draws", 40_000_usize)]
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let map = Affine::of_the_library()?;
        bench.advance(0.2)?;
        let posterior = Affine::of_the_posterior();
        let (mut thetas, mut phis) = (Vec::new(), Vec::new());
        for draw in 0..cell.count("draws") {
            let mut stream = Stream::new(2, 0, Purpose::Transition, draw as u64);
            let theta = posterior.apply([stream.normal(), stream.normal()]);
            thetas.push(theta);
            phis.push(map.solve(theta));
        }
        let mut rows = Vec::new();
        for (name, draws) in [("posterior", &thetas), ("repriorised", &phis)] {
            rows.push(moments(name, draws));
            for draw in &draws[..SHOWN] {
                rows.push(shown(name, *draw));
            }
        }
        for draw in 0..SHOWN as u64 {
            let mut stream = Stream::new(3, 0, Purpose::Transition, draw);
            rows.push(shown("prior", [stream.normal(), stream.normal()]));
        }
        Ok(rows)
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let of = |name: &str, column: &str| table.estimate(column, &[("coordinates", name.into())]);
        let columns = ["1st mean", "2nd mean", "1st sd", "2nd sd", "correlation"];
        let wanted = [0.0, 0.0, 1.0, 1.0, 0.0].map(Estimate::exact);
        let found = columns.map(|column| of("repriorised", column));
        let all = found.iter().zip(&wanted);
        let is_prior =
            Judgement::all(all.map(|(own, prior)| Judgement::within(own, prior, MARGIN)));
        let words = |name: &str| {
            let each = columns.map(|column| format!("{column} {}", of(name, column)));
            each.join(", ")
        };
        let correlation = of("posterior", "correlation");
        vec![
            Finding::new(
                "repriorised, the posterior is the prior: draws of the posterior are mapped to N(0, I)",
                &is_prior,
                words("repriorised"),
            )
            .published("Figure 2, right: identical"),
            Finding::new(
                "the posterior itself is not: its weights are correlated",
                &Judgement::below(&correlation, &Estimate::exact(-MARGIN)),
                words("posterior"),
            )
            .published("Figure 2, left"),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "draws",
                "Draws of two weights",
                "The posterior lies on a streak; repriorised it lies over the prior, which is easy to sample.",
                ("1st", "first weight"),
                ("2nd", "second weight"),
                &["coordinates"],
            )
            .of("draws")
            .scatter(),
        ]
    }
}

fn shown(name: &str, [first, second]: [f64; 2]) -> Row {
    Row::of("draws")
        .with("coordinates", name)
        .with("1st", first)
        .with("2nd", second)
}

/// Means, standard deviations and correlation, with standard errors of normal draws.
fn moments(name: &str, draws: &[[f64; 2]]) -> Row {
    let n = draws.len() as f64;
    let column = |at: usize| draws.iter().map(move |draw| draw[at]);
    let means = [0, 1].map(|at| column(at).sum::<f64>() / n);
    let sds = [0, 1].map(|at| {
        let squares: f64 = column(at).map(|x| (x - means[at]).powi(2)).sum();
        (squares / (n - 1.0)).sqrt()
    });
    let products = draws
        .iter()
        .map(|draw| (draw[0] - means[0]) * (draw[1] - means[1]));
    let correlation = products.sum::<f64>() / (n - 1.0) / (sds[0] * sds[1]);
    let mut row = Row::new().with("coordinates", name);
    for (at, number) in ["1st", "2nd"].into_iter().enumerate() {
        let mean = Estimate::new(means[at], sds[at] / n.sqrt());
        let sd = Estimate::new(sds[at], sds[at] / (2.0 * n).sqrt());
        row = row
            .with_estimate(&format!("{number} mean"), &mean)
            .with_estimate(&format!("{number} sd"), &sd);
    }
    let error = (1.0 - correlation * correlation) / n.sqrt();
    row.with_estimate("correlation", &Estimate::new(correlation, error))
}

/// θ = A·φ + b.
struct Affine {
    /// Columns of A.
    columns: [[f64; 2]; 2],
    shift: [f64; 2],
}

impl Affine {
    /// T of the library: affine, for there are no inner weights; read off at three points.
    fn of_the_library() -> Result<Self, Failure> {
        let mut network = Composition::fully_connected(2, &[], 1, Activation::Gelu);
        // the weight's scale is divided by the root of the number of inputs
        network.readout_scale = LayerScale {
            weight: std::f64::consts::SQRT_2,
            bias: 0.0,
        };
        let (noise, reduction) = (VARIANCE.sqrt(), InputReduction::Off);
        let model = Model::<f64>::new(network, noise, &X, vec![Y], &[], reduction)?;
        let model = Arc::new(model);
        let mut posterior = Posterior::new(Arc::clone(&model), Coordinates::Repriorised)?;
        let mut recorder = Recorder::new(Arc::clone(&model));
        let mut stream = Stream::new(2, 0, Purpose::Recording, 0);
        let size = model.architecture.readout_parameters();
        let mut at = |one: Option<usize>| -> Result<[f64; 2], Failure> {
            let mut phi = vec![0.0; size];
            if let Some(one) = one {
                phi[one] = 1.0;
            }
            let weights = &recorder.record(&mut posterior, &phi, &mut stream)?.weights;
            Ok([weights[0], weights[1]])
        };
        let shift = at(None)?;
        let ends = [at(Some(0))?, at(Some(1))?];
        Ok(Self {
            columns: ends.map(|[a, b]| [a - shift[0], b - shift[1]]),
            shift,
        })
    }

    /// A root of Σ and μ, from the formulas.
    fn of_the_posterior() -> Self {
        let entry = |i: usize, j: usize| f64::from(u8::from(i == j)) + X[i] * X[j] / VARIANCE;
        let (a, b, d) = (entry(0, 0), entry(0, 1), entry(1, 1));
        let determinant = a * d - b * b;
        // Σ, and its lower root
        let [p, q, r] = [d, -b, a].map(|value| value / determinant);
        let first = p.sqrt();
        let below = q / first;
        let mean = [
            (p * X[0] + q * X[1]) * Y / VARIANCE,
            (q * X[0] + r * X[1]) * Y / VARIANCE,
        ];
        Self {
            columns: [[first, below], [0.0, (r - below * below).sqrt()]],
            shift: mean,
        }
    }

    fn apply(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        [0, 1].map(|at| self.columns[0][at] * x + self.columns[1][at] * y + self.shift[at])
    }

    /// φ of θ.
    fn solve(&self, theta: [f64; 2]) -> [f64; 2] {
        let [[a, c], [b, d]] = self.columns;
        let [x, y] = [theta[0] - self.shift[0], theta[1] - self.shift[1]];
        let determinant = a * d - b * c;
        [(d * x - b * y) / determinant, (a * y - c * x) / determinant]
    }
}
