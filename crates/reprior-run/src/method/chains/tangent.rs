//! `--coordinates tangent`: what it is not for, and what it takes.

use reprior::model::likelihood::name::LikelihoodName;
use reprior::network::Composition;

use crate::failure::Failure;
use reprior::posterior::{Regulariser, TangentDeterminant};

use crate::settings::{Settings, SpaceChoice};

/// Refuses what tangent coordinates are not for.
///
/// # Errors
/// A wrong request, with the way out.
pub fn check(settings: &Settings) -> Result<(), Failure> {
    let likelihood = settings.model.likelihood();
    let refuse = |text: String| Err(Failure::Request(text));
    if likelihood != LikelihoodName::Gaussian {
        return refuse(format!(
            "tangent coordinates are for the gaussian likelihood, not for {likelihood}: use --coordinates repriorised or standard"
        ));
    }
    if settings.model.learns_noise() {
        return refuse(
            "tangent coordinates are for a known noise: give --noise a number or auto, or use --coordinates marginal"
                .to_owned(),
        );
    }
    let determinant = settings.sampler.determinant;
    if let (Some(TangentDeterminant::Hessian { .. }), Regulariser::Matched) =
        (determinant, settings.sampler.regulariser)
    {
        return refuse(
            "--determinant hessian approximates that of the map with a regulariser: give --regulariser a number too, or use exact or series(4,16)"
                .to_owned(),
        );
    }
    if settings.sampler.space != SpaceChoice::Auto {
        return refuse(
            "--space says where a readout is solved for, which tangent coordinates do not: leave it out"
                .to_owned(),
        );
    }
    Ok(())
}

/// Bytes of a chain's work space for n rows, beyond what every chain has: two Jacobians, their kernel with its eigenvectors and
/// work, and the derivative of the map or the probes; with gradients two Jacobians at shifted weights and two cotangents.
pub fn bytes(
    rows: usize,
    outputs: usize,
    dimension: usize,
    determinant: TangentDeterminant,
    with_gradients: bool,
) -> usize {
    let size = rows * outputs;
    let of_determinant = match determinant.terms_and_probes() {
        // and a copy that is factorised
        None => 2 * dimension,
        Some([terms, probes]) => probes + 2 * terms,
    };
    let linearisations = if with_gradients { 2 } else { 1 };
    let cotangents = if with_gradients { 2 } else { 0 };
    let jacobians = (2 * linearisations + cotangents) * size * dimension;
    8 * (jacobians + 6 * linearisations * size * size + of_determinant * dimension)
}

/// Operations of ℓ, and of ℓ with its gradient: the Jacobian, its kernel and eigenvalues, and the products that the determinant
/// takes; for its gradient linearisations with products of the transpose, or Hessian products of all samples at once.
pub fn operations(
    architecture: &Composition,
    rows: usize,
    dimension: usize,
    forward: f64,
    determinant: TangentDeterminant,
) -> (f64, f64) {
    let outputs = architecture.outputs as f64;
    let (size, dim) = (rows as f64 * outputs, dimension as f64);
    // the Hessian product of one output's samples is a way there, a way back, and the tangents of both
    let product = 6.0 * outputs * forward + 2.0 * size * size * (dim + 2.0 * size);
    let linearisation = 3.0 * outputs * forward + size * size * dim + 9.0 * size.powi(3);
    // of single samples, which fill no panel
    let transpose = 48.0 * outputs * forward + 2.0 * size * size * (dim + 2.0 * size);
    let (of_value, of_gradient) = match determinant {
        TangentDeterminant::Exact => (
            dim * product + 2.0 * dim.powi(3) / 3.0,
            2.0 * dim.powi(3) + 2.0 * dim * (linearisation + transpose),
        ),
        TangentDeterminant::Series { terms, probes } => {
            let products = (terms * probes) as f64;
            (
                products * product,
                products * (product + transpose + 2.0 * (linearisation + transpose)),
            )
        }
        TangentDeterminant::Hessian { terms, probes } => {
            let products = (terms * probes) as f64;
            (6.0 * products * forward, 16.0 * products * forward)
        }
    };
    let value = linearisation + of_value;
    (value, value + of_gradient + transpose + 3.0 * forward)
}
