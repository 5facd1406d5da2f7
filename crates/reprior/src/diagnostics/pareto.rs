//! The generalised Pareto distribution fitted to the tail of importance ratios.
//!
//! Density σ⁻¹(1 + kx/σ)^(−1/k−1) for x > 0. The fit is the empirical Bayes estimate of Zhang & Stephens (2009), "A new and efficient
//! estimation method for the generalized Pareto distribution": the mean of b = −k/σ over a profile posterior at 30 + √n points. k is
//! drawn a little towards 1/2, as by ten more observations (Vehtari, Simpson, Gelman, Yao & Gabry 2024, Appendix G). n·√n logarithms.

/// A generalised Pareto distribution of excesses over a threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GeneralisedPareto {
    /// k: of the moments those below 1/k are finite.
    pub shape: f64,
    /// σ, in the unit of the excesses.
    pub scale: f64,
}

/// Part of the prior of b.
const PRIOR_B: f64 = 3.0;
/// Observations that the prior of k counts for, and where they are.
const PRIOR_SHAPE: (f64, f64) = (10.0, 0.5);

impl GeneralisedPareto {
    /// Fitted to positive excesses in ascending order. Not finite where they cannot be fitted: where the first quarter of them is the same.
    pub fn fit(excesses: &[f64]) -> Self {
        let undefined = Self {
            shape: f64::NAN,
            scale: f64::NAN,
        };
        let count = excesses.len();
        let Some(&largest) = excesses.last() else {
            return undefined;
        };
        let n = count as f64;
        let quartile = excesses[((n / 4.0 + 0.5) as usize).max(1) - 1];
        if quartile <= excesses[0] {
            // a quarter of them the same: far from any such distribution
            return undefined;
        }
        let points = 30 + n.sqrt() as usize;
        let shape_of = |b: f64| excesses.iter().map(|x| (-b * x).ln_1p()).sum::<f64>() / n;
        let (mut at, mut logarithms) = (Vec::with_capacity(points), Vec::with_capacity(points));
        for index in 0..points {
            let part = points as f64 / (index as f64 + 0.5);
            let b = (1.0 - part.sqrt()) / (PRIOR_B * quartile) + 1.0 / largest;
            let k = shape_of(b);
            at.push(b);
            logarithms.push(n * ((-(b / k)).ln() - k - 1.0));
        }
        let weight = |own: f64| 1.0 / logarithms.iter().map(|l| (l - own).exp()).sum::<f64>();
        let (mut total, mut b) = (0.0, 0.0);
        for (&own, &logarithm) in at.iter().zip(&logarithms) {
            let weight = weight(logarithm);
            // the others count for nothing
            if weight >= 10.0 * f64::EPSILON {
                total += weight;
                b += weight * own;
            }
        }
        b /= total;
        let k = shape_of(b);
        let (count, centre) = PRIOR_SHAPE;
        Self {
            shape: (n * k + count * centre) / (n + count),
            scale: -k / b,
        }
    }

    /// Whether there is a fit.
    pub fn is_finite(&self) -> bool {
        self.shape.is_finite() && self.scale.is_finite() && self.scale > 0.0
    }

    /// The excess that a share `probability` of the distribution is below.
    pub fn quantile(&self, probability: f64) -> f64 {
        let k = self.shape;
        let exponential = -(-probability).ln_1p();
        self.scale
            * match k.abs() < f64::EPSILON {
                true => exponential,
                false => (k * exponential).exp_m1() / k,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Excesses at the quantiles of a distribution are fitted by it, but for the prior of k.
    #[test]
    fn quantiles_are_fitted_by_their_own_distribution() {
        for (shape, scale) in [(-0.3, 2.0), (0.2, 0.5), (0.9, 1e-3)] {
            let law = GeneralisedPareto { shape, scale };
            let n = 2000;
            let excesses: Vec<f64> = (0..n)
                .map(|i| law.quantile((f64::from(i) + 0.5) / f64::from(n)))
                .collect();
            let fit = GeneralisedPareto::fit(&excesses);
            assert!((fit.shape - shape).abs() < 0.02, "{fit:?} {law:?}");
            assert!((fit.scale / scale - 1.0).abs() < 0.02, "{fit:?} {law:?}");
        }
        assert!(!GeneralisedPareto::fit(&[]).is_finite());
        assert!(!GeneralisedPareto::fit(&[0.0; 8]).is_finite());
    }

    #[test]
    fn without_a_shape_it_is_exponential() {
        let law = |shape| GeneralisedPareto { shape, scale: 3.0 };
        for p in [0.01, 0.5, 0.99] {
            let [none, little] = [0.0, 1e-9].map(|shape| law(shape).quantile(p));
            assert!((none / little - 1.0).abs() < 1e-7);
        }
    }
}
