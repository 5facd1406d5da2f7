//! tanh as a mixture of error functions, whose second moments have a closed form.
//!
//! The logistic distribution is a normal one whose standard deviation is twice a Kolmogorov-Smirnov variable κ (Andrews &
//! Mallows 1974), and so tanh x = ∫ erf(x/(√2 κ)) p(κ) dκ. By the trapezoidal rule in ln κ, [`MIXTURE`]: |Σ w erf(s·x) −
//! tanh x| < 2.5e-11 and |Σ w·(erf(s·x))' − tanh' x| < 1.3e-10 for every x. As |tanh| ≤ 1, second moments are off by
//! less than 1e-10, those of derivatives by less than 3e-10, *whatever the variances*; Gauss-Hermite nodes would lose their
//! accuracy as these grow. And the matrices are positive semi-definite: they are exact for the mixture. One covariance costs
//! as many angles as there are pairs of terms, 256: some microseconds.

use std::f64::consts::PI;

use crate::compute::{difference_of_products, right_angle};

/// Slopes s and weights w.
const MIXTURE: [[f64; 2]; 16] = [
    [2.867_459_395_623_331_6, 1.057_088_903_797_897_4e-7],
    [2.419_174_605_106_135_4, 2.176_245_142_287_996_2e-5],
    [2.040_972_499_531_496_6, 8.268_792_501_867_486e-4],
    [1.721_896_689_495_503, 9.406_876_610_814_36e-3],
    [1.452_703_654_741_143_8, 0.045_144_842_484_329_24],
    [1.225_594_962_446_083_3, 0.116_366_207_961_141_68],
    [1.033_991_349_213_526_6, 0.190_520_335_429_863_85],
    [0.872_342_121_996_477_3, 0.221_543_351_481_044_62],
    [0.735_964_356_363_458_1, 0.195_031_144_970_416_07],
    [0.620_907_233_732_852_5, 0.131_592_366_396_409_87],
    [0.523_837_587_470_595, 0.064_775_724_981_803_33],
    [0.441_943_342_159_671_6, 0.020_806_725_760_732_31],
    [0.372_852_048_709_132_2, 3.676_497_475_227_691e-3],
    [0.314_562_155_291_775_95, 2.805_675_804_914_815_6e-4],
    [0.265_385_023_052_399_3, 6.582_016_303_015_993e-6],
    [0.223_896_006_800_929_53, 2.944_092_246_481_699_8e-8],
];

/// E[tanh u tanh v] and E[tanh' u tanh' v] for covariance k and variances q, r.
#[inline(always)]
pub(super) fn moments(k: f64, q: f64, r: f64) -> (f64, f64) {
    let (mut value, mut slope) = (0.0, 0.0);
    for [s, weight] in MIXTURE {
        let q = 2.0 * s * s * q + 1.0;
        for [t, other] in MIXTURE {
            let r = 2.0 * t * t * r + 1.0;
            let twice = 2.0 * s * t * k;
            let e = difference_of_products(q, r, twice, twice).max(0.0).sqrt();
            let weight = weight * other;
            value += weight * right_angle(twice, e);
            slope += weight * (s * t / e);
        }
    }
    (2.0 / PI * value, 4.0 / PI * slope)
}

/// Derivatives of E[tanh u tanh v] by k, q and r.
#[inline(always)]
pub(super) fn slopes(k: f64, q: f64, r: f64) -> [f64; 3] {
    let mut slopes = [0.0; 3];
    for [s, weight] in MIXTURE {
        let q = 2.0 * s * s * q + 1.0;
        for [t, other] in MIXTURE {
            let r = 2.0 * t * t * r + 1.0;
            let twice = 2.0 * s * t * k;
            let e = difference_of_products(q, r, twice, twice).max(0.0).sqrt();
            let common = weight * other * s * t / e;
            slopes[0] += common;
            slopes[1] -= common * k * s * s / q;
            slopes[2] -= common * k * t * t / r;
        }
    }
    slopes.map(|slope| 4.0 / PI * slope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mixture_is_as_close_to_tanh_as_is_said() {
        for i in 0..40_000 {
            let x = f64::from(i) * 1e-3;
            let (mut value, mut slope) = (-x.tanh(), x.tanh().powi(2) - 1.0);
            for [s, weight] in MIXTURE {
                value += weight * libm::erf(s * x);
                slope += weight * s * std::f64::consts::FRAC_2_SQRT_PI * (-(s * x).powi(2)).exp();
            }
            assert!(value.abs() < 2.5e-11, "{x}: {value:e}");
            assert!(slope.abs() < 1.3e-10, "{x}: {slope:e}");
        }
    }
}
