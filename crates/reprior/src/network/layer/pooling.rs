//! Means and maxima of windows, and the mean over all pixels.
//!
//! With `Padding::Same` a mean is over the pixels of the window that lie in the image, and zeros are no candidates for a
//! maximum.

use serde::{Deserialize, Serialize};

use super::{Shape, Window};
use crate::network::infinite::{AxisTerms, Term};

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

/// At infinite width: K'(p, p') = mean over the pixels q of p's window and q' of p''s of K(q, q').
impl AxisTerms for AveragePool {
    fn output_length(&self, axis: usize, length: usize) -> usize {
        self.window.positions_along(axis, length)
    }

    fn terms(&self, axis: usize, length: usize, displacement: usize, position: usize) -> Vec<Term> {
        let other = (position + displacement) % self.window.positions_along(axis, length);
        let pixels = |position| -> Vec<usize> {
            (0..self.window.size[axis])
                .filter_map(|offset| self.window.source(axis, length, position, offset))
                .collect()
        };
        mean_of_pairs(length, &pixels(position), &pixels(other))
    }
}

/// The mean over all pixels, at infinite width: the mean over all pairs of pixels.
pub(in crate::network) struct GlobalMean;

impl AxisTerms for GlobalMean {
    fn output_length(&self, _: usize, _: usize) -> usize {
        1
    }

    fn terms(&self, _: usize, length: usize, _: usize, _: usize) -> Vec<Term> {
        let pixels: Vec<usize> = (0..length).collect();
        mean_of_pairs(length, &pixels, &pixels)
    }
}

fn mean_of_pairs(length: usize, first: &[usize], second: &[usize]) -> Vec<Term> {
    let weight = 1.0 / (first.len() * second.len()) as f64;
    let pairs = first.iter().flat_map(|&q| {
        second
            .iter()
            .map(move |&other| Term::pair(length, q, other, weight))
    });
    pairs.collect()
}

impl MaxPool {
    /// Why there is no kernel map.
    pub(in crate::network) const NO_KERNEL: &'static str =
        "the second moments of maxima over windows have no closed form: use an average pool";
}
