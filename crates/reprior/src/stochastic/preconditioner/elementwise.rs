//! C = M^{−r} element by element, with M a moving average, in one of two ways:
//!
//! | name | r | M is the average of |
//! |---|---|---|
//! | RMSProp | 1/2 | squared mean gradients (Li, Chen, Carlson & Carin 2016; with that root, and the noise M^{−1/4}, as Marceau-Caron & Ollivier 2017 have it) |
//! | diagonal | 1 | mean squares of single rows' gradients: the diagonal of the Fisher matrix (with the data's targets of the outer-product metric), Marceau-Caron & Ollivier 2017, Algorithm 3 |

use super::{Batch, Block, Preconditioner, Regularisation, Scope, average};
use crate::compute::{Real, simd};
use crate::network::GradientStatistics;

/// What is averaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ElementwiseRule {
    RmsProp,
    Diagonal,
}

/// RMSProp, or the diagonal natural gradient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Elementwise {
    rule: ElementwiseRule,
    regularisation: Regularisation,
}

impl Elementwise {
    /// C = M^{−1/2}.
    pub fn rms_prop(regularisation: Regularisation) -> Self {
        Self {
            rule: ElementwiseRule::RmsProp,
            regularisation,
        }
    }

    /// C = 1/M.
    pub fn diagonal(regularisation: Regularisation) -> Self {
        Self {
            rule: ElementwiseRule::Diagonal,
            regularisation,
        }
    }
}

impl<R: Real> Preconditioner<R> for Elementwise {
    fn scope(&self) -> Scope {
        Scope::Unit
    }

    fn check(&self) -> Result<(), String> {
        self.regularisation.check()
    }

    fn statistics(&self) -> GradientStatistics {
        match self.rule {
            ElementwiseRule::RmsProp => GradientStatistics::None,
            ElementwiseRule::Diagonal => GradientStatistics::Squares,
        }
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
    ) -> Result<u64, String> {
        let [inside, _] = self.regularisation.parts();
        match self.rule {
            ElementwiseRule::RmsProp => simd(
                #[inline(always)]
                || {
                    let squares = batch.gradient.iter().map(|&g| g * g);
                    average(state, squares, rate, inside);
                },
            ),
            ElementwiseRule::Diagonal => simd(
                #[inline(always)]
                || average(state, batch.squares.iter().copied(), rate, inside),
            ),
        }
        Ok(0)
    }

    fn transform(&self, _: Block, state: &[R], gradient: &mut [R], noise: &mut [R]) -> u64 {
        let [_, at_inversion] = self.regularisation.parts();
        match self.rule {
            ElementwiseRule::RmsProp => {
                divide(gradient, state, move |m| (m + at_inversion).sqrt());
                divide(noise, state, move |m| (m + at_inversion).sqrt().sqrt());
            }
            ElementwiseRule::Diagonal => {
                divide(gradient, state, move |m| m + at_inversion);
                divide(noise, state, move |m| (m + at_inversion).sqrt());
            }
        }
        0
    }
}

#[inline(always)]
fn divide<R: Real>(values: &mut [R], state: &[R], divisor: impl Fn(R) -> R) {
    simd(
        #[inline(always)]
        || {
            for (value, &m) in values.iter_mut().zip(state) {
                *value = *value / divisor(m);
            }
        },
    );
}
