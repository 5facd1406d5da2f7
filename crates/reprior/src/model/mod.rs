//! Data, prior and likelihood: what the posterior is a posterior of.
//!
//! [`Dataset`]s in their own units become a [`Model`]: standardised, with the inputs reduced to what the training
//! data can see ([`Design`]), and the targets coded as the Gaussian likelihood wants them ([`targets`]).

mod dataset;
mod design;
mod standardisation;
pub mod targets;

use thiserror::Error;

use crate::compute::Real;
use crate::network::{Architecture, ArchitectureError};

pub use dataset::{Dataset, InputKind, Split, Targets};
pub use design::{Design, InputReduction, TestDesign, whole_weights};
pub use standardisation::{Affine, InputScaling, Standardisation};

/// A network, its data and the noise: everything that defines the posterior.
///
/// Likelihood: y = f(x) + σε, ε ~ N(0, I), per output, in the units of the standardised targets. Prior: N(0, 1)
/// on every parameter (NTK parametrisation).
pub struct Model<R> {
    /// The network.
    pub architecture: Architecture,
    /// Standard deviation σ of the observation noise, in units of the standardised targets.
    pub noise: f64,
    /// Coded training targets, column-major n × C.
    pub targets: Vec<f64>,
    /// Training inputs as the first layer sees them.
    pub design: Design<R>,
    /// Test inputs as the first layer sees them.
    pub test_design: TestDesign<R>,
}

/// A model that cannot be.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ModelError {
    /// σ ≤ 0 or not finite.
    #[error("the noise is {0}: it is a standard deviation and must be positive and finite")]
    Noise(f64),
    /// No training rows.
    #[error("there are no training rows")]
    NoData,
    /// Test inputs of another width than the training inputs.
    #[error("the test inputs have {test} columns, the training inputs {train}")]
    Columns {
        /// Columns of the training inputs.
        train: usize,
        /// Columns of the test inputs.
        test: usize,
    },
    /// The network itself.
    #[error(transparent)]
    Architecture(#[from] ArchitectureError),
}

impl<R: Real> Model<R> {
    /// The model for standardised inputs (row-major, n × d₀ and n* × d₀) and coded targets (column-major, n × C).
    ///
    /// # Errors
    /// [`ModelError`] names what is out of range.
    pub fn new(
        architecture: Architecture,
        noise: f64,
        inputs: &[f64],
        targets: Vec<f64>,
        test_inputs: &[f64],
        reduction: InputReduction,
    ) -> Result<Self, ModelError> {
        architecture.check()?;
        if !(noise.is_finite() && noise > 0.0) {
            return Err(ModelError::Noise(noise));
        }
        let columns = architecture.inputs;
        if !test_inputs.len().is_multiple_of(columns) || !inputs.len().is_multiple_of(columns) {
            let (train, test) = (inputs.len(), test_inputs.len());
            return Err(ModelError::Columns { train, test });
        }
        if inputs.is_empty() || targets.len() != inputs.len() / columns * architecture.outputs {
            return Err(ModelError::NoData);
        }
        let (design, test_design) = design::designs(&architecture, inputs, test_inputs, reduction);
        Ok(Self {
            architecture,
            noise,
            targets,
            design,
            test_design,
        })
    }

    /// Training rows n.
    pub fn rows(&self) -> usize {
        self.design.rows()
    }

    /// Parameters below the readout, in the chain's (reduced) coordinates.
    pub fn inner_parameters(&self) -> usize {
        self.architecture.inner_parameters(self.design.columns())
    }
}
