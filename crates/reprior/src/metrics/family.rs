//! Families of distributions that a draw may predict for one output: location m, and a squared scale v.
//!
//! | family | y | mean | variance |
//! |---|---|---|---|
//! | Gaussian | N(m, v) | m | v |
//! | Student-t with ν | m + √v·t_ν | m | vν/(ν − 2), infinite for ν ≤ 2 |
//! | Poisson | counts of mean m | m | m (v is not used) |

use std::f64::consts::{PI, TAU};

use super::poisson;
use crate::diagnostics::{beta, normal};

/// A family of distributions on the real line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Family {
    /// Normal.
    Gaussian,
    /// Student-t with ν > 0 degrees of freedom.
    StudentT(f64),
    /// Poisson.
    Poisson,
}

impl Family {
    /// Variance of one member.
    pub(super) fn variance(self, m: f64, v: f64) -> f64 {
        match self {
            Self::Gaussian => v,
            Self::StudentT(nu) if nu > 2.0 => v * nu / (nu - 2.0),
            Self::StudentT(_) => f64::INFINITY,
            Self::Poisson => m,
        }
    }

    /// log of the density, or of the probability of a count, under the member with location m and squared scale v.
    pub fn log_density(self, y: f64, m: f64, v: f64) -> f64 {
        let deviation = y - m;
        match self {
            Self::Gaussian => -0.5 * ((TAU * v).ln() + deviation * deviation / v),
            Self::StudentT(nu) => {
                libm::lgamma(0.5 * (nu + 1.0))
                    - libm::lgamma(0.5 * nu)
                    - 0.5 * (nu * PI * v).ln()
                    - 0.5 * (nu + 1.0) * (deviation * deviation / (nu * v)).ln_1p()
            }
            Self::Poisson => poisson::log_probability(y, m),
        }
    }

    /// Probability of at most y under the member with location m and squared scale v.
    pub fn cdf(self, y: f64, m: f64, v: f64) -> f64 {
        let x = (y - m) / v.sqrt();
        match self {
            Self::Gaussian => normal::cdf(x),
            Self::StudentT(nu) => {
                let tail = 0.5 * beta::cdf(nu / (nu + x * x), 0.5 * nu, 0.5);
                if x > 0.0 { 1.0 - tail } else { tail }
            }
            Self::Poisson => poisson::cdf(y, m),
        }
    }

    /// Whether values are whole numbers from 0 on.
    pub(super) fn is_discrete(self) -> bool {
        self == Self::Poisson
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distribution_functions_are_those_of_tables() {
        // t with 4 degrees of freedom: the 95 % point is 2.131847; with 1, the quartile is 1
        assert!((Family::StudentT(4.0).cdf(2.131_846_786, 0.0, 1.0) - 0.95).abs() < 1e-9);
        assert!((Family::StudentT(1.0).cdf(3.0 - 2.0, 3.0, 4.0) - 0.25).abs() < 1e-12);
        // e^{−2.5}(1 + 2.5 + 3.125)
        let exact = (-2.5_f64).exp() * 6.625;
        assert!((Family::Poisson.cdf(2.0, 2.5, 1.0) - exact).abs() < 1e-15);
        assert!((Family::Poisson.cdf(2.9, 2.5, 1.0) - exact).abs() < 1e-15);
        assert_eq!(Family::Poisson.cdf(-0.5, 2.5, 1.0), 0.0);
        // both tails agree about the middle
        for m in [0.3, 7.5, 1e4] {
            let mut sum = 0.0;
            for i in 0..=(2.0 * m) as u32 {
                sum += Family::Poisson.log_density(f64::from(i), m, 1.0).exp();
                let found = Family::Poisson.cdf(f64::from(i), m, 1.0);
                assert!((found - sum).abs() < 1e-10, "{m} {i}: {found} {sum}");
            }
        }
    }

    #[test]
    fn a_student_with_many_degrees_is_gaussian() {
        for y in [-2.0, 0.3, 4.0] {
            let (t, g) = (Family::StudentT(1e8), Family::Gaussian);
            assert!((t.cdf(y, 0.5, 2.0) - g.cdf(y, 0.5, 2.0)).abs() < 1e-7);
            assert!((t.log_density(y, 0.5, 2.0) - g.log_density(y, 0.5, 2.0)).abs() < 1e-6);
        }
    }
}
