//! An image as one vector: a change of name, features stay where they are.

use super::Shape;

pub(super) fn output_shape(input: Shape) -> Shape {
    Shape::vector(input.features())
}
