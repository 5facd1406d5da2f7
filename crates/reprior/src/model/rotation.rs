//! Images turned about their centre, as tests of predictions on inputs that drift away from the training data (Ovadia et al. 2019).

use super::dataset::InputValues;

impl InputValues {
    /// Images of `height` × `width` pixels in so many planes, each turned counter-clockwise by `degrees`: the nearest pixel, and
    /// zero where there is none. Panics if the values are not whole images.
    #[must_use]
    pub fn rotated(&self, [height, width, planes]: [usize; 3], degrees: f64) -> Self {
        let places = sources(height, width, degrees);
        let image = height * width * planes;
        assert!(image > 0 && self.len().is_multiple_of(image));
        match self {
            Self::Reals(values) => Self::Reals(turn(values, &places)),
            Self::Bytes(values) => Self::Bytes(turn(values, &places)),
        }
    }
}

/// Where each pixel comes from.
fn sources(height: usize, width: usize, degrees: f64) -> Vec<Option<usize>> {
    // exact for quarter turns
    let quarters = (degrees / 90.0).rem_euclid(4.0);
    let (sin, cos) = match quarters {
        0.0 => (0.0, 1.0),
        1.0 => (1.0, 0.0),
        2.0 => (0.0, -1.0),
        3.0 => (-1.0, 0.0),
        _ => degrees.to_radians().sin_cos(),
    };
    let middle = [height, width].map(|size| (size as f64 - 1.0) / 2.0);
    let place = |at: f64, size: usize| {
        let nearest = at.round();
        (nearest >= 0.0 && nearest < size as f64).then_some(nearest as usize)
    };
    let source = |pixel: usize| {
        let [down, right] = [
            (pixel / width) as f64 - middle[0],
            (pixel % width) as f64 - middle[1],
        ];
        // rows go down: counter-clockwise is clockwise in these coordinates, and the source is turned back
        let row = place(cos * down + sin * right + middle[0], height)?;
        let column = place(cos * right - sin * down + middle[1], width)?;
        Some(row * width + column)
    };
    (0..height * width).map(source).collect()
}

fn turn<T: Copy + Default>(values: &[T], places: &[Option<usize>]) -> Vec<T> {
    let planes = values.chunks_exact(places.len());
    let turned = planes.flat_map(|plane| {
        let pixels = places.iter();
        pixels.map(|place| place.map_or_else(T::default, |place| plane[place]))
    });
    turned.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarter_turns_are_exact_and_others_are_undone() {
        let values = InputValues::Bytes((1..=12).collect());
        let turned = |degrees| values.rotated([2, 3, 2], degrees);
        assert_eq!(turned(0.0), values);
        let half = InputValues::Bytes(vec![6, 5, 4, 3, 2, 1, 12, 11, 10, 9, 8, 7]);
        assert_eq!(turned(180.0), half);
        assert_eq!(turned(-180.0), half);
        // counter-clockwise: the right column becomes the top row
        let square = InputValues::Reals(vec![1.0, 2.0, 3.0, 4.0]);
        let left = InputValues::Reals(vec![2.0, 4.0, 1.0, 3.0]);
        assert_eq!(square.rotated([2, 2, 1], 90.0), left);
        assert_eq!(square.rotated([2, 2, 1], -270.0), left);
        assert_eq!(left.rotated([2, 2, 1], -90.0), square);
    }

    #[test]
    fn corners_leave_the_image() {
        let ones = InputValues::Reals(vec![1.0; 81]);
        let InputValues::Reals(turned) = ones.rotated([9, 9, 1], 45.0) else {
            panic!("bytes");
        };
        assert_eq!((turned[0], turned[8], turned[80]), (0.0, 0.0, 0.0));
        assert_eq!((turned[40], turned[4], turned[36]), (1.0, 1.0, 1.0));
        let lost = turned.iter().filter(|value| **value == 0.0).count();
        assert!((8..30).contains(&lost), "{lost}");
    }
}
