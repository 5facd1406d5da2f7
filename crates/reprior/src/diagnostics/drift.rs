//! Whether a quantity still moves one way (after Geweke 1992).
//!
//! z = (m₂ − m₁)/√(s₁² + s₂²) with m and s the means and Monte-Carlo standard errors of the first and the second half of
//! every chain, pooled over chains. About N(0, 1) at stationarity; large while chains are still on their way.

use super::{Draws, Estimator};

impl Estimator {
    /// z of the second halves against the first; NaN with fewer than 8 draws a chain or no variation.
    pub fn drift(&mut self, draws: Draws<'_>) -> f64 {
        let half = draws.length() / 2;
        let pick = |late: bool| -> Vec<f64> {
            let part = |chain: &'_ [f64]| {
                let start = if late { chain.len() - half } else { 0 };
                start..start + half
            };
            draws
                .iter()
                .flat_map(|chain| chain[part(chain)].iter().copied())
                .collect()
        };
        if half < 4 {
            return f64::NAN;
        }
        let mut error_and_mean = |values: &[f64]| {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let error = Draws::new(values, draws.chains()).map(|draws| self.mcse_mean(draws));
            (error.unwrap_or(f64::NAN), mean)
        };
        let (s1, m1) = error_and_mean(&pick(false));
        let (s2, m2) = error_and_mean(&pick(true));
        (m2 - m1) / s1.hypot(s2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::{Purpose, Stream};

    #[test]
    fn a_trend_shows_and_noise_does_not() {
        let mut stream = Stream::new(4, 0, Purpose::Initial, 0);
        let mut estimator = Estimator::new();
        let (mut greatest, mut values) = (0.0_f64, vec![0.0; 400]);
        for _ in 0..200 {
            stream.fill_normal(&mut values);
            greatest = greatest.max(estimator.drift(Draws::new(&values, 4).unwrap()).abs());
        }
        // the largest of 200 exceeds 4.5 with probability 1.4e-3
        assert!(greatest < 4.5, "{greatest}");
        for (i, value) in values.iter_mut().enumerate() {
            *value += 0.03 * (i % 100) as f64;
        }
        assert!(estimator.drift(Draws::new(&values, 4).unwrap()) > 5.0);
        assert!(
            estimator
                .drift(Draws::new(&[1.0; 400], 4).unwrap())
                .is_nan()
        );
        assert!(
            estimator
                .drift(Draws::new(&values[..12], 4).unwrap())
                .is_nan()
        );
    }
}
