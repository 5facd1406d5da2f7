//! What a network is: its layers between the input and the readout, and the readout's scales. All else follows from these: how
//! many parameters there are and where ([`ParameterLayout`]), whether it is [fully connected](Composition::as_fully_connected).

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::LayerScale;
use super::layer::{Branch, Convolution, Dense, Layer, Shape, ShapeError, output_shape};
use super::parameters::ParameterLayout;

/// The widest layer: numbers of bytes of matrices with two such sides still fit in 64 bits.
const MAX_WIDTH: usize = 1 << 27;

/// A network that is not possible.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum NetworkError {
    /// A size of zero.
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    /// A layer so wide that its matrices could not be counted.
    #[error("a layer of width {0} is too wide: at most {MAX_WIDTH}")]
    TooWide(usize),
    /// A layer does not fit the one below.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// σ_w ≤ 0, σ_b < 0 or not finite.
    #[error("{name} is {value}: {allowed}")]
    Range {
        /// Which scale.
        name: &'static str,
        /// What was given.
        value: f64,
        /// What may be given.
        allowed: &'static str,
    },
}

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

    /// Checks sizes and scales.
    ///
    /// # Errors
    /// [`NetworkError`] names what is out of range.
    pub fn check(&self) -> Result<(), NetworkError> {
        if self.inputs() == 0 {
            return Err(NetworkError::Zero("the number of inputs"));
        }
        if self.outputs == 0 {
            return Err(NetworkError::Zero("the number of outputs"));
        }
        let shapes = self.shapes()?;
        let widths = shapes[1..].iter().map(|shape| shape.channels);
        if let Some(width) = widths.filter(|&width| width > MAX_WIDTH).max() {
            return Err(NetworkError::TooWide(width));
        }
        let mut scales = self.hidden_scales().into_iter();
        scales.try_for_each(|scale| scale.check())?;
        self.readout_scale.check()
    }

    /// Scales of the layers below the readout that have any, in the order of their parameters.
    pub fn hidden_scales(&self) -> Vec<LayerScale> {
        let mut network = self.clone();
        let scales = network.hidden_scales_mut();
        scales.into_iter().map(|scale| *scale).collect()
    }

    /// [`hidden_scales`](Self::hidden_scales), to be changed.
    pub fn hidden_scales_mut(&mut self) -> Vec<&mut LayerScale> {
        let mut scales = Vec::new();
        push_scales(&mut self.layers, &mut scales);
        scales
    }

    /// Numbers d₀ of one input.
    pub fn inputs(&self) -> usize {
        self.input.features()
    }

    /// Features d_L that the readout reads; 0 if the layers do not fit.
    pub fn features(&self) -> usize {
        let shapes = self.shapes().unwrap_or_default();
        shapes.last().map_or(0, Shape::features)
    }

    /// Readout parameters of one output, p = d_L + 1.
    pub fn readout_rows(&self) -> usize {
        self.features() + 1
    }

    /// Readout parameters, p·C.
    pub fn readout_parameters(&self) -> usize {
        self.readout_rows() * self.outputs
    }

    /// Parameters below the readout.
    pub fn inner_parameters(&self) -> usize {
        self.parameters() - self.readout_parameters()
    }

    /// All parameters, the readout's included.
    pub fn parameters(&self) -> usize {
        ParameterLayout::new(self).len()
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
}

/// The input's shape and that after each layer of a branch that fits.
pub(super) fn branch_shapes(branch: &Branch, input: Shape) -> Vec<Shape> {
    let mut shapes = vec![input];
    for layer in &branch.layers {
        let next = output_shape(layer, shapes[shapes.len() - 1], "");
        shapes.push(next.unwrap_or(input));
    }
    shapes
}

fn push_scales<'a>(layers: &'a mut [Layer], scales: &mut Vec<&'a mut LayerScale>) {
    for layer in layers {
        match layer {
            Layer::Dense(layer) => scales.push(&mut layer.scale),
            Layer::Convolution(layer) => scales.push(&mut layer.scale),
            Layer::Parallel(layer) => {
                let branches = layer.branches.iter_mut();
                branches.for_each(|branch| push_scales(&mut branch.layers, scales));
            }
            _ => {}
        }
    }
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
    use crate::network::Activation;
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

    #[test]
    fn counts_the_parameters_of_the_wide_network_papers() {
        // CIFAR-10, one hidden layer of width d: D = 3073 d + 10 (d + 1)
        for (width, count) in [(512, 1_578_506), (1024, 3_157_002), (4096, 12_627_978)] {
            let network = Composition::fully_connected(3072, &[width], 10, Activation::Gelu);
            assert_eq!(network.parameters(), count);
        }
    }

    #[test]
    fn refuses_what_is_not_possible() {
        let network = |inputs, hidden: &[usize]| {
            Composition::fully_connected(inputs, hidden, 1, Activation::Relu)
        };
        let good = network(3, &[4, 5]);
        assert_eq!(good.check(), Ok(()));
        assert!(network(0, &[4, 5]).check().is_err());
        assert!(network(3, &[4, 0]).check().is_err());
        for width in [MAX_WIDTH + 1, usize::MAX] {
            let refused = network(3, &[4, width]).check();
            assert_eq!(refused, Err(NetworkError::TooWide(width)));
        }
        for (weight, bias) in [(0.0, 0.1), (1.0, f64::NAN)] {
            let scale = LayerScale { weight, bias };
            let mut wrong = good.clone();
            wrong.readout_scale = scale;
            assert!(wrong.check().is_err());
            let mut wrong = good.clone();
            *wrong.hidden_scales_mut()[1] = scale;
            assert!(wrong.check().is_err());
        }
    }
}
