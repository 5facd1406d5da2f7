//! Interruptions and threads change nothing.

use std::sync::Arc;

use reprior::chain::{Chain, Collect, Schedule, StartError};
use reprior::network::Activation;
use reprior::posterior::{Coordinates, NetworkPosterior};
use reprior::sampler::Method;

use crate::{Line, one_point_model, sample, settings};

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let model = one_point_model(&[6], Activation::Gelu, 4);
    let make = || NetworkPosterior::new(Arc::clone(&model), Coordinates::Marginal, None);
    let schedule = Schedule {
        chains: 5,
        warmup: 20,
        draws: 30,
        thin: 2,
        seed: 7,
    };
    let one = sample(make, &settings(Method::HmcInfinite), schedule, 1);
    let three = sample(make, &settings(Method::HmcInfinite), schedule, 3);
    for (a, b) in one.iter().zip(&three) {
        assert_eq!(a.positions, b.positions);
        assert_eq!(a.statistics, b.statistics);
    }
    assert_ne!(one[0].positions, one[1].positions);
}

/// A chain stopped anywhere and resumed from its snapshot makes the same draws.
#[test]
fn a_resumed_chain_makes_the_same_draws() {
    let model = one_point_model(&[6], Activation::Gelu, 4);
    let make = || NetworkPosterior::new(Arc::clone(&model), Coordinates::Marginal, None);
    for method in Method::ALL {
        let settings = settings(method);
        let schedule = Schedule {
            chains: 1,
            warmup: 30,
            draws: 40,
            thin: 3,
            seed: 8,
        };
        let whole = sample(make, &settings, schedule, 1);
        let mut parts = Collect::default();
        let mut chain = Chain::start(0, schedule, &settings, make()).unwrap();
        let mut at = 0;
        while !chain.is_done() {
            at += 17;
            chain.advance_to(at, &mut parts).unwrap();
            chain =
                Chain::resume(0, schedule, &settings, make(), chain.snapshot().clone()).unwrap();
        }
        assert_eq!(whole[0].positions, parts.positions, "{method}");
        assert_eq!(whole[0].statistics, parts.statistics, "{method}");
    }
}

#[test]
fn a_snapshot_of_another_target_or_method_is_refused() {
    let schedule = Schedule {
        chains: 1,
        warmup: 0,
        draws: 1,
        thin: 1,
        seed: 9,
    };
    let hmc = settings(Method::HmcInfinite);
    let snapshot = Chain::start(0, schedule, &hmc, Line)
        .unwrap()
        .snapshot()
        .clone();
    let resume =
        |method, snapshot| Chain::resume(0, schedule, &settings(method), Line, snapshot).err();
    assert_eq!(resume(Method::HmcInfinite, snapshot.clone()), None);
    assert!(matches!(
        resume(Method::Pcn, snapshot.clone()),
        Some(StartError::Method { .. })
    ));
    let mut without = snapshot.clone();
    without.state.gradient.clear();
    assert_eq!(resume(Method::Elliptical, without.clone()), None);
    assert!(matches!(
        resume(Method::HmcInfinite, without),
        Some(StartError::Method { .. })
    ));
    let mut longer = snapshot;
    longer.state.position.push(0.0);
    assert!(matches!(
        resume(Method::HmcInfinite, longer),
        Some(StartError::Dimension { .. })
    ));
}
