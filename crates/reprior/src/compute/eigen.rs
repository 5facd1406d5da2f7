//! Eigenvalues and eigenvectors of a symmetric matrix.

use faer::Side;
use faer::linalg::solvers::SelfAdjointEigen;
use thiserror::Error;

use super::matrix;

/// The eigenvalue iteration did not converge: an entry is NaN or infinite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the eigenvalues of a {0} x {0} matrix could not be found (is an entry not finite?)")]
pub struct EigenFailed(pub usize);

/// Eigenvalues in nondecreasing order and eigenvectors (column-major, one per column) of the symmetric matrix with
/// the given lower half. About 9·size³ operations.
///
/// # Errors
/// An error if the iteration does not converge.
pub fn symmetric_eigen(values: &[f64], size: usize) -> Result<(Vec<f64>, Vec<f64>), EigenFailed> {
    let decomposition = SelfAdjointEigen::new(matrix(values, size, size), Side::Lower)
        .map_err(|_| EigenFailed(size))?;
    let eigenvalues = decomposition.S().column_vector().iter().copied().collect();
    let vectors = decomposition.U();
    let eigenvectors = (0..size).flat_map(|j| vectors.col(j).iter().copied().collect::<Vec<_>>());
    Ok((eigenvalues, eigenvectors.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_by_two() {
        let (values, vectors) = symmetric_eigen(&[2.0, 1.0, f64::NAN, 2.0], 2).unwrap();
        assert!((values[0] - 1.0).abs() < 1e-14 && (values[1] - 3.0).abs() < 1e-14);
        assert!((vectors[0] + vectors[1]).abs() < 1e-14 && (vectors[2] - vectors[3]).abs() < 1e-14);
    }
}
