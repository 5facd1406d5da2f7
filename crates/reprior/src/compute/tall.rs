//! Products of the columns of tall matrices, aᵀ·b: sums over many rows, of few columns.
//!
//! Columns lie one number after the other: a tile of [`LEFT`] by some more sums takes a vector of rows of each of its columns at a time, and
//! nothing is packed, which for few columns takes as long as the product. The lanes of a sum are added up at its end.
#![allow(unsafe_code)] // vectors of rows are read without bounds checks

use std::slice::from_raw_parts;

use pulp::{Simd, WithSimd};

use super::instructions::arch;
use super::lanes::load;
use super::matrix::row_pieces_from_below;
use super::tile::{Onto, are_tiles_wide, is_wide};
use super::{Matrix, MatrixMut, Operations, Real, multiply, spread};

/// Columns of a tile, of either factor: 12 sums and the vectors of the second factor leave one of AVX2's 16 registers, and twelve chains of additions
/// hide their latency.
const LEFT: usize = 4;
const NARROW: usize = 3;
/// The same of the second factor where there are 32 registers: fewer vectors are read for each sum.
const WIDE: usize = 6;
/// Rows at a time: of a hundred columns in single precision they stay in the second cache.
const DEPTH: usize = 1024;
/// Rows from which on the sums of lanes are of no weight.
const LEAST_ROWS: usize = 256;
/// Columns up to which a whole product is no slower than one of packed factors: measured beside it with 8 to 95 of each, faster up to 50, slower from 55
/// on.
const MOST_OF_A_PRODUCT: usize = 52;
/// The same of a Gram matrix, half of which is left out: with AVX-512 and AVX2 a packed one takes 1.3 times as long at a width of 97, 1.2 at 129 (300 to 5,000 rows), and from 200 to 300
/// on, as there are fewer or more rows, no longer.
const MOST_OF_A_GRAM: usize = 192;
/// Columns of one factor up to which no other way is faster, of 16 to 256 columns of the other.
const FEW: usize = 24;

/// Whether columns are long, one number after the other, and enough for a tile.
fn is_tall<R: Real>(a: Matrix<'_, R>, b: Matrix<'_, R>) -> bool {
    a.row_stride() == 1
        && b.row_stride() == 1
        && a.nrows() >= LEAST_ROWS
        && a.ncols() >= LEFT
        && b.ncols() >= NARROW
}

/// out ← scale·aᵀ·b, or out ← out + scale·aᵀ·b: as [`multiply`], and faster where both are tall matrices of few columns. Which way it goes hangs on all
/// three sizes: for products that are not made in pieces by some and in one by others.
pub fn multiply_columns<R: Real>(
    out: MatrixMut<'_, R>,
    accumulate: bool,
    scale: f64,
    a: Matrix<'_, R>,
    b: Matrix<'_, R>,
) {
    if !is_tall_product(a, b) {
        return multiply(out, accumulate, scale, a.transpose(), b);
    }
    multiply_tall(out, accumulate, scale, a, b);
}

fn is_tall_product<R: Real>(a: Matrix<'_, R>, b: Matrix<'_, R>) -> bool {
    is_tall(a, b) && a.ncols().max(b.ncols()) <= MOST_OF_A_PRODUCT
}

/// Whether a matrix has so many rows and so few columns that [`multiply_tall`] is the way to its product with any other.
pub(crate) fn has_few_columns<R: Real>(a: Matrix<'_, R>) -> bool {
    a.row_stride() == 1 && a.nrows() >= LEAST_ROWS && (1..=FEW).contains(&a.ncols())
}

/// As [`multiply_columns`] where it does not leave the product to others; columns of `b` have the same products in whatever pieces they come.
pub(crate) fn multiply_tall<R: Real>(
    out: MatrixMut<'_, R>,
    accumulate: bool,
    scale: f64,
    a: Matrix<'_, R>,
    b: Matrix<'_, R>,
) {
    assert_eq!((out.nrows(), out.ncols()), (a.ncols(), b.ncols()));
    assert_eq!(a.nrows(), b.nrows());
    let factors = Factors {
        a,
        b,
        scale: R::from_f64(scale),
        is_half: false,
    };
    factors.multiply(out, Onto::accumulate(accumulate));
}

/// Lower half of aᵀ·a, in place of `out` or added to it, for a tall matrix of few columns; whether it was. Some entries above the diagonal change as well.
pub(super) fn gram_tall<R: Real>(out: MatrixMut<'_, R>, onto: Onto, a: Matrix<'_, R>) -> bool {
    if !is_tall(a, a) || a.ncols() > MOST_OF_A_GRAM {
        return false;
    }
    assert_eq!((out.nrows(), out.ncols()), (a.ncols(), a.ncols()));
    let factors = Factors {
        a,
        b: a,
        scale: R::ONE,
        is_half: true,
    };
    factors.multiply(out, onto);
    true
}

/// Two tall matrices of as many rows.
#[derive(Clone, Copy)]
struct Factors<'a, R> {
    a: Matrix<'a, R>,
    b: Matrix<'a, R>,
    scale: R,
    /// Whether the lower half of the product is all that is wanted.
    is_half: bool,
}

impl<R: Real> Factors<'_, R> {
    /// Multiplications and additions: of half a product, those of its tiles.
    fn operations(self) -> usize {
        let (rows, columns) = (self.a.nrows(), self.a.ncols());
        if !self.is_half {
            return 2 * rows * columns * self.b.ncols();
        }
        let strips = (0..columns).step_by(LEFT);
        let right = if are_tiles_wide() { WIDE } else { NARROW };
        let of_strips = strips.map(|first| (first + LEFT).min(columns).next_multiple_of(right));
        2 * rows * LEFT * of_strips.sum::<usize>()
    }

    fn multiply(self, mut out: MatrixMut<'_, R>, onto: Onto) {
        assert!(self.a.row_stride() == 1 && self.b.row_stride() == 1);
        Operations::product(self.operations());
        let rows = self.a.nrows();
        for first in (0..rows).step_by(DEPTH) {
            let depth = DEPTH.min(rows - first);
            let part = Factors {
                a: self.a.subrows(first, depth),
                b: self.b.subrows(first, depth),
                ..self
            };
            let onto = if first > 0 { Onto::Add } else { onto };
            let strips = row_pieces_from_below(out.as_mut(), LEFT);
            spread(part.operations(), strips, |(start, out)| {
                R::tall_product(Strip {
                    factors: part,
                    start,
                    out,
                    onto,
                });
            });
        }
    }
}

/// At most [`LEFT`] rows of the product.
pub struct Strip<'a, R> {
    factors: Factors<'a, R>,
    /// The first of them.
    start: usize,
    out: MatrixMut<'a, R>,
    onto: Onto,
}

impl<R: Real> WithSimd for Strip<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match is_wide::<S>() {
            true => self.tiles::<S, WIDE>(simd),
            false => self.tiles::<S, NARROW>(simd),
        }
    }
}

impl<R: Real> Strip<'_, R> {
    pub fn run(self) {
        arch().dispatch(self);
    }

    #[inline(always)]
    fn tiles<S: Simd, const RIGHT: usize>(self, simd: S) {
        let Self {
            factors,
            start,
            mut out,
            onto,
        } = self;
        let Factors { a, b, scale, .. } = factors;
        let (rows, depth) = (out.nrows(), a.nrows());
        let end = match factors.is_half {
            true => out.ncols().min(start + LEFT),
            false => out.ncols(),
        };
        // columns past the last one are not wanted: any that can be read will do
        let column_of = |of: Matrix<'_, R>, column: usize| {
            let column = column.min(of.ncols() - 1);
            of.col(column).as_ptr()
        };
        let left = std::array::from_fn(|i| column_of(a, start + i));
        for first in (0..end).step_by(RIGHT) {
            let right: [_; RIGHT] = std::array::from_fn(|j| column_of(b, first + j));
            // SAFETY: the columns of both factors are `depth` numbers, one after the other
            let sums = unsafe { sums(simd, depth, left, right) };
            for (j, sums) in sums.iter().enumerate().take(end - first) {
                for (i, &sum) in sums.iter().enumerate().take(rows) {
                    let (out, sum) = (&mut out[(i, first + j)], scale * sum);
                    *out = match onto {
                        Onto::Replace => sum,
                        Onto::Add => *out + sum,
                        Onto::Subtract => *out - sum,
                    };
                }
            }
        }
    }
}

/// Sums over `depth` rows of the products of columns, of `left` in each row of the result's columns.
///
/// # Safety
/// `depth` numbers can be read at each of `left` and `right`.
#[inline(always)]
unsafe fn sums<R: Real, S: Simd, const RIGHT: usize>(
    simd: S,
    depth: usize,
    left: [*const R; LEFT],
    right: [*const R; RIGHT],
) -> [[R; LEFT]; RIGHT] {
    let lanes = R::lanes::<S>();
    let mut sums = [[R::splat(simd, R::ZERO); LEFT]; RIGHT];
    let whole = depth / lanes * lanes;
    let mut factors = [R::splat(simd, R::ZERO); RIGHT];
    let mut row = 0;
    while row < whole {
        // SAFETY: row + lanes ≤ depth
        unsafe {
            for (factor, column) in factors.iter_mut().zip(right) {
                *factor = load::<R, S>(column.add(row));
            }
            for (i, column) in left.into_iter().enumerate() {
                let vector = load::<R, S>(column.add(row));
                add_products::<R, S, RIGHT>(simd, &mut sums, i, vector, &factors);
            }
        }
        row += lanes;
    }
    if whole < depth {
        // SAFETY: the last numbers of each column
        unsafe {
            for (factor, column) in factors.iter_mut().zip(right) {
                *factor = R::of_some(simd, from_raw_parts(column.add(whole), depth - whole));
            }
            for (i, column) in left.into_iter().enumerate() {
                let vector = R::of_some(simd, from_raw_parts(column.add(whole), depth - whole));
                add_products::<R, S, RIGHT>(simd, &mut sums, i, vector, &factors);
            }
        }
    }
    let mut totals = [[R::ZERO; LEFT]; RIGHT];
    for (totals, sums) in totals.iter_mut().zip(&sums) {
        for (total, &sum) in totals.iter_mut().zip(sums) {
            *total = R::total(simd, sum);
        }
    }
    totals
}

/// Adds the products of column `i` of the first factor with those of the second one.
#[inline(always)]
fn add_products<R: Real, S: Simd, const RIGHT: usize>(
    simd: S,
    sums: &mut [[R::Vector<S>; LEFT]; RIGHT],
    i: usize,
    vector: R::Vector<S>,
    factors: &[R::Vector<S>; RIGHT],
) {
    for (sums, &factor) in sums.iter_mut().zip(factors) {
        sums[i] = R::multiply_add(simd, vector, factor, sums[i]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::compute::stream::noise;
    use crate::compute::{matrix, matrix_mut, with_team};

    /// Against faer's products, which are the safe twins of the unsafe tiles.
    fn agree<R: Real>(n: usize, p: usize, q: usize, tolerance: f64) {
        // columns further apart than they are long
        let (a, b) = (noise::<R>((n + 3) * p, 1), noise::<R>((n + 1) * q, 2));
        let a = matrix(&a, n + 3, p).subrows(2, n);
        let b = matrix(&b, n + 1, q).subrows(1, n);
        let close = |x: R, y: R| {
            let (x, y) = (x.to_f64(), y.to_f64());
            (x - y).abs() < tolerance * (1.0 + y.abs())
        };
        for accumulate in [false, true] {
            let (mut out, mut expected) = (noise::<R>(p * q, 3), noise::<R>(p * q, 3));
            let product = |out: &mut [R]| {
                multiply_tall(matrix_mut(out, p, q), accumulate, -0.5, a, b);
            };
            product(&mut out);
            R::multiply(
                matrix_mut(&mut expected, p, q),
                accumulate,
                -0.5,
                a.transpose(),
                b,
            );
            assert!(
                out.iter().zip(&expected).all(|(&x, &y)| close(x, y)),
                "{n} {p} {q}"
            );
            let mut shared = noise::<R>(p * q, 3);
            with_team(3, || product(&mut shared));
            assert_eq!(out, shared);
        }
    }

    fn gram_agrees<R: Real>(n: usize, p: usize, tolerance: f64) {
        let a = noise::<R>((n + 3) * p, 1);
        let a = matrix(&a, n + 3, p).subrows(2, n);
        for (onto, accumulate) in [(Onto::Replace, false), (Onto::Add, true)] {
            let (mut gram, mut expected) = (noise::<R>(p * p, 4), noise::<R>(p * p, 4));
            let mut shared = gram.clone();
            assert!(gram_tall(matrix_mut(&mut gram, p, p), onto, a));
            let out = matrix_mut(&mut expected, p, p);
            R::multiply(out, accumulate, 1.0, a.transpose(), a);
            for column in 0..p {
                for at in column * p + column..(column + 1) * p {
                    let (x, y) = (gram[at].to_f64(), expected[at].to_f64());
                    assert!(
                        (x - y).abs() < tolerance * (1.0 + y.abs()),
                        "{n} {p} {at}: {x} {y}"
                    );
                }
            }
            with_team(3, || gram_tall(matrix_mut(&mut shared, p, p), onto, a));
            assert_eq!(gram, shared);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn tall_products_agree_with_plain_ones(n in 256_usize..2200, p in 1_usize..70, q in 1_usize..70) {
            agree::<f32>(n, p, q, 1e-3);
            agree::<f64>(n, p, q, 1e-11);
        }

        #[test]
        fn tall_gram_matrices_agree_with_plain_products(n in 256_usize..2200, p in LEFT..=MOST_OF_A_GRAM) {
            gram_agrees::<f32>(n, p, 1e-3);
            gram_agrees::<f64>(n, p, 1e-11);
        }
    }

    #[test]
    fn others_are_left_to_others() {
        let values = noise::<f64>(300 * 300, 1);
        let whole = matrix(&values, 300, 300);
        let few = matrix(&values[..1500], 300, 5);
        assert!(is_tall(few, few));
        for p in [MOST_OF_A_GRAM, MOST_OF_A_GRAM + 1] {
            let mut gram = vec![0.0; p * p];
            let out = matrix_mut(&mut gram, p, p);
            let is_made = gram_tall(out, Onto::Replace, whole.subcols(0, p));
            assert_eq!(is_made, p == MOST_OF_A_GRAM, "{p} columns");
        }
        for p in [MOST_OF_A_PRODUCT, MOST_OF_A_PRODUCT + 1] {
            let some = whole.subcols(0, p);
            let is_tall = is_tall_product(few, some);
            assert_eq!(is_tall, p == MOST_OF_A_PRODUCT, "{p} columns");
        }
        assert!(
            !is_tall(whole.transpose(), few),
            "rows that are not together"
        );
        assert!(
            !is_tall(few.subrows(0, 100), few.subrows(0, 100)),
            "few rows"
        );
        assert!(!is_tall(few, few.subcols(0, 1)), "one column");
        assert!(has_few_columns(few) && has_few_columns(few.subcols(0, 1)));
        assert!(!has_few_columns(whole) && !has_few_columns(few.subrows(0, 100)));
        assert!(!has_few_columns(few.subcols(0, 0)));
        for b in [few, whole, few.subcols(0, 1)] {
            let (mut out, mut expected) = (vec![0.0; 5 * b.ncols()], vec![0.0; 5 * b.ncols()]);
            multiply_columns(matrix_mut(&mut out, 5, b.ncols()), false, 2.0, few, b);
            f64::multiply(
                matrix_mut(&mut expected, 5, b.ncols()),
                false,
                2.0,
                few.transpose(),
                b,
            );
            let near = |(x, y): (&f64, &f64)| (x - y).abs() < 1e-11 * (1.0 + y.abs());
            assert!(out.iter().zip(&expected).all(near));
        }
    }
}
