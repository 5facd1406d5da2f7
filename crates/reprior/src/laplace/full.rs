//! All of the curvature: every eigenpair that is not zero, of G itself (D × D) or through the inner products of its rows
//! (n·C × n·C), whichever is smaller. It is then a [`LowRank`] that leaves nothing out.

use super::LaplaceError;
use super::curvature::GaussNewton;
use super::low_rank::LowRank;
use super::spectrum::Spectrum;
use crate::compute::Real;

/// Eigenvalues below this part of the largest one are rounding.
const ROUNDING: f64 = 1e-12;

/// Of the parameters `places`, which are all or some of them, with at most so many bytes.
pub(super) fn fit<R: Real>(
    operator: &mut GaussNewton<'_, R>,
    places: &[usize],
    most: u64,
) -> Result<LowRank<R>, LaplaceError> {
    let size = operator.weights.len();
    let outputs = operator.executor.outputs_count();
    let count = operator.curvature.count(outputs) * operator.inputs.nrows();
    let by_rows = places.len() == size && count < size;
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
        Spectrum::of_rows(&operator.rows(), count, ROUNDING)?
    } else {
        Spectrum::of_dense(&operator.dense(places), places.len(), ROUNDING)?
    };
    Ok(LowRank::new(spectrum))
}
