//! Structures that a curvature may have, each with what posteriors need of it: samples, determinants, products.
//!
//! With prior precisions P (diagonal) the posterior's precision is G + P:
//!
//! | structure | G | memory |
//! |---|---|---|
//! | diagonal | diag(g) | D |
//! | Kronecker | A ⊗ B/n for each layer, as Q_A Λ_A Q_Aᵀ ⊗ Q_B Λ_B Q_Bᵀ | rows² + units² a layer |
//! | spectral (full and low rank) | UΛUᵀ | D·k |
//!
//! A spectral one is kept in the coordinates of the prior: P^(−1/2)·UΛ^(1/2) = Q·S·Rᵀ makes G + P = P^(1/2)(I + QS²Qᵀ)P^(1/2),
//! with Q = U and S² = Λ/α where P = αI.

use super::{LaplaceError, Spectrum};
use crate::compute::{
    Real, Stream, add_scaled, gram_of_columns, matrix, matrix_mut, multiply, symmetric_eigen,
};

/// Curvature at fixed weights.
#[derive(Debug, Clone)]
pub enum Structure<R> {
    /// One number for each parameter, not negative.
    Diagonal(Vec<f64>),
    /// Layer after layer.
    Kronecker(Vec<LayerCurvature<R>>),
    /// Eigenpairs; all that are not zero if the structure is full.
    Spectral(Spectrum<R>),
}

/// One layer's curvature.
#[derive(Debug, Clone)]
pub enum LayerCurvature<R> {
    /// A ⊗ B/n.
    Kronecker(KroneckerFactors<R>),
    /// Of layers without factors (batch normalisation).
    Diagonal(Vec<f64>),
}

/// The eigenvalues and eigenvectors of A (rows × rows) and B/n (units × units).
#[derive(Debug, Clone)]
pub struct KroneckerFactors<R> {
    /// Of A, not negative.
    pub inputs: Vec<f64>,
    /// Of B/n, not negative.
    pub outputs: Vec<f64>,
    /// Q_A and Q_B, column-major.
    pub vectors: [Vec<R>; 2],
}

impl<R: Real> KroneckerFactors<R> {
    /// From A and B, and what B is multiplied by. Eigenvalues below zero are rounding.
    ///
    /// # Errors
    /// Numbers that are not finite.
    pub fn new(a: &[f64], b: &[f64], scale: f64) -> Result<Self, LaplaceError> {
        let decompose = |values: &[f64], scale: f64| {
            let size = values.len().isqrt();
            if !crate::compute::all_finite(values) {
                return Err(LaplaceError::NotFinite);
            }
            let (values, vectors) = symmetric_eigen(values, size)?;
            let values = values.iter().map(|value| (scale * value).max(0.0));
            let vectors = vectors.iter().map(|&value| R::from_f64(value));
            Ok((values.collect::<Vec<_>>(), vectors.collect::<Vec<_>>()))
        };
        let (inputs, first) = decompose(a, 1.0)?;
        let (outputs, second) = decompose(b, scale)?;
        Ok(Self {
            inputs,
            outputs,
            vectors: [first, second],
        })
    }

    /// λ_i·μ_j, column-major rows × units.
    pub fn values(&self) -> impl Iterator<Item = f64> + '_ {
        let column = |&output: &f64| self.inputs.iter().map(move |input| input * output);
        self.outputs.iter().flat_map(column)
    }

    /// `matrix` (rows × units) ← Q_A·matrix·Q_Bᵀ.
    pub fn turn_back(&self, values: &mut [R]) {
        let [rows, units] = [self.inputs.len(), self.outputs.len()];
        let [a, b] = &self.vectors;
        self.turn(
            values,
            matrix(a, rows, rows),
            matrix(b, units, units).transpose(),
        );
    }

    /// `matrix` (rows × units) ← Q_Aᵀ·matrix·Q_B.
    pub fn turn_there(&self, values: &mut [R]) {
        let [rows, units] = [self.inputs.len(), self.outputs.len()];
        let [a, b] = &self.vectors;
        self.turn(
            values,
            matrix(a, rows, rows).transpose(),
            matrix(b, units, units),
        );
    }

    fn turn(
        &self,
        values: &mut [R],
        left: crate::compute::Matrix<'_, R>,
        right: crate::compute::Matrix<'_, R>,
    ) {
        let [rows, units] = [left.nrows(), right.nrows()];
        let mut half = vec![R::ZERO; values.len()];
        let out = matrix_mut(&mut half, rows, units);
        multiply(out, false, 1.0, left, matrix(values, rows, units));
        let out = matrix_mut(values, rows, units);
        multiply(out, false, 1.0, matrix(&half, rows, units), right);
    }
}

/// A posterior's precision G + P, ready to be used.
#[derive(Debug, Clone)]
pub(super) enum Precision<R> {
    /// Variances.
    Diagonal(Vec<f64>),
    /// Variances layer after layer, in the coordinates of the factors where there are any.
    Kronecker(Vec<Vec<f64>>),
    /// P^(−1/2), Q (D × k) and S².
    Spectral {
        prior_scales: Vec<f64>,
        vectors: Vec<R>,
        values: Vec<f64>,
    },
}

impl<R: Real> Structure<R> {
    /// G·`scale` + P and log det(I + P^(−1)·G·`scale`), for the precisions P of all parameters. With factors, precisions are the
    /// same within a layer.
    pub(super) fn with_prior(
        &self,
        precisions: &[f64],
        scale: f64,
    ) -> Result<(Precision<R>, f64), LaplaceError> {
        let variances = |values: &mut dyn Iterator<Item = f64>, precisions: &[f64]| {
            let mut log_ratio = 0.0;
            let pairs = values.zip(precisions).map(|(value, precision)| {
                log_ratio += (scale * value / precision).ln_1p();
                1.0 / (scale * value + precision)
            });
            let variances: Vec<f64> = pairs.collect();
            (variances, log_ratio)
        };
        match self {
            Self::Diagonal(values) => {
                let (variances, ratio) = variances(&mut values.iter().copied(), precisions);
                Ok((Precision::Diagonal(variances), ratio))
            }
            Self::Kronecker(layers) => {
                let (mut all, mut total, mut rest) = (Vec::new(), 0.0, precisions);
                for layer in layers {
                    let (own, after) = rest.split_at(layer.len());
                    let (variances, ratio) = match layer {
                        LayerCurvature::Diagonal(g) => variances(&mut g.iter().copied(), own),
                        LayerCurvature::Kronecker(factors) => {
                            if own.iter().any(|precision| *precision != own[0]) {
                                return Err(LaplaceError::PrecisionWithinLayer);
                            }
                            variances(&mut factors.values(), own)
                        }
                    };
                    rest = after;
                    total += ratio;
                    all.push(variances);
                }
                Ok((Precision::Kronecker(all), total))
            }
            Self::Spectral(spectrum) => spectral(spectrum, precisions, scale),
        }
    }
}

impl<R: Real> LayerCurvature<R> {
    /// Parameters.
    pub fn len(&self) -> usize {
        match self {
            Self::Diagonal(values) => values.len(),
            Self::Kronecker(factors) => factors.inputs.len() * factors.outputs.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn spectral<R: Real>(
    spectrum: &Spectrum<R>,
    precisions: &[f64],
    scale: f64,
) -> Result<(Precision<R>, f64), LaplaceError> {
    let (size, rank) = (precisions.len(), spectrum.values.len());
    let prior_scales: Vec<f64> = precisions.iter().map(|p| p.sqrt().recip()).collect();
    let first = precisions.first().copied().unwrap_or(1.0);
    let (vectors, values) = if precisions.iter().all(|precision| *precision == first) {
        let values = spectrum.values.iter().map(|value| scale * value / first);
        (spectrum.vectors.clone(), values.collect::<Vec<_>>())
    } else {
        // P^(-1/2)·U·Λ^(1/2), whose singular value decomposition comes from its Gram matrix
        let mut factor: Vec<f64> = spectrum.vectors.iter().map(|u| u.to_f64()).collect();
        for (column, value) in factor.chunks_exact_mut(size).zip(&spectrum.values) {
            let root = (scale * value).sqrt();
            for (entry, own) in column.iter_mut().zip(&prior_scales) {
                *entry *= root * own;
            }
        }
        let mut gram = vec![0.0; rank * rank];
        let own = matrix(&factor, size, rank);
        gram_of_columns(matrix_mut(&mut gram, rank, rank), own);
        let right = Spectrum::<f64>::of_dense(&gram, rank, 1e-13)?;
        let kept = right.values.len();
        let mut vectors = vec![0.0; size * kept];
        let out = matrix_mut(&mut vectors, size, kept);
        multiply(out, false, 1.0, own, matrix(&right.vectors, rank, kept));
        for (column, value) in vectors.chunks_exact_mut(size.max(1)).zip(&right.values) {
            let norm = value.sqrt().recip();
            column.iter_mut().for_each(|value| *value *= norm);
        }
        let vectors = vectors.into_iter().map(R::from_f64).collect();
        (vectors, right.values)
    };
    let log_ratio = values.iter().map(|value| value.ln_1p()).sum();
    let precision = Precision::Spectral {
        prior_scales,
        vectors,
        values,
    };
    Ok((precision, log_ratio))
}

impl<R: Real> Precision<R> {
    /// `noise` ← (G + P)^(−1/2)·noise for standard normal numbers: a draw of the Gaussian around zero.
    pub fn draw(&self, structure: &Structure<R>, stream: &mut Stream, noise: &mut [R]) {
        stream.fill_normal(noise);
        match (self, structure) {
            (Self::Diagonal(variances), _) => scale_by_roots(noise, variances),
            (Self::Kronecker(layers), Structure::Kronecker(curvatures)) => {
                let mut rest = noise;
                for (variances, curvature) in layers.iter().zip(curvatures) {
                    let (own, after) = rest.split_at_mut(variances.len());
                    rest = after;
                    scale_by_roots(own, variances);
                    if let LayerCurvature::Kronecker(factors) = curvature {
                        factors.turn_back(own);
                    }
                }
            }
            (Self::Spectral { .. }, _) => {
                self.add_along(noise, |value| (1.0 + value).sqrt().recip() - 1.0);
                self.scale_by_prior(noise);
            }
            (Self::Kronecker(_), _) => {}
        }
    }

    /// `vector` ← (G + P)^(−1)·vector.
    pub fn covariance_product(&self, structure: &Structure<R>, vector: &mut [R]) {
        match (self, structure) {
            (Self::Diagonal(variances), _) => scale_by(vector, variances),
            (Self::Kronecker(layers), Structure::Kronecker(curvatures)) => {
                let mut rest = vector;
                for (variances, curvature) in layers.iter().zip(curvatures) {
                    let (own, after) = rest.split_at_mut(variances.len());
                    rest = after;
                    match curvature {
                        LayerCurvature::Diagonal(_) => scale_by(own, variances),
                        LayerCurvature::Kronecker(factors) => {
                            factors.turn_there(own);
                            scale_by(own, variances);
                            factors.turn_back(own);
                        }
                    }
                }
            }
            (Self::Spectral { .. }, _) => {
                self.scale_by_prior(vector);
                self.add_along(vector, |value| (1.0 + value).recip() - 1.0);
                self.scale_by_prior(vector);
            }
            (Self::Kronecker(_), _) => {}
        }
    }

    /// The diagonal of (G + P)^(−1).
    pub fn variances(&self, structure: &Structure<R>) -> Vec<f64> {
        match (self, structure) {
            (Self::Diagonal(variances), _) => variances.clone(),
            (Self::Kronecker(layers), Structure::Kronecker(curvatures)) => {
                let pairs = layers.iter().zip(curvatures);
                pairs
                    .flat_map(|(variances, own)| own.variances(variances))
                    .collect()
            }
            (
                Self::Spectral {
                    prior_scales,
                    vectors,
                    values,
                },
                _,
            ) => {
                let mut kept = vec![1.0; prior_scales.len()];
                let columns = vectors.chunks_exact(prior_scales.len().max(1));
                for (column, value) in columns.zip(values) {
                    let part = value / (1.0 + value);
                    for (kept, entry) in kept.iter_mut().zip(column) {
                        *kept -= part * entry.to_f64().powi(2);
                    }
                }
                let pairs = kept.iter().zip(prior_scales);
                pairs
                    .map(|(kept, scale)| kept.max(0.0) * scale * scale)
                    .collect()
            }
            (Self::Kronecker(_), _) => Vec::new(),
        }
    }

    /// `vector` ← vector + Q·factor(S²)·Qᵀ·vector.
    fn add_along(&self, vector: &mut [R], factor: impl Fn(f64) -> f64) {
        let Self::Spectral {
            vectors, values, ..
        } = self
        else {
            return;
        };
        let (size, rank) = (vector.len(), values.len());
        if rank == 0 {
            return;
        }
        let directions = matrix(vectors, size, rank);
        let mut along = vec![R::ZERO; rank];
        let own = matrix(vector, size, 1);
        multiply(
            matrix_mut(&mut along, rank, 1),
            false,
            1.0,
            directions.transpose(),
            own,
        );
        for ((column, along), value) in vectors.chunks_exact(size).zip(&along).zip(values) {
            add_scaled(vector, factor(*value) * along.to_f64(), column);
        }
    }

    fn scale_by_prior(&self, vector: &mut [R]) {
        if let Self::Spectral { prior_scales, .. } = self {
            scale_by(vector, prior_scales);
        }
    }
}

impl<R: Real> LayerCurvature<R> {
    /// The diagonal of Q·diag(variances)·Qᵀ for the layer's rotation Q.
    fn variances(&self, variances: &[f64]) -> Vec<f64> {
        let Self::Kronecker(factors) = self else {
            return variances.to_vec();
        };
        let [rows, units] = [factors.inputs.len(), factors.outputs.len()];
        let squares = |at: usize| -> Vec<f64> {
            let values = factors.vectors[at].iter();
            values.map(|value| value.to_f64().powi(2)).collect()
        };
        let (a, b) = (squares(0), squares(1));
        let (mut half, mut out) = (vec![0.0; rows * units], vec![0.0; rows * units]);
        let to = matrix_mut(&mut half, rows, units);
        multiply(
            to,
            false,
            1.0,
            matrix(&a, rows, rows),
            matrix(variances, rows, units),
        );
        let right = matrix(&b, units, units).transpose();
        let to = matrix_mut(&mut out, rows, units);
        multiply(to, false, 1.0, matrix(&half, rows, units), right);
        out
    }
}

fn scale_by<R: Real>(values: &mut [R], scales: &[f64]) {
    for (value, &scale) in values.iter_mut().zip(scales) {
        *value *= R::from_f64(scale);
    }
}

fn scale_by_roots<R: Real>(values: &mut [R], variances: &[f64]) {
    for (value, &variance) in values.iter_mut().zip(variances) {
        *value *= R::from_f64(variance.sqrt());
    }
}
