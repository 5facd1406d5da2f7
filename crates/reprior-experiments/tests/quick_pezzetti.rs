//! Pezzetti et al. 2024 at quick size: every claim of every figure holds.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::Arc;

use common::quick;
use reprior::compute::{Purpose, Stream};
use reprior::model::{InputReduction, Model};
use reprior::network::{Activation, Composition};
use reprior::posterior::{NetworkPosterior, Target};

#[test]
fn figure_1() {
    quick("pezzetti2024-fig1", true);
}

#[test]
fn figure_2() {
    quick("pezzetti2024-fig2", false);
}

#[test]
fn figure_3() {
    quick("pezzetti2024-fig3", false);
}

#[test]
fn figures_4_to_6() {
    quick("pezzetti2024-fig4", false);
}

#[test]
fn section_3() {
    quick("pezzetti2024-section3", false);
}

/// The potential of the published pCNL against central differences, and against the posterior where nothing is trained.
#[test]
fn the_published_potential_has_its_gradient() {
    let network = Composition::fully_connected(3, &[6], 2, Activation::Gelu);
    let mut stream = Stream::new(3, 0, Purpose::Initial, 0);
    for rows in [4, 12] {
        let (mut x, mut y) = (vec![0.0; rows * 3], vec![0.0; rows * 2]);
        stream.fill_normal(&mut x);
        stream.fill_normal(&mut y);
        let model = Model::<f64>::new(network.clone(), 0.3, &x, y, &[], InputReduction::Auto);
        let mut target = NetworkPosterior::likelihood_of_repriorised(Arc::new(model.unwrap()));
        let mut z = vec![0.0; target.dim()];
        stream.fill_normal(&mut z);
        let mut gradient = z.clone();
        let value = target.log_ratio_and_gradient(&z, &mut gradient).unwrap();
        assert!((target.log_ratio(&z).unwrap() - value).abs() < 1e-9);
        for (index, derivative) in gradient.iter().enumerate() {
            let mut at = |shift: f64| {
                let mut moved = z.clone();
                moved[index] += shift;
                target.log_ratio(&moved).unwrap()
            };
            let difference = (at(1e-5) - at(-1e-5)) / 2e-5;
            assert!(
                (difference - derivative).abs() < 1e-5 * (1.0 + derivative.abs()),
                "{rows} rows, {index}: {derivative} against {difference}"
            );
        }
    }
}
