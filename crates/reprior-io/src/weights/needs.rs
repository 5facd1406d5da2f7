//! What a network's layers need of a file.

use reprior::network::Composition;
use reprior::network::layer::{Layer, Shape};
use reprior::network::parameters::{ParameterLayout, ParameterMatrix};

use super::WeightsError;
use super::error::dimensions;

/// A layer with parameters.
#[derive(Debug)]
pub(super) struct Need {
    /// `layer 1 (convolution)` or `readout`.
    pub name: String,
    /// Its number from 0; of the readout one more than the last layer's.
    pub layer: usize,
    /// Whether it is batch normalisation.
    pub is_normalisation: bool,
    /// Of the weight in the file.
    pub weight_shape: Vec<usize>,
    /// Units or channels: biases and statistics in the file.
    pub units: usize,
    /// Whether it has biases, and σ_b is not 0.
    pub has_bias: bool,
    /// ε of batch normalisation.
    pub epsilon: f64,
    /// Pixels of the window, and channels.
    pub window: [usize; 2],
    /// The image that its input is, flattened.
    pub flattened: Option<Shape>,
    /// Where its parameters are.
    pub parameters: ParameterMatrix,
}

impl Need {
    /// The input feature of PyTorch's that feature `ours` is.
    pub fn feature(&self, ours: usize) -> usize {
        match self.flattened {
            Some(image) => {
                let (pixel, channel) = (ours / image.channels, ours % image.channels);
                channel * image.pixels() + pixel
            }
            None => ours,
        }
    }

    /// Which of a unit's weights in the file is our weight number `row`.
    pub fn weight(&self, row: usize) -> usize {
        let [pixels, channels] = self.window;
        let (pixel, channel) = (row / channels.max(1), row % channels.max(1));
        self.feature(channel) * pixels + pixel
    }

    /// Names and shapes.
    fn in_words(&self) -> String {
        let (name, units) = (&self.name, self.units);
        if self.is_normalisation {
            return format!(
                "{name}: weight {units}, bias {units}, running_mean {units}, running_var {units}"
            );
        }
        let weight = dimensions(&self.weight_shape);
        let bias = if self.has_bias {
            format!("bias {units}")
        } else {
            "no bias".to_owned()
        };
        format!("{name}: weight {weight}, {bias}")
    }
}

/// All of a network, in order.
pub(super) fn in_words(needs: &[Need]) -> String {
    let words: Vec<String> = needs.iter().map(Need::in_words).collect();
    words.join("; ")
}

/// The layers with parameters, in order; the readout is the last.
///
/// # Errors
/// A parallel layer; layers that do not fit.
pub(super) fn needs(network: &Composition) -> Result<Vec<Need>, WeightsError> {
    let parallel = |layer: &Layer| matches!(layer, Layer::Parallel(_));
    if let Some(index) = network.layers.iter().position(parallel) {
        return Err(WeightsError::Parallel(index + 1));
    }
    let shapes = network.shapes()?;
    let mut matrices = ParameterLayout::new(network).layers.into_iter();
    let mut needs = Vec::new();
    // the image that the features at this place are
    let mut flattened = None;
    for (index, (layer, &input)) in network.layers.iter().zip(&shapes).enumerate() {
        if *layer == Layer::Flatten && input.pixels() > 1 {
            flattened = Some(input);
        }
        if layer.parameter_shapes(input).is_empty() {
            continue;
        }
        let Some(parameters) = matrices.next() else {
            break;
        };
        let units = parameters.units;
        let (weight_shape, pixels) = match layer {
            Layer::Convolution(layer) => {
                let [height, width] = layer.window.size;
                (vec![units, input.channels, height, width], height * width)
            }
            Layer::BatchNorm(_) => (vec![units], 1),
            // one pixel after the other: to PyTorch a convolution
            _ if input.pixels() > 1 => (vec![units, input.channels, 1, 1], 1),
            _ => (vec![units, input.channels], 1),
        };
        let normalisation = match layer {
            Layer::BatchNorm(layer) => Some(layer.epsilon),
            _ => None,
        };
        needs.push(Need {
            name: format!("layer {} ({})", index + 1, layer.name()),
            layer: index,
            is_normalisation: normalisation.is_some(),
            weight_shape,
            units,
            has_bias: parameters.has_bias && parameters.factors[1] > 0.0,
            epsilon: normalisation.unwrap_or(0.0),
            window: [pixels, input.channels],
            flattened,
            parameters,
        });
        if normalisation.is_none() {
            flattened = None;
        }
    }
    let last = shapes.last().copied().unwrap_or(network.input);
    if let Some(parameters) = matrices.next() {
        needs.push(Need {
            name: "readout".to_owned(),
            layer: network.layers.len(),
            is_normalisation: false,
            weight_shape: vec![parameters.units, last.features()],
            units: parameters.units,
            has_bias: parameters.has_bias && parameters.factors[1] > 0.0,
            epsilon: 0.0,
            window: [1, last.features()],
            // it flattens by itself
            flattened: if last.pixels() > 1 {
                Some(last)
            } else {
                flattened
            },
            parameters,
        });
    }
    Ok(needs)
}
