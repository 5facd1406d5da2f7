//! Dense layers: z = (σ_w/√fan_in)·h·W + σ_b·b, for each pixel of an image alike.

use serde::{Deserialize, Serialize};

use super::linear::Linear;
use super::{Shape, Window};
use crate::compute::Real;
use crate::network::LayerScale;

/// A dense layer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dense {
    /// Outputs.
    pub units: usize,
    /// Prior scales.
    #[serde(default = "LayerScale::hidden")]
    pub scale: LayerScale,
}

impl Dense {
    pub(super) fn output_shape(&self, input: Shape) -> Result<Shape, String> {
        if self.units == 0 {
            return Err("a dense layer needs at least one unit".into());
        }
        let channels = self.units;
        Ok(Shape { channels, ..input })
    }

    pub(super) fn parameter_rows(&self, input: Shape) -> usize {
        input.channels + usize::from(self.scale.bias > 0.0)
    }

    /// A convolution whose window is one pixel.
    pub(crate) fn operation<R: Real>(&self, input: Shape) -> Linear<R> {
        self.with_bias_row(input, self.scale.bias > 0.0)
    }

    /// As [`operation`](Self::operation), but the parameters have a row for the bias even where σ_b is 0: readouts do.
    pub(crate) fn with_bias_row<R: Real>(&self, input: Shape, has_bias: bool) -> Linear<R> {
        Linear::new(input, &Window::pixel(), self.units, &self.scale, has_bias)
    }
}

/// At infinite width.
impl Dense {
    /// [σ_w², σ_b²]: K ← σ_w²K + σ_b², pixel pair by pixel pair, Θ ← σ_w²Θ + K (Lee et al. 2018, equation 4; Jacot,
    /// Gabriel & Hongler 2018, theorem 1).
    pub(in crate::network) fn covariance_scale(&self) -> [f64; 2] {
        self.scale.squares()
    }
}
