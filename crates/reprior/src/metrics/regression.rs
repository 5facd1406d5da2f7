//! Errors of real predictions.

use super::error::{MetricsError, expect_length, rows};

/// Root of the mean over rows of the SUM over outputs of the squared error, as in the code of Hron et al. (2022):
/// with C outputs, √C times the root-mean-square over all values. For one output it is the usual RMSE.
///
/// `predictions` and `targets` are row-major, rows × `outputs`; the result is in their unit. NaN and infinite
/// values pass through. Cost: O(rows × outputs).
///
/// # Errors
/// No rows or outputs, lengths that differ or are no whole number of rows.
pub fn rmse(predictions: &[f64], targets: &[f64], outputs: usize) -> Result<f64, MetricsError> {
    let rows = rows(targets, outputs)?;
    expect_length("predictions", predictions.len(), targets.len())?;
    let squares: f64 = predictions
        .iter()
        .zip(targets)
        .map(|(prediction, target)| (prediction - target).powi(2))
        .sum();
    Ok((squares / rows as f64).sqrt())
}
