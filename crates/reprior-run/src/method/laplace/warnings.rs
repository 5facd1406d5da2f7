//! What a user should know of a Laplace approximation.

use crate::settings::{MinibatchMethod, Settings};
use crate::summary::{LaplaceFitSummary, MinibatchSummary, Summary};
use crate::words::number;

/// More nats than that are worth a warning.
const MOST_NATS: f64 = 1.0;

/// Warnings that stand beside the verdict's checks.
pub fn warnings(
    summary: &Summary,
    minibatch: &MinibatchSummary,
    settings: &Settings,
    method: MinibatchMethod,
) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut warn = |text: String| warnings.push(text);
    if summary.draws == 0 {
        return warnings;
    }
    if minibatch.n_corrections > 0 {
        warn(format!(
            "{} eigenpairs on the paths had not converged and were left out: lower --rank",
            minibatch.n_corrections
        ));
    }
    let unconverged: usize = minibatch.laplace.iter().map(|fit| fit.unconverged).sum();
    if unconverged > 0 {
        warn(format!(
            "{unconverged} eigenpairs of the curvature had not converged and are left out: lower --rank"
        ));
    }
    let layers = minibatch
        .laplace
        .iter()
        .map(|fit| fit.diagonal_layers)
        .max();
    if let Some(layers) = layers.filter(|&layers| layers > 0) {
        warn(format!(
            "{layers} layers have no Kronecker factors (batch normalisation): their diagonal was taken"
        ));
    }
    for (index, fit) in minibatch.laplace.iter().enumerate() {
        laplace_warnings(index, fit, settings, &mut warn);
    }
    warn(format!(
        "{method} draws independently around one mode of each chain: it says nothing of other modes, and its draws have no R-hat"
    ));
    warnings
}

/// What a user should know of the fit of one chain's Laplace approximation.
fn laplace_warnings(
    index: usize,
    fit: &LaplaceFitSummary,
    settings: &Settings,
    warn: &mut dyn FnMut(String),
) {
    let is_at_mode = fit.nats_to_mode <= MOST_NATS;
    if !is_at_mode && fit.climb_gradients == 0 {
        warn(format!(
            "the weights that were given are not at a mode of the posterior with this prior precision: its logarithm can rise by about {} nats, and the log marginal likelihood is as much too low or more; train them on with --epochs, or give the --prior-precision that they were trained with",
            number(fit.nats_to_mode)
        ));
    } else if !is_at_mode {
        warn(format!(
            "training of chain {index} did not reach a mode: the logarithm of the posterior can rise by about {} nats, and the log marginal likelihood is as much too low or more; raise --epochs",
            number(fit.nats_to_mode)
        ));
    }
    let (Some(pairs), Some(left)) = (fit.eigenpairs, fit.left_out) else {
        return;
    };
    let rank = settings.laplace.rank.unwrap_or(0);
    let possible = rank.min(pairs + left.directions);
    if pairs + fit.unconverged < possible {
        warn(format!(
            "chain {index} has {pairs} of the {possible} eigenpairs that --rank {rank} asks for: the others are below --eigenvalue-threshold times the prior precision, or rounding (below 3e-6 of the largest eigenvalue with --precision f32, 3e-13 with f64)"
        ));
    }
    if left.log_determinant > MOST_NATS {
        warn(format!(
            "the {pairs} eigenpairs of chain {index} leave out {} of the curvature's trace, up to {} nats of its log det: variances are too large there, and the log marginal likelihood is too high by up to half of that; raise --rank, or use another --hessian-structure",
            number(left.trace),
            number(left.log_determinant)
        ));
    }
}
