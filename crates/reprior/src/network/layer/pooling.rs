//! Means and maxima of windows, and the mean over all pixels.
//!
//! With `Padding::Same` a mean is over the pixels of the window that lie in the image, and zeros are no candidates for a
//! maximum.

use serde::{Deserialize, Serialize};

use super::{Shape, Window};

/// Means of windows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AveragePool {
    /// The windows.
    #[serde(flatten)]
    pub window: Window,
}

/// Largest numbers of windows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MaxPool {
    /// The windows.
    #[serde(flatten)]
    pub window: Window,
}

pub(super) fn output_shape(window: &Window, input: Shape) -> Result<Shape, String> {
    let [height, width] = window.output(input)?;
    Ok(Shape {
        height,
        width,
        ..input
    })
}

pub(super) fn global_output_shape(input: Shape) -> Shape {
    Shape::vector(input.channels)
}
