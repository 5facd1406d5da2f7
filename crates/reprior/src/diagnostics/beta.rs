//! The Beta distribution function and its inverse, for the confidence limits of quantiles.
//!
//! I_x(a, b) = x^a (1 − x)^b / (a B(a, b)) · 1/(1 + d₁/(1 + d₂/(1 + …))), the continued fraction of DLMF 8.17.22,
//! evaluated by Lentz's method; about √max(a, b) terms. The inverse is found by bisection, 53 evaluations:
//! slow, safe, and needed twice per quantile.

/// I_x(a, b), the probability that a Beta(a, b) variable is at most x ∈ [0, 1]; a, b > 0.
pub(crate) fn cdf(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast below the mode.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - cdf_below_mode(1.0 - x, b, a);
    }
    cdf_below_mode(x, a, b)
}

fn cdf_below_mode(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    const MOST_TERMS: usize = 100_000;
    let away_from_zero = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut numerator = 1.0;
    let mut denominator = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = denominator;
    for m in 1..MOST_TERMS {
        let m = m as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut last_factor = 1.0;
        for d in [even, odd] {
            denominator = 1.0 / away_from_zero(1.0 + d * denominator);
            numerator = away_from_zero(1.0 + d / numerator);
            last_factor = numerator * denominator;
            fraction *= last_factor;
        }
        if (last_factor - 1.0).abs() < 1e-16 {
            break;
        }
    }
    let log_beta = libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b);
    (a * x.ln() + b * (-x).ln_1p() - log_beta).exp() / a * fraction
}

/// The x with I_x(a, b) = p, to 2⁻⁵³ absolutely.
pub(super) fn quantile(p: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..53 {
        let middle = 0.5 * (low + high);
        if cdf(middle, a, b) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_closed_forms() {
        for i in 0..=100 {
            let x = f64::from(i) / 100.0;
            for a in [0.5, 1.0, 3.0, 250.0] {
                assert!((cdf(x, a, 1.0) - x.powf(a)).abs() < 1e-13);
                assert!((cdf(x, 1.0, a) - (1.0 - (1.0 - x).powf(a))).abs() < 1e-13);
            }
            assert!((cdf(x, 2.0, 2.0) - x * x * (3.0 - 2.0 * x)).abs() < 1e-14);
        }
    }

    #[test]
    fn inverts_itself() {
        for (a, b) in [(2.0, 5.0), (1.0, 1.0), (21.9, 397.0), (20_000.0, 20_001.0)] {
            for p in [0.01, 0.1586553, 0.5, 0.8413447] {
                assert!((cdf(quantile(p, a, b), a, b) - p).abs() < 1e-10);
            }
        }
        assert!((quantile(0.5, 20_000.0, 20_000.0) - 0.5).abs() < 1e-15);
    }
}
