//! Dense layers: z = (σ_w/√fan_in)·h·W + σ_b·b, for each pixel of an image alike.

use serde::{Deserialize, Serialize};

use super::Shape;
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
}
