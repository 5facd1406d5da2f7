//! A dense layer in the NTK parametrisation, bias included as one more row of the parameter matrix.
//!
//! With the inputs h (n × d) extended by the constant column c = σ_b√d/σ_w to h̃ (n × (d + 1)), the layer is the
//! single product z = (σ_w/√d)·h̃·W̃, where the last row of W̃ is the bias. 2·n·(d + 1)·units operations forward,
//! twice that for the vjp.

use super::LayerScale;
use crate::compute::{Matrix, MatrixMut, Real, multiply};

/// One dense layer's shape and scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dense {
    /// Inputs d.
    pub fan_in: usize,
    /// Outputs.
    pub units: usize,
    /// Prior scales.
    pub scale: LayerScale,
}

impl Dense {
    /// Rows of the parameter matrix: d + 1.
    pub fn rows(&self) -> usize {
        self.fan_in + 1
    }

    /// out (n × units) ← (σ_w/√d)·h̃·W̃.
    pub fn forward<R: Real>(
        &self,
        out: MatrixMut<'_, R>,
        inputs: Matrix<'_, R>,
        weights: Matrix<'_, R>,
    ) {
        multiply(out, false, self.scale.factor(self.fan_in), inputs, weights);
    }

    /// gradient (d + 1 × units) ← (σ_w/√d)·h̃ᵀ·δ for the cotangent δ (n × units) of the output.
    pub fn vjp_weights<R: Real>(
        &self,
        gradient: MatrixMut<'_, R>,
        inputs: Matrix<'_, R>,
        cotangent: Matrix<'_, R>,
    ) {
        multiply(
            gradient,
            false,
            self.scale.factor(self.fan_in),
            inputs.transpose(),
            cotangent,
        );
    }

    /// out (n × d) ← (σ_w/√d)·δ·Wᵀ, the cotangent of the inputs without the constant column.
    pub fn vjp_inputs<R: Real>(
        &self,
        out: MatrixMut<'_, R>,
        cotangent: Matrix<'_, R>,
        weights: Matrix<'_, R>,
    ) {
        let weights = weights.subrows(0, self.fan_in).transpose();
        multiply(
            out,
            false,
            self.scale.factor(self.fan_in),
            cotangent,
            weights,
        );
    }
}
