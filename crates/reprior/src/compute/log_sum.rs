//! Sums of exponentials, by their logarithms.

/// log Σ exp(x) of what was added: exp(x − greatest) summed, and the greatest. Of nothing −∞.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogSum {
    greatest: f64,
    sum: f64,
}

impl Default for LogSum {
    fn default() -> Self {
        Self {
            greatest: f64::NEG_INFINITY,
            sum: 0.0,
        }
    }
}

impl LogSum {
    /// Adds exp(x); x may be −∞.
    pub fn add(&mut self, x: f64) {
        if x <= self.greatest {
            if x > f64::NEG_INFINITY {
                self.sum += (x - self.greatest).exp();
            }
        } else {
            self.sum = self.sum * (self.greatest - x).exp() + 1.0;
            self.greatest = x;
        }
    }

    /// The logarithm of the sum.
    pub fn value(&self) -> f64 {
        self.greatest + self.sum.ln()
    }

    /// The logarithm of the sum over all of `values`.
    pub fn of(values: impl IntoIterator<Item = f64>) -> f64 {
        let mut sum = Self::default();
        values.into_iter().for_each(|x| sum.add(x));
        sum.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_from_zero_nothing_is_lost() {
        let exact = 2.0_f64.ln();
        assert!((LogSum::of([-1000.0, -1000.0]) - (exact - 1000.0)).abs() < 1e-12);
        assert!((LogSum::of([-3000.0, 900.0, 900.0]) - (exact + 900.0)).abs() < 1e-12);
        assert_eq!(LogSum::of([f64::NEG_INFINITY; 2]), f64::NEG_INFINITY);
        assert_eq!(LogSum::of([]), f64::NEG_INFINITY);
    }
}
