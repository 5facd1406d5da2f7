//! Appendix E.1: reparametrising another layer than the readout. Does the rest of the posterior still tend to the prior?
//!
//! f(x) = Σ_j ψ(x·u_j)·v_j/√d, one input, one output. The readout given the input weights has a posterior in closed form, so that T leaves
//! p(u | D) to tend to the prior. Mapping u to its own conditional posterior leaves p(v | D) ∝ N(v; 0, I)·p(y | v), and by the chain rule
//! the divergence of the whole from N(0, I) is that of p(v | D), KL = log E p(y | v) − E log p(y | v) over v ~ N(0, I).
//!
//! With one datum p(y | v) is known: f given v is a sum of independent terms, whose characteristic function is a product, and with the
//! noise p(y | v) = (1/π)∫₀^∞ Re[e^{−ity}·e^{−σ²t²/2}·Π_j χ(t·v_j/√d)] dt, χ(s) = E e^{isψ(xε)}.
//!
//! As d grows f given v tends to N(m·s, c), m = E ψ(xε), c = Var ψ(xε), s = Σ_j v_j/√d ~ N(0, 1): KL tends to 0 if m = 0, and to
//! log E N(y; ms, c + σ²) − E log N(y; ms, c + σ²) = −½ log(1 + r) − y²/(2(w + m²)) + (y² + m²)/(2w), w = c + σ², r = m²/w, otherwise. A
//! linear network is an exception by symmetry, any odd ψ is; the paper's counterexample is a sigmoid.

use std::f64::consts::PI;

use reprior::compute::{Purpose, Stream};

use crate::findings::{estimates, results};
use crate::width::log_mean;
use crate::{
    About, Bench, Cell, Estimate, Experiment, Failure, Figure, Finding, Judgement, Paper, Row,
    Size, Table,
};

/// Appendix E.1.
pub(super) struct OtherLayers;

const X: f64 = 1.5;
const Y: f64 = 1.0;
const NOISE: f64 = 0.3;
/// Nonlinearities by name.
const NONLINEARITIES: [&str; 3] = ["linear", "tanh", "sigmoid"];

fn nonlinearity(name: &str, x: f64) -> f64 {
    match name {
        "linear" => x,
        "tanh" => x.tanh(),
        _ => 1.0 / (1.0 + (-x).exp()),
    }
}

impl Experiment for OtherLayers {
    fn about(&self) -> About {
        About {
            name: "hron2022-appendix-e1",
            paper: Paper::Hron,
            figure: "Appendix E.1",
            what: "divergence from the prior after reparametrising the input weights in place of the readout, one hidden layer, one datum, against width",
            data: None,
            cost: ["3 s", "10 s", "1 min", "1 min"],
        }
    }

    fn cells(&self, size: Size, _: bool) -> Vec<Cell> {
        let widths = size.pick(
            &[4_usize, 32, 256][..],
            &[4, 16, 64, 256, 1024],
            &[4, 16, 64, 256, 1024],
            &[4, 16, 64, 256, 1024],
        );
        let cells = Cell::new()
            .each("nonlinearity", &NONLINEARITIES)
            .into_iter();
        cells
            .flat_map(|cell| cell.each("width", widths))
            .map(|cell| cell.with("draws", size.pick(1000_usize, 2000, 10_000, 10_000)))
            .collect()
    }

    fn measure(&self, cell: &Cell, bench: &Bench<'_>) -> Result<Vec<Row>, Failure> {
        let width = cell.count("width");
        let terms = Terms::new(cell.text("nonlinearity"));
        let mut logs = Vec::new();
        let count = cell.count("draws");
        for draw in 0..count {
            let mut v = vec![0.0; width];
            Stream::new(11, width as u64, Purpose::Initial, draw as u64).fill_normal(&mut v);
            let scale = (width as f64).sqrt().recip();
            v.iter_mut().for_each(|v| *v *= scale);
            logs.push(terms.log_density(&v));
            bench.advance(draw as f64 / count as f64)?;
        }
        Ok(vec![
            cell.choices(&["nonlinearity", "width"])
                .with_estimate("divergence", &log_mean_less_mean(&logs))
                .with("limit", terms.limit()),
        ])
    }

    fn findings(&self, tables: &[Table]) -> Vec<Finding> {
        let table = results(tables);
        let of = |name: &str| table.estimates("divergence", &[("nonlinearity", name.into())]);
        let limit = table.number("limit", &[("nonlinearity", "sigmoid".into())]);
        let [linear, tanh, sigmoid] = NONLINEARITIES.map(of);
        // Theorem 2.1's rate is 1/width, of which half the power is left for what is not yet asymptotic
        let widths = table.numbers("width", &[("nonlinearity", "linear".into())]);
        let vanishes = |values: &[Estimate]| {
            let ends = values.first().zip(values.last());
            Judgement::all(ends.map(|(first, last)| {
                let part = (widths[0] / widths[widths.len() - 1]).sqrt();
                Judgement::below(last, &first.times(part))
            }))
        };
        let half = Estimate::exact(0.5 * limit);
        let stays = sigmoid.iter().map(|own| Judgement::above(own, &half));
        vec![
            Finding::new(
                "a linear network is an exception: with its input weights reparametrised the divergence vanishes",
                &vanishes(&linear),
                estimates(&linear),
            )
            .published("Appendix E.1, by symmetry"),
            Finding::new(
                "a network of sigmoids is a counterexample: the divergence stays above half of its limit at every width",
                &Judgement::all(stays.chain([Judgement::fact(limit > 1e-9)])),
                format!("{}; limit {limit:.3}", estimates(&sigmoid)),
            )
            .published("Appendix E.1"),
            Finding::new(
                "what counts is the mean of the units: a nonlinearity whose mean is zero is no counterexample",
                &vanishes(&tanh),
                estimates(&tanh),
            )
            .published("Appendix E.1: the proof takes a mean other than zero"),
        ]
    }

    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::lines(
                "divergence",
                "Divergence from the prior, input weights reparametrised",
                "Lines that fall to 0 are exceptions; the readout's reparametrisation falls for any nonlinearity.",
                ("width", "width"),
                ("divergence", "KL divergence, nats"),
                &["nonlinearity"],
            )
            .errors("± divergence")
            .limits(&[("limit", "limits")])
            .logarithmic(true, false),
        ]
    }
}

/// log of the mean of exp less the mean, by the jackknife.
fn log_mean_less_mean(logs: &[f64]) -> Estimate {
    let n = logs.len() as f64;
    let total: f64 = logs.iter().sum();
    let (all, without) = log_mean(logs);
    let pairs = without.iter().zip(logs);
    let without: Vec<f64> = pairs
        .map(|(own, log)| own - (total - log) / (n - 1.0))
        .collect();
    Estimate::jackknife(all - total / n, &without)
}

/// ψ(xε) over ε ~ N(0, 1), by quadrature.
struct Terms {
    values: Vec<f64>,
    weights: Vec<f64>,
    /// χ at multiples of [`SPACING`], real and imaginary part.
    table: Vec<[f64; 2]>,
}

/// Of the table of χ; it goes as far as any weight can take an integral that the noise ends.
const SPACING: f64 = 0.01;
const FARTHEST: f64 = 60.0;

impl Terms {
    /// Trapezoids on [−9, 9], which converge faster than any power for smooth functions of a normal variable.
    fn new(name: &str) -> Self {
        let points = 361;
        let at = |index: usize| -9.0 + 18.0 * index as f64 / (points - 1) as f64;
        let step = 18.0 / (points - 1) as f64;
        let density = |e: f64| (-0.5 * e * e).exp() / (2.0 * PI).sqrt();
        let mut terms = Self {
            values: (0..points)
                .map(|index| nonlinearity(name, X * at(index)))
                .collect(),
            weights: (0..points).map(|index| step * density(at(index))).collect(),
            table: Vec::new(),
        };
        let entry = |index: usize| {
            let s = SPACING * index as f64;
            [terms.mean(|x| (s * x).cos()), terms.mean(|x| (s * x).sin())]
        };
        let table = (0..(FARTHEST / SPACING) as usize).map(entry).collect();
        terms.table = table;
        terms
    }

    fn mean(&self, of: impl Fn(f64) -> f64) -> f64 {
        let pairs = self.values.iter().zip(&self.weights);
        pairs.map(|(value, weight)| weight * of(*value)).sum()
    }

    /// χ(s), by the cubic through four neighbours in the table; χ(−s) is its conjugate.
    fn characteristic(&self, s: f64) -> [f64; 2] {
        let place = s.abs() / SPACING;
        let first = place.floor();
        let t = place - first;
        let at = |offset: i64| {
            let index = first as i64 + offset;
            let [re, im] = self.table[index.unsigned_abs() as usize % self.table.len()];
            if index < 0 { [re, -im] } else { [re, im] }
        };
        let weights = [
            -t * (t - 1.0) * (t - 2.0) / 6.0,
            (t + 1.0) * (t - 1.0) * (t - 2.0) / 2.0,
            -(t + 1.0) * t * (t - 2.0) / 2.0,
            (t + 1.0) * t * (t - 1.0) / 6.0,
        ];
        let mut sum = [0.0; 2];
        for (offset, weight) in (-1..3).zip(weights) {
            let value = at(offset);
            sum[0] += weight * value[0];
            sum[1] += weight * value[1];
        }
        if s < 0.0 { [sum[0], -sum[1]] } else { sum }
    }

    /// log p(y | v), for weights v over √d.
    fn log_density(&self, v: &[f64]) -> f64 {
        // the noise ends the integral: e^{−σ²t²/2} is below 1e-13 from here on
        let (end, points) = (7.8 / NOISE, 120);
        let step = end / f64::from(points);
        let mut sum = 0.5;
        for index in 1..=points {
            let t = f64::from(index) * step;
            let factor = (-0.5 * (NOISE * t).powi(2)).exp();
            let (mut re, mut im) = (factor * (t * Y).cos(), -factor * (t * Y).sin());
            for v in v {
                let [a, b] = self.characteristic((t * v).clamp(-FARTHEST + 1.0, FARTHEST - 1.0));
                (re, im) = (re * a - im * b, re * b + im * a);
                if re.abs() + im.abs() < 1e-18 {
                    break;
                }
            }
            sum += re;
        }
        (sum * step / PI).max(f64::MIN_POSITIVE).ln()
    }

    /// The divergence of infinitely wide networks.
    fn limit(&self) -> f64 {
        let m = self.mean(|x| x);
        let w = self.mean(|x| x * x) - m * m + NOISE * NOISE;
        let r = m * m / w;
        -0.5 * r.ln_1p() - 0.5 * Y * Y / (w + m * m) + 0.5 * (Y * Y + m * m) / w
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    /// What a divergence falls from has an error as well.
    #[test]
    fn a_divergence_that_is_hardly_known_does_not_vanish() {
        let verdict = |error: f64| {
            let row = |width: usize, divergence: Estimate| {
                Row::new()
                    .with("nonlinearity", "linear")
                    .with("width", width)
                    .with_estimate("divergence", &divergence)
            };
            let rows = vec![
                row(4, Estimate::new(1.0, error)),
                row(400, Estimate::new(0.05, 0.001)),
            ];
            OtherLayers.findings(&Table::all(rows))[0].verdict
        };
        assert_eq!(verdict(0.01), Verdict::Holds);
        assert_eq!(verdict(0.4), Verdict::CannotBeTold);
    }

    /// Of a linear network f given v is N(0, x²|v|²).
    #[test]
    fn a_linear_networks_density_is_known() {
        let terms = Terms::new("linear");
        for v in [vec![0.7], vec![0.3, -0.4, 0.2], vec![1.5, 0.1]] {
            let variance = X * X * v.iter().map(|v| v * v).sum::<f64>() + NOISE * NOISE;
            let known = -0.5 * (2.0 * PI * variance).ln() - 0.5 * Y * Y / variance;
            let found = terms.log_density(&v);
            assert!((found - known).abs() < 1e-8, "{found} {known}");
        }
    }

    /// Of one sigmoid the density is an integral over one weight.
    #[test]
    fn one_sigmoid_is_integrated_directly() {
        let terms = Terms::new("sigmoid");
        let v = 0.8;
        let known = terms.mean(|f| {
            let z = (Y - v * f) / NOISE;
            (-0.5 * z * z).exp() / (NOISE * (2.0 * PI).sqrt())
        });
        assert!((terms.log_density(&[v]) - known.ln()).abs() < 1e-6);
    }
}
