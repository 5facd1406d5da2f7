//! Networks of any layers: what lies between the input and the readout, and the readout's scales.

use serde::{Deserialize, Serialize};

use super::layer::{Branch, Convolution, Dense, Layer, Shape, ShapeError, output_shape};
use super::{ArchitectureError, LayerScale};

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

    /// Features d_L that the readout reads; 0 if the layers do not fit.
    pub(crate) fn features(&self) -> usize {
        let shapes = self.shapes().unwrap_or_default();
        shapes.last().map_or(0, Shape::features)
    }

    /// Rows and columns of the parameter matrices below the readout, in order; none if the layers do not fit.
    pub(super) fn parameter_shapes(&self) -> Vec<(usize, usize)> {
        let matrices = self.parameter_matrices().into_iter();
        matrices.map(|matrix| (matrix.rows, matrix.units)).collect()
    }

    /// The parameter matrices below the readout, in the order of the parameter vector; none if the layers do not fit.
    pub fn parameter_matrices(&self) -> Vec<ParameterMatrix> {
        let mut matrices = Vec::new();
        if let Ok(shapes) = self.shapes() {
            parameter_matrices(&self.layers, &shapes, "", &mut matrices);
        }
        matrices
    }

    /// The same network in the standard parametrisation, z = h·W + b: all σ_w = √fan-in, and σ_b = 1 where there is a bias. A
    /// weight of the NTK parametrisation is then σ_w/√fan-in, a bias σ_b times what it was.
    ///
    /// # Errors
    /// The first layer that does not fit.
    pub fn in_standard_parametrisation(&self) -> Result<Self, ShapeError> {
        let shapes = self.shapes()?;
        let mut network = self.clone();
        standardise(&mut network.layers, &shapes);
        network.readout_scale = LayerScale {
            weight: (self.features() as f64).sqrt(),
            bias: f64::from(u8::from(self.readout_scale.bias > 0.0)),
        };
        Ok(network)
    }

    /// Multiplications and additions of the layers below the readout for one input; 0 if the layers do not fit.
    pub fn operations(&self) -> f64 {
        let shapes = self.shapes().unwrap_or_default();
        operations(&self.layers, &shapes)
    }

    /// Whether all prior scales are in range.
    pub(super) fn check_scales(&self) -> Result<(), ArchitectureError> {
        check_scales(&self.layers)
    }
}

/// A layer's parameters: a matrix with a row for each input that a unit combines, and one more for its bias if it has one.
#[derive(Debug, Clone, PartialEq)]
pub struct ParameterMatrix {
    /// The layer's number from 0; in a parallel layer that of the parallel layer, the branch and the layer there, with dots.
    pub name: String,
    /// Fan-in, and one if there is a bias.
    pub rows: usize,
    /// Units, or channels.
    pub units: usize,
    /// Whether the last row is a bias.
    pub has_bias: bool,
    /// What the network multiplies weights and biases by: σ_w/√fan-in and σ_b.
    pub factors: [f64; 2],
}

fn parameter_matrices(
    layers: &[Layer],
    shapes: &[Shape],
    prefix: &str,
    matrices: &mut Vec<ParameterMatrix>,
) {
    for (index, (layer, &input)) in layers.iter().zip(shapes).enumerate() {
        let name = format!("{prefix}{index}");
        let scale = match layer {
            Layer::Dense(layer) => Some(layer.scale),
            Layer::Convolution(layer) => Some(layer.scale),
            Layer::Parallel(layer) => {
                for (branch, index) in layer.branches.iter().zip(0..) {
                    let shapes = branch_shapes(branch, input);
                    let prefix = format!("{name}.{index}.");
                    parameter_matrices(&branch.layers, &shapes, &prefix, matrices);
                }
                continue;
            }
            _ => None,
        };
        for [rows, units] in layer.parameter_shapes(input) {
            // β after γ
            let has_bias = scale.is_none_or(|scale| scale.bias > 0.0);
            matrices.push(ParameterMatrix {
                name: name.clone(),
                rows,
                units,
                has_bias,
                factors: scale.map_or([1.0; 2], |scale| {
                    [scale.factor(rows - usize::from(has_bias)), scale.bias]
                }),
            });
        }
    }
}

/// The input's shape and that after each layer of a branch that fits.
fn branch_shapes(branch: &Branch, input: Shape) -> Vec<Shape> {
    let mut shapes = vec![input];
    for layer in &branch.layers {
        let next = output_shape(layer, shapes[shapes.len() - 1], "");
        shapes.push(next.unwrap_or(input));
    }
    shapes
}

fn check_scales(layers: &[Layer]) -> Result<(), ArchitectureError> {
    for layer in layers {
        match layer {
            Layer::Dense(layer) => layer.scale.check()?,
            Layer::Convolution(layer) => layer.scale.check()?,
            Layer::Parallel(layer) => {
                for branch in &layer.branches {
                    check_scales(&branch.layers)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Factors of 1 in front of all weights and biases of layers whose inputs have the given shapes.
fn standardise(layers: &mut [Layer], shapes: &[Shape]) {
    for (layer, &input) in layers.iter_mut().zip(shapes) {
        let rows = layer
            .parameter_shapes(input)
            .first()
            .map_or(0, |shape| shape[0]);
        match layer {
            Layer::Dense(Dense { scale, .. }) | Layer::Convolution(Convolution { scale, .. }) => {
                let has_bias = scale.bias > 0.0;
                *scale = LayerScale {
                    weight: ((rows - usize::from(has_bias)) as f64).sqrt(),
                    bias: f64::from(u8::from(has_bias)),
                };
            }
            Layer::Parallel(layer) => {
                for branch in &mut layer.branches {
                    let shapes = branch_shapes(branch, input);
                    standardise(&mut branch.layers, &shapes);
                }
            }
            _ => {}
        }
    }
}

/// Of layers whose inputs have the given shapes.
fn operations(layers: &[Layer], shapes: &[Shape]) -> f64 {
    let of_layer = |(layer, shapes): (&Layer, &[Shape])| -> f64 {
        let (input, output) = (shapes[0], shapes[1]);
        match layer {
            Layer::Dense(_) | Layer::Convolution(_) => {
                let rows = layer.parameter_shapes(input)[0][0];
                2.0 * rows as f64 * output.features() as f64
            }
            Layer::Parallel(layer) => {
                let of_branch =
                    |branch: &Branch| operations(&branch.layers, &branch_shapes(branch, input));
                layer.branches.iter().map(of_branch).sum()
            }
            _ => 0.0,
        }
    };
    layers.iter().zip(shapes.windows(2)).map(of_layer).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::layer::{Parallel, Window};

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
