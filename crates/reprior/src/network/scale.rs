//! Prior scales of layers, σ_w and σ_b.

use serde::{Deserialize, Serialize};

use super::NetworkError;

/// Prior scales of one layer in the NTK parametrisation: z = (weight/√fan_in)·h·W + bias·b.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LayerScale {
    /// σ_w > 0.
    pub weight: f64,
    /// σ_b ≥ 0.
    pub bias: f64,
}

impl LayerScale {
    /// Default of hidden layers: σ_w² = 2, σ_b² = 0.01.
    pub const HIDDEN: Self = Self {
        weight: std::f64::consts::SQRT_2,
        bias: 0.1,
    };
    /// Default of the readout: σ_w² = 1, σ_b² = 0.01.
    pub const READOUT: Self = Self {
        weight: 1.0,
        bias: 0.1,
    };

    /// [`READOUT`](Self::READOUT), as a function.
    pub(super) fn readout() -> Self {
        Self::READOUT
    }

    /// [`HIDDEN`](Self::HIDDEN), as a function.
    pub(super) fn hidden() -> Self {
        Self::HIDDEN
    }

    /// Whether σ_w and σ_b are in range.
    pub(super) fn check(&self) -> Result<(), NetworkError> {
        let refuse = |name, value, allowed| {
            Err(NetworkError::Range {
                name,
                value,
                allowed,
            })
        };
        if !(self.weight.is_finite() && self.weight > 0.0) {
            let allowed = "it must be positive and finite";
            return refuse("a weight scale σ_w", self.weight, allowed);
        }
        if !(self.bias.is_finite() && self.bias >= 0.0) {
            let allowed = "it must be zero or positive, and finite";
            return refuse("a bias scale σ_b", self.bias, allowed);
        }
        Ok(())
    }

    /// [σ_w², σ_b²].
    pub(super) fn squares(&self) -> [f64; 2] {
        [self.weight * self.weight, self.bias * self.bias]
    }

    /// σ_w/√fan_in, the factor in front of the weights.
    pub fn factor(&self, fan_in: usize) -> f64 {
        self.weight / (fan_in as f64).sqrt()
    }

    /// The constant c that, appended to the inputs as one more column, turns the bias into one more weight:
    /// factor·c = σ_b.
    pub fn constant(&self, fan_in: usize) -> f64 {
        self.bias / self.factor(fan_in)
    }
}
