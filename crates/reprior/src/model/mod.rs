//! Data, prior and likelihood: what the posterior is a posterior of.
//!
//! [`Dataset`](dataset::Dataset)s in their own units become a [`Model`]: standardised, with the inputs reduced to what the training
//! data can see ([`Design`]), and the targets coded as the [`likelihood`] wants them.

pub mod likelihood;
mod noise;
mod rotation;
mod scales;

// How the program codes and scales what it reads from files; it changes without notice.
#[doc(hidden)]
pub mod dataset;
#[doc(hidden)]
pub mod design;
#[doc(hidden)]
pub mod standardisation;
#[doc(hidden)]
pub mod targets;

use std::sync::Arc;

use thiserror::Error;

use crate::compute::Real;
use crate::network::{Composition, NetworkError};

use likelihood::{Gaussian, Likelihood};

pub use design::InputReduction;
pub(crate) use design::TestInputs;
use design::{Design, TestDesign};
pub use noise::{Noise, NoisePrior};
pub use scales::{LearnedScales, ScalePrior};

/// A network, its data and their likelihood: everything that defines the posterior.
///
/// Prior: N(0, 1) on every parameter (NTK parametrisation).
pub struct Model<R> {
    /// The network.
    pub architecture: Composition,
    /// How targets depend on outputs; Gaussian unless set by [`with_likelihood`](Self::with_likelihood).
    pub likelihood: Arc<dyn Likelihood>,
    /// Scales σ of the likelihood, in units of the standardised targets; unused by a likelihood without.
    pub noise: Noise,
    /// Coded training targets, column-major n × C.
    pub targets: Vec<f64>,
    /// Training inputs as the first layer sees them.
    pub design: Design<R>,
    /// Test inputs as the first layer sees them.
    pub test_design: TestDesign<R>,
    /// Scales of inner weights that are learned, if any are.
    pub scales: Option<LearnedScales>,
    /// Parameters below the readout.
    inner: usize,
}

/// A model that cannot be.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ModelError {
    /// σ ≤ 0 or not finite, or σ² is not in the range of double precision.
    #[error(
        "the noise is {0}: it is a standard deviation and must be positive and finite, and so must its square"
    )]
    Noise(f64),
    /// Not one σ, or one per output.
    #[error("{scales} noise scales were given for {outputs} outputs: give one, or one per output")]
    NoiseScales {
        /// How many scales.
        scales: usize,
        /// Outputs of the network.
        outputs: usize,
    },
    /// The spread of learned scales: ≤ 0 or not finite.
    #[error(
        "the spread of learned scales is {0}: it is a standard deviation and must be positive and finite"
    )]
    ScaleSpread(f64),
    /// Learned scales with reduced inputs.
    #[error("scales of weights can be learned only where inputs are not reduced")]
    ReducedScales,
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
    Composition(#[from] NetworkError),
}

impl<R: Real> Model<R> {
    /// The model for standardised inputs (row-major, n × d₀ and n* × d₀) and coded targets (column-major, n × C), with
    /// a Gaussian likelihood. `noise` may be a number: one σ for all outputs.
    ///
    /// # Errors
    /// [`ModelError`] names what is out of range.
    pub fn new(
        architecture: Composition,
        noise: impl Into<Noise>,
        inputs: &[f64],
        targets: Vec<f64>,
        test_inputs: &[f64],
        reduction: InputReduction,
    ) -> Result<Self, ModelError> {
        architecture.check()?;
        let noise = noise.into();
        if let Some(value) = noise.wrong_value() {
            return Err(ModelError::Noise(value));
        }
        let (columns, outputs) = (architecture.inputs(), architecture.outputs);
        if let Noise::Known(scales) = &noise
            && scales.len() != 1
            && scales.len() != outputs
        {
            let scales = scales.len();
            return Err(ModelError::NoiseScales { scales, outputs });
        }
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
            inner: architecture
                .with_design_columns(design.columns())
                .inner_parameters(),
            architecture,
            likelihood: Arc::new(Gaussian),
            noise,
            targets,
            design,
            test_design,
            scales: None,
        })
    }

    /// The same with other coded targets, column-major n × C.
    #[must_use]
    pub fn with_targets(&self, targets: Vec<f64>) -> Self {
        debug_assert_eq!(targets.len(), self.targets.len());
        Self {
            architecture: self.architecture.clone(),
            likelihood: Arc::clone(&self.likelihood),
            noise: self.noise.clone(),
            targets,
            design: self.design.clone(),
            test_design: self.test_design.clone(),
            scales: self.scales.clone(),
            inner: self.inner,
        }
    }

    /// The same with another likelihood, for targets coded as it wants them. Where it has no scale, nothing is learned.
    #[must_use]
    pub fn with_likelihood(mut self, likelihood: Arc<dyn Likelihood>) -> Self {
        if !likelihood.has_scale() {
            self.noise = Noise::from(1.0);
        }
        self.likelihood = likelihood;
        self
    }

    /// The same with scales of inner weights that are learned: one for every layer below the readout, or (`by_input`) one for each input of
    /// a fully connected network in place of its first layer's. Prior: N(0, 1) given the scales on what they multiply.
    ///
    /// # Errors
    /// A spread that is not positive and finite, or a model whose inputs are reduced ([`InputReduction::Off`] leaves them).
    pub fn with_learned_scales(
        mut self,
        prior: ScalePrior,
        by_input: bool,
    ) -> Result<Self, ModelError> {
        if self.design.is_reduced() {
            return Err(ModelError::ReducedScales);
        }
        let scales = LearnedScales::new(prior, &self.architecture, by_input)?;
        self.scales = Some(scales);
        Ok(self)
    }

    /// The network as it meets the model's [design](Self::design): its inputs are the first columns there, and its parameters a
    /// position in `standard` coordinates with the noise known: inner weights (the first layer's reduced where inputs are), then
    /// the readout.
    pub fn reduced_network(&self) -> Composition {
        self.architecture.with_design_columns(self.design.columns())
    }

    /// Coordinates of a position that noise scales take.
    pub fn noise_coordinates(&self) -> usize {
        self.noise.coordinates(self.architecture.outputs)
    }

    /// Coordinates of a position that learned scales of weights take.
    pub fn scale_coordinates(&self) -> usize {
        self.scales.as_ref().map_or(0, LearnedScales::count)
    }

    /// Training rows n.
    pub fn rows(&self) -> usize {
        self.design.rows()
    }

    /// Parameters below the readout, in the chain's (reduced) coordinates.
    pub fn inner_parameters(&self) -> usize {
        self.inner
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Activation;

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let make = |noise: f64, inputs: usize, targets: usize, test: usize| {
            let architecture = Composition::fully_connected(3, &[2], 2, Activation::Gelu);
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
