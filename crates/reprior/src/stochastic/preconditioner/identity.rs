//! C = I: plain stochastic-gradient Langevin dynamics (Welling & Teh 2011).

use super::{Batch, Block, Preconditioner, Scope};
use crate::compute::Real;
use crate::network::GradientStatistics;

/// No preconditioner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Identity;

impl<R: Real> Preconditioner<R> for Identity {
    fn scope(&self) -> Scope {
        Scope::Unit
    }

    fn statistics(&self) -> GradientStatistics {
        GradientStatistics::None
    }

    fn state_len(&self, _: Block) -> usize {
        0
    }

    fn initialise(&self, _: Block, _: &mut [R]) {}

    fn update(&self, _: Block, _: Batch<'_, R>, _: f64, _: &mut [R]) -> Result<u64, String> {
        Ok(0)
    }

    fn transform(&self, _: Block, _: &[R], _: &mut [R], _: &mut [R]) -> u64 {
        0
    }
}
