//! Running means and variances (Welford 1962), one pass, in double precision.

use crate::compute::Real;

/// Mean and sum of squared deviations of a vector.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WeightMoments {
    /// Vectors taken in.
    pub count: u64,
    /// Their mean.
    pub mean: Vec<f64>,
    /// Sum of squared deviations from the mean.
    pub squares: Vec<f64>,
}

impl WeightMoments {
    /// No vectors yet; 16 bytes per dimension.
    pub fn new(dimension: usize) -> Self {
        Self {
            count: 0,
            mean: vec![0.0; dimension],
            squares: vec![0.0; dimension],
        }
    }

    /// Takes one vector in.
    pub fn add<R: Real>(&mut self, values: &[R]) {
        self.count += 1;
        let weight = 1.0 / self.count as f64;
        for ((mean, square), value) in self.mean.iter_mut().zip(&mut self.squares).zip(values) {
            let deviation = value.to_f64() - *mean;
            *mean += weight * deviation;
            *square += deviation * (value.to_f64() - *mean);
        }
    }

    /// Variances, dividing by the count less one; NaN for fewer than two vectors.
    pub fn variance(&self) -> impl Iterator<Item = f64> + '_ {
        let freedom = if self.count > 1 {
            self.count as f64 - 1.0
        } else {
            f64::NAN
        };
        self.squares.iter().map(move |square| square / freedom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_variance() {
        let mut moments = WeightMoments::new(1);
        for value in [1e9 + 1.0, 1e9 + 2.0, 1e9 + 4.0_f64] {
            moments.add(&[value]);
        }
        assert!((moments.mean[0] - 1e9 - 7.0 / 3.0).abs() < 1e-6);
        let variance: Vec<f64> = moments.variance().collect();
        assert!((variance[0] - 7.0 / 3.0).abs() < 1e-6);
    }
}
