//! Products with a matrix of which only the numbers that are not zero are kept.
//!
//! A column's numbers stand together with their rows. A tile of the result, one column's products with a few
//! vectors of units, is summed up in registers. The rows of the right factor that it takes are turned, so that a row's units follow one
//! another, a block at a time that stays in the nearest cache: where there are several, tiles are taken up again at each. Up to three
//! products with the same left factor are made at once. Operations: 2 × numbers that are not zero × units for each product.
#![allow(unsafe_code)] // vectors read and written without bounds checks; tested against products of whole matrices

use pulp::{Simd, WithSimd};

use super::SparseColumns;
use crate::compute::instructions::arch;
use crate::compute::lanes::{load, store};
use crate::compute::transpose::scatter_rows;
use crate::compute::{Matrix, Real, panel_rows};

/// Bytes of a cache line, and more numbers than are skipped to begin with one.
const CACHE_LINE: usize = 64;
/// Columns whose results are written together.
const COLUMNS: usize = 8;
/// The most units of a tile: 7 vectors of 16 numbers.
const MOST_UNITS: usize = 112;

/// Vector registers of units of a tile of so many products, of `count` of them in all: sums, with what they are made of, are at most as many
/// as AVX2 has, and few of them stand for no unit.
fn vectors(products: usize, count: usize) -> usize {
    let most = match products {
        1 => 7,
        2 => 5,
        _ => 3,
    };
    count
        .div_ceil(count.div_ceil(most).max(1))
        .clamp(FEWEST_VECTORS, most)
}

/// Fewer would wait for each other.
const FEWEST_VECTORS: usize = 3;

impl<R: Real> SparseColumns<R> {
    /// With this matrix A and right factors of `units` columns, each of which begins `right_stride` after the one before: `factors` times
    /// Aᵀ·right₀, and where the others are not empty (A∘A)ᵀ·right₁ and Aᵀ·right₁. Column j of a result begins at j·`stride`; what lies
    /// between the columns is left as it is.
    pub fn products(
        &self,
        units: usize,
        (right, right_stride): ([&[R]; 2], usize),
        factors: [f64; 3],
        out: [&mut [R]; 3],
        stride: usize,
    ) {
        let wanted = out.iter().take_while(|out| !out.is_empty()).count();
        if units == 0 || self.columns == 0 {
            return;
        }
        let right = match wanted {
            0 | 1 => [right[0]; 2],
            _ => right,
        };
        let view = Matrix::from_column_major_slice_with_stride;
        let right = right.map(|right| view(right, self.rows, units, right_stride));
        self.make(wanted, right, factors, out, stride);
    }

    /// Aᵀ·right, column-major.
    pub fn product(&self, right: Matrix<'_, R>, out: &mut [R]) {
        assert_eq!(
            (right.nrows(), out.len()),
            (self.rows, self.columns * right.ncols())
        );
        if !out.is_empty() {
            let out = [out, &mut [], &mut []];
            self.make(1, [right; 2], [1.0; 3], out, self.columns);
        }
    }

    /// The first `wanted` of the products, of one unit or more and one column or more.
    fn make(
        &self,
        wanted: usize,
        right: [Matrix<'_, R>; 2],
        factors: [f64; 3],
        out: [&mut [R]; 3],
        stride: usize,
    ) {
        let (units, columns) = (right[0].ncols(), self.columns);
        let end = (units - 1) * stride + columns;
        assert!(stride >= columns && out.iter().take(wanted).all(|out| out.len() >= end));
        // a panel is two vectors
        let lanes = panel_rows::<R>() / 2;
        let vectors = vectors(wanted, units.div_ceil(lanes));
        let padded = units.next_multiple_of(vectors * lanes);
        let copies = if wanted > 1 { 2 } else { 1 };
        let length = copies * self.block * padded;
        let has_several = self.block < self.rows;
        let sums = usize::from(has_several) * wanted * columns * padded;
        R::with_scratch(length + sums + CACHE_LINE, |scratch| {
            // a vector that is in two lines takes twice as long to fetch
            let start = scratch.as_ptr().align_offset(CACHE_LINE).min(CACHE_LINE);
            let (rows, rest) = scratch[start..].split_at_mut(length);
            R::sparse_products(SparsePiece {
                wanted,
                vectors,
                left: self,
                units,
                right,
                rows,
                sums: &mut rest[..sums],
                padded,
                factors: factors.map(R::from_f64),
                out,
                stride,
            });
        });
    }
}

/// The first `wanted` of the products, in tiles of so many `vectors` of units.
pub struct SparsePiece<'a, R> {
    wanted: usize,
    vectors: usize,
    left: &'a SparseColumns<R>,
    units: usize,
    right: [Matrix<'a, R>; 2],
    /// Room for a block of rows of the right factors, `padded` numbers each.
    rows: &'a mut [R],
    /// Sums of the blocks before, where there are several: `padded` for each column of each product.
    sums: &'a mut [R],
    padded: usize,
    factors: [R; 3],
    out: [&'a mut [R]; 3],
    stride: usize,
}

/// N of the products, in tiles of V vectors of units.
struct Count<'a, R, const N: usize, const V: usize>(SparsePiece<'a, R>);

impl<R: Real, const N: usize, const V: usize> WithSimd for Count<'_, R, N, V> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let mut products = self.0;
        let (left, padded) = (products.left, products.padded);
        for first in (0..left.rows).step_by(left.block) {
            let count = left.block.min(left.rows - first);
            let copies = products.rows.chunks_exact_mut(left.block * padded);
            for (copy, right) in copies.zip(products.right) {
                let right = right.subrows(first, count).transpose();
                scatter_rows::<R, S>(copy, padded, right);
                let unused = copy.chunks_exact_mut(padded);
                unused.for_each(|row| row[products.units..].fill(R::ZERO));
            }
            let is_last = first + count == left.rows;
            for start in (0..products.units).step_by(V * R::lanes::<S>()) {
                products.of_units::<S, N, V>(simd, first, start, is_last);
            }
        }
    }
}

impl<R: Real> SparsePiece<'_, R> {
    pub fn run(self) {
        match (self.wanted, self.vectors) {
            (0, _) => {}
            (1, 3) => arch().dispatch(Count::<R, 1, 3>(self)),
            (1, 4) => arch().dispatch(Count::<R, 1, 4>(self)),
            (1, 5) => arch().dispatch(Count::<R, 1, 5>(self)),
            (1, 6) => arch().dispatch(Count::<R, 1, 6>(self)),
            (1, _) => arch().dispatch(Count::<R, 1, 7>(self)),
            (2, 3) => arch().dispatch(Count::<R, 2, 3>(self)),
            (2, 4) => arch().dispatch(Count::<R, 2, 4>(self)),
            (2, _) => arch().dispatch(Count::<R, 2, 5>(self)),
            _ => arch().dispatch(Count::<R, 3, 3>(self)),
        }
    }

    /// The products of V vectors of units from number `start` on with the block of rows from number `first` on.
    #[inline(always)]
    fn of_units<S: Simd, const N: usize, const V: usize>(
        &mut self,
        simd: S,
        first: usize,
        start: usize,
        is_last: bool,
    ) {
        let (left, padded, lanes) = (self.left, self.padded, R::lanes::<S>());
        let (columns, blocks, own) = (
            left.columns,
            left.blocks(),
            (V * lanes).min(self.units - start),
        );
        let rows = self.rows.as_ptr().wrapping_add(start);
        let second = if N > 1 { left.block * padded } else { 0 };
        let from = [rows, rows.wrapping_add(second)];
        let zero = R::splat(simd, R::ZERO);
        let mut tiles = [[[R::ZERO; MOST_UNITS]; COLUMNS]; N];
        for column in (0..columns).step_by(COLUMNS) {
            let end = columns.min(column + COLUMNS);
            for at in column..end {
                let range = at * blocks + first / left.block;
                let range = left.starts[range] as usize..left.starts[range + 1] as usize;
                let numbers = (&left.own_rows[range.clone()], &left.values[range]);
                // SAFETY: rows are of this block, of which each has `padded` numbers, a whole number of tiles
                let mut all: [[R::Vector<S>; V]; N] = unsafe { tile(simd, numbers, from, padded) };
                for (product, sums) in all.iter_mut().enumerate() {
                    let before = (product * columns + at) * padded + start;
                    let to = tiles[product][at - column].as_mut_ptr();
                    let factor = R::splat(simd, self.factors[product]);
                    for (i, sum) in sums.iter_mut().enumerate() {
                        // SAFETY: a column of `sums`, where there are any, has room for a whole number of tiles, and a tile's row for V
                        // vectors of any instruction set
                        unsafe {
                            let kept = self.sums.as_mut_ptr().wrapping_add(before + i * lanes);
                            if first > 0 {
                                *sum = R::plus(simd, *sum, load::<R, S>(kept));
                            }
                            if is_last {
                                let scaled = R::multiply_add(simd, factor, *sum, zero);
                                store::<R, S>(to.add(i * lanes), scaled);
                            } else {
                                store::<R, S>(kept, *sum);
                            }
                        }
                    }
                }
            }
            if is_last {
                for (out, tile) in self.out.iter_mut().zip(&tiles) {
                    let to = &mut out[start * self.stride + column..];
                    let tile = &tile[..end - column];
                    // SAFETY: of each unit as many columns follow as the tile has, which `make` has asserted
                    unsafe { write::<R, S>(to, self.stride, tile, own) };
                }
            }
        }
    }
}

/// Writes a tile's rows, each a column of the result, to where they begin in that of each unit.
///
/// # Safety
/// From unit · `stride` on `out` has as many numbers as the tile has rows.
#[inline(always)]
unsafe fn write<R: Real, S: Simd>(
    out: &mut [R],
    stride: usize,
    tile: &[[R; MOST_UNITS]],
    units: usize,
) {
    let block = R::block::<S>();
    let mut done = 0;
    if block > 0 && tile.len() == COLUMNS {
        done = units - units % block;
        for unit in (0..done).step_by(block) {
            for column in (0..COLUMNS).step_by(block) {
                // SAFETY: the caller's; a block divides COLUMNS, and `S` has registers for it
                unsafe {
                    let from = tile.as_ptr().cast::<R>().add(column * MOST_UNITS + unit);
                    let to = out.as_mut_ptr().add(unit * stride + column);
                    R::transpose(from, MOST_UNITS, to, stride);
                }
            }
        }
    }
    for unit in done..units {
        for (to, tile) in out[unit * stride..].iter_mut().zip(tile) {
            *to = tile[unit];
        }
    }
}

/// Sums over the numbers of one column in a block of rows.
///
/// # Safety
/// From both pointers on V vectors can be read at `stride` times each number's row in the block.
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "the same vector of up to three sums"
)]
unsafe fn tile<R: Real, S: Simd, const N: usize, const V: usize>(
    simd: S,
    (rows, values): (&[u16], &[R]),
    [first, second]: [*const R; 2],
    stride: usize,
) -> [[R::Vector<S>; V]; N] {
    let lanes = R::lanes::<S>();
    let mut sums = [[R::splat(simd, R::ZERO); V]; N];
    for (&row, &value) in rows.iter().zip(values) {
        let offset = usize::from(row) * stride;
        let (value, square) = (R::splat(simd, value), R::splat(simd, value * value));
        for i in 0..V {
            let at = offset + i * lanes;
            // SAFETY: the caller's
            let (first, second) =
                unsafe { (load::<R, S>(first.add(at)), load::<R, S>(second.add(at))) };
            sums[0][i] = R::multiply_add(simd, value, first, sums[0][i]);
            if N > 1 {
                sums[1][i] = R::multiply_add(simd, square, second, sums[1][i]);
            }
            if N > 2 {
                sums[2][i] = R::multiply_add(simd, value, second, sums[2][i]);
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::sparse::SparseMatrix;
    use crate::compute::{Purpose, Stream, Team};

    impl<R: Real> SparseMatrix<R> {
        fn set(&mut self, team: &mut Team, matrix: &[R], columns: usize, most: f64) -> bool {
            let size = [matrix.len() / columns, columns];
            self.fetch(team, &mut Vec::new(), size, most, |row, to| {
                to.copy_from_slice(&matrix[row * columns..(row + 1) * columns]);
            })
        }
    }

    /// Against sums over all numbers, zeros included.
    #[test]
    fn products_are_those_of_whole_matrices() {
        let mut stream = Stream::new(3, 0, Purpose::Initial, 0);
        let sizes = [
            (1, 1, 1),
            (7, 13, 5),
            (20, 41, 40),
            (33, 8, 70),
            // several blocks of rows
            (150, 9, 120),
        ];
        for (rows, columns, units) in sizes {
            let mut normals = |count: usize| {
                let mut values = vec![0.0_f64; count];
                stream.fill_normal(&mut values);
                values
            };
            let mut matrix = normals(rows * columns);
            for value in &mut matrix {
                *value = if *value < 0.8 { 0.0 } else { *value };
            }
            let right = [normals(rows * units), normals(rows * units)];
            let mut sparse = SparseMatrix::default();
            let mut team = Team::new(2).unwrap();
            assert!(!sparse.set(&mut team, &vec![1.0; rows * columns], columns, 0.5));
            assert!(sparse.set(&mut team, &matrix, columns, 1.0));
            let stride = columns + 3;
            for wanted in 1..=3 {
                let mut out =
                    [0, 1, 2].map(|at| vec![9.0; if at < wanted { stride * units } else { 0 }]);
                let [a, b, c] = &mut out;
                sparse.by_column.products(
                    units,
                    ([&right[0], &right[1]], rows),
                    [2.0, 3.0, 5.0],
                    [a, b, c],
                    stride,
                );
                for (product, out) in out.iter().enumerate().take(wanted) {
                    for unit in 0..units {
                        for column in 0..stride {
                            let sum = |row: usize| {
                                let a = matrix[row * columns + column];
                                let r = right[product.min(1)][unit * rows + row];
                                if product == 1 { a * a * r } else { a * r }
                            };
                            let expected = if column < columns {
                                [2.0, 3.0, 5.0][product] * (0..rows).map(sum).sum::<f64>()
                            } else {
                                9.0
                            };
                            let found = out[unit * stride + column];
                            assert!(
                                (found - expected).abs() < 1e-12,
                                "{product}: {found} {expected}"
                            );
                        }
                    }
                }
            }
        }
    }

    /// Rows of the batch with columns of a matrix that has more of each, as a layer's forward pass has them.
    fn transpose_agrees<R: Real>(tolerance: f64) {
        let mut stream = Stream::new(5, 0, Purpose::Initial, 0);
        let sizes = [
            (1, 1, 1),
            (6, 11, 3),
            (9, 30, 100),
            (17, 5, 64),
            (40, 70, 40),
            // several blocks of columns
            (11, 300, 120),
        ];
        for (rows, columns, units) in sizes {
            let mut normals = |count: usize| {
                let mut values = vec![0.0; count];
                stream.fill_normal(&mut values);
                values.into_iter().map(R::from_f64).collect::<Vec<R>>()
            };
            let mut matrix = normals(rows * columns);
            for value in &mut matrix {
                *value = if *value < R::ZERO { R::ZERO } else { *value };
            }
            let right = normals((columns + 1) * units);
            let mut sparse = SparseMatrix::default();
            let mut team = Team::new(1).unwrap();
            // what an earlier batch left is gone
            assert!(sparse.set(&mut team, &[R::ONE; 6], 2, 1.0));
            assert!(sparse.set(&mut team, &matrix, columns, 1.0));
            let mut out = vec![R::ZERO; rows * units];
            sparse.by_row.products(
                units,
                ([&right, &[]], columns + 1),
                [2.0; 3],
                [&mut out, &mut [], &mut []],
                rows,
            );
            for (at, found) in out.iter().enumerate() {
                let (row, unit) = (at % rows, at / rows);
                let terms = (0..columns).map(|column| {
                    let value = matrix[row * columns + column].to_f64();
                    value * right[unit * (columns + 1) + column].to_f64()
                });
                let (found, expected) = (found.to_f64(), 2.0 * terms.sum::<f64>());
                assert!((found - expected).abs() < tolerance, "{found} {expected}");
            }
        }
    }

    #[test]
    fn products_of_the_transpose_are_those_of_whole_matrices() {
        transpose_agrees::<f64>(1e-12);
        transpose_agrees::<f32>(1e-4);
    }

    #[test]
    fn columns_without_numbers_give_zeros_in_single_precision_too() {
        let mut sparse = SparseMatrix::default();
        let mut team = Team::new(1).unwrap();
        assert!(sparse.set(&mut team, &[0.0_f32, 2.0, 0.0, 0.0, 3.0, 0.0], 3, 0.5));
        let mut out = vec![1.0_f32; 3];
        sparse.by_column.products(
            1,
            ([&[5.0, 7.0], &[]], 2),
            [1.0; 3],
            [&mut out, &mut [], &mut []],
            3,
        );
        assert_eq!(out, [0.0, 31.0, 0.0]);
    }
}
