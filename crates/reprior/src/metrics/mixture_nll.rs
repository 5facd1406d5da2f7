//! Likelihood of targets under a member of a [`PredictiveFamily`] per draw, mixed over draws.
//!
//! For row i with targets y_ic, and draws s = 1 … S that predict p(·; m_sic, v_sic) independently over outputs c,
//!
//! −log p(y_i) = −log (1/S) Σ_s Π_c p(y_ic; m_sic, v_sic),
//!
//! the posterior predictive density with the draws as its Monte-Carlo estimate, by a running log-sum-exp.
//! Cost: one logarithm per draw and value, one exponential per draw and row; memory 2 numbers per row, whatever the number of draws.

use super::error::{MetricsError, check_component, expect_length, rows};
use super::family::PredictiveFamily;
use crate::compute::LogSum;

impl PredictiveFamily {
    /// Mean over rows of −log p(y_i), in nats per row (not per output); lower is better, and it may be negative.
    ///
    /// `targets` is row-major, rows × `outputs`. Each of the `draws` is a pair of means and variances (not standard
    /// deviations; observation noise included), both of the shape of `targets`; a single variance stands for all. Targets that are not finite pass
    /// through as NaN or ∞.
    ///
    /// # Errors
    /// No draws, rows or outputs; lengths that do not fit; a mean that is not finite or a variance that is not positive and finite.
    pub fn mixture_nll<'a>(
        self,
        draws: impl IntoIterator<Item = (&'a [f64], &'a [f64])>,
        targets: &[f64],
        outputs: usize,
    ) -> Result<f64, MetricsError> {
        let rows = self.mixture_nlls(draws, targets, outputs)?;
        Ok(rows.iter().sum::<f64>() / rows.len() as f64)
    }

    /// −log p(y_i) of every row, in nats; otherwise as [`mixture_nll`](Self::mixture_nll), their mean.
    ///
    /// # Errors
    /// As [`mixture_nll`](Self::mixture_nll).
    pub fn mixture_nlls<'a>(
        self,
        draws: impl IntoIterator<Item = (&'a [f64], &'a [f64])>,
        targets: &[f64],
        outputs: usize,
    ) -> Result<Vec<f64>, MetricsError> {
        let rows = rows(targets, outputs)?;
        let mut densities = vec![LogSum::default(); rows];
        let mut count = 0usize;
        for (means, variances) in draws {
            count += 1;
            expect_length("means of a draw", means.len(), targets.len())?;
            if variances.len() != 1 {
                expect_length("variances of a draw", variances.len(), targets.len())?;
            }
            for (row, density) in densities.iter_mut().enumerate() {
                let mut logarithm = 0.0;
                for at in row * outputs..(row + 1) * outputs {
                    let (mean, variance) = (means[at], variances[at % variances.len()]);
                    check_component(at, mean, variance)?;
                    logarithm += self.log_density(targets[at], mean, variance);
                }
                density.add(logarithm);
            }
        }
        if count == 0 {
            return Err(MetricsError::Empty("draw"));
        }
        let count = (count as f64).ln();
        Ok(densities.iter().map(|sum| count - sum.value()).collect())
    }
}
