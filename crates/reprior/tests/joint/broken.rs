//! Faults on purpose, each of which the joint law must bring to light, beside the same code without the fault.

use reprior::model::{InputReduction, Noise};
use reprior::posterior::{Coordinates, Regulariser, Space};
use reprior::sampler::{Method, SamplerSettings};

use super::LIMIT;
use super::case::{Case, Frame, Kind, learned};
use super::distorted::Distortion;
use super::kernel::Kernel;
use super::replicate::{Outcome, outcome};

const RIGHT_NOISE: f64 = 1.0;
const WRONG_NOISE: f64 = std::f64::consts::SQRT_2;

fn case(kind: Kind) -> Case {
    Case {
        hidden: &[3],
        reduction: InputReduction::On,
        kind,
        noise: Noise::from(0.3),
        frame: Frame {
            coordinates: Coordinates::Repriorised,
            space: Space::Feature,
            regulariser: Regulariser::Matched,
        },
        settings: SamplerSettings::default(),
        replicates: 1500,
        seed: 99,
    }
}

fn is_found(outcome: &Outcome) -> bool {
    outcome.largest.z > LIMIT
}

fn check(what: &str, right: &Outcome, wrong: &Outcome) {
    assert!(!is_found(right), "{what}: {right:?}");
    assert!(is_found(wrong), "{what} is not found: {wrong:?}");
}

fn check_kernels(what: &str, kind: Kind, right: Kernel, wrong: Kernel) {
    let run = |kernel: Kernel| outcome(&case(kind), Distortion::None, &|| Box::new(kernel));
    check(what, &run(right), &run(wrong));
}

fn check_targets(what: &str, case: &Case, distortion: Distortion) {
    let run = |distortion| outcome(case, distortion, &|| case.settings.sampler());
    check(what, &run(Distortion::None), &run(distortion));
}

#[test]
fn a_missing_determinant_is_found() {
    for kind in [Kind::Categorical, Kind::Poisson] {
        let mut case = case(kind);
        case.settings.method = Method::Elliptical;
        check_targets("no determinant", &case, Distortion::NoDeterminant);
    }
}

#[test]
fn a_missing_normalisation_is_found() {
    for (kind, coordinates) in [
        (Kind::Gaussian, Coordinates::Marginal),
        (Kind::StudentT, Coordinates::Repriorised),
    ] {
        let mut case = case(kind);
        case.noise = learned(false);
        case.frame.coordinates = coordinates;
        case.settings.method = Method::Elliptical;
        check_targets("no 1/σ", &case, Distortion::NoNormalisation);
    }
}

#[test]
fn a_likelihood_that_counts_twice_is_found() {
    for (kind, method) in [
        (Kind::Gaussian, Method::Pcnl),
        (Kind::Gaussian, Method::Pcn),
        (Kind::Bernoulli, Method::Pcn),
    ] {
        let mut case = case(kind);
        case.settings.method = method;
        case.settings.step_size = Some(0.5);
        check_targets("twice the likelihood", &case, Distortion::LikelihoodAlone);
    }
}

#[test]
fn a_ratio_with_the_wrong_sign_is_found() {
    for kind in [Kind::Gaussian, Kind::StudentT, Kind::Categorical] {
        let kernel = |sign| Kernel::Pcnl { delta: 1.0, sign };
        check_kernels("wrong sign", kind, kernel(1.0), kernel(-1.0));
    }
}

#[test]
fn too_much_noise_is_found() {
    for kind in [Kind::Gaussian, Kind::StudentT, Kind::Poisson] {
        let pcn = |noise| Kernel::Pcn { beta: 0.5, noise };
        check_kernels("pcn", kind, pcn(RIGHT_NOISE), pcn(WRONG_NOISE));
        let langevin = |noise| Kernel::Langevin { step: 0.4, noise };
        check_kernels(
            "langevin",
            kind,
            langevin(RIGHT_NOISE),
            langevin(WRONG_NOISE),
        );
    }
}
