//! Where a window goes as it slides over an image: convolutions and pooling share it.

use serde::{Deserialize, Serialize};

use super::Shape;

/// What lies beyond the edge of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Padding {
    /// Zeros, as many as it takes to have ⌈size/stride⌉ windows; of an odd number one more at the end.
    #[default]
    Same,
    /// Zeros, ⌊size/2⌋ on either side: PyTorch's `padding=size//2`. With a stride windows stand elsewhere than in `Same`.
    Half,
    /// Nothing: windows lie within the image.
    Valid,
    /// The image again: a torus, with windows as in `Same`.
    Circular,
}

/// A window's size and how far it moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Height and width.
    pub size: [usize; 2],
    /// Rows and columns from one position to the next.
    #[serde(default = "Window::unit_stride")]
    pub stride: [usize; 2],
    /// What lies beyond the edge.
    #[serde(default)]
    pub padding: Padding,
}

impl Window {
    pub(super) fn unit_stride() -> [usize; 2] {
        [1, 1]
    }

    /// The window of one pixel, at every pixel.
    pub(super) fn pixel() -> Self {
        Self {
            size: [1, 1],
            stride: [1, 1],
            padding: Padding::Valid,
        }
    }

    /// Pixels of the window.
    pub fn pixels(&self) -> usize {
        self.size[0] * self.size[1]
    }

    /// Rows and columns of positions on an image, or `None` if there are none.
    pub fn positions(&self, image: Shape) -> Option<[usize; 2]> {
        Some([self.along(0, image.height)?, self.along(1, image.width)?])
    }

    fn along(&self, axis: usize, length: usize) -> Option<usize> {
        let (size, stride) = (self.size[axis], self.stride[axis]);
        if size == 0 || stride == 0 || length == 0 {
            return None;
        }
        match self.padding {
            Padding::Same | Padding::Circular => Some(length.div_ceil(stride)),
            Padding::Half => Some((length + 2 * (size / 2) - size) / stride + 1),
            Padding::Valid => (length >= size).then(|| (length - size) / stride + 1),
        }
    }

    /// Positions along one axis of an image of `length` pixels there; 0 if there are none.
    pub(in crate::network) fn positions_along(&self, axis: usize, length: usize) -> usize {
        self.along(axis, length).unwrap_or(0)
    }

    /// As [`positions`](Self::positions), with what is wrong.
    pub(super) fn output(&self, image: Shape) -> Result<[usize; 2], String> {
        if self.size.contains(&0) || self.stride.contains(&0) {
            return Err("a window's size and stride must be at least 1".into());
        }
        self.positions(image).ok_or_else(|| {
            let [height, width] = self.size;
            format!("its window of {height}×{width} is larger than the image")
        })
    }

    /// The image's row (axis 0) or column (axis 1) under offset `offset` of the window at `position`, if it is in the
    /// image; `length` is the image's size along the axis.
    pub fn source(
        &self,
        axis: usize,
        length: usize,
        position: usize,
        offset: usize,
    ) -> Option<usize> {
        let (size, stride) = (self.size[axis], self.stride[axis]);
        let before = match self.padding {
            Padding::Valid => 0,
            Padding::Half => size / 2,
            Padding::Same | Padding::Circular => {
                let positions = length.div_ceil(stride);
                ((positions - 1) * stride + size).saturating_sub(length) / 2
            }
        };
        let at = position * stride + offset;
        match self.padding {
            // a window may be larger than the torus
            Padding::Circular => Some((at + before.div_ceil(length) * length - before) % length),
            _ => at.checked_sub(before).filter(|&at| at < length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_sources_are_those_of_the_usual_conventions() {
        let window = |size, stride, padding| Window {
            size: [size; 2],
            stride: [stride; 2],
            padding,
        };
        let image = Shape::from([4, 5, 2]);
        let sources = |window: Window, length, position| -> Vec<Option<usize>> {
            (0..window.size[0])
                .map(|offset| window.source(0, length, position, offset))
                .collect()
        };
        let same = window(3, 1, Padding::Same);
        assert_eq!(same.positions(image), Some([4, 5]));
        assert_eq!(sources(same, 4, 0), [None, Some(0), Some(1)]);
        assert_eq!(sources(same, 4, 3), [Some(2), Some(3), None]);
        // one zero in all, and it is at the end
        let strided = window(3, 2, Padding::Same);
        assert_eq!(strided.positions(image), Some([2, 3]));
        assert_eq!(sources(strided, 4, 0), [Some(0), Some(1), Some(2)]);
        assert_eq!(sources(strided, 4, 1), [Some(2), Some(3), None]);
        // Conv2d(…, 3, stride=2, padding=1), and of an even size one row more
        let half = window(3, 2, Padding::Half);
        assert_eq!(half.positions(image), Some([2, 3]));
        assert_eq!(sources(half, 4, 0), [None, Some(0), Some(1)]);
        assert_eq!(sources(half, 4, 1), [Some(1), Some(2), Some(3)]);
        let even = window(2, 1, Padding::Half);
        assert_eq!(even.positions(image), Some([5, 6]));
        assert_eq!(sources(even, 4, 4), [Some(3), None]);
        assert_eq!(window(1, 2, Padding::Half).positions(image), Some([2, 3]));
        let valid = window(3, 1, Padding::Valid);
        assert_eq!(valid.positions(image), Some([2, 3]));
        assert_eq!(sources(valid, 4, 1), [Some(1), Some(2), Some(3)]);
        assert_eq!(window(6, 1, Padding::Valid).positions(image), None);
        let circular = window(3, 1, Padding::Circular);
        assert_eq!(sources(circular, 4, 0), [Some(3), Some(0), Some(1)]);
        assert_eq!(sources(circular, 4, 3), [Some(2), Some(3), Some(0)]);
        assert_eq!(
            sources(window(3, 1, Padding::Circular), 1, 0),
            [Some(0), Some(0), Some(0)]
        );
    }
}
