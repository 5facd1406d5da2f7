//! LQ factorisation B = L·Q with orthonormal rows in Q, by Householder reflections; only L is formed.

use faer::Mat;
use faer::linalg::solvers::Qr;

/// The lower-trapezoidal factor of an LQ factorisation.
#[derive(Debug, Clone, PartialEq)]
pub struct Lq {
    /// Column-major, `rows` × `columns`, zero above the diagonal.
    pub factor: Vec<f64>,
    /// Rows of B.
    pub rows: usize,
    /// min(rows of B, columns of B).
    pub columns: usize,
}

/// L (rows × min(rows, columns)) of B = L·Q for the row-major `b`. L·Lᵀ = B·Bᵀ whatever the rank of B; the first
/// rows of L belong to the first rows of B alone. About 2·columns·rows² operations.
pub fn lower_trapezoidal_factor(b: &[f64], rows: usize, columns: usize) -> Lq {
    assert_eq!(
        b.len(),
        rows * columns,
        "a {rows} x {columns} matrix needs that many numbers"
    );
    let rank = rows.min(columns);
    // a row-major B is a column-major Bᵀ, and Bᵀ = Q'R gives L = Rᵀ
    let transposed = Mat::from_fn(columns, rows, |i, j| b[j * columns + i]);
    let r = Qr::new(transposed.as_ref());
    let r = r.thin_R();
    let mut factor = vec![0.0; rows * rank];
    for column in 0..rank {
        for row in column..rows {
            factor[column * rows + row] = r[(column, row)];
        }
    }
    Lq {
        factor,
        rows,
        columns: rank,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::{Purpose, Stream};

    #[test]
    fn keeps_the_gram_matrix_also_when_rows_repeat() {
        for (rows, columns) in [(1, 1), (3, 7), (7, 3), (120, 200), (200, 120)] {
            let mut b = vec![0.0; rows * columns];
            Stream::new(5, 0, Purpose::Initial, 0).fill_normal(&mut b);
            if rows > 4 {
                let (first, rest) = b.split_at_mut(3 * columns);
                rest[..columns].copy_from_slice(&first[..columns]);
                rest[columns..2 * columns].fill(0.0);
            }
            let lq = lower_trapezoidal_factor(&b, rows, columns);
            for i in 0..rows {
                for j in 0..=i {
                    let exact: f64 = (0..columns)
                        .map(|k| b[i * columns + k] * b[j * columns + k])
                        .sum();
                    let ours: f64 = (0..lq.columns)
                        .map(|k| lq.factor[k * rows + i] * lq.factor[k * rows + j])
                        .sum();
                    assert!(
                        (exact - ours).abs() < 1e-10 * columns as f64,
                        "{rows} x {columns}"
                    );
                }
            }
        }
    }
}
