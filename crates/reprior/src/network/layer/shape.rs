//! What flows between layers: images of `height` × `width` pixels with `channels` numbers each; a vector is one pixel.
//!
//! A batch of n of them is a column-major n × features matrix: the sample runs fastest, so that every kernel's vector
//! registers hold the same feature of several samples. Feature (row, column, channel) is column
//! (row·width + column)·channels + channel.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Sizes of one sample between two layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "[usize; 3]", into = "[usize; 3]")]
pub struct Shape {
    /// Rows of pixels; 1 for a vector.
    pub height: usize,
    /// Pixels in a row; 1 for a vector.
    pub width: usize,
    /// Numbers of a pixel; the length of a vector.
    pub channels: usize,
}

impl Shape {
    /// A vector of `length` numbers.
    pub fn vector(length: usize) -> Self {
        Self::from([1, 1, length])
    }

    /// Pixels.
    pub fn pixels(&self) -> usize {
        self.height * self.width
    }

    /// Numbers of one sample.
    pub fn features(&self) -> usize {
        self.pixels() * self.channels
    }
}

impl From<[usize; 3]> for Shape {
    fn from([height, width, channels]: [usize; 3]) -> Self {
        Self {
            height,
            width,
            channels,
        }
    }
}

impl From<Shape> for [usize; 3] {
    fn from(shape: Shape) -> Self {
        [shape.height, shape.width, shape.channels]
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}×{}×{}", self.height, self.width, self.channels)
    }
}
