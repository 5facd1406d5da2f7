//! What a network's layers need of a file.

use reprior::network::layer::{Layer, Parallel, Shape};
use reprior::network::parameters::{ParameterLayout, ParameterMatrix};
use reprior::network::{Composition, LayerScale};

use super::WeightsError;
use super::error::dimensions;

/// A layer with parameters.
#[derive(Debug)]
pub(super) struct Need {
    /// `layer 1 (convolution)` or `readout`.
    pub name: String,
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
    /// The residual block that it is of.
    pub block: Option<BlockPart>,
    /// Whether it comes after all of these.
    pub is_after_blocks: bool,
}

/// A part of a residual block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockPart {
    /// Its number from 0.
    pub index: usize,
    pub is_shortcut: bool,
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
/// Parallel layers that are not residual blocks of images; layers that do not fit.
pub(super) fn needs(network: &Composition) -> Result<Vec<Need>, WeightsError> {
    let shapes = network.shapes()?;
    let mut found = Needs {
        needs: Vec::new(),
        matrices: ParameterLayout::new(network).layers.into_iter(),
        flattened: None,
        blocks: 0,
    };
    found.push(network, "", None)?;
    let last = shapes.last().copied().unwrap_or(network.input);
    if last.pixels() > 1 {
        // the readout flattens by itself
        found.flattened = Some(last);
    }
    let weight_shape = vec![network.outputs, last.features()];
    found.push_matrix(
        "readout".to_owned(),
        None,
        weight_shape,
        [1, last.features()],
        None,
    );
    found.mark_after_blocks()?;
    Ok(found.needs)
}

/// What has been found so far.
struct Needs {
    needs: Vec<Need>,
    matrices: std::vec::IntoIter<ParameterMatrix>,
    /// The image that the features at this place are.
    flattened: Option<Shape>,
    /// Parallel layers with parameters.
    blocks: usize,
}

impl Needs {
    fn push(
        &mut self,
        network: &Composition,
        prefix: &str,
        block: Option<BlockPart>,
    ) -> Result<(), WeightsError> {
        let shapes = network.shapes()?;
        for (index, (layer, &input)) in network.layers.iter().zip(&shapes).enumerate() {
            let number = format!("{prefix}{}", index + 1);
            if *layer == Layer::Flatten && input.pixels() > 1 {
                if block.is_some() {
                    return Err(WeightsError::Parallel(
                        number,
                        "flattens an image in a branch",
                    ));
                }
                self.flattened = Some(input);
            }
            if let Layer::Parallel(parallel) = layer {
                self.parallel(parallel, input, &number, block)?;
            } else if !layer.parameter_shapes(input).is_empty() {
                self.layer(layer, input, &number, block);
            }
        }
        Ok(())
    }

    /// A residual block: a shortcut, which is the shorter branch, and a branch.
    fn parallel(
        &mut self,
        layer: &Parallel,
        input: Shape,
        number: &str,
        block: Option<BlockPart>,
    ) -> Result<(), WeightsError> {
        let refuse = |reason| Err(WeightsError::Parallel(number.to_owned(), reason));
        if block.is_some() {
            return refuse("is parallel in a branch");
        }
        if self.flattened.is_some() {
            return refuse("is parallel after an image was flattened");
        }
        let [first, second] = &layer.branches[..] else {
            return refuse("has not two branches");
        };
        let has_weights = !Layer::Parallel(layer.clone())
            .parameter_shapes(input)
            .is_empty();
        let shortcut = usize::from(second.layers.len() < first.layers.len());
        for (index, branch) in layer.branches.iter().enumerate() {
            let part = BlockPart {
                index: self.blocks,
                is_shortcut: index == shortcut,
            };
            let branch = Composition {
                input,
                layers: branch.layers.clone(),
                outputs: 1,
                readout_scale: LayerScale::READOUT,
            };
            let prefix = format!("{number}.{}.", index + 1);
            self.push(&branch, &prefix, Some(part))?;
        }
        // without weights nothing in the file is of it
        self.blocks += usize::from(has_weights);
        Ok(())
    }

    fn layer(&mut self, layer: &Layer, input: Shape, number: &str, block: Option<BlockPart>) {
        let name = format!("layer {number} ({})", layer.name());
        let normalisation = match layer {
            Layer::BatchNorm(layer) => Some(layer.epsilon),
            _ => None,
        };
        let [_, units] = layer.parameter_shapes(input)[0];
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
        self.push_matrix(
            name,
            normalisation,
            weight_shape,
            [pixels, input.channels],
            block,
        );
    }

    fn push_matrix(
        &mut self,
        name: String,
        normalisation: Option<f64>,
        weight_shape: Vec<usize>,
        window: [usize; 2],
        block: Option<BlockPart>,
    ) {
        let Some(parameters) = self.matrices.next() else {
            return;
        };
        self.needs.push(Need {
            name,
            is_normalisation: normalisation.is_some(),
            weight_shape,
            units: parameters.units,
            has_bias: parameters.has_bias && parameters.factors[1] > 0.0,
            epsilon: normalisation.unwrap_or(0.0),
            window,
            flattened: self.flattened,
            parameters,
            block,
            is_after_blocks: false,
        });
        if normalisation.is_none() {
            self.flattened = None;
        }
    }

    /// Tells what comes before the first block from what comes after the last.
    fn mark_after_blocks(&mut self) -> Result<(), WeightsError> {
        let last = self.needs.iter().rposition(|need| need.block.is_some());
        let first = self.needs.iter().position(|need| need.block.is_some());
        for (index, need) in self.needs.iter_mut().enumerate() {
            let is_before_last = last.is_some_and(|last| index < last);
            need.is_after_blocks = !is_before_last;
            let is_between = is_before_last && first.is_some_and(|first| index > first);
            if need.block.is_none() && is_between {
                let name = need.name.trim_start_matches("layer ").to_owned();
                return Err(WeightsError::Parallel(
                    name,
                    "has weights between parallel layers",
                ));
            }
        }
        Ok(())
    }
}
