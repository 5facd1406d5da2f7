//! Networks of any layers: what lies between the input and the readout, and the readout's scales.

use serde::{Deserialize, Serialize};

use super::LayerScale;
use super::layer::{Layer, Shape, ShapeError, output_shape};

/// A network: layers one after the other, then a dense readout on the flattened output of the last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Composition {
    /// One input: height, width, channels.
    pub input: Shape,
    /// Everything below the readout.
    #[serde(default)]
    pub layers: Vec<Layer>,
    /// Outputs C of the readout.
    pub outputs: usize,
    /// Scales of the readout.
    #[serde(default = "LayerScale::readout")]
    pub readout_scale: LayerScale,
}

impl Composition {
    /// The input's shape and that after each layer.
    ///
    /// # Errors
    /// The first layer that does not fit, with the shape that it was given.
    pub fn shapes(&self) -> Result<Vec<Shape>, ShapeError> {
        let mut shapes = vec![self.input];
        let mut shape = self.input;
        for (index, layer) in self.layers.iter().enumerate() {
            shape = output_shape(layer, shape, &(index + 1).to_string())?;
            shapes.push(shape);
        }
        Ok(shapes)
    }

    /// All parameters, the readout's (d_L + 1)·C included.
    ///
    /// # Errors
    /// The first layer that does not fit.
    pub fn parameters(&self) -> Result<usize, ShapeError> {
        let shapes = self.shapes()?;
        let of_layer = |(layer, &shape): (&Layer, &Shape)| -> usize {
            let matrices = layer.parameter_shapes(shape);
            matrices.iter().map(|[rows, columns]| rows * columns).sum()
        };
        let inner: usize = self.layers.iter().zip(&shapes).map(of_layer).sum();
        Ok(inner + (shapes[self.layers.len()].features() + 1) * self.outputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::layer::{Branch, Convolution, Parallel, Window};

    #[test]
    fn a_layer_that_does_not_fit_is_named_with_its_input() {
        let convolution = |size: usize, channels| {
            let window = Window {
                size: [size; 2],
                stride: [1; 2],
                padding: crate::network::layer::Padding::Valid,
            };
            let scale = LayerScale::HIDDEN;
            Layer::Convolution(Convolution {
                channels,
                window,
                scale,
            })
        };
        let mut network = Composition {
            input: Shape::from([4, 4, 3]),
            layers: vec![convolution(3, 8), convolution(3, 8)],
            outputs: 1,
            readout_scale: LayerScale::READOUT,
        };
        assert_eq!(
            network.shapes().unwrap_err().to_string(),
            "layer 2 (convolution) does not fit its input of 2×2×8 (height × width × channels): \
             its window of 3×3 is larger than the image"
        );
        let branch = |layers| Branch {
            factor: 1.0,
            layers,
        };
        network.layers[1] = Layer::Parallel(Parallel {
            branches: vec![branch(vec![]), branch(vec![convolution(1, 9)])],
            combination: Default::default(),
        });
        assert_eq!(
            network.shapes().unwrap_err().to_string(),
            "layer 2 (parallel) does not fit its input of 2×2×8 (height × width × channels): \
             branch 2 gives 2×2×9, those before it 2×2×8"
        );
    }
}
