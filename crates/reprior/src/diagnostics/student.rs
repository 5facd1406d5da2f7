//! Student's distribution function, for comparisons of means of a few values.

use super::{beta, normal};

/// The probability that a Student variable with so many degrees of freedom is at most `t`; with infinitely many it is standard normal.
///
/// ½·I_x(ν/2, ½) at x = ν/(ν + t²) in the lower tail (DLMF 8.17), with full relative accuracy there. NaN of a NaN.
pub fn student_cdf(t: f64, degrees: f64) -> f64 {
    if t.is_nan() || degrees.is_nan() || degrees <= 0.0 {
        return f64::NAN;
    }
    if degrees == f64::INFINITY {
        return normal::cdf(t);
    }
    let tail = 0.5 * beta::cdf(degrees / (degrees + t * t), 0.5 * degrees, 0.5);
    if t > 0.0 { 1.0 - tail } else { tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_closed_forms_and_with_the_normal_distribution() {
        for index in -40..=40 {
            let t = f64::from(index) / 4.0;
            // Cauchy's, and ν = 2
            let one = 0.5 + t.atan() / std::f64::consts::PI;
            let two = 0.5 + 0.5 * t / (2.0 + t * t).sqrt();
            assert!((student_cdf(t, 1.0) - one).abs() < 1e-13, "{t}");
            assert!((student_cdf(t, 2.0) - two).abs() < 1e-13, "{t}");
            assert!((student_cdf(t, 1e6) - normal::cdf(t)).abs() < 1e-5, "{t}");
            assert_eq!(student_cdf(t, f64::INFINITY), normal::cdf(t));
        }
        // the 1 % point of four degrees of freedom
        assert!((student_cdf(-3.746_947, 4.0) - 0.01).abs() < 1e-8);
        assert!(student_cdf(f64::NAN, 3.0).is_nan());
    }
}
