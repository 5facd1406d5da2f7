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
1.1736045 -0.2010483, 2.0453349 -0.0457710, 0.7923180 -0.7750693, hmc-infinite
1.6157868 -0.2603311, 1.4551628 -1.4403944, 1.0412259 -0.0049189, hmc
1.3730851 -0.2305645, 0.5630526 0.9375743, 1.4984047 -0.9637570, nuts
1.2914316 0.3556699, 1.2914316 0.3556699, 1.3698867 0.1301769, pcn
1.2931901 0.3113146, 1.4244597 0.6489041, 1.4502817 0.4520405, pcnl
1.2936826 0.3114688, 1.4250880 0.6490469, 1.4512450 0.4523843, mala
1.3779424 0.3904886, 1.2782244 0.4556085, 1.1618844 0.4897659, langevin
0.9473241 0.9378633, 0.8771932 0.7895227, 1.0124880 0.2314761, elliptical
1.3217964 0.2952689, 1.3217964 0.2952689, 1.4335090 0.0703741, rwm
0.4510207 -0.6038045, 1.3949903 -0.2133308, 1.7990338 0.0219956, hmc-infinite
1.1719724 -0.2107030, 1.9273984 -0.6363488, 1.4376254 -1.2245138, hmc-infinite
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
