//! Two-dimensional convolutions: z = (σ_w/√(k_h·k_w·channels))·Σ over the window of h·W, + σ_b·b.
//!
//! Row (offset row · k_w + offset column)·channels + channel of the parameter matrix belongs to that number of the window;
//! the last row is the bias.

use serde::{Deserialize, Serialize};

use super::axis::{AxisTerms, Term};
use super::linear::Linear;
use super::{Padding, Shape, Window};
use crate::compute::Real;
use crate::network::LayerScale;

/// A convolution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "ConvolutionDescription")]
pub struct Convolution {
    /// Channels of the output.
    pub channels: usize,
    /// The window that is combined.
    #[serde(flatten)]
    pub window: Window,
    /// Prior scales.
    pub scale: LayerScale,
}

/// A [`Convolution`] as it is read: all fields side by side, so that a wrong one is an error.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConvolutionDescription {
    channels: usize,
    size: [usize; 2],
    #[serde(default = "Window::unit_stride")]
    stride: [usize; 2],
    #[serde(default)]
    padding: Padding,
    #[serde(default = "LayerScale::hidden")]
    scale: LayerScale,
}

impl From<ConvolutionDescription> for Convolution {
    fn from(description: ConvolutionDescription) -> Self {
        let ConvolutionDescription {
            channels,
            size,
            stride,
            padding,
            scale,
        } = description;
        Self {
            channels,
            window: Window {
                size,
                stride,
                padding,
            },
            scale,
        }
    }
}

impl Convolution {
    pub(super) fn output_shape(&self, input: Shape) -> Result<Shape, String> {
        if self.channels == 0 {
            return Err("a convolution needs at least one channel".into());
        }
        let [height, width] = self.window.output(input)?;
        let channels = self.channels;
        Ok(Shape {
            height,
            width,
            channels,
        })
    }

    /// Numbers that one output combines: σ_w is divided by the root of this.
    pub fn fan_in(&self, input: Shape) -> usize {
        self.window.pixels() * input.channels
    }

    pub(super) fn parameter_rows(&self, input: Shape) -> usize {
        self.fan_in(input) + usize::from(self.scale.bias > 0.0)
    }

    pub(crate) fn operation<R: Real>(&self, input: Shape) -> Linear<R> {
        let has_bias = self.scale.bias > 0.0;
        Linear::new(input, &self.window, self.channels, &self.scale, has_bias)
    }
}

/// At infinite width: K'(p, p') = σ_w²·mean over the window's offsets o of K(p + o, p' + o), + σ_b²; zeros where p + o or
/// p' + o is not in the image (Novak et al. 2019, equation 7; Arora et al. 2019, section 4.2). Before σ_w² and σ_b² are
/// applied this is a mean along rows and one along columns.
impl AxisTerms for Convolution {
    fn output_length(&self, axis: usize, length: usize) -> usize {
        self.window.positions_along(axis, length)
    }

    fn terms(&self, axis: usize, length: usize, displacement: usize, position: usize) -> Vec<Term> {
        let other = (position + displacement) % self.window.positions_along(axis, length);
        let size = self.window.size[axis];
        let at = |offset| {
            let first = self.window.source(axis, length, position, offset)?;
            let second = self.window.source(axis, length, other, offset)?;
            Some(Term::pair(length, first, second, 1.0 / size as f64))
        };
        (0..size).filter_map(at).collect()
    }
}

impl Convolution {
    /// [σ_w², σ_b²].
    pub(in crate::network) fn covariance_scale(&self) -> [f64; 2] {
        self.scale.squares()
    }
}
