//! Kronecker-factored curvature (Martens & Grosse 2015; Grosse & Martens 2016 for convolutions): a layer's Fisher matrix is
//! taken as A ⊗ G, with A the mean outer product of the inputs that a unit combines (1 for the bias, in the parametrisation at
//! hand; summed over the positions of a convolution) and G that of the cotangents of its outputs (averaged over positions).
//!
//! C = (A + π√ε)⁻¹ ⊗ (G + √ε/π)⁻¹, π² = (tr A/rows)/(tr G/units). With A + π√ε = LLᵀ and G + √ε/π = KKᵀ, a gradient Γ (rows ×
//! units) becomes L⁻ᵀL⁻¹·Γ·K⁻ᵀK⁻¹, and noise Ξ becomes L⁻ᵀ·Ξ·K⁻¹, whose covariance is C. The factors are found anew every
//! `every` updates, and at each of the first `every`: between two, C stands still, which does not change what it is a preconditioner for.
//! Shrinkage is that of [`Full`](super::full::Full), of A and of G.

use super::full::{inverse_factor, mean_diagonal};
use super::{Batch, Block, Preconditioner, Regularisation, Scope, average};
use crate::compute::{Real, matrix, matrix_mut, multiply};
use crate::network::GradientStatistics;

/// Kronecker factors of each dense and convolutional layer; I for batch normalisation. The state is A, G, L⁻¹, K⁻¹.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kfac {
    /// ε, always at inversion.
    pub regularisation: Regularisation,
    /// Updates from one factorisation to the next, at least 1.
    pub every: u64,
    /// Whether averages of few minibatches are shrunk towards a multiple of the identity.
    pub shrinkage: bool,
}

impl Default for Kfac {
    fn default() -> Self {
        Self {
            regularisation: Regularisation::default(),
            every: 10,
            shrinkage: false,
        }
    }
}

impl<R: Real> Preconditioner<R> for Kfac {
    fn scope(&self) -> Scope {
        Scope::Layer
    }

    fn check(&self) -> Result<(), String> {
        self.regularisation.check()
    }

    fn statistics(&self) -> GradientStatistics {
        GradientStatistics::Kronecker
    }

    fn state_len(&self, block: Block) -> usize {
        2 * (block.rows * block.rows + block.units * block.units)
    }

    fn initialise(&self, block: Block, state: &mut [R]) {
        state.fill(R::ZERO);
        let mut rest = state;
        for size in [block.rows, block.units, block.rows, block.units] {
            let (own, after) = rest.split_at_mut(size * size);
            own.iter_mut()
                .step_by(size + 1)
                .for_each(|one| *one = R::ONE);
            rest = after;
        }
    }

    fn update(
        &self,
        block: Block,
        batch: Batch<'_, R>,
        rate: f64,
        state: &mut [R],
    ) -> Result<u64, String> {
        let (rows, units) = (block.rows, block.units);
        if batch.outer.iter().all(|&x| x == R::ZERO) {
            // batch normalisation has no factors: C stays I
            return Ok(0);
        }
        let (averages, factors) = state.split_at_mut(rows * rows + units * units);
        average(averages, batch.outer.iter().copied(), rate, R::ZERO);
        let every = self.every.max(1);
        if batch.update >= every && !batch.update.is_multiple_of(every) {
            return Ok(0);
        }
        let (a, g) = averages.split_at(rows * rows);
        let mean = [mean_diagonal(a, rows), mean_diagonal(g, units)];
        // a layer whose cotangents are all zero has no scale: both get the same share
        let pi = (mean[0] / mean[1]).sqrt();
        let pi = if pi.is_normal() { pi } else { 1.0 };
        let root = self.regularisation.epsilon.sqrt();
        let (inverse_a, inverse_g) = factors.split_at_mut(rows * rows);
        let shrinkage = if self.shrinkage { rate * rate } else { 0.0 };
        let [of_a, of_g] = mean.map(|mean| shrinkage * mean);
        let tries = inverse_factor(a, pi * root + of_a, inverse_a, rows)?;
        Ok(tries + inverse_factor(g, root / pi + of_g, inverse_g, units)?)
    }

    fn transform(&self, block: Block, state: &[R], gradient: &mut [R], noise: &mut [R]) -> u64 {
        let (rows, units) = (block.rows, block.units);
        let (_, factors) = state.split_at(rows * rows + units * units);
        let (inverse_a, inverse_g) = factors.split_at(rows * rows);
        let (a, g) = (
            matrix(inverse_a, rows, rows),
            matrix(inverse_g, units, units),
        );
        R::with_scratch(rows * units, |work| {
            let mut product = |values: &mut [R], from_left: bool, back: bool| {
                work.copy_from_slice(values);
                let (out, work) = (matrix_mut(values, rows, units), matrix(work, rows, units));
                match (from_left, back) {
                    (true, false) => multiply(out, false, 1.0, a, work),
                    (true, true) => multiply(out, false, 1.0, a.transpose(), work),
                    (false, false) => multiply(out, false, 1.0, work, g),
                    (false, true) => multiply(out, false, 1.0, work, g.transpose()),
                }
            };
            product(gradient, true, false);
            product(gradient, false, true);
            product(gradient, true, true);
            product(gradient, false, false);
            if !noise.is_empty() {
                product(noise, true, true);
                product(noise, false, false);
            }
        });
        0
    }
}
