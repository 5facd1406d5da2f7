//! Log evidence from replicates that share nothing.
//!
//! exp log Z is unbiased for each, so their mean is that of the Z: log Ẑ = log (1/R)Σ_r Z_r. Its standard error is that of the mean of log Z_r,
//! s/√R with s² = Σ_r (log Z_r − mean)²/(R − 1): to first order the relative error of Ẑ, and not as blind as that one where a single Z_r is most of
//! the sum. Where log Z_r are normal, (log Ẑ − log Z)/error is like Student's t with R − 1 degrees of freedom. They spread wider than a nat where
//! particles are too few: the first-order terms are then not all there is.

/// Log evidence with a standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogEvidence {
    /// log Ẑ.
    pub value: f64,
    /// Its standard error; NaN for a single replicate.
    pub error: f64,
    /// Standard deviation of one replicate; NaN for a single one.
    pub spread: f64,
}

impl LogEvidence {
    /// Spread beyond which replicates have too few particles.
    pub const WIDEST: f64 = 1.0;

    /// From log Z of each replicate; `None` without any.
    pub fn of(replicates: &[f64]) -> Option<Self> {
        let count = replicates.len() as f64;
        if replicates.is_empty() {
            return None;
        }
        let mean = replicates.iter().sum::<f64>() / count;
        let squares: f64 = replicates.iter().map(|z| (z - mean).powi(2)).sum();
        let spread = match replicates.len() {
            1 => f64::NAN,
            _ => (squares / (count - 1.0)).sqrt(),
        };
        let total = crate::compute::LogSum::of(replicates.iter().copied());
        Some(Self {
            value: total - count.ln(),
            error: spread / count.sqrt(),
            spread,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_mean_of_the_evidences() {
        assert_eq!(LogEvidence::of(&[]), None);
        let one = LogEvidence::of(&[-3.5]).unwrap();
        assert_eq!(one.value, -3.5);
        assert!(one.error.is_nan());
        let two = LogEvidence::of(&[1000.0, 1000.0 + 3.0_f64.ln()]).unwrap();
        assert!((two.value - (1000.0 + 2.0_f64.ln())).abs() < 1e-12);
        // of two numbers s is their distance by √2, and the error half the distance
        assert!((two.error - 0.5 * 3.0_f64.ln()).abs() < 1e-12);
    }
}
