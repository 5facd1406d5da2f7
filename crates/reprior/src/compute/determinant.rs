//! The determinant of a square matrix, and its inverse.

use faer::linalg::solvers::{DenseSolveCore, PartialPivLu};

use super::matrix;

/// log |det A| and the sign of det A (−1, 0 or 1; NaN where A is not finite) of the column-major `size` × `size` matrix, by
/// an LU factorisation with partial pivoting: 2·size³/3 operations.
pub fn log_determinant(values: &[f64], size: usize) -> (f64, f64) {
    let factors = PartialPivLu::new(matrix(values, size, size));
    let (permutation, _) = factors.P().arrays();
    let mut sign = 1.0;
    let mut is_seen = vec![false; size];
    for start in 0..size {
        // a cycle of even length is an odd permutation
        let (mut at, mut length) = (start, 0);
        while !is_seen[at] {
            is_seen[at] = true;
            at = permutation[at];
            length += 1;
        }
        if length > 0 && length % 2 == 0 {
            sign = -sign;
        }
    }
    let mut log = 0.0;
    for i in 0..size {
        let pivot = factors.U()[(i, i)];
        log += pivot.abs().ln();
        sign *= if pivot == 0.0 || pivot.is_nan() {
            pivot
        } else {
            pivot.signum()
        };
    }
    (log, sign)
}

/// A⁻¹ of the column-major `size` × `size` matrix, not finite where it is singular: 2·size³ operations.
pub fn inverse(values: &[f64], size: usize) -> Vec<f64> {
    let inverse = PartialPivLu::new(matrix(values, size, size)).inverse();
    let columns = inverse.col_iter();
    columns
        .flat_map(|column| column.iter().copied().collect::<Vec<_>>())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_by_three_and_permutations() {
        // det = 2(−1·4 − 3·1) − 0 + 5(1·1 − (−1)·2) for rows [2 0 5], [1 −1 3], [2 1 4]
        let (log, sign) = log_determinant(&[2.0, 1.0, 2.0, 0.0, -1.0, 1.0, 5.0, 3.0, 4.0], 3);
        let exact: f64 = 2.0 * (-4.0 - 3.0) + 5.0 * (1.0 + 2.0);
        assert!((log - exact.abs().ln()).abs() < 1e-13 && sign == exact.signum());
        for (columns, parity) in [
            ([1, 0, 2], -1.0),
            ([1, 2, 0], 1.0),
            ([2, 1, 0], -1.0),
            ([0, 1, 2], 1.0),
        ] {
            let mut values = [0.0; 9];
            for (row, column) in columns.into_iter().enumerate() {
                values[column * 3 + row] = 3.0;
            }
            let (log, sign) = log_determinant(&values, 3);
            assert!((log - 27.0_f64.ln()).abs() < 1e-14 && sign == parity);
        }
        assert_eq!(log_determinant(&[1.0, 2.0, 1.0, 2.0], 2).1, 0.0);
        assert!(log_determinant(&[f64::NAN], 1).1.is_nan());
        assert_eq!(log_determinant(&[], 0), (0.0, 1.0));
    }
    #[test]
    fn an_inverse_times_its_matrix_is_one() {
        let a = [2.0, 1.0, 2.0, 0.0, -1.0, 1.0, 5.0, 3.0, 4.0];
        let b = inverse(&a, 3);
        for (i, j) in (0..9).map(|at| (at % 3, at / 3)) {
            let product: f64 = (0..3).map(|k| a[k * 3 + i] * b[j * 3 + k]).sum();
            let expected = if i == j { 1.0 } else { 0.0 };
            assert!((product - expected).abs() < 1e-13, "{i} {j}: {product}");
        }
    }
}
