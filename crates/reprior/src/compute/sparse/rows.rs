//! A matrix of many rows each of whose columns is one number in most of them - a background's pixels, the level of a category that is
//! not there, once standardised - as the left factor of products with blocks of its rows.
//!
//! A = S + 1·cᵀ with these numbers c: A·W = S·W + 1·(cᵀW) and Aᵀ·δ = Sᵀ·δ + c·(1ᵀδ), and of S only what is not zero is kept.

use std::ops::Range;

use super::SparseColumns;
use crate::compute::{Matrix, MatrixMut, Operations, Real, column_pieces, hands, matrix, spread};

/// The part of numbers other than zero up to which leaving the others out takes less time, and no more bytes than two packed copies.
const MOST: f64 = 0.3;
/// With fewer columns a dense product is as fast.
const LEAST_COLUMNS: usize = 64;
/// Rows of a product that are made at a time, and columns at most: their sums stay in the second cache, and the numbers of so many rows,
/// which are fetched again for other columns, in the next one.
const ROWS: usize = 256;
const MOST_UNITS: usize = 512;
/// Columns of a product of the transpose that a thread makes at a time: as many rows of sums as there are inputs stay in the second cache.
const UNITS: usize = 128;

/// A matrix as its columns' common numbers, and without these in blocks of rows.
#[derive(Debug, Clone)]
pub(crate) struct SparseRows<R> {
    /// Rows of a block.
    block: usize,
    /// What most numbers of each column are.
    common: Vec<R>,
    /// Each block.
    blocks: Vec<SparseColumns<R>>,
    /// At most [`ROWS`] rows of each, as columns, with the number of the first.
    few: Vec<(usize, SparseColumns<R>)>,
}

impl<R: Real> SparseRows<R> {
    /// Of a matrix whose rows are asked for in blocks of so many; none where leaving the common numbers out would gain nothing.
    pub fn new(matrix: Matrix<'_, R>, block: usize) -> Option<Self> {
        let (rows, columns) = (matrix.nrows(), matrix.ncols());
        if rows == 0 || columns < LEAST_COLUMNS {
            return None;
        }
        let (common, total) = common_numbers(matrix);
        let fits = u32::try_from(rows.max(total)).is_ok();
        if !fits || total as f64 > MOST * (rows * columns) as f64 {
            return None;
        }
        let number = |row: usize, column: usize| matrix[(row, column)] - common[column];
        let (mut blocks, mut few) = (Vec::new(), Vec::new());
        let block = block.clamp(1, rows);
        for first in (0..rows).step_by(block) {
            let end = rows.min(first + block);
            let size = [end - first, columns];
            blocks.push(SparseColumns::of(size, |row, column| {
                number(first + row, column)
            }));
            for first in (first..end).step_by(ROWS) {
                let size = [columns, ROWS.min(end - first)];
                let turned = SparseColumns::of(size, |column, row| number(first + row, column));
                few.push((first, turned));
            }
        }
        Some(Self {
            block,
            common,
            blocks,
            few,
        })
    }

    /// Numbers that are kept.
    pub fn numbers(&self) -> usize {
        self.blocks.iter().map(|block| block.values.len()).sum()
    }

    /// out ← A·right for some rows of A, which are whole blocks.
    pub fn multiply(&self, out: MatrixMut<'_, R>, rows: Range<usize>, right: Matrix<'_, R>) {
        let units = right.ncols();
        assert!(rows.start.is_multiple_of(self.block));
        assert_eq!((out.nrows(), out.ncols()), (rows.len(), units));
        let begin = self.few.partition_point(|(first, _)| *first < rows.start);
        let end = self.few.partition_point(|(first, _)| *first < rows.end);
        let few = &self.few[begin..end];
        let numbers: usize = few.iter().map(|(_, few)| few.values.len()).sum();
        let operations = 2 * numbers * units;
        Operations::product(operations);
        let pieces = units
            .div_ceil(MOST_UNITS)
            .next_multiple_of(hands(operations));
        let pieces = column_pieces(out, units.div_ceil(pieces.max(1)).max(1));
        spread(operations, pieces, |(start, mut out)| {
            let units = out.ncols();
            let right = right.subcols(start, units);
            R::with_scratch((ROWS + 1) * units, |space| {
                let (of_common, space) = space.split_at_mut(units);
                for (sum, right) in of_common.iter_mut().zip(right.col_iter()) {
                    let terms = self.common.iter().zip(right.iter());
                    *sum = R::from_f64(terms.map(|(c, w)| c.to_f64() * w.to_f64()).sum());
                }
                for (first, few) in few {
                    let products = &mut space[..few.columns * units];
                    few.product(right, products);
                    let at = first - rows.start;
                    let out = out.as_mut().submatrix_mut(at, 0, few.columns, units);
                    let products = matrix(products, few.columns, units);
                    add_columns(out, false, products, |unit, _| of_common[unit]);
                }
            });
        });
    }

    /// out ← Aᵀ·right for some rows of A, which are whole blocks, or out ← out + Aᵀ·right if `accumulate`.
    pub fn multiply_transposed(
        &self,
        out: MatrixMut<'_, R>,
        accumulate: bool,
        rows: Range<usize>,
        right: Matrix<'_, R>,
    ) {
        let (units, columns) = (right.ncols(), self.common.len());
        assert!(rows.start.is_multiple_of(self.block) && right.nrows() == rows.len());
        let blocks = &self.blocks[rows.start / self.block..rows.end.div_ceil(self.block)];
        let numbers: usize = blocks.iter().map(|block| block.values.len()).sum();
        let operations = 2 * numbers * units;
        Operations::product(operations);
        // as many pieces for each thread
        let pieces = units.div_ceil(UNITS).next_multiple_of(hands(operations));
        let pieces = column_pieces(out, units.div_ceil(pieces.max(1)).max(1));
        spread(operations, pieces, |(start, mut out)| {
            let right = right.subcols(start, out.ncols());
            R::with_scratch((columns + 1) * out.ncols(), |space| {
                let (sums, products) = space.split_at_mut(out.ncols());
                for (index, block) in blocks.iter().enumerate() {
                    let right = right.subrows(index * self.block, block.rows);
                    block.product(right, products);
                    for (sum, right) in sums.iter_mut().zip(right.col_iter()) {
                        *sum = R::from_f64(sum_of(right.iter()));
                    }
                    let products = matrix(products, columns, out.ncols());
                    let of_common = |unit: usize, column: usize| self.common[column] * sums[unit];
                    let is_added = index > 0 || accumulate;
                    add_columns(out.as_mut(), is_added, products, of_common);
                }
            });
        });
    }
}

/// Σ x in double precision, as eight sums that need not wait for each other.
pub(crate) fn sum_of<'a, R: Real>(values: impl Iterator<Item = &'a R>) -> f64 {
    let mut sums = [0.0; 8];
    for (index, value) in values.enumerate() {
        sums[index % 8] += value.to_f64();
    }
    sums.iter().sum()
}

/// out ← products + `more` by column and row, or out ← out + products + `more` if `accumulate`.
fn add_columns<R: Real>(
    out: MatrixMut<'_, R>,
    accumulate: bool,
    products: Matrix<'_, R>,
    more: impl Fn(usize, usize) -> R,
) {
    for (column, (out, products)) in out.col_iter_mut().zip(products.col_iter()).enumerate() {
        for (row, (out, &product)) in out.iter_mut().zip(products.iter()).enumerate() {
            let sum = product + more(column, row);
            *out = if accumulate { *out + sum } else { sum };
        }
    }
}

/// For each column the number that most of it is, or what most of the whole matrix is where that is in it more often; and how many numbers
/// are others.
pub(crate) fn common_numbers<R: Real>(matrix: Matrix<'_, R>) -> (Vec<R>, usize) {
    let of_all = majority(matrix.col_iter().flat_map(|column| column.iter()));
    let mut others = 0;
    let common = matrix.col_iter().map(|column| {
        let count = |common: R| column.iter().filter(|x| **x == common).count();
        let candidates = [majority(column.iter()), of_all];
        let [own, all] = candidates.map(|candidate| (count(candidate), candidate));
        let (count, common) = if all.0 > own.0 { all } else { own };
        others += column.nrows() - count;
        common
    });
    (common.collect(), others)
}

/// What more than half of the numbers are, if there is such a number, and one of them otherwise (Boyer & Moore 1981).
fn majority<'a, R: Real>(values: impl Iterator<Item = &'a R>) -> R {
    let (mut found, mut lead) = (R::ZERO, 0_usize);
    for &value in values {
        if lead == 0 {
            found = value;
        }
        if value == found {
            lead += 1;
        } else {
            lead -= 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::{Purpose, Stream, matrix_mut, multiply, with_team};

    /// A matrix four fifths of which are one number in each third column, and in all others another.
    fn sparse<R: Real>(rows: usize, columns: usize) -> Vec<R> {
        let mut values = vec![0.0_f64; rows * columns];
        Stream::new(11, 0, Purpose::Initial, 0).fill_normal(&mut values);
        let kept = |(at, value): (usize, f64)| match (value < 0.84, (at / rows) % 3) {
            (false, _) => value,
            (true, 0) => -0.3,
            (true, _) => 0.1,
        };
        let values = values.into_iter().enumerate().map(kept);
        values.map(R::from_f64).collect()
    }

    fn normals<R: Real>(count: usize) -> Vec<R> {
        let mut values = vec![R::ZERO; count];
        Stream::new(12, 0, Purpose::Initial, 0).fill_normal(&mut values);
        values
    }

    /// In blocks and as one, each product against that of the matrix with its zeros.
    fn agrees<R: Real>(tolerance: f64) {
        let columns = 70;
        for (rows, block, units) in [(1, 1, 3), (300, 300, 120), (700, 256, 9), (900, 600, 130)] {
            let values: Vec<R> = sparse(rows, columns);
            let left = matrix(&values, rows, columns);
            let own = SparseRows::new(left, block).unwrap();
            let weights: Vec<R> = normals(columns * units);
            let weights = matrix(&weights, columns, units);
            let cotangents: Vec<R> = normals(rows * units);
            let cotangents = matrix(&cotangents, rows, units);
            let mut gradient: Vec<R> = normals(columns * units);
            let mut expected_gradient = gradient.clone();
            let near = |found: &[R], expected: &[R]| {
                for (found, expected) in found.iter().zip(expected) {
                    let (found, expected) = (found.to_f64(), expected.to_f64());
                    assert!((found - expected).abs() < tolerance, "{found} {expected}");
                }
            };
            for first in (0..rows).step_by(block) {
                let range = first..rows.min(first + block);
                let part = left.subrows(first, range.len());
                // within a larger matrix
                let mut out: Vec<R> = normals((rows + 5) * units);
                let mut expected = out.clone();
                for (values, is_ours) in [(&mut out, true), (&mut expected, false)] {
                    let out = matrix_mut(values, rows + 5, units);
                    let mut out = out.submatrix_mut(2, 0, range.len(), units);
                    match is_ours {
                        true => own.multiply(out.as_mut(), range.clone(), weights),
                        false => multiply(out.as_mut(), false, 1.0, part, weights),
                    }
                }
                near(&out, &expected);
                let right = cotangents.subrows(first, range.len());
                let out = matrix_mut(&mut gradient, columns, units);
                own.multiply_transposed(out, first > 0, range, right);
                let out = matrix_mut(&mut expected_gradient, columns, units);
                multiply(out, first > 0, 1.0, part.transpose(), right);
            }
            near(&gradient, &expected_gradient);
        }
    }

    #[test]
    fn products_are_those_with_the_zeros() {
        agrees::<f64>(1e-11);
        agrees::<f32>(1e-3);
    }

    #[test]
    fn all_blocks_at_once_are_as_good_on_any_number_of_threads() {
        let (rows, columns, units) = (2_000, 100, 160);
        let values: Vec<f32> = sparse(rows, columns);
        let left = matrix(&values, rows, columns);
        let own = SparseRows::new(left, 512).unwrap();
        let cotangents: Vec<f32> = normals(rows * units);
        let right = matrix(&cotangents, rows, units);
        let weights: Vec<f32> = normals(columns * units);
        let products = || {
            let mut gradient = vec![0.0_f32; columns * units];
            let out = matrix_mut(&mut gradient, columns, units);
            own.multiply_transposed(out, false, 0..rows, right);
            let mut forward = vec![0.0_f32; rows * units];
            let out = matrix_mut(&mut forward, rows, units);
            own.multiply(out, 0..rows, matrix(&weights, columns, units));
            [gradient, forward]
        };
        let alone = products();
        let mut expected = vec![0.0_f32; columns * units];
        let out = matrix_mut(&mut expected, columns, units);
        multiply(out, false, 1.0, left.transpose(), right);
        let near = |(&x, &y): (&f32, &f32)| (x - y).abs() < 1e-3;
        assert!(alone[0].iter().zip(&expected).all(near));
        for threads in [2, 3] {
            assert_eq!(with_team(threads, products), alone, "{threads} threads");
        }
    }

    #[test]
    fn what_has_few_zeros_or_few_columns_is_left_dense() {
        let values: Vec<f64> = sparse(90, 70);
        assert!(SparseRows::new(matrix(&values, 90, 70), 90).is_some());
        assert!(SparseRows::new(matrix(&values, 105, 60), 105).is_none());
        assert!(SparseRows::new(matrix(&normals::<f64>(90 * 70), 90, 70), 90).is_none());
        assert!(SparseRows::new(matrix::<f64>(&[], 0, 70), 0).is_none());
    }
}
