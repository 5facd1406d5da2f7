//! Interruptions and threads change nothing.

use std::sync::Arc;

use reprior::chain::{Chain, Collect, Schedule, StartError};
use reprior::network::Activation;
use reprior::posterior::{Coordinates, NetworkPosterior};
use reprior::sampler::{Method, SamplerSettings};

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

/// Every method, and what can be asked of some.
fn every_way() -> Vec<SamplerSettings> {
    let mut all: Vec<SamplerSettings> = Method::ALL.into_iter().map(settings).collect();
    let some = settings(Method::HmcInfinite);
    all.push(SamplerSettings {
        damping: Some(0.3),
        trajectory: Some(0.7),
        ..some.clone()
    });
    all.push(SamplerSettings {
        damping: Some(0.3),
        arrival: Some(12),
        ..some
    });
    all.push(SamplerSettings {
        metropolis: false,
        damping: Some(0.2),
        ..settings(Method::Langevin)
    });
    for arrival in [0, 29, 30, 1000] {
        all.push(SamplerSettings {
            arrival: Some(arrival),
            ..settings(Method::Pcn)
        });
    }
    all.push(SamplerSettings {
        step_size: Some(0.3),
        arrival: Some(7),
        ..settings(Method::Mala)
    });
    all
}

/// A chain stopped anywhere - in its arrival, where that ends, in warm-up, between draws - and resumed from its snapshot
/// makes the same draws.
#[test]
fn a_resumed_chain_makes_the_same_draws() {
    let model = one_point_model(&[6], Activation::Gelu, 4);
    let make = || NetworkPosterior::new(Arc::clone(&model), Coordinates::Marginal, None);
    for settings in every_way() {
        let schedule = Schedule {
            chains: 1,
            warmup: 30,
            draws: 40,
            thin: 3,
            seed: 8,
        };
        let whole = sample(make, &settings, schedule, 1);
        for every in [1, 5, 17] {
            let mut parts = Collect::default();
            let mut chain = Chain::start(0, schedule, &settings, make()).unwrap();
            let mut at = 0;
            while !chain.is_done() {
                at += every;
                chain.advance_to(at, &mut parts).unwrap();
                let snapshot = chain.snapshot().clone();
                chain = Chain::resume(0, schedule, &settings, make(), snapshot).unwrap();
            }
            assert_eq!(whole[0].positions, parts.positions, "{settings:?}");
            assert_eq!(whole[0].statistics, parts.statistics, "{settings:?}");
        }
    }
}

/// Where `hmc-infinite` itself would be, the method takes over; from then on it is on its own.
#[test]
fn arrival_is_made_by_hmc_infinite() {
    let model = one_point_model(&[6], Activation::Gelu, 4);
    let make = || NetworkPosterior::new(Arc::clone(&model), Coordinates::Standard, None);
    let schedule = |warmup| Schedule {
        chains: 1,
        warmup,
        draws: 10,
        thin: 1,
        seed: 10,
    };
    for (warmup, asked, expected) in [
        (40, None, 20),
        (200, None, Method::Pcn.default_arrival(200)),
        (40, Some(11), 11),
        (40, Some(0), 0),
        (0, Some(5), 0),
    ] {
        let settings = SamplerSettings {
            arrival: asked,
            ..settings(Method::Pcn)
        };
        assert_eq!(settings.arrival_transitions(warmup), expected);
        let start = |settings| Chain::start(0, schedule(warmup), settings, make()).unwrap();
        let (mut chain, mut other) = (
            start(&settings),
            start(&SamplerSettings::arrival_settings()),
        );
        let collect = &mut Collect::default();
        chain.advance_to(expected, collect).unwrap();
        other.advance_to(expected, collect).unwrap();
        let (here, there) = (chain.snapshot(), other.snapshot());
        assert_eq!(here.state.position, there.state.position);
        assert_eq!(here.state.log_ratio, there.state.log_ratio);
        assert_eq!(here.warmup, there.warmup);
        assert!(here.state.gradient.is_empty());
        if warmup > 0 {
            assert_eq!(here.adaptation, settings.adaptation());
        }
        chain.advance_to(u64::MAX, collect).unwrap();
        let end = chain.snapshot();
        assert_eq!(end.warmup.n_gradients, other.snapshot().warmup.n_gradients);
        assert_eq!(end.warmup.n_evaluations, warmup - expected);
        assert_eq!(
            (end.sampling.n_gradients, end.sampling.n_evaluations),
            (0, 10)
        );
    }
    assert_eq!(Method::HmcInfinite.default_arrival(1000), 0);
}

/// The draws of a seed are part of the interface.
#[test]
fn value_stability() {
    let schedule = Schedule {
        chains: 1,
        warmup: 3,
        draws: 3,
        thin: 1,
        seed: 13,
    };
    let mut drawn = String::new();
    for settings in every_way().into_iter().take(11) {
        let chains = sample(|| Line, &settings, schedule, 1);
        for z in &chains[0].positions {
            drawn += &format!("{:.7} {:.7}, ", z[0], z[1]);
        }
        drawn += &format!("{}\n", settings.method);
    }
    assert_eq!(drawn, VALUES, "{drawn}");
}

const VALUES: &str = "\
0.3811648 1.8220989, 0.4875341 1.4492964, 0.8089329 0.3269924, hmc-infinite
0.8959759 0.6316634, 1.3748346 -0.3356075, 1.2390456 0.2207349, hmc
1.2354453 0.2239970, 0.3810917 1.1233431, 1.4988912 -0.1005647, nuts
1.5534056 -0.3391805, 1.5243221 -0.5704695, 1.4334221 -0.6842699, pcn
1.5710376 -0.3781414, 1.5480051 -0.5601671, 1.4869994 -0.6487427, pcnl
1.5714518 -0.3781883, 1.5485921 -0.5601773, 1.4876823 -0.6488104, mala
1.8552341 -0.3990221, 1.8775095 -0.3664118, 1.8491970 -0.3539652, langevin
1.1178558 -0.2356874, 1.0456425 -0.6440354, 0.6973754 0.2447101, elliptical
1.6210623 -0.3672337, 1.6277617 -0.5973486, 1.5743330 -0.7195823, rwm
0.2849158 1.3841662, 0.4382356 1.6306657, 0.5640719 1.1164207, hmc-infinite
0.8593442 1.2181238, 0.9817354 0.5076334, 1.0565443 -0.4655400, hmc-infinite
";

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
    let mut moving = snapshot.clone();
    moving.state.momentum = vec![0.5, -0.5];
    assert_eq!(resume(Method::Langevin, moving.clone()), None);
    assert!(matches!(
        resume(Method::Pcnl, moving),
        Some(StartError::Method {
            what: "momentum",
            ..
        })
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
