//! The values and derivatives of one hidden layer.

use std::ops::Range;

use crate::compute::{Matrix, Real};
use crate::network::{Activation, HiddenLayer};

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

    /// Applies the activation to some columns of a block of `output`, which are there as pre-activations.
    pub fn activate(&mut self, values: Range<usize>, derivative: Range<usize>, keeps: bool) {
        let active = &mut self.output[values];
        match keeps {
            true => {
                let derivative = &mut self.derivative[derivative];
                derivative.copy_from_slice(active);
                self.activation.apply_with_derivative(derivative, active);
            }
            false => self.activation.apply(active),
        }
    }
}
