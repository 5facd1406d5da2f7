//! Batch normalisation: z = γ·(h − mean)/√(variance + ε) + β, for each channel.
//!
//! γ and β are parameters (two rows of a matrix with a column per channel); mean and variance are not. They are frozen in
//! every evaluation of a network and in all its derivatives, and are those of minibatches only while a mode is trained
//! (see [`Objective::with_batch_statistics`](crate::stochastic::objective::Objective::with_batch_statistics)): a density that
//! depends on which rows are evaluated together is no posterior, and has no Gauss-Newton matrix of single rows. A network to be
//! sampled from its prior has none of these: N(0, 1) on γ and β is a prior nobody means, but what a Laplace approximation
//! around trained weights needs.

use serde::{Deserialize, Serialize};

use super::Shape;
use crate::compute::{Real, panel_rows, simd};
use crate::network::covariance::covariance_of_gradients;
use crate::network::operation::{
    Cotangent, Cotangents, Direction, Keeps, MatrixGaussian, MomentSums, Operation, Point,
    no_tangent,
};

/// Frozen statistics of each channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchNorm {
    /// Means; empty for zeros.
    #[serde(default)]
    pub mean: Vec<f64>,
    /// Variances; empty for ones.
    #[serde(default)]
    pub variance: Vec<f64>,
    /// ε, added to the variance.
    #[serde(default = "BatchNorm::epsilon")]
    pub epsilon: f64,
}

impl BatchNorm {
    /// ε unless given.
    pub const EPSILON: f64 = 1e-5;

    fn epsilon() -> f64 {
        Self::EPSILON
    }

    /// Means and variances of so many channels, those that are left out included.
    pub(in crate::network) fn statistics(&self, channels: usize) -> [Vec<f64>; 2] {
        [(&self.mean, 0.0), (&self.variance, 1.0)].map(|(values, default)| {
            match values.is_empty() {
                true => vec![default; channels],
                false => values.clone(),
            }
        })
    }

    pub(super) fn output_shape(&self, input: Shape) -> Result<Shape, String> {
        for (name, values) in [("means", &self.mean), ("variances", &self.variance)] {
            if !values.is_empty() && values.len() != input.channels {
                let (count, channels) = (values.len(), input.channels);
                return Err(format!("{count} {name} for {channels} channels"));
            }
        }
        if !(self.epsilon >= 0.0 && self.variance.iter().all(|v| *v + self.epsilon > 0.0)) {
            return Err("variances with ε added must be positive".into());
        }
        Ok(input)
    }
}

/// Batch normalisation with given statistics as an operation: z = γ·u + β with u = (h − mean)·slope.
#[derive(Debug)]
pub(crate) struct Normalise<R> {
    pub(super) mean: Vec<R>,
    /// 1/√(variance + ε).
    pub(super) slope: Vec<R>,
    epsilon: f64,
}

impl<R: Real> Normalise<R> {
    pub fn new(layer: &BatchNorm, channels: usize) -> Self {
        let mut normalise = Self {
            mean: vec![R::ZERO; channels],
            slope: vec![R::ZERO; channels],
            epsilon: layer.epsilon,
        };
        let [mean, variance] = layer.statistics(channels);
        normalise.set(&mean, &variance);
        normalise
    }

    /// Takes other statistics, one number a channel.
    pub fn set(&mut self, mean: &[f64], variance: &[f64]) {
        for (own, &mean) in self.mean.iter_mut().zip(mean) {
            *own = R::from_f64(mean);
        }
        for (own, &variance) in self.slope.iter_mut().zip(variance) {
            *own = R::from_f64(1.0 / (variance + self.epsilon).sqrt());
        }
    }

    pub fn channels(&self) -> usize {
        self.mean.len()
    }

    /// out ← scale·input + shift for each channel, or added to what is there.
    fn affine(
        &self,
        accumulate: bool,
        input: &[R],
        out: &mut [R],
        coefficients: impl Fn(usize) -> (R, R),
    ) {
        let (channels, height) = (self.mean.len(), panel_rows::<R>());
        simd(
            #[inline(always)]
            || {
                let features = out.chunks_exact_mut(height).zip(input.chunks_exact(height));
                for (feature, (out, input)) in features.enumerate() {
                    let (scale, shift) = coefficients(feature % channels);
                    for (out, &value) in out.iter_mut().zip(input) {
                        let start = if accumulate { *out + shift } else { shift };
                        *out = scale * value + start;
                    }
                }
            },
        );
    }

    /// Adds slope·Σ δ·(input − mean) to the gradient of γ and Σ δ to that of β; without the mean or β's if so told.
    fn to_weights(
        &self,
        input: &[R],
        cotangent: &[R],
        [has_mean, has_shift]: [bool; 2],
        is_per_sample: bool,
        gradient: &mut [R],
    ) {
        let (channels, height) = (self.mean.len(), panel_rows::<R>());
        let copies = if is_per_sample { height } else { 1 };
        simd(
            #[inline(always)]
            || {
                for (channel, gradient) in gradient.chunks_exact_mut(2 * copies).enumerate() {
                    let mean = if has_mean {
                        self.mean[channel]
                    } else {
                        R::ZERO
                    };
                    let slope = self.slope[channel];
                    let (mut products, mut sums) = ([R::ZERO; 32], [R::ZERO; 32]);
                    let (products, sums) = (&mut products[..height], &mut sums[..height]);
                    let inputs = input.chunks_exact(height).skip(channel).step_by(channels);
                    let own = cotangent
                        .chunks_exact(height)
                        .skip(channel)
                        .step_by(channels);
                    for (input, cotangent) in inputs.zip(own) {
                        let sums = products.iter_mut().zip(&mut *sums);
                        let values = input.iter().zip(cotangent);
                        for ((product, sum), (&input, &cotangent)) in sums.zip(values) {
                            *product += cotangent * (input - mean);
                            *sum += cotangent;
                        }
                    }
                    let (scale, shift) = gradient.split_at_mut(copies);
                    for sample in 0..height {
                        let to = if is_per_sample { sample } else { 0 };
                        scale[to] += slope * products[sample];
                        if has_shift {
                            shift[to] += sums[sample];
                        }
                    }
                }
            },
        );
    }
}

impl<R: Real> Operation<R> for Normalise<R> {
    fn parameters(&self) -> usize {
        2 * self.mean.len()
    }

    fn rows(&self) -> (usize, bool) {
        (2, true)
    }

    fn keeps(&self) -> Keeps {
        Keeps {
            input: true,
            ..Keeps::default()
        }
    }

    fn normalisation(&self) -> Option<&Normalise<R>> {
        Some(self)
    }

    fn normalisation_mut(&mut self) -> Option<&mut Normalise<R>> {
        Some(self)
    }

    fn forward(&self, weights: &[R], _: usize, input: &[R], output: &mut [R]) {
        self.affine(false, input, output, |c| {
            let scale = weights[2 * c] * self.slope[c];
            (scale, weights[2 * c + 1] - scale * self.mean[c])
        });
    }

    fn jvp(&self, at: Point<'_, R>, along: Direction<'_, R>, out: &mut [R]) {
        let mut accumulate = false;
        if let Some(tangent) = along.input {
            self.affine(false, tangent, out, |c| {
                (at.weights[2 * c] * self.slope[c], R::ZERO)
            });
            accumulate = true;
        }
        if let Some(weights) = along.weights {
            self.affine(accumulate, at.input, out, |c| {
                let scale = weights[2 * c] * self.slope[c];
                (scale, weights[2 * c + 1] - scale * self.mean[c])
            });
            accumulate = true;
        }
        no_tangent(accumulate, out);
    }

    fn vjp_input(&self, at: Point<'_, R>, cotangent: &[R], accumulate: bool, out: &mut [R]) {
        self.affine(accumulate, cotangent, out, |c| {
            (at.weights[2 * c] * self.slope[c], R::ZERO)
        });
    }

    fn vjp_weights(
        &self,
        at: Point<'_, R>,
        cotangent: &[R],
        is_per_sample: bool,
        gradient: &mut [R],
    ) {
        self.to_weights(at.input, cotangent, [true, true], is_per_sample, gradient);
    }

    fn covariance(
        &self,
        at: Point<'_, R>,
        cotangents: Cotangents<'_, R>,
        spread: MatrixGaussian<'_, R>,
        scratch: &mut Vec<R>,
        out: &mut [R],
    ) {
        covariance_of_gradients(self, at, cotangents, spread, scratch, out);
    }

    fn moments(&self, at: Point<'_, R>, cotangent: &[R], moments: MomentSums<'_, R>) {
        moments.of_panels(self, at, cotangent);
    }

    fn vjp_input_tangent(
        &self,
        at: Point<'_, R>,
        along: Direction<'_, R>,
        cotangent: Cotangent<'_, R>,
        accumulate: bool,
        out: &mut [R],
    ) {
        self.vjp_input(at, cotangent.tangent, accumulate, out);
        if let Some(weights) = along.weights {
            self.affine(true, cotangent.value, out, |c| {
                (weights[2 * c] * self.slope[c], R::ZERO)
            });
        }
    }

    fn vjp_weights_tangent(
        &self,
        at: Point<'_, R>,
        along: Direction<'_, R>,
        cotangent: Cotangent<'_, R>,
        is_per_sample: bool,
        gradient: &mut [R],
    ) {
        if let Some(tangent) = along.input {
            self.to_weights(
                tangent,
                cotangent.value,
                [false, false],
                is_per_sample,
                gradient,
            );
        }
        self.to_weights(
            at.input,
            cotangent.tangent,
            [true, true],
            is_per_sample,
            gradient,
        );
    }
}

impl BatchNorm {
    /// Why there is no kernel map.
    pub(in crate::network) const NO_KERNEL: &'static str = "frozen statistics belong to one trained network, not to a prior over networks: leave it out";
}
