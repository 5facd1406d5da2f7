//! From trained weights to the mode: the maximum of log p(y | w) + log p(w) over all rows.
//!
//! Limited-memory BFGS (Liu & Nocedal 1989) whose first inverse Hessian is the covariance of a Laplace approximation where it
//! begins: of a network that is linear in its weights, with a Gaussian likelihood and the full curvature, the first step is Newton's
//! and ends at the mode. A step is halved until the density rises by 10⁻⁴ of what its slope promises. It is over where gᵀHg/2 of the
//! gradient g and the inverse Hessian H, what is left to rise if that is right, is below a tolerance.
//!
//! Cost: a gradient over all rows for each evaluation; 4·D numbers for each of ten pairs.

use std::collections::VecDeque;

use super::Laplace;
use crate::compute::{Real, add_scaled, dot, matrix};
use crate::network::Executor;
use crate::network::parameters::ParameterLayout;
use crate::stochastic::data::MinibatchData;
use crate::stochastic::{Prior, row_loss};

/// Pairs that are kept.
const PAIRS: usize = 10;
/// Part of what a step's slope promises that the density has to rise by.
const SUFFICIENT: f64 = 1e-4;
/// Halvings of a step.
const HALVINGS: usize = 20;

/// The prior of all weights.
#[derive(Debug, Clone, Copy)]
pub enum LogPrior<'a> {
    /// One for all layers, or one each.
    Layers(&'a [Prior]),
    /// N(0, P^(−1)), a precision for each weight.
    Precisions(&'a [f64]),
}

/// log p(y | w) + log p(w) of all rows.
#[derive(Debug)]
pub struct LogPosterior<'a, R> {
    /// The network.
    pub executor: &'a mut Executor<R>,
    /// Its parameters.
    pub layout: &'a ParameterLayout,
    /// The rows.
    pub data: &'a MinibatchData<R>,
    /// Of its weights.
    pub prior: LogPrior<'a>,
}

/// How an ascent went.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Ascent {
    /// Evaluations of the density with its gradient.
    pub evaluations: usize,
    /// What the density has risen by, in nats.
    pub rise: f64,
}

impl<R: Real> LogPosterior<'_, R> {
    /// The density, up to a constant of the prior, and `gradient` ← its gradient.
    pub fn evaluate(&mut self, weights: &[R], gradient: &mut [R]) -> f64 {
        let (data, outputs) = (self.data, self.executor.outputs_count());
        let (columns, rows) = (self.executor.inputs_count(), data.targets.len() / outputs);
        let loss = |row: usize, f: &[R], cotangent: &mut [R]| {
            let targets = &data.targets[row * outputs..(row + 1) * outputs];
            row_loss(data, targets, f, cotangent)
        };
        let inputs = matrix(&data.inputs[..rows * columns], columns, rows).transpose();
        let mut value = -self.executor.gradient(weights, inputs, &loss, gradient);
        gradient.iter_mut().for_each(|g| *g = -*g);
        match self.prior {
            LogPrior::Precisions(precisions) => {
                for ((g, w), precision) in gradient.iter_mut().zip(weights).zip(precisions) {
                    value -= 0.5 * precision * w.to_f64().powi(2);
                    *g -= R::from_f64(*precision) * *w;
                }
            }
            LogPrior::Layers(priors) => {
                for (layer, prior) in self.layout.layers.iter().zip(priors.iter().cycle()) {
                    let own = &weights[layer.range.clone()];
                    let spread = prior.spread(own, layer.rows, layer.has_bias);
                    value += prior.log_density(spread);
                    let pull = prior.pull(spread);
                    let mean = R::from_f64(pull.mean);
                    let [weight, bias] = pull.precision.map(R::from_f64);
                    let own = own.chunks_exact(layer.rows.max(1));
                    let gradient =
                        gradient[layer.range.clone()].chunks_exact_mut(layer.rows.max(1));
                    for (g, w) in gradient.zip(own) {
                        for (at, (g, w)) in g.iter_mut().zip(w).enumerate() {
                            let precision = if at < layer.fan_in() { weight } else { bias };
                            *g -= precision * (*w - mean);
                        }
                    }
                }
            }
        }
        value
    }

    /// Takes `weights` uphill, with at most `most` evaluations, until no more than `tolerance` nats are left. `curvature` is of all
    /// weights, where the ascent begins.
    pub fn ascend(
        &mut self,
        weights: &mut Vec<R>,
        curvature: &Laplace<R>,
        most: usize,
        tolerance: f64,
    ) -> Ascent {
        let mut inverse = Inverse {
            curvature,
            pairs: VecDeque::new(),
            scale: 1.0,
        };
        let rounding = if R::BYTES == 4 { 1e-7 } else { 1e-15 };
        let mut gradient = vec![R::ZERO; weights.len()];
        let (mut next, mut next_gradient) = (weights.clone(), gradient.clone());
        let first = self.evaluate(weights, &mut gradient);
        let (mut value, mut evaluations) = (first, 1);
        'steps: while value.is_finite() {
            let direction = inverse.times(&gradient);
            let slope = dot(&gradient, &direction);
            if slope.is_nan() || 0.5 * slope <= tolerance {
                break;
            }
            let mut size = 1.0;
            let mut found = f64::NAN;
            for _ in 0..HALVINGS {
                if evaluations >= most {
                    break 'steps;
                }
                next.copy_from_slice(weights);
                add_scaled(&mut next, size, &direction);
                found = self.evaluate(&next, &mut next_gradient);
                evaluations += 1;
                if found >= value + SUFFICIENT * size * slope - rounding * value.abs() {
                    break;
                }
                (size, found) = (0.5 * size, f64::NAN);
            }
            if found.is_nan() {
                break;
            }
            inverse.learn([weights, &next], [&gradient, &next_gradient]);
            std::mem::swap(weights, &mut next);
            std::mem::swap(&mut gradient, &mut next_gradient);
            let is_rounding = (found - value).abs() <= rounding * value.abs();
            value = found;
            if is_rounding {
                break;
            }
        }
        Ascent {
            evaluations,
            rise: value - first,
        }
    }
}

/// The inverse Hessian of −log density.
struct Inverse<'a, R> {
    curvature: &'a Laplace<R>,
    /// Steps, differences of gradients and the inverse of their product.
    pairs: VecDeque<(Vec<R>, Vec<R>, f64)>,
    /// What the covariance is multiplied by.
    scale: f64,
}

impl<R: Real> Inverse<'_, R> {
    /// The two loops of Nocedal (1980).
    fn times(&self, gradient: &[R]) -> Vec<R> {
        let mut out = gradient.to_vec();
        let mut parts = Vec::with_capacity(self.pairs.len());
        for (step, change, inverse) in self.pairs.iter().rev() {
            let part = inverse * dot(step, &out);
            add_scaled(&mut out, -part, change);
            parts.push(part);
        }
        self.curvature.covariance_product(&mut out);
        let scale = R::from_f64(self.scale);
        out.iter_mut().for_each(|value| *value *= scale);
        for ((step, change, inverse), part) in self.pairs.iter().zip(parts.into_iter().rev()) {
            let along = inverse * dot(change, &out);
            add_scaled(&mut out, part - along, step);
        }
        out
    }

    /// Takes a step in along which the density is concave.
    fn learn(&mut self, [from, to]: [&[R]; 2], [before, after]: [&[R]; 2]) {
        let difference =
            |a: &[R], b: &[R]| -> Vec<R> { a.iter().zip(b).map(|(&a, &b)| a - b).collect() };
        let (step, change) = (difference(to, from), difference(before, after));
        let product = dot(&step, &change);
        let mut turned = change.clone();
        self.curvature.covariance_product(&mut turned);
        let size = dot(&change, &turned);
        let least = 1e-10 * (dot(&step, &step) * dot(&change, &change)).sqrt();
        let is_concave = product > least && size > 0.0;
        if !is_concave {
            return;
        }
        self.scale = product / size;
        if self.pairs.len() == PAIRS {
            self.pairs.pop_front();
        }
        self.pairs.push_back((step, change, product.recip()));
    }
}
