//! The Laplace approximation N(ŵ, (G + P)^(−1)) of a posterior around trained weights ŵ (MacKay 1992; Ritter, Botev & Barber 2018;
//! Daxberger et al. 2021), in every structure of G and for every subset of the weights.

use std::ops::Range;

use thiserror::Error;

use super::curvature::GaussNewton;
use super::diag::Diagonal;
use super::kron::Kronecker;
use super::last_layer::LastLayer;
use super::low_rank::{LeftOutCurvature, LowRank};
use super::spectrum::SpectrumError;
use super::structure::{DecompositionReport, KeptArray, KeptArrays, KeptFit, Structure, load};
use super::{Lanczos, PriorPrecision, RowCurvature, Subset, full};
use crate::compute::{EigenFailed, Matrix, Real, Stream, dot, matrix_mut};
use crate::model::likelihood::Likelihood;
use crate::network::Executor;
use crate::network::layer::ShapeError;
use crate::network::parameters::ParameterLayout;

/// Why there is no approximation.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum LaplaceError {
    /// A number of the curvature is not finite.
    #[error("the curvature at these weights is not finite: they, or the inputs, are out of range")]
    NotFinite,
    /// A decomposition failed.
    #[error(transparent)]
    Spectrum(#[from] SpectrumError),
    /// A small eigenvalue problem failed.
    #[error(transparent)]
    Eigen(#[from] EigenFailed),
    /// Kronecker factors with several precisions in one layer.
    #[error(
        "Kronecker factors need one prior precision for each layer, not one for each parameter"
    )]
    PrecisionWithinLayer,
    /// Numbers of precisions.
    #[error(
        "{given} prior precisions were given: give one, one for each of {layers} layers or one for each of {parameters} parameters, all positive and finite"
    )]
    Precisions {
        /// How many were given.
        given: usize,
        /// Layers with parameters.
        layers: usize,
        /// Parameters that are random.
        parameters: usize,
    },
    /// More memory than allowed.
    #[error(
        "a full {size} x {size} curvature takes {bytes} bytes, more than {most}: use the structure kron, diag or lowrank, or fewer weights"
    )]
    Memory {
        /// Parameters, or rows of Jacobians if these are fewer.
        size: usize,
        /// What it would take.
        bytes: u64,
        /// What may be taken.
        most: u64,
    },
    /// A layer that does not fit.
    #[error(transparent)]
    Layer(#[from] ShapeError),
    /// A likelihood without a curvature.
    #[error("the likelihood does not say what the curvature of its outputs is")]
    NoCurvature,
    /// A fit that was kept and cannot be made again.
    #[error("the fit cannot be used: {0}")]
    Kept(String),
    /// A structure that a subset has not.
    #[error("a {structure} curvature is not available for {subset}: use {instead}")]
    Structure {
        /// Its name.
        structure: &'static str,
        /// What it was wanted for.
        subset: &'static str,
        /// What there is.
        instead: &'static str,
    },
}

/// The structure of the curvature.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HessianStructure {
    /// All of it, with at most so many bytes.
    Full(u64),
    /// Kronecker factors of each layer, the bias as one more input of its units.
    Kron,
    /// The same with each layer's biases as a block of their own: laplace-torch's, with its default backend.
    KronSeparate,
    /// Its diagonal.
    Diag,
    /// Its leading eigenpairs.
    LowRank(Lanczos),
}

/// What an approximation is fitted to.
#[derive(Debug, Clone, Copy)]
pub struct LaplaceData<'a, R> {
    /// n × d₀.
    pub inputs: Matrix<'a, R>,
    /// n × C, column-major.
    pub targets: &'a [f64],
    /// Of the targets.
    pub likelihood: &'a dyn Likelihood,
    /// One σ for each output.
    pub scales: &'a [f64],
    /// H of each row.
    pub curvature: &'a dyn RowCurvature<R>,
    /// N/n if the rows stand for N of them.
    pub scale: f64,
}

/// A Gaussian around trained weights.
#[derive(Debug)]
pub struct Laplace<R> {
    weights: Vec<R>,
    subset: Subset,
    readout: usize,
    /// Parameter matrices of the whole network, and the places of the random ones in these.
    layout: ParameterLayout,
    layers: Vec<Range<usize>>,
    structure: Box<dyn Structure<R>>,
    precisions: Vec<f64>,
    log_ratio: f64,
    curvature_scale: f64,
    log_likelihood: f64,
}

impl<R: Real> Laplace<R> {
    /// Fits the curvature at `weights`; the prior's precisions can be changed later.
    ///
    /// # Errors
    /// A curvature that is not finite, does not fit the memory, or is not available for the subset.
    #[allow(clippy::too_many_arguments, reason = "each of them is needed")]
    pub fn fit(
        executor: &mut Executor<R>,
        layout: &ParameterLayout,
        weights: &[R],
        data: LaplaceData<'_, R>,
        structure: HessianStructure,
        subset: Subset,
        prior: &PriorPrecision,
        stream: &mut Stream,
    ) -> Result<Self, LaplaceError> {
        let fitted: Box<dyn Structure<R>> = if subset == Subset::LastLayer {
            Box::new(LastLayer::fit(executor, layout, weights, &data, structure)?)
        } else {
            let mut operator = data.operator(executor, weights);
            fit(&mut operator, layout, structure, &subset, stream)?
        };
        let log_likelihood = data.scale * data.log_likelihood(executor, weights);
        let mut own = Self::new(layout, weights.to_vec(), subset, fitted, log_likelihood);
        own.set_prior_precision(prior)?;
        Ok(own)
    }

    fn new(
        layout: &ParameterLayout,
        weights: Vec<R>,
        subset: Subset,
        structure: Box<dyn Structure<R>>,
        log_likelihood: f64,
    ) -> Self {
        let ranges: Vec<_> = layout
            .layers
            .iter()
            .map(|layer| layer.range.clone())
            .collect();
        Self {
            weights,
            readout: ranges.last().map_or(0, Range::len),
            layers: subset.layers(&ranges),
            layout: layout.clone(),
            subset,
            structure,
            precisions: Vec::new(),
            log_ratio: 0.0,
            curvature_scale: 1.0,
            log_likelihood,
        }
    }

    /// What [`load`](Self::load) makes the same approximation of again, bit for bit.
    pub fn keep(&self) -> (KeptFit, Vec<(String, KeptArray<'_, R>)>) {
        let about = KeptFit {
            structure: self.structure.name().to_owned(),
            subset: self.subset.clone(),
        };
        let mut arrays = self.structure.arrays();
        let is_one = self.precisions.iter().all(|p| *p == self.precisions[0]);
        let precisions = &self.precisions[..if is_one { 1 } else { self.precisions.len() }];
        arrays.extend([
            ("weights".to_owned(), KeptArray::Weights(&self.weights[..])),
            ("precisions".to_owned(), KeptArray::Double(precisions)),
            (
                "scale".to_owned(),
                KeptArray::Double(std::slice::from_ref(&self.curvature_scale)),
            ),
            (
                "log_likelihood".to_owned(),
                KeptArray::Double(std::slice::from_ref(&self.log_likelihood)),
            ),
        ]);
        (about, arrays)
    }

    /// The approximation that [`keep`](Self::keep) gave, of a network with these parameters.
    ///
    /// # Errors
    /// [`LaplaceError::Kept`]: something is missing, or is of another network.
    pub fn load(
        layout: &ParameterLayout,
        about: KeptFit,
        mut arrays: KeptArrays<R>,
    ) -> Result<Self, LaplaceError> {
        let weights = arrays.take_weights("weights")?;
        let readout = layout.layers.last().map_or(0, |layer| layer.range.len());
        let size = about.subset.len(weights.len(), readout);
        let is_inside = match &about.subset {
            Subset::Parameters(places) => places.iter().all(|&at| at < weights.len()),
            _ => true,
        };
        if weights.len() != layout.len() || !is_inside {
            return Err(LaplaceError::Kept(format!(
                "it is of {} weights, the network has {}",
                weights.len(),
                layout.len()
            )));
        }
        let structure: Box<dyn Structure<R>> = match about.subset {
            Subset::LastLayer => Box::new(LastLayer::load(layout, &about.structure, &mut arrays)?),
            _ => load(&about.structure, size, &mut arrays)?,
        };
        let number = |values: Vec<f64>| values.first().copied().unwrap_or(f64::NAN);
        let log_likelihood = number(arrays.take("log_likelihood")?);
        let mut own = Self::new(layout, weights, about.subset, structure, log_likelihood);
        own.curvature_scale = number(arrays.take("scale")?);
        let precisions = arrays.take("precisions")?;
        own.set_prior_precision(&match precisions[..] {
            [precision] => PriorPrecision::Scalar(precision),
            _ => PriorPrecision::PerParameter(precisions),
        })?;
        Ok(own)
    }

    /// The posterior with another prior.
    ///
    /// # Errors
    /// Precisions that are not positive and finite, or as many as there should be.
    pub fn set_prior_precision(&mut self, prior: &PriorPrecision) -> Result<(), LaplaceError> {
        let size = self.subset.len(self.weights.len(), self.readout);
        let wrong = |given: usize| LaplaceError::Precisions {
            given,
            layers: self.layers.len(),
            parameters: size,
        };
        let precisions = match prior {
            PriorPrecision::Scalar(alpha) => vec![*alpha; size],
            PriorPrecision::PerLayer(values) if values.len() == self.layers.len() => {
                let pairs = values.iter().zip(&self.layers);
                pairs
                    .flat_map(|(value, range)| vec![*value; range.len()])
                    .collect()
            }
            PriorPrecision::PerParameter(values) if values.len() == size => values.clone(),
            PriorPrecision::PerLayer(values) | PriorPrecision::PerParameter(values) => {
                return Err(wrong(values.len()));
            }
        };
        if precisions.iter().any(|p| !(p.is_finite() && *p > 0.0)) {
            return Err(wrong(precisions.len().min(1)));
        }
        self.precisions = precisions;
        self.refresh()
    }

    /// Takes the log-likelihood of more rows than the curvature is of.
    pub(super) fn set_log_likelihood(&mut self, log_likelihood: f64) {
        self.log_likelihood = log_likelihood;
    }

    /// The posterior for `scale` times the curvature that was fitted, with the log-likelihood of the training data then: with
    /// another σ of a Gaussian likelihood (σ_before/σ)².
    ///
    /// # Errors
    /// Numbers that are not finite.
    pub fn rescale(&mut self, scale: f64, log_likelihood: f64) -> Result<(), LaplaceError> {
        self.curvature_scale = scale;
        self.log_likelihood = log_likelihood;
        self.refresh()
    }

    fn refresh(&mut self) -> Result<(), LaplaceError> {
        let scale = self.curvature_scale;
        self.log_ratio = self.structure.set_prior(&self.precisions, scale)?;
        Ok(())
    }

    /// ŵ.
    pub fn mean(&self) -> &[R] {
        &self.weights
    }

    /// How the curvature's decomposition went.
    pub fn report(&self) -> DecompositionReport {
        self.structure.report()
    }

    /// Which weights are random.
    pub fn subset(&self) -> &Subset {
        &self.subset
    }

    /// Prior precisions of the random parameters.
    pub fn precisions(&self) -> &[f64] {
        &self.precisions
    }

    /// Places of each layer's parameters among the random ones.
    pub fn layers(&self) -> &[Range<usize>] {
        &self.layers
    }

    pub(super) fn subset_mean(&self) -> Vec<f64> {
        self.subset.gather(&self.weights, self.readout)
    }

    pub(super) fn layout(&self) -> &ParameterLayout {
        &self.layout
    }

    pub(super) fn structure(&self) -> &dyn Structure<R> {
        &*self.structure
    }

    pub(super) fn readout(&self) -> usize {
        self.readout
    }

    /// log p(y | ŵ) of the training data, with every constant.
    pub fn log_likelihood(&self) -> f64 {
        self.log_likelihood
    }

    /// log det(G + P) − log det P.
    pub fn log_determinant_ratio(&self) -> f64 {
        self.log_ratio
    }

    /// log p(y | ŵ) − ½·ŵᵀPŵ − ½·(log det(G + P) − log det P).
    pub fn log_marginal_likelihood(&self) -> f64 {
        let mean = self.subset_mean();
        let pairs = mean.iter().zip(&self.precisions);
        let scatter: f64 = pairs.map(|(w, precision)| precision * w * w).sum();
        self.log_likelihood - 0.5 * (scatter + self.log_ratio)
    }

    /// ½·gᵀ(G + P)^(−1)g for the gradient g of a log-density in all weights, of which those of the random ones count: what the
    /// density can rise by, in nats, if G + P is its curvature. Half the square of Newton's decrement, 0 at a mode.
    pub fn nats_to_mode(&self, gradient: &[R]) -> f64 {
        let own = self.subset.gather(gradient, self.readout);
        let own: Vec<R> = own.into_iter().map(R::from_f64).collect();
        let mut step = own.clone();
        self.covariance_product(&mut step);
        0.5 * dot(&own, &step)
    }

    /// What a curvature of low rank has left out; none of other structures.
    pub fn left_out(&self) -> Option<LeftOutCurvature> {
        self.structure
            .left_out(&self.precisions, self.curvature_scale)
    }

    /// Variances of the random parameters: the diagonal of (G + P)^(−1).
    pub fn variances(&self) -> Vec<f64> {
        self.structure.variances()
    }

    /// `vector` ← (G + P)^(−1)·vector, for the random parameters.
    pub fn covariance_product(&self, vector: &mut [R]) {
        self.structure.covariance_product(vector);
    }

    /// Writes a draw of all weights; those that are not random are ŵ's.
    pub fn draw(&self, stream: &mut Stream, weights: &mut [R]) {
        let size = self.subset.len(self.weights.len(), self.readout);
        let mut noise = vec![R::ZERO; size];
        stream.fill_normal(&mut noise);
        self.structure.draw(&mut noise);
        weights.copy_from_slice(&self.weights);
        self.subset.add(&noise, weights, self.readout);
    }
}

/// The curvature of all parameters, or of chosen ones.
fn fit<R: Real>(
    operator: &mut GaussNewton<'_, R>,
    layout: &ParameterLayout,
    structure: HessianStructure,
    subset: &Subset,
    stream: &mut Stream,
) -> Result<Box<dyn Structure<R>>, LaplaceError> {
    let places = subset.places(
        operator.weights.len(),
        layout.layers.last().map_or(0, |layer| layer.range.len()),
    );
    let needs_all = |structure, instead| match subset {
        Subset::All => Ok(()),
        _ => Err(LaplaceError::Structure {
            structure,
            subset: "chosen parameters",
            instead,
        }),
    };
    Ok(match structure {
        HessianStructure::Full(most) => Box::new(full::fit(operator, &places, most)?),
        HessianStructure::Diag => Box::new(Diagonal::fit(operator, &places)?),
        HessianStructure::LowRank(lanczos) => {
            needs_all("lowrank", "full or diag")?;
            Box::new(LowRank::fit(operator, lanczos, stream)?)
        }
        HessianStructure::Kron | HessianStructure::KronSeparate => {
            needs_all("kron", "full or diag")?;
            let is_separate = structure == HessianStructure::KronSeparate;
            Box::new(Kronecker::fit(operator, layout, is_separate)?)
        }
    })
}

impl HessianStructure {
    /// Whether these are Kronecker factors, which need one prior precision for each layer.
    pub fn is_kronecker(self) -> bool {
        matches!(self, Self::Kron | Self::KronSeparate)
    }
}

impl<'a, R: Real> LaplaceData<'a, R> {
    /// Their curvature at `weights`.
    pub fn operator(&self, executor: &'a mut Executor<R>, weights: &'a [R]) -> GaussNewton<'a, R> {
        GaussNewton {
            executor,
            weights,
            inputs: self.inputs,
            curvature: self.curvature,
            scale: self.scale,
        }
    }

    /// log p(y | w) of the rows.
    pub(super) fn log_likelihood(&self, executor: &mut Executor<R>, weights: &[R]) -> f64 {
        let (rows, outputs) = (self.inputs.nrows(), executor.outputs_count());
        let mut f = vec![R::ZERO; rows * outputs];
        executor.outputs(weights, self.inputs, matrix_mut(&mut f, rows, outputs));
        let f: Vec<f64> = f.iter().map(|value| value.to_f64()).collect();
        let likelihood = self.likelihood;
        let value = likelihood.log_density(self.targets, &f, self.scales, None);
        value + likelihood.left_out(self.targets.len())
    }
}
