//! The equally weighted mixture that a set of draws predicts for one output of one row.
//!
//! F(y) = (1/S) Σ_s F_s(y), with one [`PredictiveFamily`] for all components. A quantile is bracketed outwards from the components'
//! locations and found there by Newton's method, with bisection wherever a Newton step would leave the bracket or would not
//! halve the step before the last; of counts by bisection over whole numbers. Cost: S distribution functions per evaluation,
//! about 15 evaluations per quantile, at most 300.

use super::error::{MetricsError, check_component, expect_length};
use super::family::PredictiveFamily;

/// A view of equally weighted components, at least one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mixture<'a> {
    family: PredictiveFamily,
    means: &'a [f64],
    variances: &'a [f64],
}

impl<'a> Mixture<'a> {
    /// The mixture of members of `family` with locations `means`\[s\] and squared scales `variances`\[s\]; a single squared
    /// scale stands for all.
    ///
    /// # Errors
    /// No components, lengths that differ, a mean that is not finite or a variance that is not positive and finite.
    pub fn new(
        family: PredictiveFamily,
        means: &'a [f64],
        variances: &'a [f64],
    ) -> Result<Self, MetricsError> {
        if means.is_empty() {
            return Err(MetricsError::Empty("component"));
        }
        if variances.len() != 1 {
            expect_length("variances", variances.len(), means.len())?;
        }
        let mixture = Self {
            family,
            means,
            variances,
        };
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
        let own = |(m, v)| self.family.variance(m, v) + (m - centre).powi(2);
        self.components().map(own).sum::<f64>() / self.means.len() as f64
    }

    /// F(y), the probability of at most y.
    pub fn cdf(&self, y: f64) -> f64 {
        self.family.sum_of_cdfs(y, [self.means, self.variances]) / self.means.len() as f64
    }

    /// The y with F(y) = `probability`, to about 14 digits where F rises there; on a plateau between far modes, a point of
    /// it. Of counts, the least with F(y) ≥ `probability`. −∞ at 0 (0 for counts), ∞ at 1, NaN outside [0, 1].
    pub fn quantile(&self, probability: f64) -> f64 {
        if !(0.0..=1.0).contains(&probability) {
            return f64::NAN;
        }
        if probability == 1.0 {
            return f64::INFINITY;
        }
        if probability == 0.0 {
            return if self.family.is_discrete() {
                0.0
            } else {
                f64::NEG_INFINITY
            };
        }
        let (low, high) = self.bracket(probability);
        if self.family.is_discrete() {
            self.least_count(probability, low, high)
        } else {
            self.newton(probability, low, high)
        }
    }

    /// Bounds with F(low) ≤ `probability` ≤ F(high).
    fn bracket(&self, probability: f64) -> (f64, f64) {
        let (mut low, mut high, mut width) = (f64::INFINITY, f64::NEG_INFINITY, 0.0_f64);
        for (m, v) in self.components() {
            low = low.min(m);
            high = high.max(m);
            width = width.max(if self.family.is_discrete() {
                m.sqrt() + 1.0
            } else {
                v.sqrt()
            });
        }
        let mut step = width;
        while self.cdf(low) > probability && step.is_finite() {
            low -= step;
            step *= 2.0;
        }
        step = width;
        while self.cdf(high) < probability && step.is_finite() {
            high += step;
            step *= 2.0;
        }
        (low, high)
    }

    fn least_count(&self, probability: f64, low: f64, high: f64) -> f64 {
        // F(low) < probability ≤ F(high), both whole
        let (mut low, mut high) = (low.floor().max(0.0) - 1.0, high.ceil());
        while high - low > 1.0 {
            let middle = (0.5 * (low + high)).floor();
            if middle <= low || middle >= high {
                // counts beyond 2⁵³ have no neighbours to tell apart
                break;
            }
            if self.cdf(middle) < probability {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    fn newton(&self, probability: f64, mut low: f64, mut high: f64) -> f64 {
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
        for (m, v) in self.components() {
            cdf += self.family.cdf(y, m, v);
            density += self.family.log_density(y, m, v).exp();
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
