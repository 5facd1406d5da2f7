//! The Laplace approximation N(ŵ, (G + P)^(−1)) of a posterior around trained weights ŵ (MacKay 1992; Ritter, Botev & Barber 2018;
//! Daxberger et al. 2021), in every structure of G and for every subset of the weights.

use std::ops::Range;

use thiserror::Error;

use super::last_layer::LastLayer;
use super::structure::{LayerCurvature, Precision};
use super::{
    GaussNewton, KroneckerFactors, Lanczos, PriorPrecision, RowCurvature, Spectrum, SpectrumError,
    Structure, Subset,
};
use crate::compute::{EigenFailed, Matrix, Real, Stream, dot, matrix_mut};
use crate::model::likelihood::Likelihood;
use crate::network::{Executor, Layout};

/// Outputs up to which a trace is exact, and products that it is estimated with beyond.
const MOST_EXACT: usize = 100;
const PROBES: usize = 32;

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

/// What a curvature of low rank has not: eigenvalues beyond its pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LeftOut {
    /// How many may be other than zero.
    pub directions: usize,
    /// Their sum: the trace of G less the eigenvalues of the pairs.
    pub trace: f64,
    /// The most that they would add to log det(I + P^(−1)G), in nats: if they were all alike.
    pub log_determinant: f64,
}

/// A Gaussian around trained weights.
#[derive(Debug, Clone)]
pub struct Laplace<R> {
    weights: Vec<R>,
    subset: Subset,
    readout: usize,
    /// Parameter matrices of the whole network, and the places of the random ones in these.
    layout: Layout,
    layers: Vec<Range<usize>>,
    structure: Structure<R>,
    precisions: Vec<f64>,
    precision: Precision<R>,
    log_ratio: f64,
    curvature_scale: f64,
    log_likelihood: f64,
    /// Of a curvature of low rank: the trace and the largest rank of all of it.
    whole: Option<(f64, usize)>,
}

impl<R: Real> Laplace<R> {
    /// Fits the curvature at `weights`; the prior's precisions can be changed later.
    ///
    /// # Errors
    /// A curvature that is not finite, does not fit the memory, or is not available for the subset.
    #[allow(clippy::too_many_arguments, reason = "each of them is needed")]
    pub fn fit(
        executor: &mut Executor<R>,
        layout: &Layout,
        weights: &[R],
        data: LaplaceData<'_, R>,
        structure: HessianStructure,
        subset: Subset,
        prior: &PriorPrecision,
        stream: &mut Stream,
    ) -> Result<Self, LaplaceError> {
        let readout = executor.readout_parameters();
        let curvature = match subset {
            Subset::LastLayer => {
                LastLayer::new(executor, layout).fit(executor, weights, data, structure)?
            }
            _ => fit(executor, layout, weights, data, structure, &subset, stream)?,
        };
        let whole = match structure {
            HessianStructure::LowRank(_) => Some(trace(executor, weights, data)),
            _ => None,
        };
        let log_likelihood = data.scale * log_likelihood(executor, weights, data);
        let ranges: Vec<_> = layout
            .layers
            .iter()
            .map(|layer| layer.range.clone())
            .collect();
        let mut own = Self {
            weights: weights.to_vec(),
            readout,
            layers: subset.layers(&ranges),
            layout: layout.clone(),
            subset,
            structure: curvature,
            precisions: Vec::new(),
            precision: Precision::Diagonal(Vec::new()),
            log_ratio: 0.0,
            curvature_scale: 1.0,
            log_likelihood,
            whole,
        };
        own.set_prior_precision(prior)?;
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
        (self.precision, self.log_ratio) = self.structure.with_prior(&self.precisions, scale)?;
        Ok(())
    }

    /// ŵ.
    pub fn mean(&self) -> &[R] {
        &self.weights
    }

    /// The curvature.
    pub fn structure(&self) -> &Structure<R> {
        &self.structure
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

    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(super) fn precision(&self) -> &Precision<R> {
        &self.precision
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
    pub fn left_out(&self) -> Option<LeftOut> {
        let (trace, rank) = self.whole?;
        let Structure::Spectral(found) = &self.structure else {
            return None;
        };
        let directions = rank.saturating_sub(found.values.len());
        let kept: f64 = found.values.iter().sum();
        let trace = match directions {
            0 => 0.0,
            _ => self.curvature_scale * (trace - kept).max(0.0),
        };
        let least = self
            .precisions
            .iter()
            .copied()
            .fold(f64::INFINITY, f64::min);
        let each = trace / (directions.max(1) as f64 * least);
        Some(LeftOut {
            directions,
            trace,
            log_determinant: directions as f64 * each.ln_1p(),
        })
    }

    /// Variances of the random parameters: the diagonal of (G + P)^(−1).
    pub fn variances(&self) -> Vec<f64> {
        self.precision.variances(&self.structure)
    }

    /// `vector` ← (G + P)^(−1)·vector, for the random parameters.
    pub fn covariance_product(&self, vector: &mut [R]) {
        self.precision.covariance_product(&self.structure, vector);
    }

    /// Writes a draw of all weights; those that are not random are ŵ's.
    pub fn draw(&self, stream: &mut Stream, weights: &mut [R]) {
        let size = self.subset.len(self.weights.len(), self.readout);
        let mut noise = vec![R::ZERO; size];
        self.precision.draw(&self.structure, stream, &mut noise);
        weights.copy_from_slice(&self.weights);
        self.subset.add(&noise, weights, self.readout);
    }
}

fn fit<R: Real>(
    executor: &mut Executor<R>,
    layout: &Layout,
    weights: &[R],
    data: LaplaceData<'_, R>,
    structure: HessianStructure,
    subset: &Subset,
    stream: &mut Stream,
) -> Result<Structure<R>, LaplaceError> {
    let (size, readout) = (weights.len(), executor.readout_parameters());
    let places = subset.places(size, readout);
    let is_all = matches!(subset, Subset::All);
    let count = data.curvature.count(executor.outputs_count()) * data.inputs.nrows();
    let mut operator = GaussNewton {
        executor,
        weights,
        inputs: data.inputs,
        curvature: data.curvature,
        scale: data.scale,
    };
    let rounding = 1e-12;
    let chosen = "chosen parameters";
    let refuse = |structure, subset, instead| LaplaceError::Structure {
        structure,
        subset,
        instead,
    };
    match structure {
        HessianStructure::Full(most) => {
            let by_rows = is_all && count < size;
            // the rows, or the matrix and its eigenvectors
            let (small, bytes) = if by_rows {
                (count, (count * (size * 2 * R::BYTES + 24 * count)) as u64)
            } else {
                (places.len(), 24 * (places.len() as u64).pow(2))
            };
            if bytes > most {
                let size = small;
                return Err(LaplaceError::Memory { size, bytes, most });
            }
            let spectrum = if by_rows {
                Spectrum::of_rows(&operator.rows(), count, rounding)?
            } else {
                Spectrum::of_dense(&operator.dense(&places), places.len(), rounding)?
            };
            Ok(Structure::Spectral(spectrum))
        }
        HessianStructure::LowRank(lanczos) if is_all => {
            let found = Spectrum::lanczos(&mut operator, lanczos, None, stream)?;
            Ok(Structure::Spectral(found))
        }
        HessianStructure::LowRank(_) => Err(refuse("lowrank", chosen, "full or diag")),
        HessianStructure::Diag => {
            let diagonal = operator.diagonal();
            finite(&diagonal)?;
            let own = places.iter().map(|&at| diagonal[at]);
            Ok(Structure::Diagonal(own.collect()))
        }
        HessianStructure::Kron | HessianStructure::KronSeparate if is_all => {
            let is_separate = structure == HessianStructure::KronSeparate;
            let matrices = operator.kronecker();
            finite(&matrices)?;
            let scale = data.scale / data.inputs.nrows() as f64;
            let (mut rest, mut layers) = (&matrices[..], Vec::new());
            let mut diagonal = Vec::new();
            for layer in &layout.layers {
                let (a, after) = rest.split_at(layer.rows * layer.rows);
                let (b, after) = after.split_at(layer.units * layer.units);
                rest = after;
                if a.iter().all(|value| *value == 0.0) {
                    // batch normalisation has no factors
                    if diagonal.is_empty() {
                        diagonal = operator.diagonal();
                        finite(&diagonal)?;
                    }
                    let own = diagonal[layer.range.clone()].to_vec();
                    layers.push(LayerCurvature::Diagonal(own));
                } else {
                    let mut a = a.to_vec();
                    if is_separate && layer.has_bias {
                        separate_bias(&mut a, layer.rows);
                    }
                    let factors = KroneckerFactors::new(&a, b, scale)?;
                    layers.push(LayerCurvature::Kronecker(factors));
                }
            }
            Ok(Structure::Kronecker(layers))
        }
        HessianStructure::Kron | HessianStructure::KronSeparate => {
            Err(refuse("kron", chosen, "full or diag"))
        }
    }
}

/// Takes the products of the bias, the last of `rows` inputs, with the others out of A: its block is then A_bb·B/n.
pub(super) fn separate_bias(a: &mut [f64], rows: usize) {
    let last = rows.saturating_sub(1);
    for other in 0..last {
        a[last * rows + other] = 0.0;
        a[other * rows + last] = 0.0;
    }
}

/// The trace of G, and the most eigenvalues of it that are not zero. With many outputs, whose diagonal takes a pass for each of
/// them, the trace is an estimate.
fn trace<R: Real>(
    executor: &mut Executor<R>,
    weights: &[R],
    data: LaplaceData<'_, R>,
) -> (f64, usize) {
    let count = data.curvature.count(executor.outputs_count());
    let mut operator = GaussNewton {
        executor,
        weights,
        inputs: data.inputs,
        curvature: data.curvature,
        scale: data.scale,
    };
    let diagonal = if count <= MOST_EXACT {
        operator.diagonal()
    } else {
        operator.estimated_diagonal(PROBES, 0)
    };
    let rank = weights.len().min(count * data.inputs.nrows());
    (diagonal.iter().sum(), rank)
}

pub(super) fn finite(values: &[f64]) -> Result<(), LaplaceError> {
    match crate::compute::all_finite(values) {
        true => Ok(()),
        false => Err(LaplaceError::NotFinite),
    }
}

/// log p(y | w) of the rows.
fn log_likelihood<R: Real>(
    executor: &mut Executor<R>,
    weights: &[R],
    data: LaplaceData<'_, R>,
) -> f64 {
    let (rows, outputs) = (data.inputs.nrows(), executor.outputs_count());
    let mut f = vec![R::ZERO; rows * outputs];
    executor.outputs(weights, data.inputs, matrix_mut(&mut f, rows, outputs));
    let f: Vec<f64> = f.iter().map(|value| value.to_f64()).collect();
    let likelihood = data.likelihood;
    let value = likelihood.log_density(data.targets, &f, data.scales, None);
    value + likelihood.left_out(data.targets.len())
}
