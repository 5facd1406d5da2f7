//! The readout's curvature and what it means for predictions, from features alone: with ψ = [σ_w h/√d_L, σ_b] a row's curvature is
//! H ⊗ ψψᵀ, and the Jacobian I ⊗ ψᵀ.
//!
//! Cost for p = d_L + 1: full n·C²p² and (C·p)² numbers, Kronecker factors n·(p² + C²), diagonal n·C·p. With thousands of classes
//! the last two still fit.

use super::posterior::{finite, separate_bias};
use super::structure::{LayerCurvature, Precision};
use super::{HessianStructure, KroneckerFactors, LaplaceData, LaplaceError, Spectrum, Structure};
use crate::compute::{Matrix, Real, matrix, matrix_mut, multiply};
use crate::network::{Executor, Layout};

/// Rows whose features are held at a time.
const ROWS: usize = 1024;

/// The readout of a network.
pub(super) struct LastLayer {
    /// p.
    features: usize,
    outputs: usize,
    /// σ_w/√d_L and σ_b.
    factors: [f64; 2],
}

impl LastLayer {
    pub fn new<R: Real>(executor: &Executor<R>, layout: &Layout) -> Self {
        Self {
            features: executor.features_count() + 1,
            outputs: executor.outputs_count(),
            factors: layout.layers.last().map_or([1.0; 2], |layer| layer.factors),
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

    /// Ψ (n × p) and the outputs (n × C), column-major.
    fn psi<R: Real>(
        &self,
        executor: &mut Executor<R>,
        weights: &[R],
        inputs: Matrix<'_, R>,
    ) -> [Vec<f64>; 2] {
        let (rows, inner) = (inputs.nrows(), weights.len() - self.features * self.outputs);
        let psi = self.features(executor, weights, inputs);
        let double = |values: &[R]| -> Vec<f64> { values.iter().map(|v| v.to_f64()).collect() };
        let (psi, readout) = (double(&psi), double(&weights[inner..]));
        let mut outputs = vec![0.0; rows * self.outputs];
        let out = matrix_mut(&mut outputs, rows, self.outputs);
        let readout = matrix(&readout, self.features, self.outputs);
        multiply(out, false, 1.0, matrix(&psi, rows, self.features), readout);
        [psi, outputs]
    }

    pub fn fit<R: Real>(
        &self,
        executor: &mut Executor<R>,
        weights: &[R],
        data: LaplaceData<'_, R>,
        structure: HessianStructure,
    ) -> Result<Structure<R>, LaplaceError> {
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
            let [psi, f] = self.psi(executor, weights, inputs);
            let at = Rows {
                first,
                rows,
                psi: &psi,
                outputs: &f,
            };
            match structure {
                HessianStructure::Full(_) => self.add_full(&data, &at, &mut sums),
                HessianStructure::Kron | HessianStructure::KronSeparate => {
                    self.add_factors(&data, &at, &mut sums);
                }
                _ => self.add_diagonal(&data, &at, &mut sums),
            }
        }
        finite(&sums)?;
        let scale = data.scale / samples as f64;
        match structure {
            HessianStructure::Kron | HessianStructure::KronSeparate => {
                let (a, b) = sums.split_at_mut(p * p);
                if structure == HessianStructure::KronSeparate {
                    separate_bias(a, p);
                }
                let factors = KroneckerFactors::new(a, b, scale)?;
                Ok(Structure::Kronecker(vec![LayerCurvature::Kronecker(
                    factors,
                )]))
            }
            HessianStructure::Diag => {
                sums.iter_mut().for_each(|value| *value *= data.scale);
                Ok(Structure::Diagonal(sums))
            }
            _ => {
                sums.iter_mut().for_each(|value| *value *= data.scale);
                Ok(Structure::Spectral(Spectrum::of_dense(&sums, size, 1e-13)?))
            }
        }
    }

    /// Blocks (k, l ≤ k) of Σ H ⊗ ψψᵀ.
    fn add_full<R: Real>(&self, data: &LaplaceData<'_, R>, at: &Rows<'_>, sums: &mut [f64]) {
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

    fn add_factors<R: Real>(&self, data: &LaplaceData<'_, R>, at: &Rows<'_>, sums: &mut [f64]) {
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

    fn add_diagonal<R: Real>(&self, data: &LaplaceData<'_, R>, at: &Rows<'_>, sums: &mut [f64]) {
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

    /// Outputs (row after row) and their variances, or whole covariances (C × C each).
    pub fn predict<R: Real>(
        &self,
        executor: &mut Executor<R>,
        weights: &[R],
        inputs: Matrix<'_, R>,
        (structure, precision): (&Structure<R>, &Precision<R>),
        has_covariances: bool,
    ) -> [Vec<f64>; 2] {
        let (p, outputs, rows) = (self.features, self.outputs, inputs.nrows());
        let [psi, f] = self.psi(executor, weights, inputs);
        let means = transposed(&f, rows, outputs);
        let width = if has_covariances {
            outputs * outputs
        } else {
            outputs
        };
        let step = if has_covariances { outputs + 1 } else { 1 };
        let mut spread = vec![0.0; rows * width];
        // Σ_i v_ik ψ_i² for all rows and outputs
        let quadratic = |psi: &[f64], variances: &[f64]| {
            let squares: Vec<f64> = psi.iter().map(|psi| psi * psi).collect();
            let mut out = vec![0.0; rows * outputs];
            let to = matrix_mut(&mut out, rows, outputs);
            let variances = matrix(variances, p, outputs);
            multiply(to, false, 1.0, matrix(&squares, rows, p), variances);
            out
        };
        let set_diagonal = |own: &[f64], spread: &mut [f64]| {
            for row in 0..rows {
                for k in 0..outputs {
                    spread[row * width + k * step] = own[k * rows + row];
                }
            }
        };
        match (structure, precision) {
            (_, Precision::Diagonal(variances)) => {
                set_diagonal(&quadratic(&psi, variances), &mut spread);
            }
            (Structure::Kronecker(layers), Precision::Kronecker(variances)) => {
                let [LayerCurvature::Kronecker(factors)] = &layers[..] else {
                    return [means, spread];
                };
                let [a, b] = factors.vectors.each_ref().map(|vectors| {
                    let values = vectors.iter().map(|value| value.to_f64());
                    values.collect::<Vec<f64>>()
                });
                let mut turned = vec![0.0; rows * p];
                let own = matrix(&psi, rows, p);
                multiply(
                    matrix_mut(&mut turned, rows, p),
                    false,
                    1.0,
                    own,
                    matrix(&a, p, p),
                );
                let along = quadratic(&turned, &variances[0]);
                add_turned(&along, &b, [rows, outputs], has_covariances, &mut spread);
            }
            (
                _,
                Precision::Spectral {
                    prior_scales,
                    vectors,
                    values,
                },
            ) => {
                let variances: Vec<f64> = prior_scales.iter().map(|scale| scale * scale).collect();
                set_diagonal(&quadratic(&psi, &variances), &mut spread);
                let mut direction = vec![0.0; p * outputs];
                let mut along = vec![0.0; rows * outputs];
                for (column, value) in vectors.chunks_exact(p * outputs).zip(values) {
                    let pairs = column.iter().zip(prior_scales);
                    for (to, (entry, scale)) in direction.iter_mut().zip(pairs) {
                        *to = scale * entry.to_f64();
                    }
                    let out = matrix_mut(&mut along, rows, outputs);
                    let own = matrix(&direction, p, outputs);
                    multiply(out, false, 1.0, matrix(&psi, rows, p), own);
                    subtract_outer(
                        &along,
                        value / (1.0 + value),
                        rows,
                        has_covariances,
                        &mut spread,
                    );
                }
            }
            (_, Precision::Kronecker(_)) => {}
        }
        [means, spread]
    }
}

/// Some rows of the data.
struct Rows<'a> {
    first: usize,
    rows: usize,
    psi: &'a [f64],
    outputs: &'a [f64],
}

impl Rows<'_> {
    fn outputs_of<R: Real>(&self, row: usize, out: &mut [R]) {
        let own = self.outputs[row..].iter().step_by(self.rows);
        for (to, &from) in out.iter_mut().zip(own) {
            *to = R::from_f64(from);
        }
    }
}

fn transposed(values: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    let row = |row: usize| (0..columns).map(move |column| values[column * rows + row]);
    (0..rows).flat_map(row).collect()
}

/// Adds B·diag(w)·Bᵀ of each row's w, or its diagonal.
fn add_turned(
    along: &[f64],
    b: &[f64],
    [rows, outputs]: [usize; 2],
    has_covariances: bool,
    spread: &mut [f64],
) {
    if !has_covariances {
        let squares: Vec<f64> = b.iter().map(|b| b * b).collect();
        let squares = matrix(&squares, outputs, outputs);
        let own = matrix(along, rows, outputs).transpose();
        let out = matrix_mut(spread, outputs, rows);
        return multiply(out, true, 1.0, squares, own);
    }
    let mut scaled = vec![0.0; outputs * outputs];
    for (row, spread) in spread.chunks_exact_mut(outputs * outputs).enumerate() {
        let columns = scaled
            .chunks_exact_mut(outputs)
            .zip(b.chunks_exact(outputs));
        for (j, (to, from)) in columns.enumerate() {
            let weight = along[j * rows + row];
            for (to, from) in to.iter_mut().zip(from) {
                *to = weight * from;
            }
        }
        let out = matrix_mut(spread, outputs, outputs);
        let own = matrix(b, outputs, outputs).transpose();
        multiply(out, true, 1.0, matrix(&scaled, outputs, outputs), own);
    }
}

/// Subtracts `factor`·a·aᵀ of each row's a, or its diagonal.
fn subtract_outer(
    along: &[f64],
    factor: f64,
    rows: usize,
    has_covariances: bool,
    spread: &mut [f64],
) {
    let outputs = along.len() / rows.max(1);
    let width = spread.len() / rows.max(1);
    for (row, spread) in spread.chunks_exact_mut(width.max(1)).enumerate() {
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
