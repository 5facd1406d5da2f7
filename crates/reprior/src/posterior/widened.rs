//! What the readout takes from features in single precision, worked out in double precision: where the noise is so small that the sums' own rounding would count.
//!
//! A sum over n rows in single precision is off by some ε·n, ε = 2⁻²⁴. So is h̃ᵀh̃, and μ = M⁻¹ΨᵀY with it, whose errors count in ℓ by
//! (ε·n)²/σ⁴ at worst, and in log det M by ε·n·p/σ². Where that is no longer small, ℓ is a rough function whatever the step size, and nothing is
//! accepted: with a σ of 0.003 and 10,000 rows of 33 features it jumped by 60 nats from one position to the next.
//!
//! The features themselves stay as they are: their rounding moves ℓ by √n·ε/σ or so. Cost: np² operations more, in double precision.

use crate::compute::{Matrix, Real, add_gram_of_columns, matrix, matrix_mut, multiply};

/// σ²/n below which sums over n rows are made in double precision.
const LEAST_VARIANCE_A_ROW: f64 = 1e-6;
/// Rows that are widened at a time: of a hundred features they stay in the second cache.
const BLOCK: usize = 512;

/// Whether sums over so many rows, with a noise of this variance, are to be made in double precision.
pub(super) fn is_needed<R: Real>(variance: f64, rows: usize) -> bool {
    R::BYTES < 8 && variance < LEAST_VARIANCE_A_ROW * rows as f64
}

/// Sums over rows in double precision; empty until they are needed.
#[derive(Debug, Default)]
pub(super) struct Widened {
    /// The lower half of h̃ᵀh̃ (p × p), as of the last [`sum`](Self::sum).
    pub gram: Vec<f64>,
    /// αh̃ᵀY (p × C).
    pub product: Vec<f64>,
    /// Some rows of the features.
    block: Vec<f64>,
}

impl Widened {
    /// Bytes for n rows of p features and C outputs.
    pub fn bytes(rows: usize, p: usize, outputs: usize) -> usize {
        8 * p * (p + outputs + rows.min(BLOCK))
    }

    /// h̃ᵀh̃ and αh̃ᵀY of features h̃ (n × p) and targets Y (n × C).
    pub fn sum<R: Real>(&mut self, factor: f64, features: Matrix<'_, R>, targets: &[f64]) {
        let (n, p) = (features.nrows(), features.ncols());
        let outputs = targets.len() / n;
        self.gram.resize(p * p, 0.0);
        self.product.resize(p * outputs, 0.0);
        let targets = matrix(targets, n, outputs);
        for first in (0..n).step_by(BLOCK) {
            let rows = BLOCK.min(n - first);
            let block = widen(&mut self.block, features.subrows(first, rows));
            add_gram_of_columns(matrix_mut(&mut self.gram, p, p), first > 0, block);
            multiply(
                matrix_mut(&mut self.product, p, outputs),
                first > 0,
                factor,
                block.transpose(),
                targets.subrows(first, rows),
            );
        }
    }

    /// out ← out − αh̃μ, for h̃ of n × p, μ of p × C and `out` of n × C.
    pub fn subtract_fit<R: Real>(
        &mut self,
        out: &mut [f64],
        factor: f64,
        features: Matrix<'_, R>,
        mean: &[f64],
    ) {
        let (n, p) = (features.nrows(), features.ncols());
        let outputs = out.len() / n;
        let mean = matrix(mean, p, outputs);
        for first in (0..n).step_by(BLOCK) {
            let rows = BLOCK.min(n - first);
            let block = widen(&mut self.block, features.subrows(first, rows));
            let out = matrix_mut(out, n, outputs).subrows_mut(first, rows);
            multiply(out, true, -factor, block, mean);
        }
    }
}

/// The features of some rows, in double precision.
fn widen<'a, R: Real>(block: &'a mut Vec<f64>, features: Matrix<'_, R>) -> Matrix<'a, f64> {
    let (rows, p) = (features.nrows(), features.ncols());
    if block.len() < rows * p {
        block.resize(rows * p, 0.0);
    }
    for (out, column) in block.chunks_exact_mut(rows).zip(features.col_iter()) {
        for (out, &value) in out.iter_mut().zip(column.iter()) {
            *out = value.to_f64();
        }
    }
    matrix(&block[..rows * p], rows, p)
}
