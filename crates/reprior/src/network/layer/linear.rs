//! Windows times weights plus a bias: what convolutions and dense layers do, z = factor·Σ h·W + σ_b·b.
//!
//! Forward and to the input the kernel is the same, with the weights transposed: a window's runs of features meet columns of
//! weights. 2·positions·(numbers of the window)·units operations for each sample forward, as many to the input and to the
//! weights.

use super::{Shape, Window};
use crate::compute::{
    Correlation, FeatureRun, Gather, Outer, Real, WeightColumns, correlate, gather_product, matrix,
    matrix_mut, multiply, outer_product, panel_rows, simd,
};
use crate::network::LayerScale;
use crate::network::covariance::{add_products, covariance_of_gradients};
use crate::network::operation::{
    Cotangent, Cotangents, Direction, Keeps, MatrixGaussian, MomentSums, Operation, Point,
    no_tangent, squares_one_by_one,
};

/// Positions whose inputs are gathered for one product.
const POSITIONS: usize = 32;

/// A layer with weights.
#[derive(Debug)]
pub(crate) struct Linear<R> {
    /// Channels of the input and the output.
    channels: [usize; 2],
    taps: usize,
    has_bias: bool,
    factor: R,
    bias: R,
    forward: Gather,
    backward: Gather,
    correlation: Correlation,
    /// One position and one tap: vectors run over features then.
    is_flat: bool,
}

impl<R: Real> Linear<R> {
    /// `units` outputs at each position of `window`; the shape must fit. With `has_bias` the last row of the parameters is
    /// the bias.
    pub fn new(
        input: Shape,
        window: &Window,
        units: usize,
        scale: &LayerScale,
        has_bias: bool,
    ) -> Self {
        let [rows, columns] = window.positions(input).unwrap_or([0, 0]);
        let [height, width] = window.size;
        let (channels, taps, positions) = (input.channels, height * width, rows * columns);
        // the pixel of the image under a tap at a position
        let source = |position: usize, tap: usize| {
            let row = window.source(0, input.height, position / columns, tap / width)?;
            let column = window.source(1, input.width, position % columns, tap % width)?;
            Some(row * input.width + column)
        };
        let run = |left: usize, right: usize, depth: usize| FeatureRun {
            left: left as u32,
            right: right as u32,
            depth: depth as u32,
        };
        let forward = Gather::new((0..positions).map(|position| {
            let taps = (0..taps).filter_map(|tap| Some((source(position, tap)?, tap)));
            let runs = taps.map(|(pixel, tap)| run(pixel * channels, tap * channels, channels));
            runs.collect()
        }));
        let mut meeting = vec![Vec::new(); input.pixels()];
        for position in 0..positions {
            for tap in (0..taps).rev() {
                if let Some(pixel) = source(position, tap) {
                    let transposed = taps - 1 - tap;
                    meeting[pixel].push(run(position * units, transposed * units, units));
                }
            }
        }
        Self {
            channels: [channels, units],
            taps,
            has_bias,
            factor: R::from_f64(scale.factor(taps * channels)),
            bias: R::from_f64(scale.bias),
            correlation: Correlation::new::<R>(&forward, units),
            forward,
            backward: Gather::new(meeting),
            is_flat: taps == 1 && positions == 1 && input.pixels() == 1,
        }
    }

    fn rows(&self) -> usize {
        self.taps * self.channels[0] + usize::from(self.has_bias)
    }

    fn columns<'a>(&self, weights: &'a [R], with_bias: bool) -> WeightColumns<'a, R> {
        let rows = self.rows();
        WeightColumns {
            values: weights,
            rows,
            columns: self.channels[1],
            factor: self.factor,
            bias: (with_bias && self.has_bias).then(|| (rows - 1, self.bias)),
        }
    }

    fn to_input(
        &self,
        panels: usize,
        transposed: &[R],
        cotangent: &[R],
        accumulate: bool,
        out: &mut [R],
    ) {
        let columns = WeightColumns {
            values: transposed,
            rows: self.taps * self.channels[1],
            columns: self.channels[0],
            factor: self.factor,
            bias: None,
        };
        gather_product(out, accumulate, &self.backward, panels, cotangent, columns);
    }

    fn to_weights(
        &self,
        panels: usize,
        input: &[R],
        cotangent: &[R],
        is_per_sample: bool,
        gradient: &mut [R],
    ) {
        let sizes = Outer {
            panels,
            right: self.channels[1],
            rows: self.rows(),
            factor: self.factor,
        };
        if self.is_flat && !is_per_sample {
            outer_product(gradient, input, cotangent, sizes);
        } else {
            correlate(
                gradient,
                is_per_sample,
                &self.correlation,
                input,
                cotangent,
                sizes,
            );
        }
    }

    /// Writes what a unit combines at a position of one panel, for its first `samples` samples: row r of place `[index, of]`
    /// begins at (r·of + index)·panel rows.
    fn combine(
        &self,
        input: &[R],
        position: usize,
        samples: usize,
        [index, of]: [usize; 2],
        out: &mut [R],
    ) {
        let height = panel_rows::<R>();
        for run in self.forward.runs(position) {
            let [left, right, depth] = [run.left, run.right, run.depth].map(|n| n as usize);
            let from = input[left * height..(left + depth) * height].chunks_exact(height);
            for (row, from) in (right..right + depth).zip(from) {
                let to = &mut out[(row * of + index) * height..][..samples];
                for (to, &value) in to.iter_mut().zip(from) {
                    *to = self.factor * value;
                }
            }
        }
        if self.has_bias {
            out[((self.rows() - 1) * of + index) * height..][..samples].fill(self.bias);
        }
    }

    fn to_bias(&self, cotangent: &[R], is_per_sample: bool, gradient: &mut [R]) {
        self.add_sums(self.bias, cotangent, is_per_sample, gradient);
    }

    /// Adds `factor` times sums for each unit, over positions and, unless `is_per_sample`, samples, to the rows of biases.
    fn add_sums(&self, factor: R, cotangent: &[R], is_per_sample: bool, gradient: &mut [R]) {
        if !self.has_bias {
            return;
        }
        let (units, height) = (self.channels[1], panel_rows::<R>());
        let rows = self.rows();
        R::with_scratch(units * height, |sums| {
            simd(
                #[inline(always)]
                || {
                    sums.fill(R::ZERO);
                    for position in cotangent.chunks_exact(units * height) {
                        for (sum, &value) in sums.iter_mut().zip(position) {
                            *sum += value;
                        }
                    }
                    for (unit, sums) in sums.chunks_exact(height).enumerate() {
                        let entry = (unit + 1) * rows - 1;
                        if is_per_sample {
                            let to = &mut gradient[entry * height..(entry + 1) * height];
                            for (to, &sum) in to.iter_mut().zip(sums) {
                                *to += factor * sum;
                            }
                        } else {
                            gradient[entry] += factor * sums.iter().copied().sum::<R>();
                        }
                    }
                },
            );
        });
    }
}

impl<R: Real> Operation<R> for Linear<R> {
    fn parameters(&self) -> usize {
        self.rows() * self.channels[1]
    }

    fn rows(&self) -> (usize, bool) {
        (self.rows(), self.has_bias)
    }

    fn transposed_len(&self) -> usize {
        self.taps * self.channels[0] * self.channels[1]
    }

    /// A column for each channel of the input: taps from the last to the first, the weights to all units of each.
    fn transpose(&self, weights: &[R], transposed: &mut [R]) {
        const TILE: usize = 16;
        let ([channels, units], rows) = (self.channels, self.rows());
        let length = self.taps * units;
        // tile by tile, so that both sides stay in the cache
        for tap in 0..self.taps {
            let (from, to) = (tap * channels, (self.taps - 1 - tap) * units);
            for first_channel in (0..channels).step_by(TILE) {
                let end = channels.min(first_channel + TILE);
                for first_unit in (0..units).step_by(TILE) {
                    let count = TILE.min(units - first_unit);
                    for channel in first_channel..end {
                        let at = channel * length + to + first_unit;
                        let column = weights[first_unit * rows + from + channel..].iter();
                        let column = column.step_by(rows);
                        for (to, &weight) in transposed[at..at + count].iter_mut().zip(column) {
                            *to = weight;
                        }
                    }
                }
            }
        }
    }

    fn keeps(&self) -> Keeps {
        Keeps {
            input: true,
            ..Keeps::default()
        }
    }

    fn forward(&self, weights: &[R], panels: usize, input: &[R], output: &mut [R]) {
        let columns = self.columns(weights, true);
        gather_product(output, false, &self.forward, panels, input, columns);
    }

    fn jvp(&self, at: Point<'_, R>, along: Direction<'_, R>, out: &mut [R]) {
        let mut accumulate = false;
        if let Some(tangent) = along.input {
            let columns = self.columns(at.weights, false);
            gather_product(out, false, &self.forward, at.panels, tangent, columns);
            accumulate = true;
        }
        if let Some(weights) = along.weights {
            let columns = self.columns(weights, true);
            gather_product(out, accumulate, &self.forward, at.panels, at.input, columns);
            accumulate = true;
        }
        no_tangent(accumulate, out);
    }

    fn vjp_input(&self, at: Point<'_, R>, cotangent: &[R], accumulate: bool, out: &mut [R]) {
        self.to_input(at.panels, at.transposed, cotangent, accumulate, out);
    }

    fn vjp_weights(
        &self,
        at: Point<'_, R>,
        cotangent: &[R],
        is_per_sample: bool,
        gradient: &mut [R],
    ) {
        self.to_weights(at.panels, at.input, cotangent, is_per_sample, gradient);
        self.to_bias(cotangent, is_per_sample, gradient);
    }

    /// Of a dense layer g = factor·h·δ for a weight and σ_b·δ for a bias: two products with δ².
    fn moments(&self, at: Point<'_, R>, cotangent: &[R], moments: MomentSums<'_, R>) {
        if !self.is_flat {
            return moments.of_panels(self, at, cotangent);
        }
        let MomentSums {
            squares,
            cross,
            scratch,
        } = moments;
        scratch.clear();
        scratch.extend(cotangent.iter().map(|&delta| delta * delta));
        scratch.extend(at.input.iter().map(|&h| h * h));
        let (cotangents, inputs) = scratch.split_at(cotangent.len());
        let sizes = |factor| Outer {
            panels: at.panels,
            right: self.channels[1],
            rows: self.rows(),
            factor,
        };
        outer_product(
            squares,
            inputs,
            cotangents,
            sizes(self.factor * self.factor),
        );
        self.add_sums(self.bias * self.bias, cotangents, false, squares);
        if self.has_bias && !cross.is_empty() {
            outer_product(cross, at.input, cotangents, sizes(self.factor * self.bias));
            self.add_sums(self.bias * self.bias, cotangents, false, cross);
        }
    }

    fn kronecker_inputs(
        &self,
        at: Point<'_, R>,
        samples: usize,
        scratch: &mut Vec<R>,
        sums: &mut [R],
    ) {
        let (rows, height) = (self.rows(), panel_rows::<R>());
        let (positions, features) = (self.forward.positions(), at.input.len() / at.panels);
        for panel in 0..at.panels {
            let own = samples.saturating_sub(panel * height).min(height);
            let input = &at.input[panel * features..][..features];
            for first in (0..positions).step_by(POSITIONS) {
                let count = POSITIONS.min(positions - first);
                scratch.clear();
                scratch.resize(rows * count * height, R::ZERO);
                for position in 0..count {
                    self.combine(input, first + position, own, [position, count], scratch);
                }
                let combined = matrix(scratch, count * height, rows);
                let out = matrix_mut(&mut sums[..rows * rows], rows, rows);
                multiply(out, true, 1.0, combined.transpose(), combined);
            }
        }
    }

    fn kronecker_outputs(
        &self,
        at: Point<'_, R>,
        cotangent: &[R],
        scratch: &mut Vec<R>,
        sums: &mut [R],
    ) {
        let (rows, units, height) = (self.rows(), self.channels[1], panel_rows::<R>());
        let positions = self.forward.positions();
        let scale = 1.0 / positions as f64;
        for panel in 0..at.panels {
            let delta = &cotangent[panel * positions * units * height..];
            for first in (0..positions).step_by(POSITIONS) {
                let count = POSITIONS.min(positions - first);
                scratch.resize(units * count * height, R::ZERO);
                for position in 0..count {
                    let from = &delta[(first + position) * units * height..][..units * height];
                    for (unit, from) in from.chunks_exact(height).enumerate() {
                        let at = (unit * count + position) * height;
                        scratch[at..at + height].copy_from_slice(from);
                    }
                }
                let delta = matrix(&scratch[..units * count * height], count * height, units);
                let out = matrix_mut(&mut sums[rows * rows..], units, units);
                multiply(out, true, scale, delta.transpose(), delta);
            }
        }
    }

    /// Of a dense layer the sum of h²·δ² over cotangents is h² times that of δ².
    fn squares(
        &self,
        at: Point<'_, R>,
        cotangents: Cotangents<'_, R>,
        scratch: &mut Vec<R>,
        squares: &mut [R],
    ) {
        if !self.is_flat {
            return squares_one_by_one(self, at, cotangents, scratch, squares);
        }
        scratch.clear();
        scratch.resize(cotangents.length, R::ZERO);
        for cotangent in cotangents.iter() {
            simd(
                #[inline(always)]
                || {
                    for (sum, &delta) in scratch.iter_mut().zip(cotangent) {
                        *sum += delta * delta;
                    }
                },
            );
        }
        scratch.extend(at.input.iter().map(|&h| h * h));
        let (cotangents, inputs) = scratch.split_at(cotangents.length);
        let sizes = Outer {
            panels: at.panels,
            right: self.channels[1],
            rows: self.rows(),
            factor: self.factor * self.factor,
        };
        outer_product(squares, inputs, cotangents, sizes);
        self.add_sums(self.bias * self.bias, cotangents, false, squares);
    }

    /// Of a dense layer gradients are outer products: Σ_ij v_ij·(h̃_i δ̃_j)(h̃_i δ̃'_j) = Σ_j (Σ_i v_ij h̃_i²)·δ̃_j·δ̃'_j.
    fn covariance(
        &self,
        at: Point<'_, R>,
        cotangents: Cotangents<'_, R>,
        spread: MatrixGaussian<'_, R>,
        scratch: &mut Vec<R>,
        out: &mut [R],
    ) {
        if !self.is_flat {
            return covariance_of_gradients(self, at, cotangents, spread, scratch, out);
        }
        let (rows, units, height) = (self.rows(), self.channels[1], panel_rows::<R>());
        let count = cotangents.count();
        scratch.clear();
        scratch.resize((2 * rows + (1 + 2 * count) * units) * height, R::ZERO);
        let (combined, rest) = scratch.split_at_mut(rows * height);
        let (transposed, rest) = rest.split_at_mut(rows * height);
        let (weights, deltas) = rest.split_at_mut(units * height);
        self.combine(at.input, 0, height, [0, 1], combined);
        let combined = match spread.rotations {
            Some([inputs, _]) => {
                let from = matrix(combined, height, rows);
                let out = matrix_mut(transposed, height, rows);
                multiply(out, false, 1.0, from, matrix(inputs, rows, rows));
                transposed
            }
            None => combined,
        };
        combined.iter_mut().for_each(|h| *h = *h * *h);
        if let &[variance] = spread.variances {
            for of_row in combined.chunks_exact(height) {
                for (sum, &square) in weights.iter_mut().zip(of_row) {
                    *sum += variance * square;
                }
            }
            for unit in 1..units {
                weights.copy_within(..height, unit * height);
            }
        } else {
            let from = matrix(combined, height, rows);
            let variances = matrix(spread.variances, rows, units);
            let out = matrix_mut(weights, height, units);
            multiply(out, false, 1.0, from, variances);
        }
        let (transposed, scaled) = deltas.split_at_mut(count * units * height);
        let length = units * height;
        for (cotangent, own) in cotangents.iter().zip(transposed.chunks_exact_mut(length)) {
            match spread.rotations {
                Some([_, outputs]) => {
                    let from = matrix(cotangent, height, units);
                    let out = matrix_mut(own, height, units);
                    multiply(out, false, 1.0, from, matrix(outputs, units, units));
                }
                None => own.copy_from_slice(cotangent),
            }
        }
        for (scaled, own) in scaled
            .chunks_exact_mut(length)
            .zip(transposed.chunks_exact(length))
        {
            for ((to, &weight), &delta) in scaled.iter_mut().zip(&*weights).zip(own) {
                *to = weight * delta;
            }
        }
        add_products(scaled, transposed, count, out);
    }

    fn vjp_input_tangent(
        &self,
        at: Point<'_, R>,
        along: Direction<'_, R>,
        cotangent: Cotangent<'_, R>,
        accumulate: bool,
        out: &mut [R],
    ) {
        self.to_input(at.panels, at.transposed, cotangent.tangent, accumulate, out);
        if along.weights.is_some() {
            self.to_input(at.panels, along.transposed, cotangent.value, true, out);
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
            self.to_weights(at.panels, tangent, cotangent.value, is_per_sample, gradient);
        }
        self.to_weights(
            at.panels,
            at.input,
            cotangent.tangent,
            is_per_sample,
            gradient,
        );
        self.to_bias(cotangent.tangent, is_per_sample, gradient);
    }
}
