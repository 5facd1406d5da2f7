//! The Poisson distribution, at a cost that does not grow with the counts.
//!
//! F(y; m) = Q(a, m), a = ⌊y⌋ + 1, the upper regularised incomplete gamma function. Up to a = 10⁴ the terms of the shorter tail
//! are summed (about √a of them); above, Temme's uniform asymptotic expansion (SIAM J. Math. Anal. 10, 1979, eq. 1.4) is used,
//!
//! Q(a, m) = ½ erfc(η √(a/2)) + e^{−aη²/2} (2πa)^{−½} Σ_k C_k(η) a^{−k},  ½η² = λ − 1 − ln λ,  λ = m/a,  sign η = sign(λ − 1).
//!
//! C₀, C₁, C₂ are their Taylor series around 0 (DiDonato and Morris, ACM TOMS 12, 1986, appendix F). What is left out is below
//! 10⁻¹² of the shorter tail.

use std::f64::consts::{PI, TAU};

/// From here on the expansion is used.
const LARGE: f64 = 1e4;

/// Taylor coefficients of C₀, C₁, C₂.
const C0: [f64; 13] = [
    -0.333_333_333_333_333_3,
    0.083_333_333_333_333_33,
    -0.014_814_814_814_814_815,
    0.001_157_407_407_407_407_4,
    0.000_352_733_686_067_019_4,
    -0.000_178_755_144_032_921_8,
    0.391_926_317_852_243_8e-4,
    -0.218_544_851_067_999_22e-5,
    -1.854_062_210_715_16e-6,
    0.829_671_134_095_308_6e-6,
    -0.176_659_527_368_260_8e-6,
    0.670_785_354_340_149_9e-8,
    0.102_618_097_842_403_08e-7,
];
const C1: [f64; 9] = [
    -0.001_851_851_851_851_852,
    -0.003_472_222_222_222_222,
    0.002_645_502_645_502_645_5,
    -0.000_990_226_337_448_559_7,
    0.000_205_761_316_872_427_98,
    -0.401_877_572_016_460_9e-6,
    -0.180_985_503_344_899_78e-4,
    7.649_160_916_081_11e-6,
    -0.161_209_008_945_634_46e-5,
];
const C2: [f64; 6] = [
    0.004_133_597_883_597_883,
    -0.002_681_327_160_493_827,
    0.000_771_604_938_271_604_9,
    0.200_938_786_008_230_45e-5,
    -0.000_107_366_532_263_651_6,
    0.529_234_488_291_201_25e-4,
];

/// log of the probability of y for the mean m; for y that is no count, its continuation by the gamma function.
pub(crate) fn log_probability(y: f64, m: f64) -> f64 {
    if y < LARGE || m <= 0.0 {
        return y * m.ln() - m - libm::lgamma(y + 1.0);
    }
    // Stirling's series; y ln(m/y) − m + y without the cancellation of its terms
    let remainder = 1.0 / (12.0 * y) - 1.0 / (360.0 * y.powi(3));
    -y * half_square((m - y) / y) - 0.5 * (TAU * y).ln() - remainder
}

/// Probability of at most y for the mean m.
pub(crate) fn cdf(y: f64, m: f64) -> f64 {
    if y < 0.0 {
        return 0.0;
    }
    if m <= 0.0 {
        return 1.0;
    }
    let last = y.floor();
    if last + 1.0 < LARGE {
        by_terms(last, m)
    } else {
        uniform(last + 1.0, m)
    }
}

/// μ − ln(1 + μ), to full relative precision, for μ > −1.
fn half_square(mu: f64) -> f64 {
    if mu.abs() > 0.25 {
        return mu - mu.ln_1p();
    }
    let (mut power, mut sum, mut k) = (mu * mu, 0.0, 2.0);
    loop {
        let term = power / k;
        sum += term;
        if term.abs() <= 1e-17 * sum {
            return sum;
        }
        power *= -mu;
        k += 1.0;
    }
}

/// Q(a, m) for large a.
fn uniform(a: f64, m: f64) -> f64 {
    let mu = (m - a) / a;
    let half = half_square(mu);
    let exponent = a * half;
    if exponent > 745.0 {
        // beyond the smallest number
        return if mu > 0.0 { 0.0 } else { 1.0 };
    }
    let eta = (2.0 * half).sqrt().copysign(mu);
    let polynomial = |c: &[f64]| c.iter().rev().fold(0.0, |sum, c| sum * eta + c);
    let series = (polynomial(&C2) / a + polynomial(&C1)) / a + polynomial(&C0);
    let correction = (-exponent).exp() / (2.0 * PI * a).sqrt() * series;
    (0.5 * libm::erfc(exponent.sqrt().copysign(mu)) + correction).clamp(0.0, 1.0)
}

/// Σ_{i ≤ last} e^{−m} mⁱ/i!, from the largest term of the shorter tail outwards.
fn by_terms(last: f64, m: f64) -> f64 {
    let term = |i: f64| log_probability(i, m).exp();
    if last <= m {
        // last, last − 1, …: decreasing
        let (mut i, mut p, mut sum) = (last, term(last), 0.0);
        while p > sum * 1e-17 && i >= 0.0 {
            sum += p;
            p *= i / m;
            i -= 1.0;
        }
        sum.min(1.0)
    } else {
        let (mut i, mut p, mut sum) = (last + 1.0, term(last + 1.0), 0.0);
        while p > sum * 1e-17 && p > 0.0 {
            sum += p;
            i += 1.0;
            p *= m / i;
        }
        (1.0 - sum).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expansion_is_the_sum_where_both_can_be_had() {
        for m in [9e3_f64, 1.3e4, 1e5, 1e6] {
            for z in [
                -12.0_f64, -6.0, -2.0, -0.7, -0.01, 0.0, 0.4, 1.0, 3.0, 7.0, 12.0,
            ] {
                let y = (m + z * m.sqrt()).floor();
                let (sum, found) = (by_terms(y, m), uniform(y + 1.0, m));
                // of the shorter tail; the sum itself has about 1e-16 y ln y
                let tail = sum.min(1.0 - sum).max(1e-16);
                assert!(
                    (sum - found).abs() <= 1e-9 * tail + 1e-15,
                    "{m} {z}: {found:e}, not {sum:e}"
                );
            }
        }
    }

    #[test]
    fn huge_counts_are_normal() {
        // Cornish and Fisher: P(Y ≤ y) = Φ(z) − φ(z)(z² − 1)/(6√m) + O(1/m), z = (y + ½ − m)/√m
        for m in [1e9, 1e12, 1e14_f64] {
            for z in [-3.0, -1.0, 0.0, 0.5, 2.0] {
                let y = (m + z * m.sqrt()).floor();
                let z = (y + 0.5 - m) / m.sqrt();
                let density = (-0.5 * z * z).exp() / TAU.sqrt();
                let expected =
                    crate::diagnostics::normal::cdf(z) - density * (z * z - 1.0) / (6.0 * m.sqrt());
                assert!((cdf(y, m) - expected).abs() < 2.0 / m, "{m} {z}");
                // Edgeworth: φ(w)/√m · (1 + (w³ − 3w)/(6√m) + O(1/m)), w = (y − m)/√m
                let w = (y - m) / m.sqrt();
                let skewed = 1.0 + (w.powi(3) - 3.0 * w) / (6.0 * m.sqrt());
                let about = (-0.5 * w * w).exp() / (TAU * m).sqrt() * skewed;
                let of_one = log_probability(y, m).exp();
                assert!((of_one / about - 1.0).abs() < 20.0 / m + 1e-12, "{m} {w}");
            }
        }
        assert_eq!(cdf(1e14, 2e14), 0.0);
        assert_eq!(cdf(2e14, 1e14), 1.0);
        assert_eq!(cdf(3e4, 0.0), 1.0);
    }

    #[test]
    fn the_probability_is_the_same_in_both_forms() {
        for y in [1e4, 1e5, 3e6] {
            for m in [0.9 * y, y, 1.01 * y] {
                let plain = y * f64::ln(m) - m - libm::lgamma(y + 1.0);
                let scale = y * f64::ln(m) * 1e-15;
                assert!((log_probability(y, m) - plain).abs() < scale, "{y} {m}");
            }
        }
    }
}
