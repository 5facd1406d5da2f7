//! How far the gradient of the repriorised posterior is from that of the prior: ‖∇ log p(φ | D) + φ‖ = ‖∇ℓ(φ)‖ at φ ~ N(0, I).
//!
//! Hron, Novak, Pennington, Sohl-Dickstein 2022, Proposition 3.1: with λ = σ² it goes to zero as the width grows, as
//! width^(−1/2). ℓ does not depend on φ_out, so that the gap is the norm of the gradient in the inner weights alone, and
//! the reduction of inputs does not change it. Cost: one gradient of `marginal` coordinates a draw.

use std::sync::Arc;

use super::{ExperimentError, PriorDraws};
use crate::Estimate;
use reprior::compute::kernels::norm_squared;
use reprior::model::Model;
use reprior::posterior::{Coordinates, Posterior, Target};

/// The gap at one width.
#[derive(Debug, Clone, PartialEq)]
pub struct GradientGaps {
    /// E‖∇ℓ(φ)‖ over φ ~ N(0, I).
    pub norm: Estimate,
    /// E‖∇ℓ(φ)‖².
    pub norm_squared: Estimate,
}

/// The gap of one model; `width` is part of the key of the draws' random streams, nothing else.
///
/// # Errors
/// [`ExperimentError`] if there are fewer than 2 draws, or no density at one of them.
pub fn gradient_gaps(
    model: &Arc<Model<f64>>,
    draws: PriorDraws,
    width: usize,
) -> Result<GradientGaps, ExperimentError> {
    draws.check()?;
    let mut target = Posterior::new(Arc::clone(model), Coordinates::Marginal)?;
    let mut z = vec![0.0; target.dim()];
    let mut gradient = z.clone();
    let mut squares = Vec::with_capacity(draws.count);
    for index in 0..draws.count {
        draws.fill(width, index, &mut z);
        target.log_ratio_and_gradient(&z, &mut gradient)?;
        squares.push(norm_squared(&gradient));
    }
    let norms: Vec<f64> = squares.iter().map(|x| x.sqrt()).collect();
    Ok(GradientGaps {
        norm: Estimate::mean(&norms),
        norm_squared: Estimate::mean(&squares),
    })
}
