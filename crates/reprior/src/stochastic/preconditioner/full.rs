//! C = (M + ε)⁻¹ with M the average of mean outer products of single rows' gradients: the natural gradient itself, for small
//! networks.
//!
//! With shrinkage γ²·(mean of M's diagonal) is added to it: the average of a few minibatches has a lower rank than it should, and
//! where they were blind C would be 1/ε. γ² → 0 takes that away again.
//!
//! M + ε = LLᵀ; C·g = L⁻ᵀL⁻¹g, and the noise L⁻ᵀξ has covariance C. 2D² numbers; D³/3 operations an update for the factor
//! and as many for its inverse, in double precision.

use super::{Batch, Block, Preconditioner, Regularisation, Scope, average};
use crate::compute::{Cholesky, Real, matrix, matrix_mut, multiply};
use crate::network::GradientStatistics;

/// Of single precision, times four.
const ROUNDING: f64 = 5e-7;

/// The natural gradient. Its state is M and after it L⁻¹.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Full {
    /// ε.
    pub regularisation: Regularisation,
    /// Whether averages of few minibatches are shrunk towards a multiple of the identity.
    pub shrinkage: bool,
}

impl<R: Real> Preconditioner<R> for Full {
    fn scope(&self) -> Scope {
        Scope::All
    }

    fn check(&self) -> Result<(), String> {
        self.regularisation.check()
    }

    fn statistics(&self) -> GradientStatistics {
        GradientStatistics::Outer
    }

    fn state_len(&self, block: Block) -> usize {
        2 * block.rows * block.rows
    }

    fn initialise(&self, block: Block, state: &mut [R]) {
        state.fill(R::ZERO);
        for one in state.iter_mut().step_by(block.rows + 1).take(block.rows) {
            *one = R::ONE;
        }
        let (average, factor) = state.split_at_mut(block.rows * block.rows);
        factor.copy_from_slice(average);
    }

    fn update(
        &self,
        block: Block,
        batch: Batch<'_, R>,
        rate: f64,
        state: &mut [R],
    ) -> Result<u64, String> {
        let [inside, at_inversion] = self.regularisation.parts::<R>();
        let dim = block.rows;
        let (matrix, factor) = state.split_at_mut(dim * dim);
        average(matrix, batch.outer.iter().copied(), rate, R::ZERO);
        for value in matrix.iter_mut().step_by(dim + 1) {
            *value += inside * R::from_f64(rate);
        }
        let shrinkage = if self.shrinkage { rate * rate } else { 0.0 };
        let ridge = at_inversion.to_f64() + shrinkage * mean_diagonal(matrix, dim);
        inverse_factor(matrix, ridge, factor, dim)
    }

    fn transform(&self, block: Block, state: &[R], gradient: &mut [R], noise: &mut [R]) -> u64 {
        let dim = block.rows;
        let factor = matrix(&state[dim * dim..], dim, dim);
        R::with_scratch(dim, |work| {
            multiply(
                matrix_mut(work, dim, 1),
                false,
                1.0,
                factor,
                matrix(gradient, dim, 1),
            );
            let back = factor.transpose();
            multiply(
                matrix_mut(gradient, dim, 1),
                false,
                1.0,
                back,
                matrix(work, dim, 1),
            );
            if !noise.is_empty() {
                work.copy_from_slice(noise);
                multiply(
                    matrix_mut(noise, dim, 1),
                    false,
                    1.0,
                    back,
                    matrix(work, dim, 1),
                );
            }
        });
        0
    }
}

/// tr(`matrix`)/`size`.
pub(super) fn mean_diagonal<R: Real>(matrix: &[R], size: usize) -> f64 {
    let diagonal = matrix.iter().step_by(size + 1).take(size);
    diagonal.map(|value| value.to_f64()).sum::<f64>() / size as f64
}

/// `inverse` ← L⁻¹ of `matrix` + `ridge` = LLᵀ, in double precision. Returns how many times that needed jitter.
///
/// In single precision the entries are rounded, by which eigenvalues move up to the norm times that: `ridge` is raised by as much,
/// or what rounding made would be the largest part of C.
pub(super) fn inverse_factor<R: Real>(
    matrix: &[R],
    ridge: f64,
    inverse: &mut [R],
    size: usize,
) -> Result<u64, String> {
    let rounding = if R::BYTES == 4 {
        ROUNDING * size as f64 * mean_diagonal(matrix, size)
    } else {
        0.0
    };
    let mut cholesky = Cholesky::new(size);
    let tries = cholesky
        .factorise(|row, column| {
            let extra = if row == column { ridge + rounding } else { 0.0 };
            matrix[column * size + row].to_f64() + extra
        })
        .map_err(|error| error.to_string())?;
    let mut wide = vec![0.0; size * size];
    cholesky.invert_factor(&mut wide);
    for (to, from) in inverse.iter_mut().zip(&wide) {
        *to = R::from_f64(*from);
    }
    Ok(u64::from(tries))
}
