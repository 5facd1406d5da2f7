//! C = (M + ε)⁻¹ with M the average of mean outer products of single rows' gradients: the natural gradient itself, for small
//! networks.
//!
//! M + ε = LLᵀ; C·g = L⁻ᵀL⁻¹g, and the noise L⁻ᵀξ has covariance C. 2D² numbers; D³/3 operations an update for the factor
//! and as many for its inverse, in double precision.

use super::{Batch, Block, Preconditioner, Regularisation, Scope, Statistics, average};
use crate::compute::{Cholesky, NotPositiveDefinite, Real, matrix, matrix_mut, multiply};

/// The natural gradient. Its state is M and after it L⁻¹.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Full {
    /// ε.
    pub regularisation: Regularisation,
}

impl<R: Real> Preconditioner<R> for Full {
    fn scope(&self) -> Scope {
        Scope::All
    }

    fn check(&self) -> Result<(), String> {
        self.regularisation.check()
    }

    fn statistics(&self) -> Statistics {
        Statistics::Outer
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
    ) -> Result<u64, NotPositiveDefinite> {
        let [inside, at_inversion] = self.regularisation.parts::<R>();
        let dim = block.rows;
        let (matrix, factor) = state.split_at_mut(dim * dim);
        average(matrix, batch.outer.iter().copied(), rate, R::ZERO);
        for value in matrix.iter_mut().step_by(dim + 1) {
            *value += inside * R::from_f64(rate);
        }
        inverse_factor(matrix, at_inversion, factor, dim)
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

/// `inverse` ← L⁻¹ of `matrix` + `ridge` = LLᵀ, in double precision. Returns how many times that needed jitter.
pub(super) fn inverse_factor<R: Real>(
    matrix: &[R],
    ridge: R,
    inverse: &mut [R],
    size: usize,
) -> Result<u64, NotPositiveDefinite> {
    let mut cholesky = Cholesky::new(size);
    let tries = cholesky.factorise(|row, column| {
        let extra = if row == column { ridge } else { R::ZERO };
        (matrix[column * size + row] + extra).to_f64()
    })?;
    let mut wide = vec![0.0; size * size];
    cholesky.invert_factor(&mut wide);
    for (to, from) in inverse.iter_mut().zip(&wide) {
        *to = R::from_f64(*from);
    }
    Ok(u64::from(tries))
}
