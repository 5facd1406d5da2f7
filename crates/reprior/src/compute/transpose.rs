//! Rows to columns: panels of [`super::tile`] from a matrix whose rows lie one after the other.
//!
//! A block of numbers is turned within vector registers, as many loads and stores as it has rows; number by number a Gram
//! matrix of few columns spent a third of its time here.
#![allow(unsafe_code)] // registers of AVX, and writes without bounds checks; tested against plain loops below

use pulp::Simd;

use super::{Matrix, Real};

/// Numbers that are turned within registers.
pub trait Transpose: Copy {
    /// Rows and columns of a block; 0 where `S` has no such registers.
    fn block<S: Simd>() -> usize;

    /// Writes the transposed block, whose rows begin `stride` apart at `from`, to columns `height` apart at `to`.
    ///
    /// # Safety
    /// [`Transpose::block`] of the instruction set that runs is not 0; both blocks are within their allocations.
    unsafe fn transpose(from: *const Self, stride: usize, to: *mut Self, height: usize);
}

/// Whether `S` is an instruction set with AVX2's registers.
#[inline(always)]
fn has_avx<S: Simd>() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use std::any::TypeId;
        let own = TypeId::of::<S>();
        own == TypeId::of::<pulp::x86::V3>() || own == TypeId::of::<pulp::x86::V4>()
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

impl Transpose for f32 {
    #[inline(always)]
    fn block<S: Simd>() -> usize {
        if has_avx::<S>() { 8 } else { 0 }
    }

    #[inline(always)]
    unsafe fn transpose(from: *const Self, stride: usize, to: *mut Self, height: usize) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the caller's
        unsafe {
            use std::arch::x86_64::*;
            let pair = |i: usize| {
                let (a, b) = (from.add(i * stride), from.add((i + 1) * stride));
                let (a, b) = (_mm256_loadu_ps(a), _mm256_loadu_ps(b));
                [_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b)]
            };
            let four = |i: usize| {
                let ([a, b], [c, d]) = (pair(i), pair(i + 2));
                [
                    _mm256_shuffle_ps::<0x44>(a, c),
                    _mm256_shuffle_ps::<0xee>(a, c),
                    _mm256_shuffle_ps::<0x44>(b, d),
                    _mm256_shuffle_ps::<0xee>(b, d),
                ]
            };
            for (j, (a, b)) in four(0).into_iter().zip(four(4)).enumerate() {
                _mm256_storeu_ps(to.add(j * height), _mm256_permute2f128_ps::<0x20>(a, b));
                let to = to.add((j + 4) * height);
                _mm256_storeu_ps(to, _mm256_permute2f128_ps::<0x31>(a, b));
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (from, stride, to, height);
    }
}

impl Transpose for f64 {
    #[inline(always)]
    fn block<S: Simd>() -> usize {
        if has_avx::<S>() { 4 } else { 0 }
    }

    #[inline(always)]
    unsafe fn transpose(from: *const Self, stride: usize, to: *mut Self, height: usize) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the caller's
        unsafe {
            use std::arch::x86_64::*;
            let pair = |i: usize| {
                let (a, b) = (from.add(i * stride), from.add((i + 1) * stride));
                let (a, b) = (_mm256_loadu_pd(a), _mm256_loadu_pd(b));
                [_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b)]
            };
            for (j, (a, b)) in pair(0).into_iter().zip(pair(2)).enumerate() {
                _mm256_storeu_pd(to.add(j * height), _mm256_permute2f128_pd::<0x20>(a, b));
                let to = to.add((j + 2) * height);
                _mm256_storeu_pd(to, _mm256_permute2f128_pd::<0x31>(a, b));
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (from, stride, to, height);
    }
}

/// Writes row i of `a` to `panel` at i, i + `height`, i + 2·`height`, …
#[inline(always)]
pub(super) fn scatter_rows<R: Real, S: Simd>(panel: &mut [R], height: usize, a: Matrix<'_, R>) {
    let (rows, columns, block) = (a.nrows(), a.ncols(), R::block::<S>());
    let mut turned = (0, 0);
    if block > 0 && a.col_stride() == 1 && a.row_stride() > 0 {
        turned = (rows - rows % block, columns - columns % block);
        assert!(rows <= height && panel.len() >= height * columns);
        let stride = a.row_stride().unsigned_abs();
        for row in (0..turned.0).step_by(block) {
            for column in (0..turned.1).step_by(block) {
                // SAFETY: `S` has the registers, the block is within the matrix, and its columns are within the panel
                unsafe {
                    let from = a.as_ptr().add(row * stride + column);
                    let to = panel.as_mut_ptr().add(column * height + row);
                    R::transpose(from, stride, to, height);
                }
            }
        }
    }
    for row in 0..rows {
        let first = if row < turned.0 { turned.1 } else { 0 };
        let source = a.row(row).subcols(first, columns - first);
        let out = panel[first * height..].iter_mut().skip(row);
        for (out, &value) in out.step_by(height).zip(source.iter()) {
            *out = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::instructions::arch;
    use crate::compute::matrix;
    use proptest::prelude::*;
    use pulp::WithSimd;

    struct Scatter<'a, R>(&'a mut [R], usize, Matrix<'a, R>);

    impl<R: Real> WithSimd for Scatter<'_, R> {
        type Output = ();

        fn with_simd<S: Simd>(self, _: S) {
            scatter_rows::<R, S>(self.0, self.1, self.2);
        }
    }

    fn agree<R: Real>([height, rows, columns, more]: [usize; 4]) {
        let values: Vec<R> = (0..columns * (rows + more))
            .map(|at| R::from_f64(at as f64))
            .collect();
        // the first rows of a matrix with more, both ways round
        let upright = matrix(&values, rows + more, columns).subrows(0, rows);
        let contiguous = matrix(&values, columns, rows + more).subcols(0, rows);
        for a in [upright, contiguous.transpose()] {
            let mut panel = vec![-R::ONE; height * columns];
            arch().dispatch(Scatter(&mut panel, height, a));
            for (column, out) in panel.chunks_exact(height).enumerate() {
                for (row, &value) in out.iter().enumerate() {
                    let expected = if row < rows {
                        a[(row, column)]
                    } else {
                        -R::ONE
                    };
                    assert_eq!(value.to_f64(), expected.to_f64());
                }
            }
        }
    }

    proptest! {
        #[test]
        fn every_number_reaches_its_place(rows in 1_usize..=32, columns in 1_usize..40, pad in 0_usize..9, more in 0_usize..5) {
            agree::<f32>([rows + pad, rows, columns, more]);
            agree::<f64>([rows + pad, rows, columns, more]);
        }
    }
}
