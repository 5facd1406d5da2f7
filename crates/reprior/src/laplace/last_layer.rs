//! The readout's curvature and what it means for predictions, from features alone: with ψ = [σ_w h/√d_L, σ_b] a row's curvature is
//! H ⊗ ψψᵀ, and the Jacobian I ⊗ ψᵀ.
//!
//! Cost for p = d_L + 1: full n·C²p² and (C·p)² numbers, Kronecker factors n·(p² + C²), diagonal n·C·p. With thousands of classes
//! the last two still fit.

use super::diag::Diagonal;
use super::kron::Kronecker;
use super::low_rank::LowRank;
use super::spectrum::Spectrum;
use super::structure::{
    DecompositionReport, KeptArray, KeptArrays, PredictionPoint, ReadoutStructure, Structure,
    double, finite, load,
};
use super::{HessianStructure, LaplaceData, LaplaceError};
use crate::compute::{Matrix, Real, matrix, matrix_mut, multiply};
use crate::network::Executor;
use crate::network::parameters::ParameterLayout;

/// Rows whose features are held at a time.
const ROWS: usize = 1024;

/// The readout's curvature with a prior.
#[derive(Debug)]
pub(super) struct LastLayer<R> {
    readout: ReadoutMap,
    curvature: Box<dyn ReadoutStructure<R>>,
}

impl<R: Real> LastLayer<R> {
    pub fn fit(
        executor: &mut Executor<R>,
        layout: &ParameterLayout,
        weights: &[R],
        data: &LaplaceData<'_, R>,
        structure: HessianStructure,
    ) -> Result<Self, LaplaceError> {
        let readout = ReadoutMap::new(layout);
        let curvature = readout.fit(executor, weights, data, structure)?;
        Ok(Self { readout, curvature })
    }

    pub fn load(
        layout: &ParameterLayout,
        name: &str,
        arrays: &mut KeptArrays<R>,
    ) -> Result<Self, LaplaceError> {
        let readout = ReadoutMap::new(layout);
        let curvature = load(name, readout.features * readout.outputs, arrays)?;
        Ok(Self { readout, curvature })
    }
}

impl<R: Real> Structure<R> for LastLayer<R> {
    fn size(&self) -> usize {
        self.curvature.size()
    }

    fn set_prior(&mut self, precisions: &[f64], scale: f64) -> Result<f64, LaplaceError> {
        self.curvature.set_prior(precisions, scale)
    }

    fn draw(&self, noise: &mut [R]) {
        self.curvature.draw(noise);
    }

    fn covariance_product(&self, vector: &mut [R]) {
        self.curvature.covariance_product(vector);
    }

    fn variances(&self) -> Vec<f64> {
        self.curvature.variances()
    }

    /// From features, which are made once.
    fn predict(&self, point: &mut PredictionPoint<'_, R>, has_covariances: bool) -> [Vec<f64>; 2] {
        let (rows, outputs) = (point.inputs.nrows(), self.readout.outputs);
        let own = (&mut *point.executor, point.weights, point.inputs);
        let (features, f) = self.readout.features_and_outputs(own.0, own.1, own.2);
        let row = |row: usize| (0..outputs).map(move |output| output * rows + row);
        let means = (0..rows).flat_map(row).map(|at| f[at]).collect();
        let spread = self
            .curvature
            .readout_covariances(&features, has_covariances);
        [means, spread]
    }

    fn report(&self) -> DecompositionReport {
        self.curvature.report()
    }

    fn name(&self) -> &'static str {
        self.curvature.name()
    }

    fn arrays(&self) -> Vec<(String, KeptArray<'_, R>)> {
        self.curvature.arrays()
    }
}

/// The readout of a network.
#[derive(Debug)]
pub(super) struct ReadoutMap {
    /// p.
    features: usize,
    outputs: usize,
    /// σ_w/√d_L and σ_b.
    factors: [f64; 2],
}

/// Ψ of some rows.
pub(super) struct RowFeatures {
    pub rows: usize,
    pub outputs: usize,
    /// n × p, column-major.
    psi: Vec<f64>,
}

impl RowFeatures {
    /// Numbers of a row's covariance, or of its variances alone.
    pub fn width(&self, has_covariances: bool) -> usize {
        match has_covariances {
            true => self.outputs * self.outputs,
            false => self.outputs,
        }
    }

    fn count(&self) -> usize {
        self.psi.len() / self.rows.max(1)
    }

    /// ψᵀM for M with as many rows as there are features, column-major n × columns.
    pub fn times(&self, own: &[f64]) -> Vec<f64> {
        let (rows, count) = (self.rows, self.count());
        let columns = own.len() / count.max(1);
        let mut out = vec![0.0; rows * columns];
        let to = matrix_mut(&mut out, rows, columns);
        let own = matrix(own, count, columns);
        multiply(to, false, 1.0, matrix(&self.psi, rows, count), own);
        out
    }

    /// The same features in other coordinates, `basis` p × p.
    pub fn rotated(&self, basis: &[f64]) -> Self {
        Self {
            psi: self.times(basis),
            ..*self
        }
    }

    /// Σ_i v_ik ψ_i² of each row and output k, n × C column-major, for variances v (p × C).
    pub fn quadratic(&self, variances: &[f64]) -> Vec<f64> {
        let squares = Self {
            psi: self.psi.iter().map(|psi| psi * psi).collect(),
            ..*self
        };
        squares.times(variances)
    }

    /// Covariances, or variances alone, of parameters that are independent with variances p × C.
    pub fn independent(&self, variances: &[f64], has_covariances: bool) -> Vec<f64> {
        let width = self.width(has_covariances);
        let step = if has_covariances { self.outputs + 1 } else { 1 };
        let mut spread = vec![0.0; self.rows * width];
        let own = self.quadratic(variances);
        for (row, spread) in spread.chunks_exact_mut(width.max(1)).enumerate() {
            for k in 0..self.outputs {
                spread[k * step] = own[k * self.rows + row];
            }
        }
        spread
    }
}

impl ReadoutMap {
    pub fn new(layout: &ParameterLayout) -> Self {
        let last = layout.layers.last();
        Self {
            features: last.map_or(0, |layer| layer.rows),
            outputs: last.map_or(0, |layer| layer.units),
            factors: last.map_or([1.0; 2], |layer| layer.factors),
        }
    }

    /// Ψ, n × p column-major.
    pub fn features<R: Real>(
        &self,
        executor: &mut Executor<R>,
        weights: &[R],
        inputs: Matrix<'_, R>,
    ) -> Vec<R> {
        let (rows, count) = (inputs.nrows(), self.features - 1);
        let mut psi = vec![R::ZERO; rows * self.features];
        let (features, biases) = psi.split_at_mut(rows * count);
        let inner = weights.len() - executor.readout_parameters();
        let out = matrix_mut(features, rows, count);
        executor.features(&weights[..inner], inputs, out);
        let [weight, bias] = self.factors.map(R::from_f64);
        features.iter_mut().for_each(|h| *h *= weight);
        biases.fill(bias);
        psi
    }

    /// Ψ and the outputs (n × C, column-major).
    fn features_and_outputs<R: Real>(
        &self,
        executor: &mut Executor<R>,
        weights: &[R],
        inputs: Matrix<'_, R>,
    ) -> (RowFeatures, Vec<f64>) {
        let inner = weights.len() - self.features * self.outputs;
        let features = RowFeatures {
            rows: inputs.nrows(),
            outputs: self.outputs,
            psi: double(&self.features(executor, weights, inputs)),
        };
        let outputs = features.times(&double(&weights[inner..]));
        (features, outputs)
    }

    fn fit<R: Real>(
        &self,
        executor: &mut Executor<R>,
        weights: &[R],
        data: &LaplaceData<'_, R>,
        structure: HessianStructure,
    ) -> Result<Box<dyn ReadoutStructure<R>>, LaplaceError> {
        let (p, outputs) = (self.features, self.outputs);
        let size = p * outputs;
        let length = match structure {
            HessianStructure::Full(most) => {
                let bytes = 24 * (size as u64).pow(2);
                if bytes > most {
                    return Err(LaplaceError::Memory { size, bytes, most });
                }
                size * size
            }
            HessianStructure::Kron | HessianStructure::KronSeparate => p * p + outputs * outputs,
            HessianStructure::Diag => size,
            HessianStructure::LowRank(_) => {
                return Err(LaplaceError::Structure {
                    structure: "lowrank",
                    subset: "the last layer",
                    instead: "full",
                });
            }
        };
        let mut sums = vec![0.0; length];
        let samples = data.inputs.nrows();
        for first in (0..samples).step_by(ROWS) {
            let rows = ROWS.min(samples - first);
            let inputs = data.inputs.subrows(first, rows);
            let (features, f) = self.features_and_outputs(executor, weights, inputs);
            let at = DataRows {
                first,
                rows,
                psi: &features.psi,
                outputs: &f,
            };
            match structure {
                HessianStructure::Full(_) => self.add_full(data, &at, &mut sums),
                HessianStructure::Kron | HessianStructure::KronSeparate => {
                    self.add_factors(data, &at, &mut sums);
                }
                _ => self.add_diagonal(data, &at, &mut sums),
            }
        }
        finite(&sums)?;
        let scale = data.scale / samples as f64;
        if structure.is_kronecker() {
            let (a, b) = sums.split_at(p * p);
            let is_separate = structure == HessianStructure::KronSeparate;
            return Ok(Box::new(Kronecker::of_layer(a, b, scale, is_separate)?));
        }
        sums.iter_mut().for_each(|value| *value *= data.scale);
        match structure {
            HessianStructure::Diag => Ok(Box::new(Diagonal::new(sums)?)),
            _ => Ok(Box::new(LowRank::new(Spectrum::of_dense(
                &sums, size, 1e-13,
            )?))),
        }
    }

    /// Blocks (k, l ≤ k) of Σ H ⊗ ψψᵀ.
    fn add_full<R: Real>(&self, data: &LaplaceData<'_, R>, at: &DataRows<'_>, sums: &mut [f64]) {
        let (p, outputs, rows) = (self.features, self.outputs, at.rows);
        let area = outputs * outputs;
        let mut curvatures = vec![0.0; rows * area];
        let mut f = vec![R::ZERO; outputs];
        for (row, own) in curvatures.chunks_exact_mut(area).enumerate() {
            at.outputs_of(row, &mut f);
            data.curvature.add_matrix(at.first + row, &f, own);
        }
        let psi = matrix(at.psi, rows, p);
        let mut weighted = vec![0.0; rows * p];
        let mut sums = matrix_mut(sums, p * outputs, p * outputs);
        for l in 0..outputs {
            for k in l..outputs {
                let columns = weighted
                    .chunks_exact_mut(rows)
                    .zip(at.psi.chunks_exact(rows));
                for (to, from) in columns {
                    for (row, (to, psi)) in to.iter_mut().zip(from).enumerate() {
                        *to = curvatures[row * area + l * outputs + k] * psi;
                    }
                }
                let out = sums.as_mut().submatrix_mut(k * p, l * p, p, p);
                let own = matrix(&weighted, rows, p).transpose();
                multiply(out, true, 1.0, own, psi);
            }
        }
    }

    fn add_factors<R: Real>(&self, data: &LaplaceData<'_, R>, at: &DataRows<'_>, sums: &mut [f64]) {
        let p = self.features;
        let (a, b) = sums.split_at_mut(p * p);
        let psi = matrix(at.psi, at.rows, p);
        multiply(matrix_mut(a, p, p), true, 1.0, psi.transpose(), psi);
        let mut f = vec![R::ZERO; self.outputs];
        for row in 0..at.rows {
            at.outputs_of(row, &mut f);
            data.curvature.add_matrix(at.first + row, &f, b);
        }
    }

    fn add_diagonal<R: Real>(
        &self,
        data: &LaplaceData<'_, R>,
        at: &DataRows<'_>,
        sums: &mut [f64],
    ) {
        let (p, outputs, rows) = (self.features, self.outputs, at.rows);
        let mut curvatures = vec![0.0; rows * outputs];
        let mut f = vec![R::ZERO; outputs];
        let own = curvatures.chunks_exact_mut(outputs);
        for (row, own) in own.enumerate() {
            at.outputs_of(row, &mut f);
            data.curvature.add_diagonal(at.first + row, &f, own);
        }
        let squares: Vec<f64> = at.psi.iter().map(|psi| psi * psi).collect();
        let squares = matrix(&squares, rows, p).transpose();
        let out = matrix_mut(sums, p, outputs);
        let curvatures = matrix(&curvatures, outputs, rows).transpose();
        multiply(out, true, 1.0, squares, curvatures);
    }
}

/// Some rows of the data.
struct DataRows<'a> {
    first: usize,
    rows: usize,
    psi: &'a [f64],
    outputs: &'a [f64],
}

impl DataRows<'_> {
    fn outputs_of<R: Real>(&self, row: usize, out: &mut [R]) {
        let own = self.outputs[row..].iter().step_by(self.rows);
        for (to, &from) in out.iter_mut().zip(own) {
            *to = R::from_f64(from);
        }
    }
}
