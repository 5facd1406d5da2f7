//! Autocorrelations of one chain, for plots.

use super::Estimator;

impl Estimator {
    /// Autocorrelations of a chain at lags 0 to `lags` (fewer for a shorter chain): autocovariances, divided by the number of
    /// draws at every lag, over the variance. NaN where the chain does not vary or is not finite. One Fourier transform and
    /// its inverse of twice the chain's length.
    ///
    /// ```
    /// use reprior::diagnostics::Estimator;
    ///
    /// let chain = [1.0, -1.0, 1.0, -1.0];
    /// let found = Estimator::new().autocorrelation(&chain, 2);
    /// for (found, expected) in found.iter().zip([1.0, -0.75, 0.5]) {
    ///     assert!((found - expected).abs() < 1e-12);
    /// }
    /// ```
    pub fn autocorrelation(&mut self, chain: &[f64], lags: usize) -> Vec<f64> {
        if chain.is_empty() {
            return Vec::new();
        }
        let found = self
            .autocovariance
            .of(std::iter::once(chain), chain.len())
            .lags;
        let size = chain
            .iter()
            .fold(0.0_f64, |size, value| size.max(value.abs()));
        // what rounding leaves of the variance of equal draws
        let is_constant = found[0].is_nan() || found[0] <= (1e-14 * size).powi(2);
        let last = lags.min(chain.len() - 1);
        found[..=last]
            .iter()
            .map(|covariance| match is_constant {
                true => f64::NAN,
                false => covariance / found[0],
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_definition_and_has_none_where_nothing_varies() {
        let chain: Vec<f64> = (0..57_i32)
            .map(|i| f64::from(i * i % 31) + 0.1 * f64::from(i))
            .collect();
        let mean = chain.iter().sum::<f64>() / 57.0;
        let covariance = |lag: usize| -> f64 {
            let pairs = chain.iter().zip(&chain[lag..]);
            pairs.map(|(a, b)| (a - mean) * (b - mean)).sum()
        };
        let mut estimator = Estimator::new();
        let found = estimator.autocorrelation(&chain, 100);
        assert_eq!(found.len(), 57);
        for (lag, found) in found.iter().enumerate() {
            assert!((found - covariance(lag) / covariance(0)).abs() < 1e-12);
        }
        assert!(estimator.autocorrelation(&[0.1; 9], 3)[1].is_nan());
        assert!(estimator.autocorrelation(&[1.0, f64::NAN, 2.0], 3)[0].is_nan());
        assert!(estimator.autocorrelation(&[], 3).is_empty());
        assert_eq!(estimator.autocorrelation(&[1.0], 3).len(), 1);
    }
}
