//! What a network is: fully connected, with sizes, scales and activation, or a composition of any layers; how many parameters
//! each layer has.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::layer::{Dense, Layer, Shape, ShapeError};
use super::{Activation, Composition};

/// Prior scales of one layer in the NTK parametrisation: z = (weight/√fan_in)·h·W + bias·b.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LayerScale {
    /// σ_w > 0.
    pub weight: f64,
    /// σ_b ≥ 0.
    pub bias: f64,
}

impl LayerScale {
    /// Default of hidden layers: σ_w² = 2, σ_b² = 0.01.
    pub const HIDDEN: Self = Self {
        weight: std::f64::consts::SQRT_2,
        bias: 0.1,
    };
    /// Default of the readout: σ_w² = 1, σ_b² = 0.01.
    pub const READOUT: Self = Self {
        weight: 1.0,
        bias: 0.1,
    };

    /// [`READOUT`](Self::READOUT), as a function.
    pub(super) fn readout() -> Self {
        Self::READOUT
    }

    /// [`HIDDEN`](Self::HIDDEN), as a function.
    pub(super) fn hidden() -> Self {
        Self::HIDDEN
    }

    /// Whether σ_w and σ_b are in range.
    pub(super) fn check(&self) -> Result<(), ArchitectureError> {
        let refuse = |name, value, allowed| {
            Err(ArchitectureError::Range {
                name,
                value,
                allowed,
            })
        };
        if !(self.weight.is_finite() && self.weight > 0.0) {
            let allowed = "it must be positive and finite";
            return refuse("a weight scale σ_w", self.weight, allowed);
        }
        if !(self.bias.is_finite() && self.bias >= 0.0) {
            let allowed = "it must be zero or positive, and finite";
            return refuse("a bias scale σ_b", self.bias, allowed);
        }
        Ok(())
    }

    /// [σ_w², σ_b²].
    pub(super) fn squares(&self) -> [f64; 2] {
        [self.weight * self.weight, self.bias * self.bias]
    }

    /// σ_w/√fan_in, the factor in front of the weights.
    pub fn factor(&self, fan_in: usize) -> f64 {
        self.weight / (fan_in as f64).sqrt()
    }

    /// The constant c that, appended to the inputs as one more column, turns the bias into one more weight:
    /// factor·c = σ_b.
    pub fn constant(&self, fan_in: usize) -> f64 {
        self.bias / self.factor(fan_in)
    }
}

/// A network: what lies below its readout, and the readout.
#[derive(Debug, Clone, PartialEq)]
pub struct Architecture {
    /// Input columns d₀.
    pub inputs: usize,
    /// Widths of the hidden layers of a fully connected network; empty for a linear model.
    pub hidden: Vec<usize>,
    /// Outputs C.
    pub outputs: usize,
    /// The same for every hidden layer.
    pub activation: Activation,
    /// One per hidden layer.
    pub hidden_scales: Vec<LayerScale>,
    /// Of the readout.
    pub readout_scale: LayerScale,
    /// Any other network; its input, outputs and readout are those above, and there are no hidden layers beside it.
    pub composition: Option<Composition>,
}

/// The widest layer: numbers of bytes of matrices with two such sides still fit in 64 bits.
const MAX_WIDTH: usize = 1 << 27;

/// A network that cannot be.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ArchitectureError {
    /// A size of zero.
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    /// A layer so wide that its matrices could not be counted.
    #[error("a layer of width {0} is too wide: at most {MAX_WIDTH}")]
    TooWide(usize),
    /// Not one scale per hidden layer.
    #[error("{scales} scales were given for {layers} hidden layers: give one, or one per layer")]
    Scales {
        /// How many scales.
        scales: usize,
        /// How many hidden layers.
        layers: usize,
    },
    /// A layer of a composition does not fit the one below.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// A composition with other inputs, outputs or readout than the network that it is part of.
    #[error(
        "a composition has its own inputs, outputs and readout, and no hidden layers beside it"
    )]
    Composition,
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

impl Architecture {
    /// A network with the default scales.
    pub fn new(inputs: usize, hidden: &[usize], outputs: usize, activation: Activation) -> Self {
        Self {
            inputs,
            hidden: hidden.to_vec(),
            outputs,
            activation,
            hidden_scales: vec![LayerScale::HIDDEN; hidden.len()],
            readout_scale: LayerScale::READOUT,
            composition: None,
        }
    }

    /// The network that `composition` describes.
    pub fn of(composition: Composition) -> Self {
        Self {
            inputs: composition.input.features(),
            hidden: Vec::new(),
            outputs: composition.outputs,
            activation: Activation::Identity,
            hidden_scales: Vec::new(),
            readout_scale: composition.readout_scale,
            composition: Some(composition),
        }
    }

    /// The same network layer by layer: itself for a composition, and otherwise dense layers with the same parameters in the
    /// same order. Where a hidden layer's σ_b is 0, its bias, on which nothing depends, is left out.
    pub fn to_composition(&self) -> Composition {
        if let Some(composition) = &self.composition {
            return composition.clone();
        }
        let function = self.activation;
        let layers = self.hidden.iter().zip(&self.hidden_scales);
        let layers = layers.flat_map(|(&units, &scale)| {
            [
                Layer::Dense(Dense { units, scale }),
                Layer::Activation { function },
            ]
        });
        Composition {
            input: Shape::vector(self.inputs),
            layers: layers.collect(),
            outputs: self.outputs,
            readout_scale: self.readout_scale,
        }
    }

    /// Whether nothing lies below the readout.
    pub fn is_linear(&self) -> bool {
        self.hidden.is_empty() && self.composition.is_none()
    }

    /// Rows of the matrix that the first layer's parameters meet when inputs are not reduced: the inputs and a constant, or
    /// the inputs alone where a composition has biases of its own.
    pub fn whole_columns(&self) -> usize {
        self.inputs + usize::from(self.composition.is_none())
    }

    /// Checks sizes and scales.
    ///
    /// # Errors
    /// [`ArchitectureError`] names what is out of range.
    pub fn check(&self) -> Result<(), ArchitectureError> {
        if self.inputs == 0 {
            return Err(ArchitectureError::Zero("the number of inputs"));
        }
        if self.hidden.contains(&0) {
            return Err(ArchitectureError::Zero("a layer's width"));
        }
        if let Some(&width) = self.hidden.iter().find(|&&width| width > MAX_WIDTH) {
            return Err(ArchitectureError::TooWide(width));
        }
        if self.outputs == 0 {
            return Err(ArchitectureError::Zero("the number of outputs"));
        }
        if let Some(composition) = &self.composition {
            composition.shapes()?;
            composition.check_scales()?;
            if Self::of(composition.clone()) != *self {
                return Err(ArchitectureError::Composition);
            }
        }
        if self.hidden_scales.len() != self.hidden.len() {
            return Err(ArchitectureError::Scales {
                scales: self.hidden_scales.len(),
                layers: self.hidden.len(),
            });
        }
        for scale in self.hidden_scales.iter().chain([&self.readout_scale]) {
            scale.check()?;
        }
        Ok(())
    }

    /// Width of the last hidden layer, or the inputs of a linear model: the readout's fan-in d_L. 0 for a composition that
    /// does not fit together.
    pub fn features(&self) -> usize {
        if let Some(composition) = &self.composition {
            return composition.features();
        }
        self.hidden.last().copied().unwrap_or(self.inputs)
    }

    /// Readout parameters of one output, p = d_L + 1.
    pub fn readout_rows(&self) -> usize {
        self.features() + 1
    }

    /// Readout parameters, p·C.
    pub fn readout_parameters(&self) -> usize {
        self.readout_rows() * self.outputs
    }

    /// Parameters below the readout when the first layer has `first_rows` rows ((d₀ + 1) unless inputs are reduced).
    pub fn inner_parameters(&self, first_rows: usize) -> usize {
        let shapes = self.layer_shapes(first_rows);
        shapes.iter().map(|(rows, units)| rows * units).sum()
    }

    /// Rows (fan-in plus one for the bias) and units of the parameter matrix of each layer below the readout; of fully
    /// connected networks the first has `first_rows` rows.
    pub fn layer_shapes(&self, first_rows: usize) -> Vec<(usize, usize)> {
        match &self.composition {
            Some(composition) => composition.parameter_shapes(),
            None => self.shapes(first_rows).collect(),
        }
    }

    fn shapes(&self, first_rows: usize) -> impl Iterator<Item = (usize, usize)> {
        let below = self.hidden.iter().map(|width| width + 1);
        std::iter::once(first_rows)
            .chain(below)
            .zip(self.hidden.iter().copied())
    }

    /// All parameters, inputs not reduced.
    pub fn parameters(&self) -> usize {
        self.inner_parameters(self.whole_columns()) + self.readout_parameters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_the_parameters_of_the_wide_network_papers() {
        // CIFAR-10, one hidden layer of width d: D = 3073 d + 10 (d + 1)
        for (width, count) in [(512, 1_578_506), (1024, 3_157_002), (4096, 12_627_978)] {
            let network = Architecture::new(3072, &[width], 10, Activation::Gelu);
            assert_eq!(network.parameters(), count);
        }
    }

    #[test]
    fn refuses_what_cannot_be() {
        let good = Architecture::new(3, &[4, 5], 1, Activation::Relu);
        assert_eq!(good.check(), Ok(()));
        assert!(
            Architecture {
                inputs: 0,
                ..good.clone()
            }
            .check()
            .is_err()
        );
        assert!(
            Architecture {
                hidden: vec![4, 0],
                ..good.clone()
            }
            .check()
            .is_err()
        );
        assert!(
            Architecture {
                hidden_scales: vec![],
                ..good.clone()
            }
            .check()
            .is_err()
        );
        for width in [MAX_WIDTH + 1, usize::MAX] {
            let hidden = vec![4, width];
            let refused = Architecture {
                hidden,
                ..good.clone()
            }
            .check();
            assert_eq!(refused, Err(ArchitectureError::TooWide(width)));
        }
        let scale = LayerScale {
            weight: 0.0,
            bias: 0.1,
        };
        assert!(
            Architecture {
                readout_scale: scale,
                ..good.clone()
            }
            .check()
            .is_err()
        );
        let scale = LayerScale {
            weight: 1.0,
            bias: f64::NAN,
        };
        assert!(
            Architecture {
                readout_scale: scale,
                ..good
            }
            .check()
            .is_err()
        );
    }
}
