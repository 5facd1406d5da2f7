//! Means and variances, accurate for values far from zero and exact for constants.
//!
//! The mean is taken of the differences from the first value, and the variance in a second pass about that mean;
//! so equal values have exactly that mean and exactly zero variance. Cost: two passes.

const LANES: usize = 8;

/// Σ f(x). Independent partial sums, so that the additions overlap.
pub(super) fn sum(values: &[f64], f: impl Fn(f64) -> f64) -> f64 {
    let mut lanes = [0.0; LANES];
    let chunks = values.chunks_exact(LANES);
    let rest: f64 = chunks.remainder().iter().map(|&x| f(x)).sum();
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane += f(x);
        }
    }
    lanes.iter().sum::<f64>() + rest
}

/// The mean of at least one value.
pub(super) fn mean(values: &[f64]) -> f64 {
    let first = values[0];
    first + sum(values, |x| x - first) / values.len() as f64
}

/// The mean, and the sum of squared deviations from it, of at least one value.
pub(super) fn mean_and_squares(values: &[f64]) -> (f64, f64) {
    let mean = mean(values);
    (mean, sum(values, |x| (x - mean) * (x - mean)))
}

/// Moments of values that come one at a time (Welford 1962).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Running {
    count: f64,
    /// Mean of the values so far.
    pub mean: f64,
    squares: f64,
}

impl Running {
    pub fn push(&mut self, value: f64) {
        self.count += 1.0;
        let deviation = value - self.mean;
        self.mean += deviation / self.count;
        self.squares += deviation * (value - self.mean);
    }

    /// Divided by the number of values less one: NaN for fewer than two.
    pub fn variance(&self) -> f64 {
        self.squares / (self.count - 1.0)
    }

    /// Divided by the number of values.
    pub fn population_variance(&self) -> f64 {
        self.squares / self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_has_no_variance() {
        let values = [0.1; 1001];
        assert_eq!(mean_and_squares(&values), (0.1, 0.0));
    }

    #[test]
    fn an_offset_costs_no_accuracy() {
        let values: Vec<f64> = (0..1001).map(|i| 1e9 + f64::from(i)).collect();
        let (mean, squares) = mean_and_squares(&values);
        assert_eq!(mean, 1e9 + 500.0);
        assert_eq!(squares, 1001.0 * (1001.0f64.powi(2) - 1.0) / 12.0);
        let mut running = Running::default();
        values.iter().for_each(|&x| running.push(x));
        assert!((running.population_variance() / (squares / 1001.0) - 1.0).abs() < 1e-9);
        assert!((running.variance() / (squares / 1000.0) - 1.0).abs() < 1e-9);
    }
}
