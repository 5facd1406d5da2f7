//! Products with a batch of inputs most of which are zero, such as the pixels of handwritten digits: only the others are
//! multiplied.
//!
//! A column's numbers that are not zero stand together with their rows. A tile of the result, one column's products with a few
//! vectors of units, is summed up in registers; the rows of the right factor that it takes stay in the nearest cache. Up to three
//! products with the same left factor are made at once. Operations: 2 × numbers that are not zero × units for each product.
#![allow(unsafe_code)] // vectors read and written without bounds checks; tested against products of whole matrices

use pulp::{Simd, WithSimd};

use super::instructions::arch;
use super::lanes::{load, store};
use super::transpose::scatter_rows;
use super::{Matrix, Real, Team, panel_rows};

/// Bytes of a cache line, and more numbers than are skipped to begin with one.
const CACHE_LINE: usize = 64;
/// Columns whose results are written together.
const COLUMNS: usize = 8;
/// The most units of a tile: 5 vectors of 16 numbers.
const MOST_UNITS: usize = 80;

/// Vector registers of units of a tile of so many products, of `count` of them in all: sums, with what they are made of, are at most as many
/// as AVX2 has, and few of them stand for no unit.
fn vectors(products: usize, count: usize) -> usize {
    let most = if products < 3 { 5 } else { 3 };
    count
        .div_ceil(count.div_ceil(most).max(1))
        .clamp(FEWEST_VECTORS, most)
}

/// Fewer would wait for each other.
const FEWEST_VECTORS: usize = 3;

/// A matrix by its columns, without zeros.
#[derive(Debug, Clone, Default)]
pub(crate) struct SparseColumns<R> {
    rows: usize,
    /// Where each column's numbers begin, and the end.
    starts: Vec<u32>,
    /// Each number's row, the number, and its square.
    entries: Vec<(u32, R, R)>,
    /// Columns of each row's numbers, in rows of `columns` + 1, and how many there are.
    found: Vec<u32>,
    counts: Vec<u32>,
}

/// Rows that are searched at a time.
const SEARCHED: usize = 25;

impl<R: Real> SparseColumns<R> {
    /// Takes the rows of `columns` numbers of `matrix`, row-major, if there are any and at most a part `most` of them is not zero.
    pub fn set(&mut self, team: &mut Team, matrix: &[R], columns: usize, most: f64) -> bool {
        let width = columns.max(1);
        self.rows = matrix.len() / width;
        self.found.resize(self.rows * (columns + 1), 0);
        self.counts.resize(self.rows, 0);
        let found = self.found.chunks_mut(SEARCHED * (columns + 1));
        let found = found.zip(self.counts.chunks_mut(SEARCHED));
        let parts = matrix.chunks(SEARCHED * width).zip(found).collect();
        team.share(parts, |(rows, (found, counts)): (&[R], (&mut [u32], _))| {
            let found = found.chunks_exact_mut(columns + 1);
            let counts: &mut [u32] = counts;
            for ((row, found), total) in rows.chunks_exact(width).zip(found).zip(counts) {
                // without a branch that nobody can foretell
                let mut count = 0;
                for (column, &value) in (0..).zip(row) {
                    found[count] = column;
                    count += usize::from(value != R::ZERO);
                }
                *total = count as u32;
            }
        });
        let total: u32 = self.counts.iter().sum();
        if matrix.is_empty() || f64::from(total) > most * matrix.len() as f64 {
            return false;
        }
        self.starts.clear();
        self.starts.resize(columns + 1, 0);
        let rows = || {
            let found = self.found.chunks_exact(columns + 1);
            found
                .zip(&self.counts)
                .map(|(found, &count)| &found[..count as usize])
        };
        for &column in rows().flatten() {
            self.starts[column as usize + 1] += 1;
        }
        let mut end = 0;
        for start in &mut self.starts {
            end += *start;
            *start = end;
        }
        self.entries.resize(total as usize, (0, R::ZERO, R::ZERO));
        for ((row, values), found) in (0..).zip(matrix.chunks_exact(width)).zip(rows()) {
            for &column in found {
                let value = values[column as usize];
                let at = &mut self.starts[column as usize];
                self.entries[*at as usize] = (row, value, value * value);
                *at += 1;
            }
        }
        // each start has moved to the next one's place
        self.starts.rotate_right(1);
        self.starts[0] = 0;
        true
    }

    /// Takes the columns of `found`'s transpose, after [`set`](Self::set) has taken those of `matrix`.
    pub fn set_transposed(&mut self, found: &Self, matrix: &[R]) {
        let columns = found.starts.len().saturating_sub(1);
        self.rows = columns;
        self.starts.clear();
        self.starts.push(0);
        self.entries.clear();
        let rows = found.found.chunks_exact(columns + 1).zip(&found.counts);
        for ((found, &count), values) in rows.zip(matrix.chunks_exact(columns.max(1))) {
            let own = found[..count as usize].iter().map(|&column| {
                let value = values[column as usize];
                (column, value, value * value)
            });
            self.entries.extend(own);
            self.starts.push(self.entries.len() as u32);
        }
    }

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
        let columns = self.starts.len().saturating_sub(1);
        let end = (units.max(1) - 1) * stride + columns;
        assert!(stride >= columns && out.iter().take(wanted).all(|out| out.len() >= end));
        if units == 0 || columns == 0 {
            return;
        }
        let fewest = (units - 1) * right_stride + self.rows;
        let is_whole = |right: &[R]| right_stride >= self.rows && right.len() >= fewest;
        assert!(is_whole(right[0]) && (wanted < 2 || is_whole(right[1])));
        // a panel is two vectors
        let lanes = panel_rows::<R>() / 2;
        let vectors = vectors(wanted, units.div_ceil(lanes));
        let padded = units.next_multiple_of(vectors * lanes);
        let copies = if wanted > 1 { 2 } else { 1 };
        let length = copies * self.rows * padded;
        R::with_scratch(length + CACHE_LINE, |rows| {
            // a vector that is in two lines takes twice as long to fetch
            let start = rows.as_ptr().align_offset(CACHE_LINE).min(CACHE_LINE);
            let products = Products {
                left: self,
                units,
                right,
                right_stride,
                rows: &mut rows[start..start + length],
                padded,
                factors: factors.map(R::from_f64),
                out,
                stride,
            };
            match (wanted, vectors) {
                (0, _) => {}
                (1, 3) => arch().dispatch(Count::<R, 1, 3>(products)),
                (1, 4) => arch().dispatch(Count::<R, 1, 4>(products)),
                (1, _) => arch().dispatch(Count::<R, 1, 5>(products)),
                (2, 3) => arch().dispatch(Count::<R, 2, 3>(products)),
                (2, 4) => arch().dispatch(Count::<R, 2, 4>(products)),
                (2, _) => arch().dispatch(Count::<R, 2, 5>(products)),
                _ => arch().dispatch(Count::<R, 3, 3>(products)),
            }
        });
    }
}

struct Products<'a, R> {
    left: &'a SparseColumns<R>,
    units: usize,
    right: [&'a [R]; 2],
    right_stride: usize,
    /// Room for the right factors row by row, `padded` numbers each.
    rows: &'a mut [R],
    padded: usize,
    factors: [R; 3],
    out: [&'a mut [R]; 3],
    stride: usize,
}

/// N of the products, in tiles of V vectors of units.
struct Count<'a, R, const N: usize, const V: usize>(Products<'a, R>);

impl<R: Real, const N: usize, const V: usize> WithSimd for Count<'_, R, N, V> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Products {
            left,
            units,
            right,
            right_stride,
            rows,
            padded,
            factors,
            mut out,
            stride,
        } = self.0;
        for (copy, right) in rows.chunks_exact_mut(left.rows * padded).zip(right) {
            let right =
                Matrix::from_column_major_slice_with_stride(right, left.rows, units, right_stride);
            scatter_rows::<R, S>(copy, padded, right.transpose());
            let unused = copy.chunks_exact_mut(padded);
            unused.for_each(|row| row[units..].fill(R::ZERO));
        }
        let lanes = R::lanes::<S>();
        let width = V * lanes;
        let columns = left.starts.len() - 1;
        let (first, second) = rows.split_at(left.rows * padded);
        let mut tiles = [[[R::ZERO; MOST_UNITS]; COLUMNS]; N];
        for start in (0..units).step_by(width) {
            let own = width.min(units - start);
            for column in (0..columns).step_by(COLUMNS) {
                let end = columns.min(column + COLUMNS);
                for at in column..end {
                    let range = left.starts[at] as usize..left.starts[at + 1] as usize;
                    let entries = &left.entries[range];
                    let second = if N > 1 {
                        second.as_ptr()
                    } else {
                        first.as_ptr()
                    };
                    let from = [
                        first.as_ptr().wrapping_add(start),
                        second.wrapping_add(start),
                    ];
                    // SAFETY: rows are less than `left.rows`, of which each has `padded` numbers, a whole number of tiles
                    let sums: [[R::Vector<S>; V]; N] = unsafe { tile(simd, entries, from, padded) };
                    for ((tile, sums), factor) in tiles.iter_mut().zip(&sums).zip(factors) {
                        let to = tile[at - column].as_mut_ptr();
                        let (factor, zero) = (R::splat(simd, factor), R::splat(simd, R::ZERO));
                        for (i, &sum) in sums.iter().enumerate() {
                            // SAFETY: a tile's row has room for V vectors of any instruction set
                            unsafe {
                                let sum = R::multiply_add(simd, factor, sum, zero);
                                store::<R, S>(to.add(i * lanes), sum);
                            }
                        }
                    }
                }
                for (out, tile) in out.iter_mut().zip(&tiles) {
                    let to = &mut out[start * stride + column..];
                    let tile = &tile[..end - column];
                    // SAFETY: of each unit as many columns follow as the tile has, which `products` has asserted
                    unsafe { write::<R, S>(to, stride, tile, own) };
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

/// Sums over the entries of one column.
///
/// # Safety
/// From both pointers on V vectors can be read at `stride` times each entry's row.
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "the same vector of up to three sums"
)]
unsafe fn tile<R: Real, S: Simd, const N: usize, const V: usize>(
    simd: S,
    entries: &[(u32, R, R)],
    from: [*const R; 2],
    stride: usize,
) -> [[R::Vector<S>; V]; N] {
    let lanes = R::lanes::<S>();
    let mut sums = [[R::splat(simd, R::ZERO); V]; N];
    for &(row, value, square) in entries {
        let offset = row as usize * stride;
        let (value, square) = (R::splat(simd, value), R::splat(simd, square));
        for i in 0..V {
            let at = offset + i * lanes;
            // SAFETY: the caller's
            let (first, second) = unsafe {
                let [first, second] = from;
                (load::<R, S>(first.add(at)), load::<R, S>(second.add(at)))
            };
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
    use crate::compute::{Purpose, Stream};

    /// Against sums over all numbers, zeros included.
    #[test]
    fn products_are_those_of_whole_matrices() {
        let mut stream = Stream::new(3, 0, Purpose::Initial, 0);
        for (rows, columns, units) in [(1, 1, 1), (7, 13, 5), (20, 41, 40), (33, 8, 70)] {
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
            let mut sparse = SparseColumns::default();
            let mut team = Team::new(2).unwrap();
            assert!(!sparse.set(&mut team, &vec![1.0; rows * columns], columns, 0.5));
            assert!(sparse.set(&mut team, &matrix, columns, 1.0));
            let stride = columns + 3;
            for wanted in 1..=3 {
                let mut out =
                    [0, 1, 2].map(|at| vec![9.0; if at < wanted { stride * units } else { 0 }]);
                let [a, b, c] = &mut out;
                sparse.products(
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
            let mut by_columns = SparseColumns::default();
            let mut team = Team::new(1).unwrap();
            assert!(by_columns.set(&mut team, &matrix, columns, 1.0));
            // what an earlier batch left is gone
            let mut by_rows = by_columns.clone();
            by_rows.set_transposed(&by_columns, &matrix);
            let mut out = vec![R::ZERO; rows * units];
            by_rows.products(
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
        let mut sparse = SparseColumns::default();
        let mut team = Team::new(1).unwrap();
        assert!(sparse.set(&mut team, &[0.0_f32, 2.0, 0.0, 0.0, 3.0, 0.0], 3, 0.5));
        let mut out = vec![1.0_f32; 3];
        sparse.products(
            1,
            ([&[5.0, 7.0], &[]], 2),
            [1.0; 3],
            [&mut out, &mut [], &mut []],
            3,
        );
        assert_eq!(out, [0.0, 31.0, 0.0]);
    }
}
