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
    /// σ ≤ 0 or not finite, or σ² is not in the range of double precision.
    #[error(
        "the noise is {0}: it is a standard deviation and must be positive and finite, and so must its square"
    )]
    Noise(f64),
    /// No training rows.
    #[error("there are no training rows")]
    NoData,
    /// Inputs that are not a whole number of rows.
    #[error("{values} input values are not rows of {columns} columns")]
    Columns {
        /// Input values.
        values: usize,
        /// Columns that the network expects.
        columns: usize,
    },
    /// Not one target per training row and output.
    #[error("{values} target values were given for {rows} training rows of {outputs} outputs")]
    Targets {
        /// Target values.
        values: usize,
        /// Training rows.
        rows: usize,
        /// Outputs of the network.
        outputs: usize,
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
        if !(noise > 0.0 && (noise * noise).is_normal()) {
            return Err(ModelError::Noise(noise));
        }
        let (columns, outputs) = (architecture.inputs, architecture.outputs);
        for values in [inputs.len(), test_inputs.len()] {
            if !values.is_multiple_of(columns) {
                return Err(ModelError::Columns { values, columns });
            }
        }
        let (rows, values) = (inputs.len() / columns, targets.len());
        if rows == 0 {
            return Err(ModelError::NoData);
        }
        if rows.checked_mul(outputs) != Some(values) {
            return Err(ModelError::Targets {
                values,
                rows,
                outputs,
            });
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Activation;

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let make = |noise: f64, inputs: usize, targets: usize, test: usize| {
            let architecture = Architecture::new(3, &[2], 2, Activation::Gelu);
            let (x, y, x_test) = (vec![0.5; inputs], vec![0.5; targets], vec![0.5; test]);
            Model::<f64>::new(architecture, noise, &x, y, &x_test, InputReduction::Auto).err()
        };
        assert_eq!(make(0.1, 6, 4, 3), None);
        for noise in [0.0, -0.1, f64::NAN, f64::INFINITY, 1e-300, 1e300] {
            assert!(
                matches!(make(noise, 6, 4, 3), Some(ModelError::Noise(_))),
                "{noise}"
            );
        }
        assert_eq!(make(0.1, 0, 0, 3), Some(ModelError::NoData));
        assert_eq!(
            make(0.1, 6, 4, 4),
            Some(ModelError::Columns {
                values: 4,
                columns: 3
            })
        );
        let targets = ModelError::Targets {
            values: 5,
            rows: 2,
            outputs: 2,
        };
        assert_eq!(make(0.1, 6, 5, 3), Some(targets));
    }
}
