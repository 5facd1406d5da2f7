//! Appendix D: how long the steps of a leapfrog may be in a linear model, with and without repriorisation.
//!
//! The energy is quadratic with the posterior precision C = I + ΨᵀΨ/σ², and a leapfrog is stable below 2/√(largest eigenvalue of C), so that
//! repriorised steps, where C is I, may be √(1 + s²/σ²) times longer, s the largest singular value of Ψ. That is what is measured: by
//! bisection, the longest step with which a path does not run away. At a given acceptance rate the ratio is smaller: in D dimensions a
//! repriorised step is bounded by D^(−1/4) as well, a standard one by few steep directions.

use std::sync::Arc;

use reprior::compute::kernels::{norm_squared, symmetric_eigen};
use reprior::compute::{Purpose, Stream};
use reprior::model::InputReduction;
use reprior::posterior::{Posterior, Target};

use super::{COORDINATES, coordinates};
use crate::data::NOISE;
use crate::findings::{estimates, results};
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Images, Judgement, Paper,
    Row, Size, Table,
};

/// Appendix D.
pub(super) struct StepSizes;

/// Steps of a path.
const STEPS: usize = 200;
/// Bisections, in logarithms, from 10⁻⁴ to 10: they leave an interval of this relative width.
const HALVINGS: i32 = 12;
const RESOLUTION: f64 = 0.003;

impl Experiment for StepSizes {
    fn about(&self) -> About {
        About {
            name: "hron2022-appendix-d",
            paper: Paper::Hron,
            figure: "Appendix D",
            what: "the longest stable step of a leapfrog in a linear model, standard and repriorised, against √(1 + s²/σ²) and √n/σ",
            data: Some("cifar10"),
            cost: ["2 s", "15 min", "1 h", "1 h"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let all: &[usize] = &[16, 64, 256, 1024];
        let rows = size.pick(&all[..2], &all[..3], all, all);
        let cells = Cell::new().each("n", rows).into_iter();
        cells
            .flat_map(|cell| cell.each("coordinates", &COORDINATES))
            .collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let images = bench.data.images("cifar10", cell.count("n"))?;
        let model = images.model::<f64>(&[], &[], InputReduction::Auto)?;
        let mut target = Posterior::new(Arc::clone(&model), coordinates(cell.text("coordinates")))?;
        let (mut low, mut high) = (1e-4_f64.ln(), 10_f64.ln());
        for halving in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            if is_stable(&mut target, middle.exp())? {
                low = middle;
            } else {
                high = middle;
            }
            bench.advance(f64::from(halving) / f64::from(HALVINGS))?;
        }
        let longest = (0.5 * (low + high)).exp();
        let n = images.rows();
        Ok(vec![
            Row::new()
                .with("n", n)
                .with("coordinates", cell.text("coordinates"))
                .with_estimate(
                    "longest step",
                    &Estimate::new(longest, RESOLUTION * longest),
                )
                .with("√(1 + s²/σ²)", largest_precision(&images)?.sqrt())
                .with("√n/σ", (n as f64).sqrt() / NOISE),
        ])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let wanted = |name: &str| [("coordinates", name.into())];
        let [standard, repriorised] =
            COORDINATES.map(|name| table.estimates("longest step", &wanted(name)));
        let pairs = standard.iter().zip(&repriorised);
        let gains: Vec<Estimate> = pairs.map(|(a, b)| b.ln().minus(&a.ln())).collect();
        let predicted = table.numbers("√(1 + s²/σ²)", &wanted("standard"));
        let roots = table.numbers("√n/σ", &wanted("standard"));
        let as_predicted = gains.iter().zip(&predicted).map(|(gain, predicted)| {
            let margin = 4.0 * RESOLUTION;
            Judgement::within(gain, &Estimate::exact(predicted.ln()), margin)
        });
        // of order √n: between half and twice as fast a growth from the first n to the last
        let ends = gains
            .first()
            .zip(gains.last())
            .zip(roots.first().zip(roots.last()));
        let growth = ends.map(|((first, last), (from, to))| {
            let part = last.minus(first).times((to / from).ln().recip());
            Judgement::within(&part, &Estimate::exact(1.0), 0.5)
        });
        let times: Vec<f64> = gains.iter().map(|gain| gain.value.exp()).collect();
        let words = |values: &[f64]| crate::findings::listed(values);
        vec![
            Finding::new(
                "repriorised steps may be √(1 + s²/σ²) times longer, to what bisection resolves",
                &Judgement::all(as_predicted),
                format!("{}; predicted {}", words(&times), words(&predicted)),
            )
            .published("Appendix D"),
            Finding::new(
                "the longest repriorised step does not depend on the data",
                &Judgement::all(repriorised.iter().map(|step| {
                    Judgement::within(&step.ln(), &Estimate::exact(2_f64.ln()), 4.0 * RESOLUTION)
                })),
                estimates(&repriorised),
            )
            .published("Appendix D: independent of n and σ"),
            Finding::new(
                "the gain grows as √n: the power of n is within a quarter of a half",
                &growth.unwrap_or_else(|| Judgement::all([])),
                format!("{}; √n/σ {}", words(&times), words(&roots)),
            )
            .published("Appendix D: √n/σ, if the inputs' mean square is bounded"),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "step-size",
                "Longest stable step in a linear model",
                "In repriorised coordinates the step need not shrink as data come in.",
                ("n", "training images"),
                ("longest step", "longest stable step"),
                &["coordinates"],
            )
            .logarithmic(true, true),
        ]
    }
}

/// Whether a path of steps `h` stays where it is.
fn is_stable(target: &mut Posterior<f64>, h: f64) -> Result<bool, Failure> {
    let mut z = vec![0.0; target.dim()];
    let (mut momentum, mut gradient) = (z.clone(), z.clone());
    let mut stream = Stream::new(9, 0, Purpose::Initial, 0);
    stream.fill_normal(&mut z);
    stream.fill_normal(&mut momentum);
    let far = 1e6 * (norm_squared(&z) + norm_squared(&momentum));
    for _ in 0..STEPS {
        for half in [true, false] {
            // a kick on either side of the drift
            if target.log_ratio_and_gradient(&z, &mut gradient).is_err() {
                return Ok(false);
            }
            for ((p, g), z) in momentum.iter_mut().zip(&gradient).zip(&z) {
                *p += 0.5 * h * (g - z);
            }
            if half {
                z.iter_mut().zip(&momentum).for_each(|(z, p)| *z += h * p);
            }
        }
        let size = norm_squared(&z) + norm_squared(&momentum);
        if size.is_nan() || size > far {
            return Ok(false);
        }
    }
    Ok(true)
}

/// 1 + s²/σ², from the largest eigenvalue of K = ΨΨᵀ.
fn largest_precision(images: &Images) -> Result<f64, Failure> {
    let (n, d) = (images.rows(), images.columns());
    let scale = 1.0 / d as f64;
    let mut kernel = vec![0.0; n * n];
    let rows: Vec<&[f64]> = images.inputs.chunks_exact(d).collect();
    for (i, a) in rows.iter().enumerate() {
        for (j, b) in rows.iter().enumerate().take(i + 1) {
            let product: f64 = a.iter().zip(*b).map(|(a, b)| a * b).sum();
            let value = scale * product + 0.01;
            (kernel[j * n + i], kernel[i * n + j]) = (value, value);
        }
    }
    let (eigenvalues, _) = symmetric_eigen(&kernel, n).map_err(Failure::failed)?;
    Ok(1.0 + eigenvalues[n - 1] / (NOISE * NOISE))
}
