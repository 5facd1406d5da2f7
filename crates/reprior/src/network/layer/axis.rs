//! What layers that are linear in covariances do to them at infinite width, along one axis of an image.
//!
//! The covariance of pixel p of one image and pixel p' of another is kept under its *displacement* p' − p (modulo the image's size)
//! and its *position* p.

/// weight × the input's covariance at (displacement, position).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::network) struct Term {
    pub displacement: usize,
    pub position: usize,
    pub weight: f64,
}

impl Term {
    /// The pair of `position` in one image and `other` in the other, along an axis of `length` pixels.
    pub fn pair(length: usize, position: usize, other: usize, weight: f64) -> Self {
        Self {
            displacement: (other + length - position) % length,
            position,
            weight,
        }
    }
}

/// One axis of a linear layer.
pub(in crate::network) trait AxisTerms {
    /// Pixels of the output along `axis`, of `length` in the input.
    fn output_length(&self, axis: usize, length: usize) -> usize;

    /// What makes the output's covariance of pixels `position` and `position + displacement` (modulo the output's length).
    fn terms(&self, axis: usize, length: usize, displacement: usize, position: usize) -> Vec<Term>;

    /// Displacements of the input that those of the output need, sorted.
    fn needed(&self, axis: usize, length: usize, outputs: &[usize]) -> Vec<usize> {
        let positions = self.output_length(axis, length);
        let mut is_needed = vec![false; length];
        for &displacement in outputs {
            for position in 0..positions {
                for term in self.terms(axis, length, displacement, position) {
                    is_needed[term.displacement] = true;
                }
            }
        }
        (0..length).filter(|&at| is_needed[at]).collect()
    }
}
