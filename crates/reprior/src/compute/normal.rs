//! Uniform bits to standard normals: Box & Muller (1958), pair by pair, in vector instructions.
//!
//! A block's first half of words gives radii √(−2 ln u), the second half angles 2πv; the first half of the
//! results are radius·cos, the second half radius·sin. ln and sincos are polynomials (Cephes) on ranges that the
//! construction guarantees; errors are a few units in the last place, far below what 2²⁰ draws can show.

use super::vector::simd;

/// `values.len()` ≤ `bits.len()`; `bits.len()` is even.
pub fn f32_from_bits(bits: &[u32], values: &mut [f32]) {
    let half = bits.len() / 2;
    let (radius_bits, angle_bits) = bits.split_at(half);
    let (cosines, sines) = values.split_at_mut(half.min(values.len()));
    // two short loops: more of their iterations overlap than of one long loop's
    simd(
        #[inline(always)]
        || {
            for (&bits, radius) in radius_bits.iter().zip(cosines.iter_mut()) {
                *radius = self::radius(bits);
            }
            for ((&bits, c), s) in angle_bits.iter().zip(cosines.iter_mut()).zip(&mut *sines) {
                let (radius, (sine, cosine)) = (*c, sin_cos_turn(bits));
                (*c, *s) = (radius * cosine, radius * sine);
            }
        },
    );
    // an odd tail has one number less of the second half
    let both = sines.len();
    for (&bits, c) in angle_bits.iter().zip(cosines).skip(both) {
        *c *= sin_cos_turn(bits).1;
    }
}

/// √(−2 ln u) with u = (bits + ½)/2³².
#[inline(always)]
fn radius(bits: u32) -> f32 {
    // the upper 31 bits through i32 (one instruction), offset by half a step: u in (0, 1)
    let u = (((bits >> 1) as i32 as f32) + 0.5) * 2.0_f32.powi(-31);
    let u = u.min(1.0 - f32::EPSILON / 2.0);
    // ln u = e ln 2 + ln m, m in [√½, √2)
    let pattern = u.to_bits().wrapping_sub(0x3f35_04f3);
    let exponent = (pattern as i32) >> 23;
    let mantissa = f32::from_bits((pattern & 0x007f_ffff).wrapping_add(0x3f35_04f3));
    let x = mantissa - 1.0;
    let p = 7.037_683_6e-2_f32;
    let p = p.mul_add(x, -0.115_146_1);
    let p = p.mul_add(x, 0.116_769_99);
    let p = p.mul_add(x, -0.124_201_41);
    let p = p.mul_add(x, 0.142_493_23);
    let p = p.mul_add(x, -0.166_680_57);
    let p = p.mul_add(x, 0.200_007_14);
    let p = p.mul_add(x, -0.249_999_94);
    let p = p.mul_add(x, 0.333_333_3);
    let square = x * x;
    let log = x + (p * x).mul_add(square, -0.5 * square);
    let log = (exponent as f32).mul_add(std::f32::consts::LN_2, log);
    (-2.0 * log).max(0.0).sqrt()
}

/// sin and cos of 2π·bits/2³².
#[inline(always)]
fn sin_cos_turn(bits: u32) -> (f32, f32) {
    // quadrant from the two top bits after rounding, remainder in [−1/8, 1/8) of a turn
    let rounded = bits.wrapping_add(1 << 29);
    let quadrant = rounded >> 30;
    let remainder = (rounded & 0x3fff_ffff) as i32 - (1 << 29);
    let x = remainder as f32 * (std::f32::consts::TAU * 2.0_f32.powi(-32));
    let s = x * x;
    let sine = {
        let p = -1.951_529_6e-4_f32;
        let p = p.mul_add(s, 8.332_161e-3);
        let p = p.mul_add(s, -0.166_666_55);
        (p * s).mul_add(x, x)
    };
    let cosine = {
        let p = 2.443_315_7e-5_f32;
        let p = p.mul_add(s, -1.388_731_6e-3);
        let p = p.mul_add(s, 4.166_664_6e-2);
        (p * s).mul_add(s, s.mul_add(-0.5, 1.0))
    };
    let swap = quadrant & 1 == 1;
    let (a, b) = if swap { (cosine, sine) } else { (sine, cosine) };
    let sine = f32::from_bits(a.to_bits() ^ ((quadrant & 2) << 30));
    let cosine = f32::from_bits(b.to_bits() ^ (((quadrant + 1) & 2) << 30));
    (sine, cosine)
}

/// Twice as many words as values (rounded up to pairs); library functions, since double precision is for checks.
pub fn f64_from_bits(bits: &[u32], values: &mut [f64]) {
    let unit = |high: u32, low: u32| {
        let word = (u64::from(high) << 32) | u64::from(low);
        ((word >> 11) as f64 + 0.5) * 2.0_f64.powi(-53)
    };
    for (word, out) in bits.chunks_exact(4).zip(values.chunks_mut(2)) {
        let radius = (-2.0 * unit(word[1], word[0]).ln()).sqrt();
        let (sine, cosine) = (std::f64::consts::TAU * unit(word[3], word[2])).sin_cos();
        out[0] = radius * cosine;
        if let Some(second) = out.get_mut(1) {
            *second = radius * sine;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_precision_radius_and_angle_agree_with_double_precision() {
        for i in 0..200_000_u32 {
            let bits = i.wrapping_mul(2_654_435_761);
            let u = (f64::from(bits >> 1) + 0.5) * 2.0_f64.powi(-31);
            let exact = (-2.0 * u.ln()).sqrt();
            // near u = 1 the rounding of u to 24 bits dominates: absolute error of r² below 2⁻²³
            let error = (f64::from(radius(bits)).powi(2) - exact * exact).abs();
            assert!(
                error < 1.5e-7 + 4e-7 * exact * exact,
                "radius({bits}): {error}"
            );
            let (s, c) = sin_cos_turn(bits);
            let (es, ec) = (std::f64::consts::TAU * f64::from(bits) * 2.0_f64.powi(-32)).sin_cos();
            assert!((f64::from(s) - es).abs() < 2e-7 && (f64::from(c) - ec).abs() < 2e-7);
        }
        assert!(radius(0).is_finite() && radius(u32::MAX).is_finite());
        assert!(radius(0) > 6.6);
    }
}
