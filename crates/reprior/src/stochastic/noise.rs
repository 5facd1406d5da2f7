//! A scale of the observation noise that is learned along with the weights, from minibatches.
//!
//! As in chains on all data ([`Noise`]), log σ = log m + s·u with u ~ N(0, 1) a priori; one u for all outputs, or one each. Given
//! outputs with Gaussian noise log p has the curvature 2 in log σ for each of a row's numbers, so that u's posterior has about the
//! precision P = 2·N·C·s² + 1, C the outputs that share it. With G the gradient of log p(y, u | θ) in u, N rows' part of it from the
//! minibatch, an update is
//! u ← u + h·G/P + √(2hT/P)·ξ:
//! a Langevin step with 1/P for its preconditioner, of which h is what it forgets of where it was; a climb to the mode where T = 0. The
//! gradient's own noise adds about h·N/(2B) of its variance 1/P to u, with B rows in a minibatch: a spread of log σ of √(h/(4BC)).

use std::sync::atomic::{AtomicU64, Ordering};

use crate::compute::{Purpose, Stream};
use crate::model::{Noise, NoisePrior};

/// h, of a step size that is not lowered by its schedule.
const RATE: f64 = 0.03;
/// log σ changes by no more in an update, but for its noise: where targets are far off at first, or one is.
const MOST: f64 = 0.3;

/// The scale and what a minibatch says of it.
#[derive(Debug)]
pub(super) struct LearnedNoise {
    prior: NoisePrior,
    /// ∂ log p/∂ log σ of a minibatch's rows, row by row and output by output: bits, as rows are evaluated by several threads.
    by_log_scale: Vec<AtomicU64>,
}

/// An update of a scale.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoiseStep {
    /// Rows of the minibatch, and all.
    pub rows: [usize; 2],
    /// What the schedule makes of h.
    pub factor: f64,
    /// T.
    pub temperature: f64,
    /// Seed, chain and number of the update.
    pub key: [u64; 3],
}

impl LearnedNoise {
    pub(super) fn new(prior: NoisePrior) -> Self {
        Self {
            prior,
            by_log_scale: Vec::new(),
        }
    }

    fn noise(&self) -> Noise {
        Noise::Learned(self.prior)
    }

    /// Numbers of u.
    pub(super) fn coordinates(&self, outputs: usize) -> usize {
        self.noise().coordinates(outputs)
    }

    /// σ of every output.
    pub(super) fn scales(&self, coordinates: &[f64], scales: &mut [f64]) {
        self.noise().scales(coordinates, scales);
    }

    /// The least of the scales' squares over the prior median's, at most 1: what a step of a gradient, whose curvature grows as 1/σ², is
    /// to be shortened by.
    pub(super) fn shortening(&self, scales: &[f64]) -> f64 {
        let least = scales.iter().copied().fold(self.prior.median, f64::min);
        (least / self.prior.median).powi(2)
    }

    /// Makes room for the numbers of a minibatch.
    pub(super) fn begin(&mut self, numbers: usize) {
        self.by_log_scale.resize_with(numbers, AtomicU64::default);
    }

    /// Takes ∂ log p/∂ log σ of a minibatch's row number `row`.
    pub(super) fn take(&self, row: usize, by_log_scale: &[f64]) {
        let own = &self.by_log_scale[row * by_log_scale.len()..];
        for (to, value) in own.iter().zip(by_log_scale) {
            to.store(value.to_bits(), Ordering::Relaxed);
        }
    }

    /// Makes an update of u with what was taken from a minibatch.
    pub(super) fn step(&self, coordinates: &mut [f64], outputs: usize, step: NoiseStep) {
        let [batch, rows] = step.rows.map(|rows| rows as f64);
        let mut by_output = vec![0.0; outputs];
        for row in self.by_log_scale.chunks_exact(outputs) {
            for (sum, bits) in by_output.iter_mut().zip(row) {
                *sum += f64::from_bits(bits.load(Ordering::Relaxed));
            }
        }
        let mut gradient = vec![0.0; coordinates.len()];
        self.noise().pull_back(&by_output, &mut gradient);
        let spread = self.prior.spread;
        let shared = (outputs / coordinates.len()) as f64;
        let precision = 2.0 * rows * shared * spread * spread + 1.0;
        let rate = RATE * step.factor;
        let most = MOST / spread;
        let [seed, chain, update] = step.key;
        let mut normals = vec![0.0; coordinates.len()];
        Stream::new(seed, chain, Purpose::Noise, update).fill_normal(&mut normals);
        let deviation = (2.0 * rate * step.temperature / precision).sqrt();
        for ((u, by_rows), normal) in coordinates.iter_mut().zip(gradient).zip(normals) {
            let drift = rate * (rows / batch * by_rows - *u) / precision;
            *u += drift.clamp(-most, most) + deviation * normal;
        }
    }
}
