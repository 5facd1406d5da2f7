//! The equally weighted mixture of Gaussians that a set of draws predicts for one output of one row.
//!
//! F(y) = (1/S) Σ_s Φ((y − m_s)/√v_s). A quantile lies between the least and the greatest of the components' own
//! quantiles, and is found there by Newton's method, with bisection wherever a Newton step would leave the bracket or
//! would not halve the step before the last. Cost: S error functions per evaluation, about 8 evaluations per quantile, at most 200.

use std::f64::consts::TAU;

use super::error::{MetricsError, check_component, expect_length};
use crate::diagnostics::normal;

/// A view of equally weighted Gaussian components, at least one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GaussianMixture<'a> {
    means: &'a [f64],
    variances: &'a [f64],
}

impl<'a> GaussianMixture<'a> {
    /// The mixture of N(`means`\[s\], `variances`\[s\]); a single variance stands for all.
    ///
    /// # Errors
    /// No components, lengths that differ, a mean that is not finite or a variance that is not positive and finite.
    pub fn new(means: &'a [f64], variances: &'a [f64]) -> Result<Self, MetricsError> {
        if means.is_empty() {
            return Err(MetricsError::Empty("component"));
        }
        if variances.len() != 1 {
            expect_length("variances", variances.len(), means.len())?;
        }
        let mixture = Self { means, variances };
        for (component, (mean, variance)) in mixture.components().enumerate() {
            check_component(component, mean, variance)?;
        }
        Ok(mixture)
    }

    /// Mean of the mixture.
    pub fn mean(&self) -> f64 {
        self.means.iter().sum::<f64>() / self.means.len() as f64
    }

    /// Variance of the mixture: the mean of the variances plus the variance of the means.
    pub fn variance(&self) -> f64 {
        let centre = self.mean();
        let total: f64 = self
            .components()
            .map(|(mean, variance)| variance + (mean - centre).powi(2))
            .sum();
        total / self.means.len() as f64
    }

    /// F(y), the probability of at most y.
    pub fn cdf(&self, y: f64) -> f64 {
        let total: f64 = self
            .components()
            .map(|(mean, variance)| normal::cdf((y - mean) / variance.sqrt()))
            .sum();
        total / self.means.len() as f64
    }

    /// The y with F(y) = `probability`, to about 14 digits where F rises there; on a plateau between far modes, a point of it.
    /// −∞ at 0, ∞ at 1, NaN outside [0, 1].
    pub fn quantile(&self, probability: f64) -> f64 {
        let score = normal::quantile(probability);
        if !score.is_finite() {
            return score;
        }
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for (mean, variance) in self.components() {
            let own = mean + score * variance.sqrt();
            low = low.min(own);
            high = high.max(own);
        }
        let tolerance = 4e-16 * low.abs().max(high.abs());
        let mut y = 0.5 * (low + high);
        let [mut step_before, mut step] = [high - low; 2];
        for _ in 0..200 {
            let (cdf, density) = self.cdf_and_density(y);
            if cdf == probability || step <= tolerance {
                break;
            }
            if cdf < probability {
                low = y;
            } else {
                high = y;
            }
            let newton = y - (cdf - probability) / density;
            let inside = newton > low && newton < high;
            let next = if inside && (newton - y).abs() < 0.5 * step_before {
                newton
            } else {
                0.5 * (low + high)
            };
            (step_before, step) = (step, (next - y).abs());
            y = next;
        }
        y
    }

    fn cdf_and_density(&self, y: f64) -> (f64, f64) {
        let (mut cdf, mut density) = (0.0, 0.0);
        for (mean, variance) in self.components() {
            let x = (y - mean) / variance.sqrt();
            cdf += normal::cdf(x);
            density += (-0.5 * x * x).exp() / (TAU * variance).sqrt();
        }
        let size = self.means.len() as f64;
        (cdf / size, density / size)
    }

    fn components(&self) -> impl Iterator<Item = (f64, f64)> {
        let shared = self.variances.len() == 1;
        let variance = move |s: usize| self.variances[if shared { 0 } else { s }];
        let means = self.means.iter().enumerate();
        means.map(move |(s, &mean)| (mean, variance(s)))
    }
}
