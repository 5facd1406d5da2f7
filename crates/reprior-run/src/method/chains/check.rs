//! What does not go together in the settings of chains on all data.

use reprior::model::likelihood::name::LikelihoodName;
use reprior::posterior::{Coordinates, Regulariser};
use reprior::sampler::Method;

use super::{sampler_settings, tangent};
use crate::failure::Failure;
use crate::settings::{MinibatchMethod, Settings, SpaceChoice, at_least_one, given};

/// Refuses what does not go together.
///
/// # Errors
/// A wrong request that names the value and what is allowed.
pub fn check(settings: &Settings, method: Method) -> Result<(), Failure> {
    let others = [given(&settings.minibatch), given(&settings.laplace)].concat();
    if let Some(flag) = others.first() {
        return Err(Failure::request(format!(
            "{flag} belongs to minibatch methods ({}): leave it out, or choose one of them with --method",
            MinibatchMethod::NAMES
        )));
    }
    let sampler = sampler_settings(settings, method);
    sampler.check().map_err(Failure::request)?;
    settings.schedule().check().map_err(Failure::request)?;
    check_arrival(settings)?;
    check_coordinates(settings)?;
    if settings.record.keep == Some(0) {
        return Err(Failure::request(
            "--keep is 0: `predict` needs at least 1 kept position",
        ));
    }
    at_least_one(&[
        ("--keep-predictions", settings.record.keep_predictions),
        ("--keep-mb", settings.record.keep_mb),
    ])
}

/// Refuses coordinates that the likelihood has not, and settings that have no effect in the ones chosen.
fn check_coordinates(settings: &Settings) -> Result<(), Failure> {
    let (coordinates, likelihood) = (settings.coordinates(), settings.model.likelihood());
    if coordinates == Coordinates::Marginal && likelihood != LikelihoodName::Gaussian {
        return Err(Failure::request(format!(
            "the readout cannot be integrated out under the {likelihood} likelihood: use --coordinates repriorised or standard"
        )));
    }
    if coordinates == Coordinates::Tangent {
        tangent::check(settings)?;
    } else if let Some(determinant) = settings.sampler.determinant {
        return Err(Failure::request(format!(
            "--determinant {determinant} belongs to tangent coordinates, not to {coordinates}: give --coordinates tangent, or leave it out"
        )));
    }
    if coordinates == Coordinates::Repriorised {
        return Ok(());
    }
    let has_regulariser = settings.sampler.regulariser != Regulariser::Matched;
    if has_regulariser && coordinates != Coordinates::Tangent {
        return Err(Failure::request(format!(
            "--regulariser belongs to repriorised and tangent coordinates, not to {coordinates}: give --coordinates repriorised or tangent, or leave it out"
        )));
    }
    if settings.sampler.space == SpaceChoice::DataSymmetric {
        return Err(Failure::request(format!(
            "--space data-symmetric belongs to repriorised coordinates, not to {coordinates}: use auto, feature or data"
        )));
    }
    Ok(())
}

/// Refuses an arrival that leaves the method's own adaptation nothing of the warm-up.
fn check_arrival(settings: &Settings) -> Result<(), Failure> {
    let warmup = settings.schedule().warmup;
    let has_replicas = settings
        .sampler
        .replicas
        .is_some_and(|replicas| replicas > 0);
    match settings.sampler.arrival {
        Some(arrival) if arrival > 0 && has_replicas => Err(Failure::request(format!(
            "--arrival {arrival} does not go with replicas, which bring positions themselves: leave out --arrival or --replicas"
        ))),
        Some(arrival) if arrival > 0 && arrival >= warmup => Err(Failure::request(format!(
            "--arrival {arrival} is not shorter than the warm-up of {warmup} transitions that it is part of: \
             give less, or a longer --warmup"
        ))),
        _ => Ok(()),
    }
}
