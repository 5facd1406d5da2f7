//! Hidden layers of a fully connected network, for a fixed number of inputs: products of whole matrices.
//!
//! With the inputs h (n × d) extended by the constant column c = σ_b√d/σ_w to h̃ (n × (d + 1)), a layer is the single product
//! z = (σ_w/√d)·h̃·W̃, where the last row of W̃ is the bias: 2·n·(d + 1)·units operations forward, twice that for the vjp.
//!
//! Many rows of narrow layers go through the network [block by block](blocks), so that what one layer writes is still in the cache for
//! the next one. Where activations and derivatives of all rows are [too many](blocks), the features alone are kept, and the way back
//! evaluates each block again: a third more operations, in place of bytes that come from memory, whose bandwidth all chains share.
//!
//! Otherwise all rows are one block, and the first layer, whose product is that of the [`NetworkInputs`], is made [`UNITS`] units at a
//! time, so that these are still there when the activation is applied and, with one hidden layer, when the features are used; all together
//! where that is [what the inputs want](NetworkInputs::wants_all_units).
//!
//! Memory: one n × width buffer per layer, a second one per layer once gradients are asked for; of a block's rows where the way back
//! evaluates them again.

mod blocks;
mod buffers;
#[cfg(test)]
mod tests;

use std::ops::Range;

use super::{FeatureCotangent, FeaturePlan, NetworkInputs, Part, Parts};
use crate::compute::{
    COLUMNS, Matrix, MatrixMut, Real, column_pieces, columns_of_piece, hands, matrix, matrix_mut,
    multiply, multiply_by, multiply_columns, spread,
};
use crate::network::{Activation, Composition, HiddenLayer};
pub(super) use blocks::{block_rows, bytes, evaluates_again, kept_rows};
use buffers::HiddenLayerBuffers;

/// Units of the first layer that a thread makes at a time: as many as the packed product takes at once.
const UNITS: usize = COLUMNS;

/// Buffers and shapes for evaluating the hidden layers on n inputs.
pub(super) struct HiddenLayers<R> {
    rows: usize,
    /// Of a block; as many as there are if they are not told apart.
    block: usize,
    /// Those that have a place in the layers' buffers: all, in whole blocks, or those of one block.
    kept: usize,
    layers: Vec<HiddenLayerBuffers<R>>,
    /// Cotangents of a block, as large as the widest layer; empty until needed.
    cotangent: Vec<R>,
    next_cotangent: Vec<R>,
}

impl<R: Real> HiddenLayers<R> {
    /// `hidden` are the layers, of which there is at least one, of `network`; rows of a block, and of those that are kept for the way
    /// back: all, in whole blocks, or those of one block.
    pub fn in_blocks(
        network: &Composition,
        hidden: &[HiddenLayer],
        rows: usize,
        [block, kept]: [usize; 2],
    ) -> Self {
        let scales = hidden.iter().map(|layer| layer.scale);
        let above = scales.skip(1).chain([network.readout_scale]);
        let layers = hidden.iter().zip(above).enumerate();
        let layers = layers.map(|(index, (&shape, above))| {
            let units = shape.units;
            let (length, stride) = match index + 1 == hidden.len() {
                true => (rows, rows),
                false => (kept, block),
            };
            let mut output = vec![R::ZERO; length * (units + 1)];
            for block in output.chunks_exact_mut((stride * (units + 1)).max(1)) {
                block[stride * units..].fill(R::from_f64(above.constant(units)));
            }
            HiddenLayerBuffers {
                shape,
                activation: shape.activation.unwrap_or(Activation::Identity),
                output,
                stride,
                derivative: Vec::new(),
            }
        });
        Self {
            rows,
            block,
            kept,
            layers: layers.collect(),
            cotangent: Vec::new(),
            next_cotangent: Vec::new(),
        }
    }

    fn last(&self) -> &HiddenLayerBuffers<R> {
        &self.layers[self.layers.len() - 1]
    }

    /// n × (d_L + 1), the constant column of the readout included.
    fn output(&self) -> Matrix<'_, R> {
        matrix(&self.last().output, self.rows, self.last().units() + 1)
    }

    fn is_one_block(&self) -> bool {
        self.block >= self.rows
    }

    /// Whether the way back finds what it needs of all rows.
    fn is_kept(&self) -> bool {
        self.kept >= self.rows
    }

    /// Where a block that begins at a row is in the layers' buffers; a way forward alone takes the first place, which is still in the cache.
    fn place(&self, row: usize, keeps: bool) -> usize {
        if keeps && self.is_kept() { row } else { 0 }
    }

    /// The rows of each block; of no rows one block.
    fn blocks(&self) -> impl Iterator<Item = Range<usize>> + use<R> {
        let (rows, block) = (self.rows, self.block.max(1));
        let count = rows.div_ceil(block).max(1);
        (0..count).map(move |index| index * block..rows.min((index + 1) * block))
    }

    /// Evaluates a block; with `keeps`, its derivatives too.
    fn evaluate_block(
        &mut self,
        inputs: &dyn NetworkInputs<R>,
        weights: &[R],
        rows: Range<usize>,
        keeps: bool,
        visit: &mut dyn FnMut(Matrix<'_, R>),
    ) {
        let count = self.layers.len();
        let columns = inputs.matrix().ncols();
        let (first, mut weights) = weights.split_at(columns * self.layers[0].units());
        let is_one = self.is_one_block();
        let place = self.place(rows.start, keeps);
        for index in 0..count {
            let (below, rest) = self.layers.split_at_mut(index);
            let layer = &mut rest[0];
            let width = layer.units();
            let (is_last, stride) = (index + 1 == count, layer.stride);
            if index == 0 && is_one {
                let at_once = match inputs.wants_all_units() {
                    true => width.max(1),
                    false => UNITS * hands(2 * UNITS * rows.len() * columns),
                };
                for start in (0..width).step_by(at_once) {
                    let units = start..width.min(start + at_once);
                    let own = matrix(first, columns, width).subcols(start, units.len());
                    layer.evaluate_first(inputs, own, units.clone(), keeps);
                    if is_last {
                        let values = &layer.output[stride * units.start..stride * units.end];
                        visit(matrix(values, rows.len(), units.len()));
                    }
                }
                continue;
            }
            let factor = layer.factor();
            let parameters = [layer.rows(), width];
            let begin = match is_last {
                true => rows.start,
                false => place * (width + 1),
            };
            let out = &mut layer.output[begin..][..stride * (width - 1) + rows.len()];
            let out = strided(out, [rows.len(), width], stride);
            if let Some(below) = below.last() {
                let (own, above) = weights.split_at(parameters[0] * parameters[1]);
                weights = above;
                let inputs = below.inputs(place, rows.len(), parameters[0]);
                let w = matrix(own, parameters[0], parameters[1]);
                multiply(out, false, factor, inputs, w);
            } else {
                let part = Part {
                    rows: rows.clone(),
                    units: 0..width,
                };
                inputs.forward(out, matrix(first, columns, width), &part);
            }
            // columns that follow one another are one range
            let together = if stride == rows.len() { width } else { 1 };
            for unit in (0..width).step_by(together) {
                let values = begin + stride * unit;
                let derivative = place * width + rows.len() * unit;
                let length = rows.len() * together;
                let [values, derivative] = [values, derivative].map(|at| at..at + length);
                layer.activate(values, derivative, keeps);
            }
            if is_last && is_one {
                let values = &layer.output[..stride * width];
                visit(matrix(values, rows.len(), width));
            }
        }
    }

    /// From the cotangents of a block's features, which stand in their place, to the gradient of the `weights` above the first layer,
    /// and the cotangents of the first layer's pre-activations. Adds to the gradient but for the first block.
    fn pull_back(
        &mut self,
        rows: &Range<usize>,
        weights: &[R],
        gradient: &mut [R],
    ) -> Matrix<'_, R> {
        let (count, is_added) = (rows.len(), rows.start > 0);
        let place = self.place(rows.start, true);
        let mut end = weights.len();
        for index in (0..self.layers.len()).rev() {
            let layer = &self.layers[index];
            let units = layer.units();
            let delta = &mut self.cotangent[..count * units];
            multiply_by(delta, &layer.derivative[place * units..][..count * units]);
            let Some(below) = index.checked_sub(1).map(|below| &self.layers[below]) else {
                break;
            };
            let own = end - layer.parameters()..end;
            let delta = matrix(delta, count, units);
            let inputs = below.inputs(place, count, layer.rows());
            let out = matrix_mut(&mut gradient[own.clone()], layer.rows(), units);
            multiply_columns(out, is_added, layer.factor(), inputs, delta);
            let fan_in = layer.shape.fan_in;
            let out = matrix_mut(&mut self.next_cotangent[..count * fan_in], count, fan_in);
            let w = matrix(&weights[own.clone()], layer.rows(), units).subrows(0, fan_in);
            multiply(out, false, layer.factor(), delta, w.transpose());
            end = own.start;
            std::mem::swap(&mut self.cotangent, &mut self.next_cotangent);
        }
        let first = self.layers[0].units();
        matrix(&self.cotangent[..count * first], count, first)
    }

    /// The vjp with one hidden layer and one block, some units at a time, which stay in the cache on their way; each thread has its own.
    fn pull_back_units(
        &mut self,
        inputs: &dyn NetworkInputs<R>,
        gradient: &mut [R],
        cotangent: &FeatureCotangent<'_, R>,
    ) {
        let rows = self.rows;
        let layer = &self.layers[0];
        let units = layer.units();
        let features = matrix(&layer.output, rows, units + 1);
        let columns = inputs.matrix().ncols();
        let operations = 4 * rows * columns * units;
        let of_thread = columns_of_piece(units, operations);
        let at_once = UNITS.min(of_thread);
        let length = rows * units.min(at_once * units.div_ceil(of_thread));
        self.cotangent.resize(length, R::ZERO);
        let gradients = column_pieces(matrix_mut(gradient, columns, units), of_thread);
        let pieces = gradients.zip(self.cotangent.chunks_mut((rows * at_once).max(1)));
        spread(operations, pieces, |((begin, gradient), space)| {
            for (start, gradient) in column_pieces(gradient, at_once) {
                let (start, count) = (begin + start, gradient.ncols());
                let part = Part {
                    rows: 0..rows,
                    units: start..start + count,
                };
                let delta = &mut space[..rows * count];
                let out = matrix_mut(delta, rows, count);
                cotangent(out, features, &part);
                multiply_by(delta, &layer.derivative[rows * start..][..rows * count]);
                inputs.vjp_weights(gradient, matrix(delta, rows, count), 0..rows);
            }
        });
    }
}

/// `values` as a column-major matrix whose columns begin `stride` apart.
fn strided<R: Real>(
    values: &mut [R],
    [rows, columns]: [usize; 2],
    stride: usize,
) -> MatrixMut<'_, R> {
    MatrixMut::from_column_major_slice_with_stride_mut(values, rows, columns, stride)
}

impl<R: Real> FeaturePlan<R> for HiddenLayers<R> {
    fn evaluate(
        &mut self,
        inputs: &dyn NetworkInputs<R>,
        weights: &[R],
        with_derivatives: bool,
        visit: &mut dyn FnMut(Matrix<'_, R>),
    ) {
        let keeps = with_derivatives && self.is_kept();
        if with_derivatives {
            for layer in &mut self.layers {
                layer.derivative.resize(self.kept * layer.units(), R::ZERO);
            }
        }
        for rows in self.blocks() {
            self.evaluate_block(inputs, weights, rows, keeps, visit);
        }
        // what was not shown block by block of units
        let units = self.last().units();
        let shown = if self.is_one_block() { units } else { 0 };
        visit(self.output().subcols(shown, units + 1 - shown));
    }

    fn features<'a>(&'a self, _: Matrix<'a, R>) -> Matrix<'a, R> {
        self.output()
    }

    fn backward(
        &mut self,
        inputs: &dyn NetworkInputs<R>,
        weights: &[R],
        gradient: &mut [R],
        parts: Parts,
        cotangent: &FeatureCotangent<'_, R>,
    ) {
        let is_one = self.is_one_block();
        if parts == Parts::Units && self.layers.len() == 1 && is_one {
            return self.pull_back_units(inputs, gradient, cotangent);
        }
        let all_units = self.layers.iter().map(HiddenLayerBuffers::units);
        let length = self.block.min(self.rows) * all_units.max().unwrap_or(0);
        self.cotangent.resize(length, R::ZERO);
        if self.layers.len() > 1 {
            self.next_cotangent.resize(length, R::ZERO);
        }
        let (all, units) = (self.rows, self.last().units());
        let (columns, first_units) = (inputs.matrix().ncols(), self.layers[0].units());
        let (first, above) = gradient.split_at_mut(columns * first_units);
        for rows in self.blocks() {
            if !self.is_kept() {
                self.evaluate_block(inputs, weights, rows.clone(), true, &mut |_| {});
            }
            let out = &mut self.cotangent[..rows.len() * units];
            let last = &self.layers[self.layers.len() - 1];
            let features = matrix(&last.output, all, units + 1);
            let part = Part {
                rows: rows.clone(),
                units: 0..units,
            };
            cotangent(matrix_mut(out, rows.len(), units), features, &part);
            let delta = self.pull_back(&rows, &weights[columns * first_units..], above);
            let first = matrix_mut(&mut *first, columns, first_units);
            inputs.vjp_weights(first, delta, rows);
        }
    }
}
