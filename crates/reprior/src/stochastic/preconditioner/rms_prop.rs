//! C = M^{−1/2} with M the average of squared mean gradients (Li, Chen, Carlson & Carin 2016; with that root, and the noise
//! M^{−1/4}, as Marceau-Caron & Ollivier 2017 have it).

use super::{Batch, Block, Preconditioner, Regularisation, Scope, average};
use crate::compute::{NotPositiveDefinite, Real, simd};
use crate::network::GradientStatistics;

/// RMSProp.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RmsProp {
    /// ε.
    pub regularisation: Regularisation,
}

impl<R: Real> Preconditioner<R> for RmsProp {
    fn scope(&self) -> Scope {
        Scope::Unit
    }

    fn check(&self) -> Result<(), String> {
        self.regularisation.check()
    }

    fn statistics(&self) -> GradientStatistics {
        GradientStatistics::None
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
            || {
                let squares = batch.gradient.iter().map(|&g| g * g);
                average(state, squares, rate, inside);
            },
        );
        Ok(0)
    }

    fn transform(&self, _: Block, state: &[R], gradient: &mut [R], noise: &mut [R]) -> u64 {
        let [_, at_inversion] = self.regularisation.parts();
        simd(
            #[inline(always)]
            || {
                for (g, &m) in gradient.iter_mut().zip(state) {
                    *g = *g / (m + at_inversion).sqrt();
                }
                for (xi, &m) in noise.iter_mut().zip(state) {
                    *xi = *xi / (m + at_inversion).sqrt().sqrt();
                }
            },
        );
        0
    }
}
