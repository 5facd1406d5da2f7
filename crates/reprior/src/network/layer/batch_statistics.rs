//! Batch normalisation with the statistics of a whole minibatch, as training has it.
//!
//! A minibatch of n rows has m = n·pixels values of each channel, with mean μ and variance s² = Σ(h − μ)²/m. Of
//! u = (h − μ)/√(s² + ε) and z = γ·u + β the cotangent δ of z leads to that of h through μ and s² as well (Ioffe & Szegedy
//! 2015): γ/√(s² + ε)·(δ − mean of δ − u·mean of δ·u). Rows are in several hands: moments of a few are combined to those of all
//! (Chan, Golub & LeVeque 1983), in an order that does not depend on the number of threads.

use super::batch_norm::Normalise;
use crate::compute::{Real, panel_rows, simd};
use crate::network::operation::Point;

/// Mean and sum of squared distances from it, of some values of one channel.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct ChannelMoments {
    pub count: f64,
    pub mean: f64,
    pub squares: f64,
}

impl ChannelMoments {
    /// Those of both.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let count = self.count + other.count;
        if count == 0.0 {
            return self;
        }
        let (share, apart) = (other.count / count, other.mean - self.mean);
        Self {
            count,
            mean: self.mean + share * apart,
            squares: self.squares + other.squares + apart * apart * self.count * share,
        }
    }
}

impl<R: Real> Normalise<R> {
    /// Moments of each channel of the first `samples` samples of `input`; the others fill up the last panel.
    pub fn moments(&self, samples: usize, input: &[R], moments: &mut Vec<ChannelMoments>) {
        let channels = self.channels();
        let pixels = pixels(input.len(), samples, channels, panel_rows::<R>());
        moments.clear();
        moments.extend((0..channels).map(|channel| {
            let count = (pixels * samples) as f64;
            let sum = channel_sum(input, [channel, channels], samples, |value| value);
            let mean = sum / count;
            let center = R::from_f64(mean);
            let squares = channel_sum(input, [channel, channels], samples, |value| {
                (value - center) * (value - center)
            });
            ChannelMoments {
                count,
                mean,
                squares,
            }
        }));
    }

    /// As a layer's `vjp_input` where its statistics are those of a batch: `means` are, of each channel, those of δ and of δ·u
    /// over the batch, and samples from `samples` on fill up the last panel.
    pub fn vjp_input_of_batch(
        &self,
        at: Point<'_, R>,
        samples: usize,
        means: &[[R; 2]],
        cotangent: &[R],
        accumulate: bool,
        out: &mut [R],
    ) {
        let (channels, height) = (self.channels(), panel_rows::<R>());
        simd(
            #[inline(always)]
            || {
                let features = out
                    .chunks_exact_mut(height)
                    .zip(at.input.chunks_exact(height));
                let features = features.zip(cotangent.chunks_exact(height));
                for (feature, ((out, input), cotangent)) in features.enumerate() {
                    let channel = feature % channels;
                    let (mean, slope) = (self.mean[channel], self.slope[channel]);
                    let scale = at.weights[2 * channel] * slope;
                    let [of_cotangent, of_product] = means[channel];
                    for ((out, &value), &cotangent) in out.iter_mut().zip(input).zip(cotangent) {
                        let product = (value - mean) * slope * of_product;
                        let own = scale * (cotangent - of_cotangent - product);
                        *out = if accumulate { *out + own } else { own };
                    }
                }
            },
        );
        clear_padding(out, at.panels, samples);
    }
}

/// What fills up the last panel is no sample: nothing depends on it.
fn clear_padding<R: Real>(values: &mut [R], panels: usize, samples: usize) {
    let height = panel_rows::<R>();
    let used = samples - (panels - 1) * height;
    let last = values.len() / panels * (panels - 1);
    if used < height {
        for feature in values[last..].chunks_exact_mut(height) {
            feature[used..].fill(R::ZERO);
        }
    }
}

/// Positions of an image, of a slice of so many numbers.
fn pixels(length: usize, samples: usize, channels: usize, height: usize) -> usize {
    length / (samples.div_ceil(height).max(1) * height * channels.max(1))
}

/// The sum of `term` over the values of one channel: a panel's in the network's precision, those of panels in double precision.
fn channel_sum<R: Real>(
    input: &[R],
    [channel, channels]: [usize; 2],
    samples: usize,
    term: impl Fn(R) -> R,
) -> f64 {
    let height = panel_rows::<R>();
    let panels = samples.div_ceil(height).max(1);
    let mut total = 0.0;
    for (index, panel) in input.chunks_exact(input.len() / panels).enumerate() {
        let mut sums = [R::ZERO; 32];
        let sums = &mut sums[..height];
        simd(
            #[inline(always)]
            || {
                for feature in panel.chunks_exact(height).skip(channel).step_by(channels) {
                    for (sum, &value) in sums.iter_mut().zip(feature) {
                        *sum += term(value);
                    }
                }
            },
        );
        let own = height.min(samples - index * height);
        total += sums[..own].iter().map(|sum| sum.to_f64()).sum::<f64>();
    }
    total
}
