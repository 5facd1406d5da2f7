//! Every likelihood under every sampler. Coordinate systems take turns such that every sampler meets `standard` and
//! `marginal` coordinates and all regularisers, every likelihood but the Gaussian all coordinate systems in all spaces, and
//! the Gaussian's four kinds of noise together all of theirs.

use reprior::model::{InputReduction, Noise};
use reprior::posterior::Coordinates;

use super::case::{Case, Frame, Kind, learned, samplers};
use super::distorted::Distortion;
use super::replicate::outcome;
use super::{LIMIT, MOST_SCORES};

const REPLICATES: u64 = 2000;

/// All samplers under one likelihood. Coordinate systems take turns, beginning with number `first`.
fn check(kind: Kind, noise: &Noise, first: usize) {
    let frames = Frame::all(kind);
    for index in 0..samplers(false).len() {
        let frame = frames[(first + index) % frames.len()];
        let is_stiff = matches!(
            kind,
            Kind::Gaussian | Kind::Heteroscedastic | Kind::StudentTHeteroscedastic
        ) && frame.coordinates == Coordinates::Standard;
        let settings = samplers(is_stiff).swap_remove(index);
        let (hidden, reduction) = match (first + index) % 2 {
            0 => (&[3][..], InputReduction::On),
            _ => (&[3, 2][..], InputReduction::Off),
        };
        let case = Case {
            hidden,
            reduction,
            kind,
            noise: noise.clone(),
            frame,
            settings,
            replicates: REPLICATES,
            seed: (first * 100 + index) as u64,
        };
        let found = outcome(&case, Distortion::None, &|| case.settings.sampler());
        let what = format!("{case:?} {found:?}");
        assert!(found.largest.z < LIMIT, "{what}");
        assert!(found.largest.count <= MOST_SCORES, "{what}");
        assert!((0.1..0.99).contains(&found.acceptance_rate), "{what}");
    }
}

#[test]
fn gaussian() {
    check(Kind::Gaussian, &Noise::from(0.3), 0);
}

#[test]
fn gaussian_with_a_scale_for_each_output() {
    check(Kind::Gaussian, &Noise::Known(vec![0.3, 0.6]), 1);
}

#[test]
fn gaussian_with_a_learned_scale() {
    check(Kind::Gaussian, &learned(false), 11);
}

#[test]
fn gaussian_with_a_learned_scale_for_each_output() {
    check(Kind::Gaussian, &learned(true), 12);
}

#[test]
fn student_t() {
    check(Kind::StudentT, &Noise::Known(vec![0.3, 0.6]), 2);
}

#[test]
fn student_t_with_a_learned_scale() {
    check(Kind::StudentT, &learned(false), 3);
}

#[test]
fn student_t_with_a_learned_scale_for_each_output() {
    check(Kind::StudentT, &learned(true), 4);
}

#[test]
fn heteroscedastic() {
    check(Kind::Heteroscedastic, &Noise::from(0.5), 8);
}

#[test]
fn heteroscedastic_with_a_learned_scale() {
    check(Kind::Heteroscedastic, &learned(false), 9);
}

#[test]
fn student_t_heteroscedastic() {
    check(Kind::StudentTHeteroscedastic, &Noise::from(0.5), 10);
}

#[test]
fn student_t_heteroscedastic_with_a_learned_scale() {
    check(Kind::StudentTHeteroscedastic, &learned(false), 13);
}

#[test]
fn categorical() {
    check(Kind::Categorical, &Noise::from(1.0), 5);
}

#[test]
fn bernoulli() {
    check(Kind::Bernoulli, &Noise::from(1.0), 6);
}

#[test]
fn poisson() {
    check(Kind::Poisson, &Noise::from(1.0), 7);
}
