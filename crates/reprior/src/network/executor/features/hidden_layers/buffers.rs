//! The values and derivatives of one hidden layer.

use std::ops::Range;

use super::super::{NetworkInputs, Part};
use crate::compute::{Matrix, Real, columns_of_piece, matrix_mut, spread};
use crate::network::{Activation, HiddenLayer};

/// Numbers that a thread activates at a time, and what each takes, in operations.
const PIECE: usize = 1 << 12;
const COST: usize = 32;

/// Of all rows, or of those of a block.
pub(super) struct HiddenLayerBuffers<R> {
    pub shape: HiddenLayer,
    pub activation: Activation,
    /// Activations, then the constant column of the layer above: of the last layer n × (units + 1), of others block after block.
    pub output: Vec<R>,
    /// From a column of `output` to the next.
    pub stride: usize,
    /// Derivatives of the activation, kept rows × units, block after block; empty until gradients are asked for.
    pub derivative: Vec<R>,
}

impl<R: Real> HiddenLayerBuffers<R> {
    pub fn units(&self) -> usize {
        self.shape.units
    }

    /// Rows of its matrix of parameters, which are as many columns of the layer below.
    pub fn rows(&self) -> usize {
        self.shape.rows()
    }

    /// σ_w/√d.
    pub fn factor(&self) -> f64 {
        self.shape.scale.factor(self.shape.fan_in)
    }

    pub fn parameters(&self) -> usize {
        self.rows() * self.units()
    }

    /// Of a layer that is not the last: the first `columns` columns of the block at a place, with the constant one if the layer above has a
    /// bias.
    pub fn inputs(&self, place: usize, rows: usize, columns: usize) -> Matrix<'_, R> {
        let block = &self.output[place * (self.units() + 1)..];
        Matrix::from_column_major_slice_with_stride(block, rows, columns, self.stride)
    }

    /// Evaluates some units of a first layer of which all rows are one block, by pieces: product and activation.
    pub fn evaluate_first(
        &mut self,
        inputs: &dyn NetworkInputs<R>,
        weights: Matrix<'_, R>,
        units: Range<usize>,
        keeps: bool,
    ) {
        let (rows, activation) = (self.stride, self.activation);
        let operations = (2 * weights.nrows() + COST) * rows * units.len();
        let at_once = columns_of_piece(units.len(), operations);
        let length = (rows * at_once).max(1);
        let numbers = rows * units.start..rows * units.end;
        let evaluate = |index: usize, values: &mut [R]| {
            let (start, count) = (index * at_once, values.len() / rows.max(1));
            let part = Part {
                rows: 0..rows,
                units: units.start + start..units.start + start + count,
            };
            let out = matrix_mut(values, rows, count);
            inputs.forward(out, weights.subcols(start, count), &part);
        };
        let values = self.output[numbers.clone()].chunks_mut(length).enumerate();
        if !keeps {
            return spread(operations, values, |(index, values)| {
                evaluate(index, values);
                activation.apply(values);
            });
        }
        let pieces = values.zip(self.derivative[numbers].chunks_mut(length));
        spread(operations, pieces, |((index, values), derivative)| {
            evaluate(index, values);
            activation.apply_in_place_with_derivative(values, derivative);
        });
    }

    /// Applies the activation to some columns of a block of `output`, which are there as pre-activations.
    pub fn activate(&mut self, values: Range<usize>, derivative: Range<usize>, keeps: bool) {
        let (active, activation) = (&mut self.output[values], self.activation);
        let operations = COST * active.len();
        if !keeps {
            let pieces = active.chunks_mut(PIECE);
            return spread(operations, pieces, |active| activation.apply(active));
        }
        let pieces = active.chunks_mut(PIECE);
        let pieces = pieces.zip(self.derivative[derivative].chunks_mut(PIECE));
        spread(operations, pieces, |(active, derivative)| {
            activation.apply_in_place_with_derivative(active, derivative);
        });
    }
}
