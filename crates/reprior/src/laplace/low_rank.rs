//! Leading eigenpairs of the curvature, G ≈ UΛUᵀ; all that are not zero if the structure is `full`.
//!
//! They are kept in the coordinates of the prior: P^(−1/2)·UΛ^(1/2) = Q·S·Rᵀ makes G + P = P^(1/2)(I + QS²Qᵀ)P^(1/2), with Q = U and
//! S² = Λ/α where P = αI.

use super::curvature::GaussNewton;
use super::last_layer::RowFeatures;
use super::spectrum::Spectrum;
use super::structure::{
    DecompositionReport, KeptArray, KeptArrays, PredictionPoint, ReadoutStructure, Structure,
    scale_by,
};
use super::{Lanczos, LaplaceError};
use crate::compute::{Real, Stream, add_scaled, gram_of_columns, matrix, matrix_mut, multiply};

/// Outputs up to which a trace is exact, and products that it is estimated with beyond.
const MOST_EXACT: usize = 100;
const PROBES: usize = 32;

/// Directions that are multiplied in one pass.
const AT_ONCE: usize = 32;

/// What a curvature of low rank has not: eigenvalues beyond its pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LeftOutCurvature {
    /// How many may be other than zero.
    pub directions: usize,
    /// Their sum: the trace of G less the eigenvalues of the pairs.
    pub trace: f64,
    /// The most that they would add to log det(I + P^(−1)G), in nats: if they were all alike.
    pub log_determinant: f64,
}

/// Eigenpairs with a prior.
#[derive(Debug, Clone)]
pub(super) struct LowRank<R> {
    spectrum: Spectrum<R>,
    /// The trace and the largest rank of all of G, unless nothing is left out.
    whole: Option<[f64; 2]>,
    /// P^(−1/2).
    prior_scales: Vec<f64>,
    /// Q (D × k), where it is not U.
    vectors: Option<Vec<R>>,
    /// S².
    values: Vec<f64>,
}

impl<R: Real> LowRank<R> {
    pub const NAME: &str = "eigenpairs";

    /// Of eigenpairs that leave nothing out.
    pub fn new(spectrum: Spectrum<R>) -> Self {
        Self {
            spectrum,
            whole: None,
            prior_scales: Vec::new(),
            vectors: None,
            values: Vec::new(),
        }
    }

    /// The leading eigenpairs of all parameters.
    pub fn fit(
        operator: &mut GaussNewton<'_, R>,
        lanczos: Lanczos,
        stream: &mut Stream,
    ) -> Result<Self, LaplaceError> {
        let spectrum = Spectrum::lanczos(operator, lanczos, None, stream)?;
        // the trace, and the most eigenvalues that are not zero; with many outputs, whose diagonal takes a pass for each of
        // them, the trace is an estimate
        let count = operator.curvature.count(operator.executor.outputs_count());
        let diagonal = if count <= MOST_EXACT {
            operator.diagonal()
        } else {
            operator.estimated_diagonal(PROBES, 0)
        };
        let rank = operator.weights.len().min(count * operator.inputs.nrows());
        Ok(Self {
            whole: Some([diagonal.iter().sum(), rank as f64]),
            ..Self::new(spectrum)
        })
    }

    pub fn load(size: usize, arrays: &mut KeptArrays<R>) -> Result<Self, LaplaceError> {
        let (values, vectors) = (arrays.take("values")?, arrays.take_weights("vectors")?);
        if vectors.len() != size * values.len() {
            return Err(LaplaceError::Kept(format!(
                "{} numbers of eigenvectors are not {} vectors of {size} parameters",
                vectors.len(),
                values.len()
            )));
        }
        Ok(Self {
            whole: arrays.take("whole")?.try_into().ok(),
            prior_scales: vec![1.0; size],
            ..Self::new(Spectrum {
                residuals: vec![0.0; values.len()],
                values,
                vectors,
                products: 0,
                unconverged: 0,
            })
        })
    }

    /// Q.
    fn vectors(&self) -> &[R] {
        self.vectors.as_ref().unwrap_or(&self.spectrum.vectors)
    }

    /// `vector` ← vector + Q·factor(S²)·Qᵀ·vector.
    fn add_along(&self, vector: &mut [R], factor: impl Fn(f64) -> f64) {
        let (size, rank) = (vector.len(), self.values.len());
        if rank == 0 {
            return;
        }
        let directions = matrix(self.vectors(), size, rank);
        let mut along = vec![R::ZERO; rank];
        let out = matrix_mut(&mut along, rank, 1);
        multiply(
            out,
            false,
            1.0,
            directions.transpose(),
            matrix(vector, size, 1),
        );
        let columns = self.vectors().chunks_exact(size);
        for ((column, along), value) in columns.zip(&along).zip(&self.values) {
            add_scaled(vector, factor(*value) * along.to_f64(), column);
        }
    }

    /// P^(−1/2)·U·Λ^(1/2), whose singular value decomposition comes from its Gram matrix: Q and S².
    fn decompose(&self, scale: f64) -> Result<(Vec<R>, Vec<f64>), LaplaceError> {
        let (size, rank) = (self.prior_scales.len(), self.spectrum.values.len());
        let mut factor: Vec<f64> = self.spectrum.vectors.iter().map(|u| u.to_f64()).collect();
        for (column, value) in factor.chunks_exact_mut(size).zip(&self.spectrum.values) {
            let root = (scale * value).sqrt();
            for (entry, own) in column.iter_mut().zip(&self.prior_scales) {
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
        Ok((vectors, right.values))
    }
}

impl<R: Real> Structure<R> for LowRank<R> {
    fn size(&self) -> usize {
        match self.spectrum.values.len() {
            0 => self.prior_scales.len(),
            rank => self.spectrum.vectors.len() / rank,
        }
    }

    fn set_prior(&mut self, precisions: &[f64], scale: f64) -> Result<f64, LaplaceError> {
        self.prior_scales = precisions.iter().map(|p| p.sqrt().recip()).collect();
        let first = precisions.first().copied().unwrap_or(1.0);
        if precisions.iter().all(|precision| *precision == first) {
            let values = self.spectrum.values.iter();
            self.values = values.map(|value| scale * value / first).collect();
            self.vectors = None;
        } else {
            let (vectors, values) = self.decompose(scale)?;
            (self.vectors, self.values) = (Some(vectors), values);
        }
        Ok(self.values.iter().map(|value| value.ln_1p()).sum())
    }

    fn draw(&self, noise: &mut [R]) {
        self.add_along(noise, |value| (1.0 + value).sqrt().recip() - 1.0);
        scale_by(noise, &self.prior_scales);
    }

    fn covariance_product(&self, vector: &mut [R]) {
        scale_by(vector, &self.prior_scales);
        self.add_along(vector, |value| (1.0 + value).recip() - 1.0);
        scale_by(vector, &self.prior_scales);
    }

    fn variances(&self) -> Vec<f64> {
        let size = self.prior_scales.len();
        let mut kept = vec![1.0; size];
        let columns = self.vectors().chunks_exact(size.max(1));
        for (column, value) in columns.zip(&self.values) {
            let part = value / (1.0 + value);
            for (kept, entry) in kept.iter_mut().zip(column) {
                *kept -= part * entry.to_f64().powi(2);
            }
        }
        let pairs = kept.iter().zip(&self.prior_scales);
        pairs
            .map(|(kept, scale)| kept.max(0.0) * scale * scale)
            .collect()
    }

    /// The prior's covariance less what the curvature takes away along its eigenvectors.
    fn predict(&self, point: &mut PredictionPoint<'_, R>, has_covariances: bool) -> [Vec<f64>; 2] {
        let prior = self.prior_scales.iter().map(|scale| scale * scale);
        let variances = point.by_layer(prior);
        let mut covariances = point.covariances(&variances, |_| None);
        let scales: Vec<R> = self.prior_scales.iter().map(|&s| R::from_f64(s)).collect();
        let outputs = point.executor.outputs_count();
        let columns = self.vectors().chunks(AT_ONCE * scales.len().max(1));
        for (columns, values) in columns.zip(self.values.chunks(AT_ONCE)) {
            let count = values.len();
            let directions = columns.chunks_exact(scales.len()).map(|column| {
                let pairs = column.iter().zip(&scales);
                pairs.map(|(&q, &s)| q * s).collect()
            });
            let along = point.jvps(directions, count);
            let pairs = along.chunks_exact(outputs * count);
            let pairs = pairs.zip(covariances.chunks_exact_mut(outputs * outputs));
            for (along, covariance) in pairs {
                for (own, value) in along.chunks_exact(outputs).zip(values) {
                    let part = value / (1.0 + value);
                    for (column, a) in covariance.chunks_exact_mut(outputs).zip(own) {
                        for (entry, b) in column.iter_mut().zip(own) {
                            *entry -= part * a.to_f64() * b.to_f64();
                        }
                    }
                }
            }
        }
        point.prediction(covariances, has_covariances)
    }

    fn left_out(&self, precisions: &[f64], scale: f64) -> Option<LeftOutCurvature> {
        let [trace, rank] = self.whole?;
        let directions = (rank as usize).saturating_sub(self.spectrum.values.len());
        let kept: f64 = self.spectrum.values.iter().sum();
        let trace = match directions {
            0 => 0.0,
            _ => scale * (trace - kept).max(0.0),
        };
        let least = precisions.iter().copied().fold(f64::INFINITY, f64::min);
        let each = trace / (directions.max(1) as f64 * least);
        Some(LeftOutCurvature {
            directions,
            trace,
            log_determinant: directions as f64 * each.ln_1p(),
        })
    }

    fn report(&self) -> DecompositionReport {
        DecompositionReport {
            eigenpairs: Some(self.spectrum.values.len()),
            unconverged: self.spectrum.unconverged,
            products: self.spectrum.products,
            ..DecompositionReport::default()
        }
    }

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn arrays(&self) -> Vec<(String, KeptArray<'_, R>)> {
        let whole = self.whole.as_ref().map_or(&[][..], |whole| whole);
        vec![
            ("whole".to_owned(), KeptArray::Double(whole)),
            (
                "values".to_owned(),
                KeptArray::Double(&self.spectrum.values),
            ),
            (
                "vectors".to_owned(),
                KeptArray::Weights(&self.spectrum.vectors),
            ),
        ]
    }
}

impl<R: Real> ReadoutStructure<R> for LowRank<R> {
    fn readout_covariances(&self, features: &RowFeatures, has_covariances: bool) -> Vec<f64> {
        let (rows, outputs) = (features.rows, features.outputs);
        let width = features.width(has_covariances);
        let variances: Vec<f64> = self
            .prior_scales
            .iter()
            .map(|scale| scale * scale)
            .collect();
        let mut spread = features.independent(&variances, has_covariances);
        let mut direction = vec![0.0; self.prior_scales.len()];
        let columns = self.vectors().chunks_exact(direction.len().max(1));
        for (column, value) in columns.zip(&self.values) {
            let pairs = column.iter().zip(&self.prior_scales);
            for (to, (entry, scale)) in direction.iter_mut().zip(pairs) {
                *to = scale * entry.to_f64();
            }
            let along = features.times(&direction);
            let factor = value / (1.0 + value);
            for (row, spread) in spread.chunks_exact_mut(width).enumerate() {
                for k in 0..outputs {
                    let own = factor * along[k * rows + row];
                    if has_covariances {
                        for l in 0..outputs {
                            spread[k * outputs + l] -= own * along[l * rows + row];
                        }
                    } else {
                        spread[k] -= own * along[k * rows + row];
                    }
                }
            }
        }
        spread
    }
}
