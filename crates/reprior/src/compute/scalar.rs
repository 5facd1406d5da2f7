//! Branch-free functions, in single precision but for one exponential, written so that a loop over them becomes vector instructions.

const LOG2_E: f32 = std::f32::consts::LOG2_E;
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;
const INV_SQRT_2PI: f32 = 0.398_942_3;

/// exp(x), relative error below 3e-7; 0 below −87.3 (subnormal results are flushed), saturates above 88.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let clamped = x.clamp(-87.3, 88.0);
    // Round to the nearest integer with the 1.5·2^23 trick: a plain add and subtract, no library call.
    let shifted = clamped.mul_add(LOG2_E, 12_582_912.0);
    let k = shifted - 12_582_912.0;
    let r = k.mul_add(-LN2_LOW, k.mul_add(-LN2_HIGH, clamped));
    let p = 1.987_569_1e-4_f32;
    let p = p.mul_add(r, 1.398_2e-3);
    let p = p.mul_add(r, 8.333_452e-3);
    let p = p.mul_add(r, 4.166_579_6e-2);
    let p = p.mul_add(r, 0.166_666_66);
    let p = p.mul_add(r, 0.5);
    let y = p.mul_add(r * r, r) + 1.0;
    // the low bits of `shifted` are k, offset by the bits of 1.5·2^23
    let scale = f32::from_bits(shifted.to_bits().wrapping_sub(0x4b40_0000 - 127) << 23);
    let value = y * scale;
    if x < -87.3 { 0.0 } else { value }
}

/// exp(x) in double precision, relative error below 4e-16; 0 below −708 (subnormal results are flushed), saturates above 709.
#[inline(always)]
pub fn exp_f64(x: f64) -> f64 {
    const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    /// 1/n! for n = 12, 11, …, 2: with |r| ≤ ½ ln 2 the next term is below 2e-16.
    const COEFFICIENTS: [f64; 11] = [
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
    ];
    const SHIFT: f64 = 6_755_399_441_055_744.0;
    let clamped = x.clamp(-708.0, 709.0);
    // round to the nearest integer with the 1.5·2^52 trick, as above
    let shifted = clamped.mul_add(std::f64::consts::LOG2_E, SHIFT);
    let k = shifted - SHIFT;
    let r = k.mul_add(-LN2_LOW, k.mul_add(-LN2_HIGH, clamped));
    let mut p = 0.0;
    for coefficient in COEFFICIENTS {
        p = r.mul_add(p, coefficient);
    }
    let y = p.mul_add(r * r, r) + 1.0;
    let scale = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    let value = y * scale;
    if x < -708.0 { 0.0 } else { value }
}

/// (Φ(x), φ(x)) of the standard normal; Φ with an absolute error below 2e-7, and 0 below −5.29, φ with a relative error below
/// 5e-7 + 4e-8 x². NaN gives NaN.
///
/// Φ(x) = ½(1 + erf(x/√2)) with erf as a ratio of polynomials: half of what a form with small relative errors in the lower tail
/// would take. A feature x·Φ(x) is rounded to single precision when it is added to others in any case.
#[inline(always)]
pub fn normal_cdf_pdf(x: f32) -> (f32, f32) {
    const LIMIT: f32 = 3.743_921_2;
    let y = (x * std::f32::consts::FRAC_1_SQRT_2).clamp(-LIMIT, LIMIT);
    let s = y * y;
    let p = 2.290_506_6e-4_f32;
    let p = p.mul_add(s, 3.408_291e-3);
    let p = p.mul_add(s, 5.095_569_5e-2);
    let p = p.mul_add(s, 0.185_208_32);
    let p = p.mul_add(s, std::f32::consts::FRAC_2_SQRT_PI);
    let q = -1.179_160_3e-7_f32;
    let q = q.mul_add(s, 2.354_796_6e-5);
    let q = q.mul_add(s, 1.017_962_5e-3);
    let q = q.mul_add(s, 1.407_047e-2);
    let q = q.mul_add(s, 0.110_985_05);
    let q = q.mul_add(s, 0.497_469_25);
    let q = q.mul_add(s, 1.0);
    let half = y * p / (q + q);
    let cdf = if y <= -LIMIT { 0.0 } else { 0.5 + half };
    (cdf, exp(-0.5 * x * x) * INV_SQRT_2PI)
}

/// tanh(x), relative error below 3e-7. NaN gives NaN.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let a = x.abs();
    // |x| < 0.625: odd polynomial (Cephes); else 1 − 2/(exp(2|x|) + 1)
    let s = x * x;
    let p = -5.704_988_7e-3_f32;
    let p = p.mul_add(s, 2.063_909e-2);
    let p = p.mul_add(s, -5.373_971_6e-2);
    let p = p.mul_add(s, 0.133_314_42);
    let p = p.mul_add(s, -0.333_332_8);
    let small = (p * s).mul_add(x, x);
    let large = (1.0 - 2.0 / (exp(2.0 * a) + 1.0)).copysign(x);
    if a < 0.625 { small } else { large }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(limit: f64) -> impl Iterator<Item = f32> {
        (-40_000..=40_000).map(move |i| (f64::from(i) / 40_000.0 * limit) as f32)
    }

    #[test]
    fn exp_agrees_with_double_precision() {
        for x in grid(87.0) {
            let exact = f64::from(x).exp();
            assert!((f64::from(exp(x)) / exact - 1.0).abs() < 3e-7, "exp({x})");
        }
        assert_eq!(exp(-200.0), 0.0);
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn exp_in_double_precision_agrees_with_the_library() {
        for i in -40_000..=40_000 {
            let x = f64::from(i) / 40_000.0 * 708.0;
            assert!((exp_f64(x) / x.exp() - 1.0).abs() < 4e-16, "exp({x})");
        }
        assert_eq!([exp_f64(0.0), exp_f64(-800.0)], [1.0, 0.0]);
        assert!(exp_f64(1e9) > 8e307 && exp_f64(f64::NAN).is_nan());
    }

    #[test]
    fn normal_distribution_agrees_with_double_precision() {
        let mut worst = 0.0_f64;
        for x in grid(12.0) {
            let exact = 0.5 * libm::erfc(-f64::from(x) * std::f64::consts::FRAC_1_SQRT_2);
            let (cdf, pdf) = normal_cdf_pdf(x);
            worst = worst.max((f64::from(cdf) - exact).abs());
            // the argument −x²/2 of the exponential is itself rounded: its relative error grows with x²
            let bound = 5e-7 + 4e-8 * f64::from(x * x);
            let density = (-0.5 * f64::from(x).powi(2)).exp() / (2.0 * std::f64::consts::PI).sqrt();
            assert!((f64::from(pdf) / density - 1.0).abs() < bound, "pdf({x})");
        }
        assert!(worst < 2e-7, "{worst}");
        let (cdf, pdf) = normal_cdf_pdf(f32::NAN);
        assert!(cdf.is_nan() && pdf.is_nan());
        assert!((normal_cdf_pdf(f32::INFINITY).0 - 1.0).abs() < 1e-7);
        assert_eq!(normal_cdf_pdf(f32::NEG_INFINITY).0, 0.0);
    }

    #[test]
    fn tanh_agrees_with_double_precision() {
        for x in grid(12.0) {
            let exact = f64::from(x).tanh();
            let error = (f64::from(tanh(x)) - exact).abs();
            assert!(error <= 3e-7 * exact.abs(), "tanh({x})");
        }
        assert!(tanh(f32::NAN).is_nan());
        assert_eq!(tanh(f32::INFINITY), 1.0);
    }
}
