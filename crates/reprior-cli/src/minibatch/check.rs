//! What does not go together in the settings of a minibatch method.

use reprior::model::InputReduction;
use reprior::posterior::Regulariser;

use crate::error::Failure;
use crate::method::MinibatchMethod;
use crate::names::{EpsilonAt, Optimiser, PreconditionerName, SpaceChoice};
use crate::settings::Settings;

/// Refuses what does not go together, before any work.
///
/// # Errors
/// A wrong request.
pub fn check(settings: &Settings, method: MinibatchMethod) -> Result<(), Failure> {
    let (own, sampler) = (&settings.minibatch, &settings.sampler);
    let refuse = |text: String| Err(Failure::Request(text));
    let of_chains = [
        ("--coordinates", sampler.coordinates.is_some()),
        ("--target-acceptance", sampler.target_acceptance.is_some()),
        ("--damping", sampler.damping.is_some()),
        ("--trajectory", sampler.trajectory.is_some()),
        ("--arrival", sampler.arrival.is_some()),
        ("--no-metropolis", sampler.metropolis == Some(false)),
        ("--determinant", sampler.determinant.is_some()),
        ("--space", sampler.space != SpaceChoice::Auto),
        ("--regulariser", sampler.regulariser != Regulariser::Matched),
        (
            "--input-reduction",
            sampler.input_reduction != InputReduction::Auto,
        ),
    ];
    if let Some((flag, _)) = of_chains.iter().find(|(_, is_given)| *is_given) {
        return refuse(format!(
            "{flag} is of methods that use all data at once, not of {method}: leave it out"
        ));
    }
    if settings.model.learns_noise() {
        return refuse(format!(
            "--method {method} needs a known noise: give a number with --noise"
        ));
    }
    let is_descent = !method.is_sampler();
    let has_momentum = is_descent && own.optimiser(method) == Optimiser::Sgd;
    let has_friction = matches!(method, MinibatchMethod::Sghmc | MinibatchMethod::Sgnht);
    let has_preconditioner = own.preconditioner() != PreconditionerName::Identity;
    for (flag, is_given, has_it, whose) in [
        (
            "--optimiser",
            own.optimiser.is_some(),
            is_descent,
            "map, dropout, swag and ensemble",
        ),
        (
            "--momentum",
            own.momentum.is_some(),
            has_momentum,
            "--optimiser sgd",
        ),
        (
            "--friction",
            own.friction.is_some(),
            has_friction,
            "sghmc and sgnht",
        ),
        (
            "--temperature",
            own.temperature.is_some(),
            !is_descent,
            "sgld, sghmc and sgnht",
        ),
        (
            "--dropout-rate",
            own.dropout_rate.is_some(),
            method == MinibatchMethod::Dropout,
            "dropout",
        ),
        (
            "--dropout-at-test",
            own.dropout_at_test.is_some(),
            method == MinibatchMethod::Dropout,
            "dropout",
        ),
        (
            "--swag-rank",
            own.swag_rank.is_some(),
            method == MinibatchMethod::Swag,
            "swag",
        ),
        (
            "--swag-updates",
            own.swag_updates.is_some(),
            method == MinibatchMethod::Swag,
            "swag",
        ),
        (
            "--epsilon",
            own.epsilon.is_some(),
            has_preconditioner,
            "preconditioners other than identity",
        ),
        (
            "--epsilon-at",
            own.epsilon_at.is_some(),
            has_preconditioner,
            "preconditioners other than identity",
        ),
        (
            "--decay",
            own.decay.is_some(),
            has_preconditioner,
            "preconditioners other than identity",
        ),
        (
            "--labels",
            own.labels.is_some(),
            has_preconditioner && own.preconditioner() != PreconditionerName::RmsProp,
            "diagonal, quasi-diagonal, full and kfac",
        ),
    ] {
        if is_given && !has_it {
            return refuse(format!("{flag} is of {whose}: leave it out"));
        }
    }
    if own.prior.is_some() && own.weight_decay.is_some() {
        return refuse(
            "--prior and --weight-decay are two names of one thing: give one".to_owned(),
        );
    }
    if own.preconditioner() == PreconditionerName::Kfac
        && own.epsilon_at == Some(EpsilonAt::Average)
    {
        return refuse(
            "the epsilon of kfac is added at inversion: leave --epsilon-at out".to_owned(),
        );
    }
    if is_descent && own.epochs.is_some() && settings.run.warmup.is_some() {
        return refuse(format!(
            "--epochs and --warmup both say how long {method} trains: give one"
        ));
    }
    if !is_descent && own.epochs.is_some() && settings.run.thin.is_some() {
        return refuse(
            "--epochs and --thin both say how long the run is: give one (--draws N --thin K takes N·K updates after warm-up)"
                .to_owned(),
        );
    }
    for (flag, value) in [
        ("--batch", own.batch.map(|value| value as u64)),
        ("--epochs", own.epochs),
        ("--chains", settings.run.chains.map(|value| value as u64)),
        ("--draws", settings.run.draws),
        ("--thin", settings.run.thin),
        ("--keep", settings.record.keep),
        ("--swag-updates", own.swag_updates),
    ] {
        if value == Some(0) {
            return refuse(format!("{flag} is 0: it must be at least 1"));
        }
    }
    let positive = |value: f64| value.is_finite() && value > 0.0;
    let part = |value: f64| (0.0..1.0).contains(&value);
    for (flag, value, is_allowed, range) in [
        (
            "--weight-decay",
            own.weight_decay,
            own.weight_decay.is_none_or(positive),
            "positive and finite",
        ),
        (
            "--step-size",
            sampler.step_size,
            sampler.step_size.is_none_or(positive),
            "positive and finite",
        ),
        (
            "--epsilon",
            own.epsilon,
            own.epsilon.is_none_or(positive),
            "positive and finite",
        ),
        (
            "--momentum",
            own.momentum,
            own.momentum.is_none_or(part),
            "in [0, 1)",
        ),
        (
            "--dropout-rate",
            own.dropout_rate,
            own.dropout_rate.is_none_or(part),
            "in [0, 1)",
        ),
    ] {
        if let (Some(value), false) = (value, is_allowed) {
            return refuse(format!("{flag} is {value}: it must be {range}"));
        }
    }
    Ok(())
}
