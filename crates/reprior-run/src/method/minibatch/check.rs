//! What does not go together in the settings of a minibatch method.

use reprior::model::InputReduction;

use crate::failure::Failure;
use crate::settings::{
    EpsilonAt, MinibatchMethod, Optimiser, PreconditionerName, SettingRule, Settings, at_least_one,
    given, refuse_others,
};

/// Refuses what does not go together, before any work.
///
/// # Errors
/// A wrong request.
pub fn check(settings: &Settings, method: MinibatchMethod) -> Result<(), Failure> {
    let (own, sampler) = (&settings.minibatch, &settings.sampler);
    let refuse = |text: String| Err(Failure::Request(text));
    let mut taken = vec!["--method", "--step-size", "--precision"];
    if sampler.input_reduction == InputReduction::Off {
        // nothing is reduced here
        taken.push("--input-reduction");
    }
    let of_chains = given(sampler);
    if let Some(flag) = of_chains
        .iter()
        .find(|flag| !taken.contains(&flag.as_str()))
    {
        return refuse(format!(
            "{flag} belongs to methods that use all data at once, not to {method}: leave it out"
        ));
    }
    check_flags(settings, method)?;
    let is_descent = !method.is_sampler();
    let is_trained = method.is_around_mode() && own.weights.is_some();
    let updates = [own.epochs, settings.run.warmup];
    if settings.model.learns_noise() && is_trained && updates.iter().all(|n| n.unwrap_or(0) == 0) {
        return refuse(
            "the noise is learned along with weights, and --weights that are trained already stay as they are: give --noise a number, or \
             auto; or train them further with --epochs"
                .to_owned(),
        );
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
    check_ranges(settings, is_trained)
}

/// Refuses what another method, optimiser or preconditioner has.
fn check_flags(settings: &Settings, method: MinibatchMethod) -> Result<(), Failure> {
    let own = &settings.minibatch;
    let is_descent = !method.is_sampler();
    let has_momentum = is_descent && own.optimiser(method) == Optimiser::Sgd;
    let has_friction = matches!(method, MinibatchMethod::Sghmc | MinibatchMethod::Sgnht);
    let has_preconditioner = own.preconditioner() != PreconditionerName::Identity;
    let is_dropout = method == MinibatchMethod::Dropout;
    let is_swag = method == MinibatchMethod::Swag;
    let has_labels = has_preconditioner && own.preconditioner() != PreconditionerName::RmsProp;
    let rule = |flags, is_taken, whose| SettingRule {
        flags,
        is_taken,
        whose,
    };
    let rules = [
        rule(
            &["--optimiser"],
            is_descent,
            "map, dropout, swag, ensemble and laplace",
        ),
        rule(&["--momentum"], has_momentum, "--optimiser sgd"),
        rule(&["--friction"], has_friction, "sghmc and sgnht"),
        rule(&["--temperature"], !is_descent, "sgld, sghmc and sgnht"),
        rule(
            &["--dropout-rate", "--dropout-at-test"],
            is_dropout,
            "dropout",
        ),
        rule(&["--swag-rank", "--swag-updates"], is_swag, "swag"),
        rule(
            &["--epsilon", "--epsilon-at", "--decay"],
            has_preconditioner,
            "preconditioners other than identity",
        ),
        rule(
            &["--labels"],
            has_labels,
            "diagonal, quasi-diagonal, full and kfac",
        ),
        rule(
            &["--weights"],
            method != MinibatchMethod::Ensemble,
            "methods other than ensemble, whose members must begin apart",
        ),
    ];
    refuse_others(&given(own), &rules)
}

/// Refuses numbers out of range.
fn check_ranges(settings: &Settings, is_trained: bool) -> Result<(), Failure> {
    let (own, sampler) = (&settings.minibatch, &settings.sampler);
    let refuse = |text: String| Err(Failure::Request(text));
    at_least_one(&[
        ("--batch", own.batch.map(|value| value as u64)),
        ("--epochs", own.epochs.filter(|_| !is_trained)),
        ("--chains", settings.run.chains.map(|value| value as u64)),
        ("--draws", settings.run.draws),
        ("--thin", settings.run.thin),
        ("--keep", settings.record.keep),
        ("--keep-predictions", settings.record.keep_predictions),
        ("--keep-mb", settings.record.keep_mb),
        ("--swag-updates", own.swag_updates),
    ])?;
    let positive: fn(f64) -> bool = |value| value.is_finite() && value > 0.0;
    let part: fn(f64) -> bool = |value| (0.0..1.0).contains(&value);
    for (flag, value, is_allowed, range) in [
        (
            "--weight-decay",
            own.weight_decay,
            positive,
            "positive and finite",
        ),
        (
            "--step-size",
            sampler.step_size,
            positive,
            "positive and finite",
        ),
        ("--epsilon", own.epsilon, positive, "positive and finite"),
        ("--momentum", own.momentum, part, "in [0, 1)"),
        ("--dropout-rate", own.dropout_rate, part, "in [0, 1)"),
    ] {
        if let Some(value) = value.filter(|&value| !is_allowed(value)) {
            return refuse(format!("{flag} is {value}: it must be {range}"));
        }
    }
    Ok(())
}
