//! C = 1/M with M the average of mean squares of single rows' gradients: the diagonal of the Fisher matrix (with the data's
//! targets of the outer-product metric), Marceau-Caron & Ollivier 2017, Algorithm 3.

use super::{Batch, Block, Preconditioner, Regularisation, Scope, average};
use crate::compute::{NotPositiveDefinite, Real, simd};
use crate::network::GradientStatistics;

/// The diagonal natural gradient.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Diagonal {
    /// ε.
    pub regularisation: Regularisation,
}

impl<R: Real> Preconditioner<R> for Diagonal {
    fn scope(&self) -> Scope {
        Scope::Unit
    }

    fn check(&self) -> Result<(), String> {
        self.regularisation.check()
    }

    fn statistics(&self) -> GradientStatistics {
        GradientStatistics::Squares
    }

    fn state_len(&self, block: Block) -> usize {
        block.rows * block.units
    }

    fn initialise(&self, _: Block, state: &mut [R]) {
        state.fill(R::ONE);
    }

    fn update(
        &self,
        _: Block,
        batch: Batch<'_, R>,
        rate: f64,
        state: &mut [R],
    ) -> Result<u64, NotPositiveDefinite> {
        let [inside, _] = self.regularisation.parts();
        simd(
            #[inline(always)]
            || average(state, batch.squares.iter().copied(), rate, inside),
        );
        Ok(0)
    }

    fn transform(&self, _: Block, state: &[R], gradient: &mut [R], noise: &mut [R]) -> u64 {
        let [_, at_inversion] = self.regularisation.parts();
        simd(
            #[inline(always)]
            || {
                for (g, &m) in gradient.iter_mut().zip(state) {
                    *g = *g / (m + at_inversion);
                }
                for (xi, &m) in noise.iter_mut().zip(state) {
                    *xi = *xi / (m + at_inversion).sqrt();
                }
            },
        );
        0
    }
}
