//! `--coordinates tangent`: what it is not for, and what it takes.

use reprior::model::likelihood::name::LikelihoodName;
use reprior::network::Composition;
use reprior::sampler::Method;

use crate::failure::Failure;
use reprior::posterior::TangentDeterminant;

use crate::settings::{Settings, SpaceChoice};

/// Refuses what tangent coordinates are not for.
///
/// # Errors
/// A wrong request, with the way out.
pub fn check(settings: &Settings, method: Method) -> Result<(), Failure> {
    let likelihood = settings.model.likelihood;
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
    if method.needs_gradients() {
        return refuse(format!(
            "{method} needs gradients, which tangent coordinates have not: use --method pcn, elliptical or rwm"
        ));
    }
    if settings.sampler.arrival.is_some_and(|arrival| arrival > 0) {
        return refuse(
            "--arrival takes gradients, which tangent coordinates have not: leave it out"
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
/// work, and the derivative of the map or the probes.
pub fn bytes(
    rows: usize,
    outputs: usize,
    dimension: usize,
    determinant: TangentDeterminant,
) -> usize {
    let size = rows * outputs;
    let of_determinant = match determinant {
        // and a copy that is factorised
        TangentDeterminant::Exact => 2 * dimension,
        TangentDeterminant::Series { probes, .. } => probes,
    };
    8 * (2 * size * dimension + 6 * size * size + of_determinant * dimension)
}

/// Operations of ℓ: the Jacobian, its kernel and eigenvalues, and the products that the determinant takes.
pub fn operations(
    architecture: &Composition,
    rows: usize,
    dimension: usize,
    forward: f64,
    determinant: TangentDeterminant,
) -> f64 {
    let outputs = architecture.outputs as f64;
    let (size, dim) = (rows as f64 * outputs, dimension as f64);
    let products = match determinant {
        TangentDeterminant::Exact => dim,
        TangentDeterminant::Series { terms, probes } => (terms * probes) as f64,
    };
    // the Hessian product of one output's samples is a way there, a way back, and the tangents of both
    let product = 6.0 * outputs * forward + 2.0 * size * size * (dim + 2.0 * size);
    let factorisation = match determinant {
        TangentDeterminant::Exact => 2.0 * dim.powi(3) / 3.0,
        TangentDeterminant::Series { .. } => 0.0,
    };
    3.0 * outputs * forward
        + size * size * dim
        + 9.0 * size.powi(3)
        + products * product
        + factorisation
}
