//! Cholesky factorisation of a symmetric positive definite matrix, always in double precision.

use faer::Par;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::triangular_inverse::invert_lower_triangular;
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_upper_triangular_in_place,
};
use thiserror::Error;

use super::gram::gram_onto;
use super::matrix::{STRIP, column_pieces, for_each_column, row_pieces_from_below};
use super::tile::Onto;
use super::{COLUMNS, MatrixMut, Operations, Real, matrix, matrix_mut, norm_squared, spread};

/// The matrix is not positive definite, even after raising its diagonal.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[error(
    "a {size} x {size} kernel matrix is not positive definite (or not finite), even with its diagonal raised by {jitter:.1e}"
)]
pub struct NotPositiveDefinite {
    /// Rows of the matrix.
    pub size: usize,
    /// The largest amount that was added to the diagonal.
    pub jitter: f64,
}

/// Buffers for factorising matrices of one size: the factor C with C·Cᵀ = A, lower triangular.
pub struct Cholesky {
    size: usize,
    factor: Vec<f64>,
    scratch: MemBuffer,
}

/// Rows from which on a factorisation goes block by block.
const LARGE: usize = 384;
/// Columns of a block: what a Gram matrix takes at a time, so that the rest goes through memory once for each.
const BLOCK: usize = COLUMNS;

/// Jitter relative to the mean diagonal: first try, growth, number of tries.
const JITTER: (f64, f64, usize) = (1e-14, 100.0, 4);

impl Cholesky {
    /// Buffers for `size` × `size` matrices: 8·size² bytes.
    pub fn new(size: usize) -> Self {
        let requirement = cholesky_in_place_scratch::<f64>(size, Par::Seq, Default::default());
        Self {
            size,
            factor: vec![0.0; size * size],
            scratch: MemBuffer::new(requirement),
        }
    }

    /// Rows of the matrix.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Factorises the matrix whose lower half `fill(row, column)` gives, once more for each time that the diagonal is raised; size³/3
    /// operations.
    ///
    /// Returns how many times the diagonal had to be raised before the factorisation went through: 0 for a matrix
    /// that is positive definite to working precision. At most four tries, up to 1e-8 of the mean diagonal.
    ///
    /// # Errors
    /// [`NotPositiveDefinite`] if it never does, in particular if an entry is NaN or infinite.
    pub fn factorise(
        &mut self,
        fill: impl Fn(usize, usize) -> f64 + Sync,
    ) -> Result<u32, NotPositiveDefinite> {
        self.factorise_columns(|column, out| {
            for (row, out) in (column..).zip(out) {
                *out = fill(row, column);
            }
        })
    }

    /// The same where `fill` writes a column from the diagonal on.
    pub(crate) fn factorise_columns(
        &mut self,
        fill: impl Fn(usize, &mut [f64]) + Sync,
    ) -> Result<u32, NotPositiveDefinite> {
        let n = self.size;
        let mut jitter = 0.0;
        for attempt in 0..=JITTER.2 {
            for_each_column(&mut self.factor, n, |column, out| {
                fill(column, &mut out[column..]);
            });
            let diagonal = (0..n).map(|i| self.factor[i * n + i]);
            let mean_diagonal = diagonal.sum::<f64>() / n.max(1) as f64;
            for i in 0..n {
                self.factor[i * n + i] += jitter;
            }
            if mean_diagonal.is_finite() && self.factor_in_place() {
                return Ok(attempt as u32);
            }
            jitter = if attempt == 0 {
                JITTER.0 * mean_diagonal
            } else {
                jitter * JITTER.1
            };
        }
        Err(NotPositiveDefinite {
            size: n,
            jitter: jitter / JITTER.1,
        })
    }

    fn factor_in_place(&mut self) -> bool {
        let n = self.size;
        Operations::factorisation(n * n * n / 3);
        let view = matrix_mut(&mut self.factor, n, n);
        let is_done = match n > LARGE {
            true => factor_in_blocks(view, &mut self.scratch),
            false => factor_block(view, &mut self.scratch),
        };
        // an infinite or NaN pivot passes the sign test of the factorisation in some cases
        is_done
            && (0..n).all(|i| self.factor[i * n + i].is_finite() && self.factor[i * n + i] > 0.0)
    }

    /// log det A.
    pub fn log_determinant(&self) -> f64 {
        (0..self.size)
            .map(|i| self.factor[i * (self.size + 1)].ln())
            .sum::<f64>()
            * 2.0
    }

    /// Σᵢ log Cᵢᵢ and the other half of what needs the factor itself: its diagonal.
    pub fn diagonal(&self) -> impl Iterator<Item = f64> + '_ {
        (0..self.size).map(|i| self.factor[i * (self.size + 1)])
    }

    /// b ← C⁻¹b for `columns` right-hand sides, column-major; size²·columns operations.
    pub fn solve_lower(&self, b: &mut [f64], columns: usize) {
        Operations::solution(self.size * self.size * columns);
        let c = matrix(&self.factor, self.size, self.size);
        solve_lower_triangular_in_place(c, matrix_mut(b, self.size, columns), Par::Seq);
    }

    /// b ← C⁻ᵀb for `columns` right-hand sides, column-major; size²·columns operations.
    pub fn solve_upper(&self, b: &mut [f64], columns: usize) {
        Operations::solution(self.size * self.size * columns);
        let c = matrix(&self.factor, self.size, self.size).transpose();
        solve_upper_triangular_in_place(c, matrix_mut(b, self.size, columns), Par::Seq);
    }

    /// y ← y + Cz for as many columns as there are, column-major: adds Gaussian noise of covariance A for standard normal z.
    /// size² operations a column.
    pub fn add_correlated(&self, y: &mut [f64], z: &[f64]) {
        let n = self.size;
        for (y, z) in y.chunks_exact_mut(n).zip(z.chunks_exact(n)) {
            for (column, &z) in z.iter().enumerate() {
                let c = &self.factor[column * n + column..(column + 1) * n];
                super::add_scaled(&mut y[column..], z, c);
            }
        }
    }

    /// Writes the lower half of A⁻¹; `inverse_factor` is overwritten with C⁻¹. 2·size³/3 operations.
    pub fn inverse(&self, inverse: &mut [f64], inverse_factor: &mut [f64]) {
        self.invert_factor(inverse_factor);
        multiply_transposed_lower(inverse, inverse_factor, inverse_factor, self.size);
    }

    /// The lower half of A⁻¹, in the factor's place and one buffer more. 2·size³/3 operations.
    pub(crate) fn into_inverse(self) -> Vec<f64> {
        let mut inverse_factor = vec![0.0; self.factor.len()];
        self.invert_factor(&mut inverse_factor);
        let mut inverse = self.factor;
        multiply_transposed_lower(&mut inverse, &inverse_factor, &inverse_factor, self.size);
        inverse
    }

    /// The diagonal of A⁻¹: squares of the columns of C⁻¹, some columns at a time. size³/3 operations.
    pub(crate) fn inverse_diagonal(&self) -> Vec<f64> {
        let n = self.size;
        Operations::factorisation(n * n * n / 3);
        let factor = matrix(&self.factor, n, n);
        let mut diagonal = vec![0.0; n];
        let pieces = (0..).step_by(STRIP).zip(diagonal.chunks_mut(STRIP));
        spread(
            n * n * n / 3,
            pieces,
            |(start, out): (usize, &mut [f64])| {
                // they begin on the diagonal
                let (height, width) = (n - start, out.len());
                let mut columns = vec![0.0; height * width];
                for (column, own) in columns.chunks_exact_mut(height).enumerate() {
                    own[column] = 1.0;
                }
                let factor = factor.submatrix(start, start, height, height);
                let block = matrix_mut(&mut columns, height, width);
                solve_lower_triangular_in_place(factor, block, Par::Seq);
                for (own, out) in columns.chunks_exact(height).zip(out) {
                    *out = norm_squared(own);
                }
            },
        );
        diagonal
    }

    /// The factor C, column-major; entries above the diagonal are not defined.
    pub(super) fn factor(&self) -> &[f64] {
        &self.factor
    }

    /// Writes C⁻¹, zeros above the diagonal included.
    pub(crate) fn invert_factor(&self, out: &mut [f64]) {
        let n = self.size;
        Operations::factorisation(n * n * n / 3);
        out.fill(0.0);
        let (out, factor) = (matrix_mut(out, n, n), matrix(&self.factor, n, n));
        if n <= LARGE {
            return invert_lower_triangular(out, factor, Par::Seq);
        }
        // columns of the inverse are solutions, which begin on the diagonal
        let blocks = column_pieces(out, STRIP);
        spread(n * n * n / 3, blocks, |(start, block)| {
            let mut block = block.subrows_mut(start, n - start);
            block.as_mut().diagonal_mut().fill(1.0);
            let factor = factor.submatrix(start, start, n - start, n - start);
            solve_lower_triangular_in_place(factor, block, Par::Seq);
        });
    }
}

/// Whether a block could be factorised in its place.
fn factor_block(block: MatrixMut<'_, f64>, scratch: &mut MemBuffer) -> bool {
    let stack = MemStack::new(scratch);
    cholesky_in_place(
        block,
        Default::default(),
        Par::Seq,
        stack,
        Default::default(),
    )
    .is_ok()
}

/// Block by block of columns: the block on the diagonal, what is below it by strips of rows, and what that takes from the rest.
fn factor_in_blocks(mut matrix: MatrixMut<'_, f64>, scratch: &mut MemBuffer) -> bool {
    loop {
        let size = matrix.nrows();
        let width = BLOCK.min(size);
        let (first, rest) = matrix.split_at_col_mut(width);
        let (mut diagonal, mut below) = first.split_at_row_mut(width);
        if !factor_block(diagonal.as_mut(), scratch) {
            return false;
        }
        if width == size {
            return true;
        }
        let diagonal = diagonal.as_ref();
        let strips = row_pieces_from_below(below.as_mut(), STRIP);
        spread(width * width * (size - width), strips, |(_, strip)| {
            solve_lower_triangular_in_place(diagonal, strip.transpose_mut(), Par::Seq);
        });
        let mut rest = rest.split_at_row_mut(width).1;
        gram_onto(rest.as_mut(), Onto::Subtract, below.as_ref());
        matrix = rest;
    }
}

/// Writes the lower half of XᵀZ for a lower-triangular X (zeros above the diagonal) and a Z of which just the lower half
/// matters (finite above the diagonal). size³/3 operations, strip by strip of rows: column i of X begins at row i.
pub(super) fn multiply_transposed_lower(out: &mut [f64], x: &[f64], z: &[f64], size: usize) {
    let n = size;
    let (x, z) = (matrix(x, n, n), matrix(z, n, n));
    let out = matrix_mut(out, n, n);
    let mut operations = 0;
    for start in (0..n).step_by(STRIP) {
        let (rows, height) = (STRIP.min(n - start), n - start);
        operations += 2 * rows * (start + rows) * height;
    }
    Operations::product(operations);
    spread(
        n * n * n / 3,
        row_pieces_from_below(out, STRIP),
        |(start, strip)| {
            let (rows, height) = (strip.nrows(), n - start);
            let x = x.submatrix(start, start, height, rows).transpose();
            let z = z.submatrix(start, 0, height, start + rows);
            f64::multiply(strip.subcols_mut(0, start + rows), false, 1.0, x, z);
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::{Purpose, Stream, gram_of_rows};

    fn positive_definite(n: usize, rank: usize, ridge: f64) -> Vec<f64> {
        let mut a = vec![0.0; n * rank];
        Stream::new(3, 0, Purpose::Initial, 0).fill_normal(&mut a);
        let mut k = vec![0.0; n * n];
        gram_of_rows(matrix_mut(&mut k, n, n), false, matrix(&a, n, rank));
        for i in 0..n {
            k[i * n + i] += ridge;
        }
        k
    }

    #[test]
    fn solves_inverts_and_takes_the_determinant() {
        for n in [1, 5, 100, 150] {
            let k = positive_definite(n, n + 3, 0.5);
            let at = |row: usize, column: usize| k[row.min(column) * n + row.max(column)];
            let mut cholesky = Cholesky::new(n);
            assert_eq!(cholesky.factorise(at), Ok(0));
            let b: Vec<f64> = (0..n).map(|i| (i as f64).sin()).collect();
            let mut x = b.clone();
            cholesky.solve_lower(&mut x, 1);
            cholesky.solve_upper(&mut x, 1);
            let (mut inverse, mut scratch) = (vec![0.0; n * n], vec![0.0; n * n]);
            cholesky.inverse(&mut inverse, &mut scratch);
            let inverse_at = |r: usize, c: usize| inverse[r.min(c) * n + r.max(c)];
            for (i, &right) in b.iter().enumerate() {
                let product: f64 = (0..n).map(|j| at(i, j) * x[j]).sum();
                assert!((product - right).abs() < 1e-9);
                for j in 0..n {
                    let unit: f64 = (0..n).map(|l| at(i, l) * inverse_at(l, j)).sum();
                    assert!((unit - f64::from(u8::from(i == j))).abs() < 1e-8);
                }
            }
            let of_diagonal = cholesky.inverse_diagonal();
            for (i, found) in of_diagonal.into_iter().enumerate() {
                assert!((found / inverse_at(i, i) - 1.0).abs() < 1e-12, "{n}: {i}");
            }
            let in_place = cholesky.into_inverse();
            for (i, j) in (0..n).flat_map(|i| (0..=i).map(move |j| (i, j))) {
                assert_eq!(in_place[j * n + i], inverse_at(i, j));
            }
        }
        let mut diagonal = Cholesky::new(3);
        diagonal
            .factorise(|r, c| if r == c { (r + 1) as f64 } else { 0.0 })
            .unwrap();
        assert!((diagonal.log_determinant() - 6.0_f64.ln()).abs() < 1e-14);
    }

    #[test]
    fn a_singular_matrix_is_repaired_and_counted() {
        let n = 40;
        let k = positive_definite(n, 10, 0.0);
        let mut cholesky = Cholesky::new(n);
        let tries = cholesky.factorise(|r, c| k[c * n + r]).unwrap();
        assert!((1..=4).contains(&tries));
    }

    #[test]
    fn what_cannot_be_repaired_is_an_error() {
        let mut cholesky = Cholesky::new(2);
        assert!(
            cholesky
                .factorise(|r, c| if r == c { -1.0 } else { 0.0 })
                .is_err()
        );
        assert!(cholesky.factorise(|_, _| f64::NAN).is_err());
        assert!(
            cholesky
                .factorise(|r, c| if r == 1 && c == 0 { f64::NAN } else { 1.0 })
                .is_err()
        );
        assert!(cholesky.factorise(|_, _| f64::INFINITY).is_err());
    }
}
