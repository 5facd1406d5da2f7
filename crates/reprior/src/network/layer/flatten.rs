//! An image as one vector: a change of name, features stay where they are.

use super::Shape;
use super::axis::{AxisTerms, Term};

pub(super) fn output_shape(input: Shape) -> Shape {
    Shape::vector(input.features())
}

/// At infinite width: what comes next combines all positions and channels alike, so that all it needs is the mean over the
/// positions of the covariances of equal pixels (Novak et al. 2019, section 3.1).
pub(in crate::network) struct Flattened;

impl AxisTerms for Flattened {
    fn output_length(&self, _: usize, _: usize) -> usize {
        1
    }

    fn terms(&self, _: usize, length: usize, _: usize, _: usize) -> Vec<Term> {
        let weight = 1.0 / length as f64;
        (0..length)
            .map(|position| Term::pair(length, position, position, weight))
            .collect()
    }
}
