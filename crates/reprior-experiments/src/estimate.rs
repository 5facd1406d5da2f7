//! Measured numbers with their errors, and what is reckoned with them.

use std::fmt;

use reprior::diagnostics::student_cdf;

use crate::Value;

/// From so many seeds on their error is known well enough to share its degrees of freedom with that of rows.
const MANY: f64 = 5.0;

/// A measured number.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Its standard error; 0 of what is exact.
    pub error: f64,
    /// Degrees of freedom of the error; infinite where it is known.
    pub degrees: f64,
    /// Why it must not be relied on.
    pub doubt: Option<String>,
}

impl Estimate {
    /// With a standard error that is known well.
    pub fn new(value: f64, error: f64) -> Self {
        Self {
            value,
            error,
            degrees: f64::INFINITY,
            doubt: None,
        }
    }

    /// Without an error.
    pub fn exact(value: f64) -> Self {
        Self::new(value, 0.0)
    }

    /// The mean of independent values of one law: of fewer than two there is no error, and so no verdict.
    pub fn mean(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let value = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|x| (x - value).powi(2)).sum();
        Self {
            degrees: n - 1.0,
            ..Self::new(value, (squares / (n * (n - 1.0))).sqrt())
        }
    }

    /// The jackknife (Quenouille 1956, Tukey 1958) of a statistic: its value on all draws less the estimated bias, and the
    /// standard error, from its values `without` each of the draws, or of the batches of draws.
    pub fn jackknife(all: f64, without: &[f64]) -> Self {
        let n = without.len() as f64;
        let mean = without.iter().sum::<f64>() / n;
        let squares: f64 = without.iter().map(|x| (x - mean).powi(2)).sum();
        Self {
            degrees: n - 1.0,
            ..Self::new(n * all - (n - 1.0) * mean, (squares * (n - 1.0) / n).sqrt())
        }
    }

    /// A proportion of `count` independent trials (Agresti & Coull 1998: two successes and two failures more), so that none and all
    /// have errors too.
    pub fn proportion(share: f64, count: usize) -> Self {
        let n = count as f64 + 4.0;
        let centre = (share * count as f64 + 2.0) / n;
        Self::new(share, (centre * (1.0 - centre) / n).sqrt())
    }

    /// The same, not to be relied on, for a reason.
    #[must_use]
    pub fn doubted(mut self, reason: impl Into<String>) -> Self {
        self.doubt = Some(reason.into());
        self
    }

    /// A multiple.
    #[must_use]
    pub fn times(&self, factor: f64) -> Self {
        Self {
            value: factor * self.value,
            error: factor.abs() * self.error,
            ..self.clone()
        }
    }

    /// The logarithm of a positive number, by the delta method: gains are compared as differences of logarithms.
    #[must_use]
    pub fn ln(&self) -> Self {
        Self {
            value: self.value.ln(),
            error: self.error / self.value,
            ..self.clone()
        }
    }

    /// The difference of independent estimates (Welch 1947: degrees of freedom).
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let squares = [self, other].map(|estimate| estimate.error.powi(2));
        let total = squares[0] + squares[1];
        let shares = squares[0].powi(2) / self.degrees + squares[1].powi(2) / other.degrees;
        Self {
            value: self.value - other.value,
            error: total.sqrt(),
            degrees: if shares > 0.0 {
                total.powi(2) / shares
            } else {
                f64::INFINITY
            },
            doubt: self.doubt.clone().or_else(|| other.doubt.clone()),
        }
    }

    /// The mean of estimates, such as of several seeds: of three and more with the error that they show among one another, of fewer
    /// with their own. One in doubt makes the mean doubtful; NaN of nothing.
    pub fn pooled(estimates: &[Self]) -> Self {
        let values: Vec<f64> = estimates.iter().map(|estimate| estimate.value).collect();
        let mut own = match estimates {
            [one] => return one.clone(),
            [_, _, _, ..] => Self::mean(&values),
            _ => {
                let squares: f64 = estimates.iter().map(|e| e.error.powi(2)).sum();
                let n = values.len() as f64;
                Self::new(values.iter().sum::<f64>() / n, squares.sqrt() / n)
            }
        };
        own.doubt = estimates.iter().find_map(|estimate| estimate.doubt.clone());
        own
    }

    /// The same of estimates that are of the same rows whatever the seed, each with the error of these rows, which does not get less with seeds:
    /// the error has a part of each.
    pub fn pooled_on_same_rows(estimates: &[Self]) -> Self {
        if estimates.len() < 2 {
            return Self::pooled(estimates);
        }
        let values: Vec<f64> = estimates.iter().map(|estimate| estimate.value).collect();
        let n = values.len() as f64;
        // as if seeds had the same error, not one each
        let rows = estimates.iter().map(|estimate| estimate.error).sum::<f64>() / n;
        let degrees = estimates.iter().map(|estimate| estimate.degrees);
        let rows = Self {
            degrees: degrees.fold(f64::INFINITY, f64::min),
            ..Self::new(0.0, rows)
        };
        Self {
            doubt: estimates.iter().find_map(|estimate| estimate.doubt.clone()),
            ..Self::mean(&values).with_rows(&rows)
        }
    }

    /// A mean over seeds that has the error of the rows beside its own, which all seeds have in common.
    #[must_use]
    pub fn with_rows(&self, rows: &Self) -> Self {
        // a difference has the errors of both
        let both = self.minus(rows);
        Self {
            value: self.value,
            // the error of a few seeds may be next to nothing by chance
            degrees: match self.degrees + 1.0 < MANY {
                true => self.degrees,
                false => both.degrees,
            },
            ..both
        }
    }

    /// The probability of a difference as low as this one if there were none; NaN where nothing was measured.
    pub(crate) fn tail(&self) -> f64 {
        if self.error == 0.0 {
            return match self.value {
                value if value < 0.0 => 0.0,
                value if value > 0.0 => 1.0,
                0.0 => 0.5,
                _ => f64::NAN,
            };
        }
        student_cdf(self.value / self.error, self.degrees)
    }
}

impl fmt::Display for Estimate {
    /// `0.12 ± 0.03`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Value::from(self.value))?;
        if self.error > 0.0 {
            write!(f, " ± {}", Value::from(self.error))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The spread of seeds is of training; rows that all have in common are as uncertain as they are of one.
    #[test]
    fn seeds_do_not_make_rows_more() {
        let of = |values: &[f64]| -> Vec<Estimate> {
            let one = |&value: &f64| Estimate::new(value, 0.3);
            values.iter().map(one).collect()
        };
        for values in [
            &[1.0, 1.1][..],
            &[1.0, 1.1, 0.9],
            &[1.0, 1.1, 0.9, 1.0, 1.0],
        ] {
            let found = Estimate::pooled_on_same_rows(&of(values));
            let seeds = Estimate::mean(values);
            assert!((found.error - seeds.error.hypot(0.3)).abs() < 1e-12);
            let is_few = values.len() < 5;
            assert_eq!(found.degrees == seeds.degrees, is_few, "{found:?}");
            assert_eq!(found.value, seeds.value);
        }
        let one = of(&[1.0]);
        assert_eq!(Estimate::pooled_on_same_rows(&one), one[0]);
        let doubted = [one[0].clone(), one[0].clone().doubted("short")];
        assert!(Estimate::pooled_on_same_rows(&doubted).doubt.is_some());
        assert!(Estimate::pooled_on_same_rows(&[]).value.is_nan());
    }
}
