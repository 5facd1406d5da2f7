//! Vector operations in one pass each; sums are accumulated in double precision in a fixed order. Long vectors are shared with the
//! thread's team.

use std::ops::Range;

use rand_distr::{ChiSquared, Distribution};

use super::instructions::{arch, arch_of_eight_words};
use super::{Real, Stream, spread};

/// Runs `operation` with the widest vector instructions that this processor has: closures inlined into it are
/// compiled once per instruction set and chosen at run time.
#[inline]
pub fn simd<T>(operation: impl FnOnce() -> T) -> T {
    arch().dispatch(operation)
}

/// As [`simd`] with vectors of at most eight words. In longer ones the compiler puts two of eight together and takes them apart, for
/// three times as long as it works on them.
#[inline]
pub(super) fn simd_of_eight_words<T>(operation: impl FnOnce() -> T) -> T {
    arch_of_eight_words().dispatch(operation)
}

/// Lanes of the fixed-order sums.
const LANES: usize = 16;

/// Numbers that a thread takes at a time.
const PIECE: usize = 1 << 14;
/// Pieces of a sum at most.
const SUMS: usize = 64;
/// What a number of each vector takes that comes from memory and goes back, in operations.
const TRAFFIC: usize = 8;

/// Works on the pieces of vectors of so many numbers, with vector instructions: `work` is to be inlined.
#[inline(always)]
fn in_pieces<T: Send>(
    length: usize,
    pieces: impl Iterator<Item = T> + Send,
    work: impl Fn(T) + Sync,
) {
    spread(TRAFFIC * length, pieces, |piece| {
        simd(
            #[inline(always)]
            || work(piece),
        );
    });
}

/// A sum over 0..n, by pieces that follow from n alone, added up in order.
#[inline(always)]
fn sum_in_pieces(n: usize, sum: impl Fn(Range<usize>) -> f64 + Sync) -> f64 {
    if n <= PIECE {
        return sum(0..n);
    }
    let length = n.div_ceil(SUMS).next_multiple_of(LANES).max(PIECE);
    let mut sums = [0.0; SUMS];
    let pieces = sums.iter_mut().enumerate().take(n.div_ceil(length));
    spread(TRAFFIC * n, pieces, |(index, out)| {
        *out = sum(index * length..n.min((index + 1) * length));
    });
    sums.iter().sum()
}

/// Σ term(aᵢ, bᵢ) in double precision.
fn sum_pairs<R: Real>(a: &[R], b: &[R], term: impl Fn(f64, f64) -> f64 + Sync) -> f64 {
    debug_assert_eq!(a.len(), b.len());
    sum_in_pieces(a.len(), |piece| {
        simd(
            #[inline(always)]
            || sum_of_piece(&a[piece.clone()], &b[piece], &term),
        )
    })
}

/// Sixteen partial sums, then those in order.
#[inline(always)]
fn sum_of_piece<R: Real>(a: &[R], b: &[R], term: &impl Fn(f64, f64) -> f64) -> f64 {
    let mut partial = [0.0_f64; LANES];
    let (a_blocks, b_blocks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let tail = a_blocks.remainder().iter().zip(b_blocks.remainder());
    let tail: f64 = tail.map(|(x, y)| term(x.to_f64(), y.to_f64())).sum();
    for (x, y) in a_blocks.zip(b_blocks) {
        for lane in 0..LANES {
            partial[lane] += term(x[lane].to_f64(), y[lane].to_f64());
        }
    }
    partial.iter().sum::<f64>() + tail
}

/// Σ term(aᵢ, bᵢ, cᵢ, dᵢ) as [`sum_pairs`]: for energy differences, written as sums of differences.
pub(crate) fn sum_fours<R: Real>(
    all: [&[R]; 4],
    term: impl Fn(f64, f64, f64, f64) -> f64 + Sync,
) -> f64 {
    let n = all.map(<[R]>::len).into_iter().min().unwrap_or(0);
    sum_in_pieces(n, |piece| {
        sum_fours_of_piece(all.map(|values| &values[piece.clone()]), &term)
    })
}

fn sum_fours_of_piece<R: Real>(
    [a, b, c, d]: [&[R]; 4],
    term: &impl Fn(f64, f64, f64, f64) -> f64,
) -> f64 {
    let n = a.len();
    simd(
        #[inline(always)]
        || {
            let mut partial = [0.0_f64; LANES];
            let whole = n - n % LANES;
            for start in (0..whole).step_by(LANES) {
                let block = start..start + LANES;
                let (a, b) = (&a[block.clone()], &b[block.clone()]);
                let (c, d) = (&c[block.clone()], &d[block]);
                for lane in 0..LANES {
                    partial[lane] += term(
                        a[lane].to_f64(),
                        b[lane].to_f64(),
                        c[lane].to_f64(),
                        d[lane].to_f64(),
                    );
                }
            }
            let tail: f64 = (whole..n)
                .map(|i| term(a[i].to_f64(), b[i].to_f64(), c[i].to_f64(), d[i].to_f64()))
                .sum();
            partial.iter().sum::<f64>() + tail
        },
    )
}

/// Whether every entry is finite.
pub fn all_finite<R: Real>(values: &[R]) -> bool {
    // 0·x is 0 for a finite x and NaN for any other
    let sum = sum_pairs(values, values, |x, _| 0.0 * x);
    sum == 0.0
}

/// ⟨a, b⟩.
pub fn dot<R: Real>(a: &[R], b: &[R]) -> f64 {
    sum_pairs(a, b, |x, y| x * y)
}

/// ⟨a, b⟩ in the precision of its vectors, for where that is enough: twice as fast in single precision.
pub(crate) fn dot_in_lanes<R: Real>(a: &[R], b: &[R]) -> R {
    const LANES: usize = 32;
    debug_assert_eq!(a.len(), b.len());
    simd(
        #[inline(always)]
        || {
            let (a, a_rest) = a.as_chunks::<LANES>();
            let (b, b_rest) = b.as_chunks::<LANES>();
            let mut sums = [R::ZERO; LANES];
            for (a, b) in a.iter().zip(b) {
                for ((sum, &a), &b) in sums.iter_mut().zip(a).zip(b) {
                    *sum += a * b;
                }
            }
            let rest: R = a_rest.iter().zip(b_rest).map(|(&a, &b)| a * b).sum();
            sums.into_iter().sum::<R>() + rest
        },
    )
}

/// ‖a‖².
pub fn norm_squared<R: Real>(a: &[R]) -> f64 {
    dot(a, a)
}

/// ½(‖a‖² − ‖b‖²) as a sum of differences, ½ Σ (a − b)(a + b).
pub fn difference_dot<R: Real>(a: &[R], b: &[R]) -> f64 {
    sum_pairs(a, b, |x, y| 0.5 * (x - y) * (x + y))
}

/// y ← y + scale·x.
pub fn add_scaled<R: Real>(y: &mut [R], scale: f64, x: &[R]) {
    let scale = R::from_f64(scale);
    let pieces = y.chunks_mut(PIECE).zip(x.chunks(PIECE));
    in_pieces(
        x.len(),
        pieces,
        #[inline(always)]
        |(y, x)| {
            for (y, &x) in y.iter_mut().zip(x) {
                *y += scale * x;
            }
        },
    );
}

/// out ← x + (scale·y − shrink·x), that is (1 − shrink)·x + scale·y.
///
/// A factor just below 1 rounds to single precision with an error that a small `scale` cannot make up for: over many
/// steps variances would grow or shrink. Its distance from 1 keeps its accuracy.
pub fn blend<R: Real>(out: &mut [R], shrink: f64, x: &[R], scale: f64, y: &[R]) {
    let (shrink, scale) = (R::from_f64(shrink), R::from_f64(scale));
    let pairs = x.chunks(PIECE).zip(y.chunks(PIECE));
    let pieces = out.chunks_mut(PIECE).zip(pairs);
    in_pieces(
        x.len(),
        pieces,
        #[inline(always)]
        |(out, (x, y))| {
            for ((out, &x), &y) in out.iter_mut().zip(x).zip(y) {
                *out = x + (scale * y - shrink * x);
            }
        },
    );
}

/// noise ← x + (scale·noise − shrink·x): `blend` made in place of its noise. What x has more is left alone.
pub fn autoregress<R: Real>(noise: &mut [R], scale: f64, shrink: f64, x: &[R]) {
    let length = noise.len();
    let (shrink, scale) = (R::from_f64(shrink), R::from_f64(scale));
    let pieces = noise.chunks_mut(PIECE).zip(x.chunks(PIECE));
    in_pieces(
        length,
        pieces,
        #[inline(always)]
        |(noise, x)| {
            for (noise, &x) in noise.iter_mut().zip(x) {
                *noise = x + (scale * *noise - shrink * x);
            }
        },
    );
}

/// noise ← x + (scale·noise − shrink·(x − g)): [`autoregress`] about g instead of 0.
pub fn autoregress_about<R: Real>(noise: &mut [R], scale: f64, shrink: f64, x: &[R], g: &[R]) {
    let length = noise.len();
    let (shrink, scale) = (R::from_f64(shrink), R::from_f64(scale));
    let pairs = x.chunks(PIECE).zip(g.chunks(PIECE));
    let pieces = noise.chunks_mut(PIECE).zip(pairs);
    in_pieces(
        length,
        pieces,
        #[inline(always)]
        |(noise, (x, g))| {
            for ((noise, &x), &g) in noise.iter_mut().zip(x).zip(g) {
                *noise = x + (scale * *noise - shrink * (x - g));
            }
        },
    );
}

/// values ← values∘factors.
pub fn multiply_by<R: Real>(values: &mut [R], factors: &[R]) {
    let pieces = values.chunks_mut(PIECE).zip(factors.chunks(PIECE));
    in_pieces(
        factors.len(),
        pieces,
        #[inline(always)]
        |(values, factors)| {
            for (value, &factor) in values.iter_mut().zip(factors) {
                *value *= factor;
            }
        },
    );
}

/// v ← −v.
pub fn negate<R: Real>(v: &mut [R]) {
    for v in v {
        *v = -*v;
    }
}

/// v ← v + scale·(g − z); returns ½(‖v_new‖² − ‖v_old‖²) as a sum of differences.
pub fn kick_about<R: Real>(v: &mut [R], scale: f64, g: &[R], z: &[R]) -> f64 {
    let change = sum_fours([v, g, z, z], |v, g, z, _| {
        let kick = scale * (g - z);
        kick * (v + 0.5 * kick)
    });
    let scale = R::from_f64(scale);
    let pairs = g.chunks(PIECE).zip(z.chunks(PIECE));
    let pieces = v.chunks_mut(PIECE).zip(pairs);
    in_pieces(
        g.len(),
        pieces,
        #[inline(always)]
        |(v, (g, z))| {
            for ((v, &g), &z) in v.iter_mut().zip(g).zip(z) {
                *v += scale * (g - z);
            }
        },
    );
    change
}

/// v ← v + scale·g; returns ½(‖v_new‖² − ‖v_old‖²) = scale⟨v, g⟩ + ½ scale²‖g‖².
pub fn kick<R: Real>(v: &mut [R], scale: f64, g: &[R]) -> f64 {
    let change = sum_pairs(v, g, |v, g| scale * g * (v + 0.5 * scale * g));
    add_scaled(v, scale, g);
    change
}

/// Rotates the pairs (z, v) by `angle`: z ← z cos + v sin, v ← v cos − z sin, in the form of [`blend`].
pub fn rotate<R: Real>(z: &mut [R], v: &mut [R], angle: f64) {
    let (sine, shrink) = (R::from_f64(angle.sin()), R::from_f64(one_minus_cos(angle)));
    let length = z.len();
    let pieces = z.chunks_mut(PIECE).zip(v.chunks_mut(PIECE));
    in_pieces(
        length,
        pieces,
        #[inline(always)]
        |(z, v)| {
            for (z, v) in z.iter_mut().zip(v) {
                (*z, *v) = (
                    *z + (sine * *v - shrink * *z),
                    *v - (sine * *z + shrink * *v),
                );
            }
        },
    );
}

/// 1 − cos(angle) without cancellation.
pub fn one_minus_cos(angle: f64) -> f64 {
    2.0 * (0.5 * angle).sin().powi(2)
}

/// A chi-squared number with `freedom` degrees of freedom; 0 for none.
pub fn chi_squared(freedom: u64, stream: &mut Stream) -> f64 {
    ChiSquared::new(freedom as f64).map_or(0.0, |law| law.sample(stream.generator()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::Purpose;
    use proptest::prelude::*;

    fn noise(n: usize, index: u64) -> Vec<f32> {
        let mut values = vec![0.0; n];
        Stream::new(0, 0, Purpose::Initial, index).fill_normal(&mut values);
        values
    }

    proptest! {
        #[test]
        fn sums_and_updates_agree_with_plain_loops(n in 0_usize..200, scale in -2.0_f64..2.0) {
            let (a, b) = (noise(n, 1), noise(n, 2));
            let plain: f64 = a.iter().zip(&b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum();
            prop_assert!((dot(&a, &b) - plain).abs() < 1e-10);
            let half = 0.5 * (norm_squared(&a) - norm_squared(&b));
            prop_assert!((difference_dot(&a, &b) - half).abs() < 1e-10);
            let mut kicked = a.clone();
            let change = kick(&mut kicked, scale, &b);
            prop_assert!((change - difference_dot(&kicked, &a)).abs() < 1e-3);
            let mut kicked = a.clone();
            let change = kick_about(&mut kicked, scale, &b, &a);
            prop_assert!((change - difference_dot(&kicked, &a)).abs() < 1e-3);
            let mut proposal = b.clone();
            autoregress_about(&mut proposal, 0.3, 0.1, &a, &b);
            prop_assert!(proposal.iter().zip(a.iter().zip(&b)).all(|(p, (a, b))| (p - (0.9 * a + 0.4 * b)).abs() < 1e-5));
            let plain: f64 = (0..n).map(|i| f64::from(a[i]) * f64::from(b[i] - a[i])).sum();
            prop_assert!((sum_fours([&a, &b, &a, &b], |a, b, c, _| a * (b - c)) - plain).abs() < 1e-4);
            prop_assert!(all_finite(&a));
            if n > 0 {
                for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                    kicked[n / 2] = bad;
                    prop_assert!(!all_finite(&kicked));
                }
            }
            let (mut z, mut v) = (a.clone(), b.clone());
            rotate(&mut z, &mut v, scale);
            let before = norm_squared(&a) + norm_squared(&b);
            prop_assert!((norm_squared(&z) + norm_squared(&v) - before).abs() < 1e-4 * (1.0 + before));
        }
    }

    /// Many small steps from far out, in single precision: what is expected of the mean shows a factor that is off by a
    /// rounding error, 3e-8 of 1000 in each of 1000 steps, against 0.001 of noise (one standard error).
    #[test]
    fn small_steps_neither_gain_nor_lose() {
        let (dimension, steps) = (2000, 1000);
        let mean = |z: &[f32]| z.iter().map(|&z| f64::from(z)).sum::<f64>() / dimension as f64;
        for beta in [1e-3_f64, 4e-4, 1e-4] {
            let shrink = one_minus_cos(beta.asin());
            let exact = 1000.0 * (1.0 - shrink).powi(steps);
            let error = beta * (f64::from(steps) / dimension as f64).sqrt();
            let mut z = vec![1000.0_f32; dimension];
            let mut out = z.clone();
            for step in 0..steps {
                let xi = noise(dimension, step as u64);
                blend(&mut out, shrink, &z, beta, &xi);
                let mut proposal = xi;
                autoregress(&mut proposal, beta, shrink, &z);
                assert_eq!(proposal, out);
                std::mem::swap(&mut z, &mut out);
            }
            assert!(
                (mean(&z) - exact).abs() < 5.0 * error,
                "{beta}: {} {exact}",
                mean(&z)
            );
        }
    }

    #[test]
    fn a_quarter_turn_keeps_the_norm() {
        for steps in [1024, 100, 16, 5, 1] {
            let angle = std::f64::consts::FRAC_PI_2 / f64::from(steps);
            let (mut z, mut v) = (noise(4000, 1), noise(4000, 2));
            let before = norm_squared(&z) + norm_squared(&v);
            for _ in 0..steps {
                rotate(&mut z, &mut v, angle);
            }
            let change = (norm_squared(&z) + norm_squared(&v)) / before - 1.0;
            assert!(change.abs() < 3e-7, "{steps} steps: {change}");
        }
    }
}
