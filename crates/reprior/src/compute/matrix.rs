//! Column-major matrices and their dense products.
//!
//! Symmetric halves are worked through in strips of [`STRIP`] rows, each strip one dense product of
//! just the part that is needed: with s strips a triangle costs (s + 1)/2s of the full product.

use faer::{MatMut, MatRef};

use super::packed::multiply_large;
use super::{Operations, Real, spread};

/// A column-major matrix that is read.
pub type Matrix<'a, R> = MatRef<'a, R>;
/// A column-major matrix that is written.
pub type MatrixMut<'a, R> = MatMut<'a, R>;

/// Rows in a strip. Large enough for the dense product to run at its peak, small enough to skip most of a triangle.
pub(super) const STRIP: usize = 64;

/// `values` as a `rows` × `columns` column-major matrix. Panics if the lengths do not agree.
#[inline]
pub fn matrix<R: Real>(values: &[R], rows: usize, columns: usize) -> Matrix<'_, R> {
    MatRef::from_column_major_slice(values, rows, columns)
}

/// `values` as a `rows` × `columns` column-major matrix to write. Panics if the lengths do not agree.
#[inline]
pub fn matrix_mut<R: Real>(values: &mut [R], rows: usize, columns: usize) -> MatrixMut<'_, R> {
    MatMut::from_column_major_slice_mut(values, rows, columns)
}

/// Ranges of at most `at_once` columns of a matrix, in order, each with where it begins.
pub(crate) fn column_pieces<R: Real>(
    out: MatrixMut<'_, R>,
    at_once: usize,
) -> impl Iterator<Item = (usize, MatrixMut<'_, R>)> + Send {
    let mut rest = Some((0, out));
    std::iter::from_fn(move || {
        let (start, out) = rest.take()?;
        if out.ncols() <= at_once {
            return Some((start, out));
        }
        let (piece, others) = out.split_at_col_mut(at_once);
        rest = Some((start + at_once, others));
        Some((start, piece))
    })
}

/// Ranges of at most `at_once` rows of a matrix, those that begin at its multiples, each with where it begins: the last one first.
pub(crate) fn row_pieces_from_below<R: Real>(
    out: MatrixMut<'_, R>,
    at_once: usize,
) -> impl Iterator<Item = (usize, MatrixMut<'_, R>)> + Send {
    let mut rest = (out.nrows() > 0).then_some(out);
    std::iter::from_fn(move || {
        let out = rest.take()?;
        let start = (out.nrows() - 1) / at_once * at_once;
        if start == 0 {
            return Some((0, out));
        }
        let (others, piece) = out.split_at_row_mut(start);
        rest = Some(others);
        Some((start, piece))
    })
}

/// out ← from.
pub(crate) fn copy_matrix<R: Real>(out: MatrixMut<'_, R>, from: Matrix<'_, R>) {
    debug_assert_eq!((out.nrows(), out.ncols()), (from.nrows(), from.ncols()));
    for (mut out, from) in out.col_iter_mut().zip(from.col_iter()) {
        match (out.as_mut().try_as_col_major_mut(), from.try_as_col_major()) {
            (Some(out), Some(from)) => out.as_slice_mut().copy_from_slice(from.as_slice()),
            _ => out
                .iter_mut()
                .zip(from.iter())
                .for_each(|(out, &from)| *out = from),
        }
    }
}

/// Does something with each column, by its number, of a column-major matrix of so many rows.
pub(crate) fn for_each_column<N: Send>(
    values: &mut [N],
    rows: usize,
    work: impl Fn(usize, &mut [N]) + Sync,
) {
    const COLUMNS: usize = 16;
    const COST: usize = 8;
    let cost = COST * values.len();
    let pieces = values.chunks_mut((COLUMNS * rows).max(1)).enumerate();
    spread(cost, pieces, |(index, piece)| {
        for (offset, column) in piece.chunks_mut(rows.max(1)).enumerate() {
            work(index * COLUMNS + offset, column);
        }
    });
}

/// Dense product: out ← scale·a·b, or out ← out + scale·a·b if `accumulate`. 2·m·n·k operations.
pub fn multiply<R: Real>(
    mut out: MatrixMut<'_, R>,
    accumulate: bool,
    scale: f64,
    a: Matrix<'_, R>,
    b: Matrix<'_, R>,
) {
    Operations::product(2 * a.nrows() * a.ncols() * b.ncols());
    if !multiply_large(out.as_mut(), accumulate, scale, a, b) {
        R::multiply(out, accumulate, scale, a, b);
    }
}

/// Lower half of out ← out + scale·(a·bᵀ + b·aᵀ), for a and b of n × c. Above the block diagonal nothing is changed.
pub fn add_symmetric_product<R: Real>(
    mut out: MatrixMut<'_, R>,
    scale: f64,
    a: Matrix<'_, R>,
    b: Matrix<'_, R>,
) {
    for start in (0..a.nrows()).step_by(STRIP) {
        let rows = STRIP.min(a.nrows() - start);
        for (a, b) in [(a, b), (b, a)] {
            multiply(
                out.as_mut().submatrix_mut(start, 0, rows, start + rows),
                true,
                scale,
                a.subrows(start, rows),
                b.subrows(0, start + rows).transpose(),
            );
        }
    }
}

/// Copies the lower half of a square matrix to its upper half.
pub fn mirror_lower<R: Real>(values: &mut [R], size: usize) {
    mirror(matrix_mut(values, size, size));
}

/// Quarter by quarter, and these tile by tile so that both of its places stay in cache.
fn mirror<R: Real>(matrix: MatrixMut<'_, R>) {
    const TILE: usize = 16;
    let size = matrix.nrows();
    if size <= TILE {
        let mut matrix = matrix;
        for column in 0..size {
            for row in column + 1..size {
                matrix[(column, row)] = matrix[(row, column)];
            }
        }
        return;
    }
    let half = (size / 2).next_multiple_of(TILE);
    let (first, upper, lower, second) = matrix.split_at_mut(half, half);
    let lower = lower.as_ref();
    let pieces = column_pieces(upper, TILE);
    spread(8 * half * (size - half), pieces, |(start, mut piece)| {
        for first_row in (0..half).step_by(TILE) {
            for column in 0..piece.ncols() {
                for row in first_row..half.min(first_row + TILE) {
                    piece[(row, column)] = lower[(start + column, row)];
                }
            }
        }
    });
    mirror(first);
    mirror(second);
}

/// Whether a kernel's numbers are those of its safe twin, for tests.
#[cfg(test)]
pub(super) fn assert_close<R: Real>(a: &[R], b: &[f64], tolerance: f64) {
    for (x, y) in a.iter().zip(b) {
        let error = (x.to_f64() - y).abs();
        assert!(error < tolerance * (1.0 + y.abs()), "{x:?} {y}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::{Purpose, Stream};
    use proptest::prelude::*;

    fn noise(n: usize, index: u64) -> Vec<f64> {
        let mut values = vec![0.0; n];
        Stream::new(0, 0, Purpose::Initial, index).fill_normal(&mut values);
        values
    }

    fn plain(a: Matrix<'_, f64>, b: Matrix<'_, f64>) -> Vec<f64> {
        let mut out = vec![0.0; a.nrows() * b.ncols()];
        for j in 0..b.ncols() {
            for i in 0..a.nrows() {
                out[j * a.nrows() + i] = (0..a.ncols()).map(|k| a[(i, k)] * b[(k, j)]).sum();
            }
        }
        out
    }

    fn close(a: &[f64], b: &[f64]) -> bool {
        a.len() == b.len()
            && a.iter()
                .zip(b)
                .all(|(x, y)| (x - y).abs() < 1e-10 * (1.0 + y.abs()))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn symmetric_products_agree_with_plain_ones(n in 1_usize..150, d in 1_usize..20) {
            let g = noise(n * d, 3);
            let a = matrix(&g, n, d);
            let (other, mut out) = (noise(n * d, 4), vec![0.0; n * n]);
            add_symmetric_product(matrix_mut(&mut out, n, n), -0.5, a, matrix(&other, n, d));
            mirror_lower(&mut out, n);
            let half = plain(a, matrix(&other, n, d).transpose());
            let expected = |at: usize| -0.5 * (half[at] + half[at % n * n + at / n]);
            prop_assert!(close(&out, &(0..n * n).map(expected).collect::<Vec<_>>()));
        }
    }
}
