//! Fully connected networks among the compositions: their constructor, and what their layers are.
//!
//! The first layer of such a network is one product of the inputs with one matrix of parameters, so that inputs may be reduced to
//! what the data can see (see [`Design`](crate::model::design::Design)) before the network is evaluated.

use super::layer::{Dense, Layer, Shape};
use super::parameters::ParameterLayout;
use super::{Activation, Composition, LayerScale};

/// A hidden layer of a fully connected network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HiddenLayer {
    /// Numbers that come from below.
    pub fan_in: usize,
    /// Width.
    pub units: usize,
    /// Prior scales.
    pub scale: LayerScale,
    /// What is applied to the units; `None` where the next layer takes them as they are.
    pub activation: Option<Activation>,
}

impl HiddenLayer {
    /// Rows of the parameter matrix: the fan-in, and one if there is a bias.
    pub fn rows(&self) -> usize {
        self.fan_in + usize::from(self.scale.bias > 0.0)
    }
}

impl Composition {
    /// A fully connected network with the default scales: dense layers of these widths, each with the activation, and the readout.
    /// Without widths it is a linear model.
    ///
    /// ```
    /// use reprior::network::{Activation, Composition};
    ///
    /// let network = Composition::fully_connected(3, &[64, 32], 1, Activation::Gelu);
    /// assert_eq!(network.parameters(), 4 * 64 + 65 * 32 + 33);
    /// assert_eq!(network.hidden_widths(), [64, 32]);
    /// ```
    pub fn fully_connected(
        inputs: usize,
        hidden: &[usize],
        outputs: usize,
        activation: Activation,
    ) -> Self {
        let scale = LayerScale::HIDDEN;
        let layers = hidden.iter().flat_map(|&units| {
            let function = activation;
            [
                Layer::Dense(Dense { units, scale }),
                Layer::Activation { function },
            ]
        });
        Self {
            input: Shape::vector(inputs),
            layers: layers.collect(),
            outputs,
            readout_scale: LayerScale::READOUT,
        }
    }

    /// The hidden layers of a fully connected network: dense layers of vectors, each with at most one activation. None lie below
    /// the readout of a linear model. `None` for any other network, and for layers that do not fit.
    pub fn as_fully_connected(&self) -> Option<Vec<HiddenLayer>> {
        let shapes = self.shapes().ok()?;
        let mut hidden: Vec<HiddenLayer> = Vec::new();
        for (layer, shape) in self.layers.iter().zip(&shapes) {
            match layer {
                Layer::Dense(dense) if shape.pixels() == 1 => hidden.push(HiddenLayer {
                    fan_in: shape.features(),
                    units: dense.units,
                    scale: dense.scale,
                    activation: None,
                }),
                Layer::Activation { function } => match hidden.last_mut() {
                    Some(HiddenLayer {
                        activation: own @ None,
                        ..
                    }) => *own = Some(*function),
                    // two after one another, or of the inputs
                    _ => return None,
                },
                Layer::Flatten => {}
                _ => return None,
            }
        }
        Some(hidden)
    }

    /// Widths of the hidden layers of a fully connected network; none of a linear model and of any other network.
    pub fn hidden_widths(&self) -> Vec<usize> {
        let hidden = self.as_fully_connected().unwrap_or_default();
        hidden.iter().map(|layer| layer.units).collect()
    }

    /// Columns of the matrix that the first layer's parameters meet when inputs are not reduced: the inputs, and in fully
    /// connected networks a constant where the first layer has a bias.
    pub fn design_columns(&self) -> usize {
        let bias = match self.as_fully_connected() {
            Some(hidden) => hidden
                .first()
                .map_or(1, |first| first.rows() - first.fan_in),
            None => 0,
        };
        self.inputs() + bias
    }

    /// The same network as a chain has it, whose first layer, if the network is fully connected, has so many rows of parameters and
    /// neither scale nor bias: a design of so many columns has them. The layers above, and other networks, stay as they are.
    #[must_use]
    pub fn with_design_columns(&self, columns: usize) -> Self {
        let mut network = self.clone();
        if !self.hidden_widths().is_empty() {
            network.input = Shape::vector(columns);
            if let [scale, ..] = &mut network.hidden_scales_mut()[..] {
                **scale = LayerScale {
                    weight: (columns as f64).sqrt(),
                    bias: 0.0,
                };
            }
        }
        network
    }

    /// Rows and units of the parameter matrices of all layers, the readout last.
    pub fn layer_shapes(&self) -> Vec<(usize, usize)> {
        let layers = ParameterLayout::new(self).layers;
        layers
            .iter()
            .map(|layer| (layer.rows, layer.units))
            .collect()
    }
}
