//! The layers that networks are composed of, one a file.
//!
//! All are in the NTK parametrisation: every parameter is N(0, 1) a priori. A layer with parameters has one matrix of
//! them, column-major, (fan-in + 1) × units, the bias in the last row; with σ_b = 0 that row is not there.

pub(crate) mod activation;
mod axis;
pub(crate) mod batch_norm;
pub(crate) mod batch_statistics;
mod convolution;
pub(super) mod covariance_slopes;
mod dense;
mod flatten;
mod linear;
pub(crate) mod parallel;
pub(crate) mod pooling;
mod shape;
mod tanh_moments;
mod window;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Activation;

pub(in crate::network) use activation::map_covariances;
pub(in crate::network) use axis::{AxisTerms, Term};
pub use batch_norm::BatchNorm;
pub use convolution::Convolution;
pub use dense::Dense;
pub(in crate::network) use flatten::Flattened;
pub use parallel::{Branch, Combination, Parallel};
pub(in crate::network) use pooling::GlobalMean;
pub use shape::Shape;
pub use window::{Padding, Window};

/// One layer of a network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Layer {
    /// Every output a combination of every input.
    Dense(Dense),
    /// The same combination of every window of an image.
    Convolution(Convolution),
    /// An elementwise nonlinearity.
    Activation {
        /// Which.
        function: Activation,
    },
    /// Means of windows.
    AveragePool(Window),
    /// Largest numbers of windows.
    MaxPool(Window),
    /// The mean over all pixels.
    GlobalAveragePool,
    /// An image as one vector.
    Flatten,
    /// Normalisation with statistics that do not change any more.
    BatchNorm(BatchNorm),
    /// Several sequences of layers with the same input, and their outputs combined.
    Parallel(Parallel),
}

/// A layer that cannot follow what is below it.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("layer {layer} does not fit its input of {input} (height × width × channels): {reason}")]
pub struct ShapeError {
    /// Which layer: its number from 1, in a parallel layer the branch and the number there.
    pub layer: String,
    /// What comes from below.
    pub input: Shape,
    /// What the layer needs, with the shape that it cannot take.
    pub reason: String,
}

impl Layer {
    /// The layer's name as it is written in descriptions.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Dense(_) => "dense",
            Self::Convolution(_) => "convolution",
            Self::Activation { .. } => "activation",
            Self::AveragePool(_) => "average-pool",
            Self::MaxPool(_) => "max-pool",
            Self::GlobalAveragePool => "global-average-pool",
            Self::Flatten => "flatten",
            Self::BatchNorm(_) => "batch-norm",
            Self::Parallel(_) => "parallel",
        }
    }

    /// Rows and columns of the parameter matrices, in order: one for most layers with parameters, as many as its branches
    /// have for a parallel one. The input must fit.
    pub fn parameter_shapes(&self, input: Shape) -> Vec<[usize; 2]> {
        match self {
            Self::Dense(layer) => vec![[layer.parameter_rows(input), layer.units]],
            Self::Convolution(layer) => vec![[layer.parameter_rows(input), layer.channels]],
            Self::BatchNorm(_) => vec![[2, input.channels]],
            Self::Parallel(layer) => layer.parameter_shapes(input),
            Self::Activation { .. }
            | Self::AveragePool(_)
            | Self::MaxPool(_)
            | Self::GlobalAveragePool
            | Self::Flatten => Vec::new(),
        }
    }
}

/// The shape that `layer` makes of `input`; `at` is its place, for messages.
pub(super) fn output_shape(layer: &Layer, input: Shape, at: &str) -> Result<Shape, ShapeError> {
    let shape = match layer {
        Layer::Dense(layer) => layer.output_shape(input),
        Layer::Convolution(layer) => layer.output_shape(input),
        Layer::AveragePool(window) | Layer::MaxPool(window) => pooling::output_shape(window, input),
        Layer::BatchNorm(layer) => layer.output_shape(input),
        Layer::Activation { .. } => Ok(input),
        Layer::GlobalAveragePool => Ok(pooling::global_output_shape(input)),
        Layer::Flatten => Ok(flatten::output_shape(input)),
        Layer::Parallel(layer) => return layer.output_shape(input, at),
    };
    shape.map_err(|reason| ShapeError {
        layer: format!("{at} ({})", layer.name()),
        input,
        reason,
    })
}
