//! Derivatives through a Cholesky factor, and solves with its diagonal shifted.
//!
//! With A = C·Cᵀ and a function of C whose cotangent is C̄, the cotangent of A is Ā = ½C⁻ᵀ S C⁻¹ with S the symmetric
//! matrix whose lower half is that of CᵀC̄ (Smith 1995; Murray 2016, eq. 8). Where C enters through triangular solves
//! with few right-hand sides, CᵀC̄ is of low rank on and below the diagonal: S_ij = Σ_c a_ic·b_jc for i ≥ j, plus a multiple
//! of the identity for log det A. S is then applied in time proportional to its rank, and the whole costs what the inverse
//! of A costs.

use std::ops::Range;

use super::cholesky::{Cholesky, multiply_transposed_lower};
use super::matrix::STRIP;
use super::{Matrix, add_scaled, dot, matrix, matrix_mut, multiply};

/// S = symmetric with lower half `left`·`right`ᵀ, plus `shift`·I. Rows of `rank` numbers, one row after the other.
#[derive(Debug, Clone, Copy)]
pub struct Semiseparable<'a> {
    /// a, size × rank, row by row.
    pub left: &'a [f64],
    /// b, size × rank, row by row.
    pub right: &'a [f64],
    /// Number of terms; may be 0.
    pub rank: usize,
    /// Of the identity.
    pub shift: f64,
}

/// Rows that are worked through at a time.
const BLOCK: usize = 32;

impl Semiseparable<'_> {
    /// Rows `rows` of `values`, as a rank × rows matrix.
    fn rows<'a>(&self, values: &'a [f64], rows: &Range<usize>) -> Matrix<'a, f64> {
        let of_rows = &values[rows.start * self.rank..rows.end * self.rank];
        matrix(of_rows, self.rank, rows.len())
    }

    /// Writes S·X on and below the diagonal for a lower-triangular X (zeros above the diagonal), and what is finite above.
    ///
    /// With rows in blocks I: (S·X)_I = S_II·X_I + a_I·(Σ_{J<I} b_Jᵀ·X_J) + b_I·(Σ_{J>I} a_Jᵀ·X_J). `sums` has
    /// rank·size numbers, `square` at least BLOCK² or size², if that is less. (2·rank + BLOCK)·size² operations.
    fn multiply_lower(
        &self,
        out: &mut [f64],
        x: &[f64],
        size: usize,
        sums: &mut [f64],
        square: &mut [f64],
    ) {
        let mut out = matrix_mut(out, size, size);
        let x = matrix(x, size, size);
        let block = |start: usize| start..(start + BLOCK).min(size);
        // what later products take for zero times something reaches to the end of a strip
        let reach = |rows: &Range<usize>| rows.end.next_multiple_of(STRIP).min(size);
        let sums = &mut sums[..self.rank * size];
        sums.fill(0.0);
        for rows in (0..size).step_by(BLOCK).map(block) {
            let (start, count, columns) = (rows.start, rows.len(), reach(&rows));
            let [a, b] = [self.left, self.right].map(|values| self.rows(values, &rows));
            let square = &mut square[..count * count];
            multiply(
                matrix_mut(square, count, count),
                false,
                1.0,
                a.transpose(),
                b,
            );
            for i in 0..count {
                for j in i + 1..count {
                    square[j * count + i] = square[i * count + j];
                }
                square[i * count + i] += self.shift;
            }
            let own = x.submatrix(start, 0, count, columns);
            let mut into = out.as_mut().submatrix_mut(start, 0, count, columns);
            multiply(into.as_mut(), false, 1.0, matrix(square, count, count), own);
            if self.rank > 0 {
                let before = matrix(&*sums, self.rank, size).subcols(0, start);
                multiply(into.subcols_mut(0, start), true, 1.0, a.transpose(), before);
                let sums = matrix_mut(sums, self.rank, size).subcols_mut(0, rows.end);
                multiply(sums, true, 1.0, b, own.subcols(0, rows.end));
            }
        }
        if self.rank == 0 {
            return;
        }
        sums.fill(0.0);
        for rows in (0..size).step_by(BLOCK).rev().map(block) {
            let (start, count, columns) = (rows.start, rows.len(), reach(&rows));
            let [a, b] = [self.left, self.right].map(|values| self.rows(values, &rows));
            let after = matrix(&*sums, self.rank, size).subcols(0, columns);
            let into = out.as_mut().submatrix_mut(start, 0, count, columns);
            multiply(into, true, 1.0, b.transpose(), after);
            let sums = matrix_mut(sums, self.rank, size).subcols_mut(0, rows.end);
            multiply(sums, true, 1.0, a, x.submatrix(start, 0, count, rows.end));
        }
    }
}

impl Cholesky {
    /// Writes the lower half of C⁻ᵀ S C⁻¹, twice the cotangent of A. `inverse_factor` and `product` are size × size work
    /// space, `sums` has rank·size numbers. 2·size³/3 + 4·size²·rank operations.
    pub fn pull_back(
        &self,
        out: &mut [f64],
        inverse_factor: &mut [f64],
        product: &mut [f64],
        sums: &mut [f64],
        cotangent: Semiseparable<'_>,
    ) {
        self.invert_factor(inverse_factor);
        cotangent.multiply_lower(product, inverse_factor, self.size(), sums, out);
        multiply_transposed_lower(out, inverse_factor, product, self.size());
    }

    /// b ← (C + shift·I)⁻¹b for any number of right-hand sides, column-major; size² operations each.
    pub fn solve_shifted_lower(&self, b: &mut [f64], shift: f64) {
        let (n, factor) = (self.size(), self.factor());
        for b in b.chunks_exact_mut(n.max(1)) {
            for j in 0..n {
                let (head, tail) = b.split_at_mut(j + 1);
                head[j] /= factor[j * n + j] + shift;
                add_scaled(tail, -head[j], &factor[j * n + j + 1..(j + 1) * n]);
            }
        }
    }

    /// b ← (C + shift·I)⁻ᵀb for any number of right-hand sides, column-major; size² operations each.
    pub fn solve_shifted_upper(&self, b: &mut [f64], shift: f64) {
        let (n, factor) = (self.size(), self.factor());
        for b in b.chunks_exact_mut(n.max(1)) {
            for j in (0..n).rev() {
                let (head, tail) = b.split_at_mut(j + 1);
                let known = dot(&factor[j * n + j + 1..(j + 1) * n], tail);
                head[j] = (head[j] - known) / (factor[j * n + j] + shift);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::{Purpose, Stream};

    fn noise(n: usize, index: u64) -> Vec<f64> {
        let mut values = vec![0.0; n];
        Stream::new(9, 0, Purpose::Initial, index).fill_normal(&mut values);
        values
    }

    /// n = 90 spans two strips. B·Bᵀ/n + ½I.
    fn positive_definite(n: usize) -> Vec<f64> {
        let b = noise(n * n, 1);
        let entry = |i: usize, j: usize| -> f64 {
            (0..n).map(|k| b[k * n + i] * b[k * n + j]).sum::<f64>() / n as f64
                + if i == j { 0.5 } else { 0.0 }
        };
        (0..n * n).map(|at| entry(at % n, at / n)).collect()
    }

    #[test]
    fn the_pull_back_is_the_derivative() {
        // g(A) = Σ_c ⟨w_c, C⁻ᵀ f_c⟩ + κ·½ log det A, whose derivative is known two ways
        for (n, rank) in [(7, 1), (90, 3)] {
            let a = positive_definite(n);
            let (f, w, kappa) = (noise(n * rank, 2), noise(n * rank, 3), 0.7);
            let mut cholesky = Cholesky::new(n);
            let mut value = |a: &[f64]| {
                cholesky
                    .factorise(|i, j| a[i.min(j) * n + i.max(j)])
                    .unwrap();
                let mut t = f.clone();
                cholesky.solve_upper(&mut t, rank);
                dot(&t, &w) + 0.5 * kappa * cholesky.log_determinant()
            };
            value(&a);
            let direction = noise(n * n, 4);
            let symmetric = |i: usize, j: usize| direction[i.min(j) * n + i.max(j)];
            let moved = |h: f64| -> Vec<f64> {
                (0..n * n)
                    .map(|at| a[at] + h * symmetric(at % n, at / n))
                    .collect()
            };
            let h = 1e-6;
            let numeric = (value(&moved(h)) - value(&moved(-h))) / (2.0 * h);
            value(&a);
            // C̄ = −tril(t vᵀ) with v = C⁻¹w, so CᵀC̄ = −f vᵀ on and below the diagonal; log det adds κ to the diagonal
            let mut v = w.clone();
            cholesky.solve_lower(&mut v, rank);
            let by_rows = |values: &[f64], scale: f64| -> Vec<f64> {
                (0..n * rank)
                    .map(|at| scale * values[at % rank * n + at / rank])
                    .collect()
            };
            let (left, right) = (by_rows(&f, -1.0), by_rows(&v, 1.0));
            let cotangent = Semiseparable {
                left: &left,
                right: &right,
                rank,
                shift: kappa,
            };
            let (mut out, mut x, mut z) = (vec![0.0; n * n], vec![0.0; n * n], vec![0.0; n * n]);
            cholesky.pull_back(
                &mut out,
                &mut x,
                &mut z,
                &mut vec![0.0; n * rank],
                cotangent,
            );
            let exact: f64 = (0..n * n)
                .map(|at| (at % n, at / n))
                .map(|(i, j)| 0.5 * out[i.min(j) * n + i.max(j)] * symmetric(i, j))
                .sum();
            assert!(
                (exact - numeric).abs() < 1e-6 * numeric.abs().max(1.0),
                "{exact} {numeric}"
            );
        }
    }

    #[test]
    fn shifted_solves_solve() {
        let (n, shift) = (13, 0.3);
        let a = positive_definite(n);
        let mut cholesky = Cholesky::new(n);
        cholesky.factorise(|i, j| a[j * n + i]).unwrap();
        let entry = |i: usize, j: usize| {
            let diagonal = if i == j { shift } else { 0.0 };
            if i < j {
                0.0
            } else {
                cholesky.factor()[j * n + i] + diagonal
            }
        };
        let b = noise(2 * n, 5);
        let (mut lower, mut upper) = (b.clone(), b.clone());
        cholesky.solve_shifted_lower(&mut lower, shift);
        cholesky.solve_shifted_upper(&mut upper, shift);
        for c in 0..2 {
            for i in 0..n {
                let down: f64 = (0..n).map(|j| entry(i, j) * lower[c * n + j]).sum();
                let up: f64 = (0..n).map(|j| entry(j, i) * upper[c * n + j]).sum();
                assert!((down - b[c * n + i]).abs() < 1e-11 && (up - b[c * n + i]).abs() < 1e-11);
            }
        }
    }
}
