//! Products of inputs that are vectors, the same bits for the same two inputs wherever they stand.
//!
//! That, and no more than it, makes the correlation of two equal inputs exactly 1. 2·n·m·d operations, half of them for a
//! symmetric matrix; memory for 1,024 features of the inputs `a` once more, packed.

use crate::compute::{Matrix, Packed, PackedShape, matrix_mut, multiply_packed, share};

/// Features at a time: a multiple of the depth at which the packed product adds up, so that bits stay the same.
const DEPTH: usize = 1024;
/// Rows that are packed together.
const ROWS: usize = 128;
/// Columns at a time: as many as the packed product takes.
const COLUMNS: usize = 126;
/// Inputs whose squares are taken together.
const SQUARES: usize = 6;

/// out (n × m) ← a·bᵀ for a of n × d, b of m × d; of a symmetric matrix (b = a) at least the lower half.
pub(super) fn products(
    out: &mut [f64],
    a: Matrix<'_, f64>,
    b: Matrix<'_, f64>,
    is_symmetric: bool,
    threads: usize,
) {
    let (n, features) = (a.nrows(), a.ncols());
    if n == 0 || b.nrows() == 0 {
        return;
    }
    for start in (0..features).step_by(DEPTH) {
        let depth = DEPTH.min(features - start);
        let (a, b) = (a.subcols(start, depth), b.subcols(start, depth));
        let mut blocks: Vec<Option<Packed<f64>>> = vec![None; n.div_ceil(ROWS)];
        let tasks = blocks.iter_mut().enumerate();
        share(vec![(); threads.max(1)], tasks, |(), (index, block)| {
            let first = index * ROWS;
            let rows = ROWS.min(n - first);
            *block = Some(Packed::new(a.subrows(first, rows), PackedShape::Full));
        });
        let tasks = out.chunks_mut(n * COLUMNS).enumerate();
        share(vec![(); threads.max(1)], tasks, |(), (index, out)| {
            let (first, columns) = (index * COLUMNS, out.len() / n);
            let mut out = matrix_mut(out, n, columns);
            let right = b.subrows(first, columns).transpose();
            let skipped = if is_symmetric { first / ROWS } else { 0 };
            for (index, block) in blocks.iter().enumerate().skip(skipped) {
                if let Some(block) = block {
                    let rows = ROWS.min(n - index * ROWS);
                    let out = out.as_mut().subrows_mut(index * ROWS, rows);
                    multiply_packed(out, start > 0, block, right);
                }
            }
        });
    }
}

/// The squared norms of rows, as [`products`] would have them.
pub(super) fn squares(a: Matrix<'_, f64>) -> Vec<f64> {
    let mut squares = Vec::with_capacity(a.nrows());
    for first in (0..a.nrows()).step_by(SQUARES) {
        let rows = a.subrows(first, SQUARES.min(a.nrows() - first));
        let count = rows.nrows();
        let mut block = [0.0; SQUARES * SQUARES];
        let out = matrix_mut(&mut block[..count * count], count, count);
        multiply_packed(
            out,
            false,
            &Packed::new(rows, PackedShape::Full),
            rows.transpose(),
        );
        squares.extend((0..count).map(|i| block[i * (count + 1)]));
    }
    squares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::{Purpose, Stream, matrix};

    #[test]
    fn equal_inputs_have_equal_products() {
        let (n, d) = (300, 1300);
        let mut values = vec![0.0; n * d];
        Stream::new(0, 0, Purpose::Initial, 0).fill_normal(&mut values);
        // the last rows again as the first
        for column in values.chunks_mut(n) {
            column.copy_within(250..300, 0);
        }
        let a = matrix(&values, n, d);
        let (mut whole, mut cross) = (vec![0.0; n * n], vec![0.0; n * 50]);
        products(&mut whole, a, a, true, 2);
        products(&mut cross, a, a.subrows(0, 50), false, 1);
        let squares = squares(a);
        for i in 0..n {
            assert_eq!(whole[i * (n + 1)].to_bits(), squares[i].to_bits());
            for j in 0..50 {
                let exact: f64 = (0..d).map(|k| a[(i, k)] * a[(j, k)]).sum();
                assert!((cross[j * n + i] - exact).abs() < 1e-10);
                if i >= j {
                    assert_eq!(whole[j * n + i].to_bits(), cross[j * n + i].to_bits());
                }
            }
        }
        for j in 0..50 {
            assert_eq!(whole[j * n + 250 + j].to_bits(), squares[j].to_bits());
        }
    }
}
