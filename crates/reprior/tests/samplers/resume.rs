//! Interruptions and threads change nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use reprior::chain::mode::find_mode;
use reprior::chain::{Chain, Collect, Control, RunOutcome, Schedule, StartError, run};
use reprior::compute::{Purpose, Stream};
use reprior::model::{InputReduction, Model, Noise, NoisePrior};
use reprior::network::{Activation, Composition};
use reprior::posterior::{Coordinates, EvaluationError, Posterior, Target};
use reprior::sampler::{Method, SamplerSettings, Start};

use super::{Line, one_point_model, sample_on, settings};

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let model = one_point_model(&[6], Activation::Gelu, 4);
    let make = || Posterior::new(Arc::clone(&model), Coordinates::Marginal).unwrap();
    let schedule = Schedule {
        chains: 5,
        warmup: 20,
        draws: 30,
        thin: 2,
        seed: 7,
    };
    let one = sample_on(make, &settings(Method::HmcInfinite), schedule, 1);
    let three = sample_on(make, &settings(Method::HmcInfinite), schedule, 3);
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
    for method in [Method::HmcInfinite, Method::Pcn] {
        all.push(SamplerSettings {
            start: Start::Mode(50),
            ..settings(method)
        });
        all.push(SamplerSettings {
            replicas: 3,
            ..settings(method)
        });
    }
    all
}

/// A chain stopped anywhere - in its arrival, where that ends, in warm-up, between draws - and resumed from its snapshot
/// makes the same draws.
#[test]
fn a_resumed_chain_makes_the_same_draws() {
    let model = one_point_model(&[6], Activation::Gelu, 4);
    let make = || Posterior::new(Arc::clone(&model), Coordinates::Marginal).unwrap();
    for settings in every_way() {
        let schedule = Schedule {
            chains: 1,
            warmup: 30,
            draws: 40,
            thin: 3,
            seed: 8,
        };
        let mut drawn = Collect::default();
        let mut whole = Chain::start(0, schedule, &settings, make()).unwrap();
        whole.advance_to(u64::MAX, &mut drawn).unwrap();
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
            assert_eq!(drawn.positions, parts.positions, "{settings:?}");
            assert_eq!(drawn.statistics, parts.statistics, "{settings:?}");
            // exchanges, which no draw shows, too
            assert_eq!(whole.snapshot(), chain.snapshot(), "{settings:?}");
        }
    }
}

/// A warm-up that was planned to be longer and ends after 32 transitions is one of 32.
#[test]
fn a_warmup_may_end_before_it_was_to() {
    let model = one_point_model(&[6], Activation::Gelu, 4);
    let make = || Posterior::new(Arc::clone(&model), Coordinates::Marginal).unwrap();
    let schedule = |warmup| Schedule {
        chains: 1,
        warmup,
        draws: 30,
        thin: 1,
        seed: 8,
    };
    for settings in every_way() {
        // of an arrival that is a part of the warm-up the length is fixed
        let settings = SamplerSettings {
            arrival: Some(10),
            ..settings
        };
        let mut collected = Collect::default();
        let mut chain = Chain::start(0, schedule(100), &settings, make()).unwrap();
        chain.advance_to(32, &mut Collect::default()).unwrap();
        let snapshot = chain.snapshot().clone();
        let mut chain = Chain::resume(0, schedule(32), &settings, make(), snapshot).unwrap();
        chain.advance_to(u64::MAX, &mut collected).unwrap();
        let planned = sample_on(make, &settings, schedule(32), 1);
        let own = collected.positions;
        assert_eq!(planned[0].positions, own, "{settings:?}");
    }
}

/// Where `hmc-infinite` itself would be, the method takes over; from then on it is on its own.
#[test]
fn arrival_is_made_by_hmc_infinite() {
    let model = one_point_model(&[6], Activation::Gelu, 4);
    let make = || Posterior::new(Arc::clone(&model), Coordinates::Standard).unwrap();
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
        let (mut chain, mut other) = (start(&settings), start(&settings.arrival_settings()));
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
        // the search for the first step size has evaluations of its own
        let searched = end.warmup.n_evaluations - (warmup - expected);
        let most = if warmup > expected { 30 } else { 0 };
        assert!(searched <= most, "{searched}");
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
    let with_replicas = SamplerSettings {
        replicas: 20,
        ..settings(Method::HmcInfinite)
    };
    for settings in every_way().into_iter().take(13).chain([with_replicas]) {
        let chains = sample_on(|| Line, &settings, schedule, 1);
        for z in &chains[0].positions {
            drawn += &format!("{:.7} {:.7}, ", z[0], z[1]);
        }
        drawn += &format!("{}\n", settings.method);
    }
    assert_eq!(drawn, VALUES, "{drawn}");
}

const VALUES: &str = "\
0.4125049 1.9924660, 0.4254734 1.4375543, 0.8624731 0.2469556, hmc-infinite
0.8174935 0.6481122, 1.4183318 -0.2712589, 1.3124135 0.1926321, hmc
0.9493751 0.5344319, 0.4644206 0.9600038, 0.5915088 0.7720689, nuts
0.9086282 0.0034001, 0.7424044 -0.6741215, 0.7424044 -0.6741215, pcn
0.9981146 -0.0952632, 1.1577306 -0.4844144, 1.1851285 -0.5629786, pcnl
1.0228080 -0.0996206, 1.1537570 -0.5038847, 1.1814374 -0.5882595, mala
1.8293915 -0.2845084, 1.5859635 -0.2852392, 1.2430898 -0.3122496, langevin
1.1236759 -0.2327774, 1.0510220 -0.6413456, 0.6997686 0.2459067, elliptical
1.2389864 -0.5290039, 1.2647493 -1.4139142, 1.2647493 -1.4139142, rwm
0.3573858 1.8541171, 1.0045300 0.4778201, 1.0045300 0.4778201, mams
1.2076261 0.0242681, 0.8233670 -0.1950472, 0.4630295 -0.4517787, mclmc
0.3175933 1.4552044, 0.4728295 1.6681580, 0.4694291 1.2194473, hmc-infinite
0.8521825 1.2227812, 0.9802305 0.5087759, 1.0617705 -0.4687010, hmc-infinite
0.4125049 1.9924660, 0.4254734 1.4375543, 1.1289613 -0.4591403, hmc-infinite
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
    let with_replicas = SamplerSettings {
        replicas: 2,
        ..hmc.clone()
    };
    let refused = Chain::resume(0, schedule, &with_replicas, Line, snapshot.clone()).err();
    assert!(matches!(
        refused,
        Some(StartError::Replicas {
            found: 0,
            expected: 2,
            ..
        })
    ));
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
    let mut of_another = snapshot.clone();
    of_another.state.log_ratio += 3.0 + of_another.state.log_ratio.abs();
    assert!(matches!(
        resume(Method::HmcInfinite, of_another),
        Some(StartError::Density { .. })
    ));
    let mut longer = snapshot;
    longer.state.position.push(0.0);
    assert!(matches!(
        resume(Method::HmcInfinite, longer),
        Some(StartError::Dimension { .. })
    ));
}

/// A chain that starts at a mode is there before its first transition, whatever the method; the gradients that it took are counted.
#[test]
fn chains_start_at_a_mode() {
    let model = one_point_model(&[6], Activation::Gelu, 4);
    let make = || Posterior::new(Arc::clone(&model), Coordinates::Standard).unwrap();
    let schedule = Schedule {
        chains: 1,
        warmup: 0,
        draws: 1,
        thin: 1,
        seed: 10,
    };
    // steps so small that the first transition stays where it begins
    let density = |start| {
        let settings = SamplerSettings {
            start,
            step_size: Some(1e-6),
            ..settings(Method::Pcn)
        };
        let mut chain = Chain::start(0, schedule, &settings, make()).unwrap();
        chain.advance_to(1, &mut Collect::default()).unwrap();
        let state = &chain.snapshot().state;
        let squares: f64 = state.position.iter().map(|z| z * z).sum();
        let gradients = chain.snapshot().sampling.n_gradients;
        (state.log_ratio - 0.5 * squares, gradients)
    };
    let [(prior, none), (mode, some)] = [Start::Prior, Start::Mode(200)].map(density);
    assert_eq!(none, 0);
    assert!((1..=200).contains(&some), "{some}");
    let mut target = make();
    let from = vec![0.1; target.dim()];
    let found = find_mode(&mut target, &from, 2000).unwrap();
    assert!(
        mode > prior + 1.0 && mode > found.log_density - 1.0,
        "{prior} {mode} {found:?}"
    );
}

/// A target that asks to stop at a certain gradient.
struct Impatient<'a> {
    target: Posterior<f64>,
    gradients: &'a AtomicU64,
    stops_at: u64,
    stop: &'a AtomicBool,
}

impl Target for Impatient<'_> {
    type Real = f64;

    fn dim(&self) -> usize {
        self.target.dim()
    }

    fn log_ratio(&mut self, z: &[f64]) -> Result<f64, EvaluationError> {
        self.target.log_ratio(z)
    }

    fn log_ratio_and_gradient(
        &mut self,
        z: &[f64],
        gradient: &mut [f64],
    ) -> Result<f64, EvaluationError> {
        if self.gradients.fetch_add(1, Ordering::Relaxed) + 1 == self.stops_at {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.target.log_ratio_and_gradient(z, gradient)
    }
}

/// The first transition is not made then, and made whole when the chain goes on.
#[test]
fn a_search_for_a_mode_ends_where_nobody_waits_for_it() {
    let model = one_point_model(&[6], Activation::Gelu, 4);
    let schedule = Schedule {
        chains: 1,
        warmup: 5,
        draws: 5,
        thin: 1,
        seed: 11,
    };
    let settings = SamplerSettings {
        start: Start::Mode(200),
        ..settings(Method::HmcInfinite)
    };
    let (gradients, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let chain = |stops_at| {
        let target = Impatient {
            target: Posterior::new(Arc::clone(&model), Coordinates::Marginal).unwrap(),
            gradients: &gradients,
            stops_at,
            stop: &stop,
        };
        Chain::start(0, schedule, &settings, target).unwrap()
    };
    let drive = |chains| {
        let control = Control {
            threads: 1,
            checkpoint_every: Duration::MAX,
            stop: &stop,
        };
        let (driven, outcome) = run(chains, control, &|_| {});
        (driven, outcome.unwrap())
    };
    let (whole, outcome) = drive(vec![(chain(0), Collect::default())]);
    assert_eq!(outcome, RunOutcome::Complete);
    gradients.store(0, Ordering::Relaxed);
    let (stopped, outcome) = drive(vec![(chain(4), Collect::default())]);
    assert_eq!(outcome, RunOutcome::Stopped);
    assert_eq!(gradients.load(Ordering::Relaxed), 4);
    assert_eq!(stopped[0].0.snapshot().transition, 0);
    stop.store(false, Ordering::Relaxed);
    let (resumed, outcome) = drive(stopped);
    assert_eq!(outcome, RunOutcome::Complete);
    assert_eq!(resumed[0].1.positions, whole[0].1.positions);
}

#[test]
fn modes_of_exact_data_have_their_noise() {
    let (rows, median) = (300, 0.3_f64);
    let found = |sigma: f64, hidden: &[usize]| {
        let x: Vec<f64> = (0..rows).map(|row| row as f64 / 50.0 - 3.0).collect();
        let mut noise = vec![0.0; rows];
        Stream::new(3, 0, Purpose::Initial, 0).fill_normal(&mut noise);
        let y = x.iter().zip(noise).map(|(x, e)| x.sin() + sigma * e);
        let prior = NoisePrior {
            median,
            ..NoisePrior::default()
        };
        let network = Composition::fully_connected(1, hidden, 1, Activation::Gelu);
        let noise = Noise::Learned(prior);
        let reduction = InputReduction::Off;
        let model: Model<f64> =
            Model::new(network, noise, &x, y.collect(), &[0.5], reduction).unwrap();
        let at = model.inner_parameters();
        let mut target = Posterior::new(Arc::new(model), Coordinates::Marginal).unwrap();
        let mut from = vec![0.0; target.dim()];
        Stream::new(4, 0, Purpose::Initial, 0).fill_normal(&mut from);
        let mode = find_mode(&mut target, &from, 1000).unwrap();
        median * mode.position[at].exp()
    };
    let exact = found(0.01, &[4]);
    assert!((0.008..0.015).contains(&exact), "{exact}");
    assert_eq!(found(0.3, &[4]), median);
    // as many parameters as rows
    assert_eq!(found(0.01, &[12, 12]), median);
}

#[test]
fn outputs_have_noise_of_their_own_at_modes() {
    let rows = 300;
    let x: Vec<f64> = (0..rows).map(|row| row as f64 / 50.0 - 3.0).collect();
    let mut noise = vec![0.0; 2 * rows];
    Stream::new(3, 0, Purpose::Initial, 0).fill_normal(&mut noise);
    let truth = [0.01, 0.5];
    let of_row = |(x, e): (&f64, &[f64])| [x.sin() + truth[0] * e[0], x.cos() + truth[1] * e[1]];
    let y = x
        .iter()
        .zip(noise.as_chunks::<2>().0)
        .map(|(x, e)| (x, &e[..]));
    // output after output
    let both: Vec<[f64; 2]> = y.map(of_row).collect();
    let y = (0..2).flat_map(|output| both.iter().map(move |row| row[output]));
    let prior = NoisePrior {
        per_output: true,
        ..NoisePrior::default()
    };
    let network = Composition::fully_connected(1, &[6], 2, Activation::Gelu);
    let noise = Noise::Learned(prior);
    let y = y.collect();
    let model: Model<f64> = Model::new(network, noise, &x, y, &[0.5], InputReduction::Off).unwrap();
    let at = model.inner_parameters();
    let mut target = Posterior::new(Arc::new(model), Coordinates::Marginal).unwrap();
    let mut from = vec![0.0; target.dim()];
    Stream::new(4, 0, Purpose::Initial, 0).fill_normal(&mut from);
    let mode = find_mode(&mut target, &from, 1000).unwrap();
    let [exact, held] = [0, 1].map(|output| prior.median * mode.position[at + output].exp());
    assert!((0.008..0.015).contains(&exact), "{exact}");
    assert_eq!(held, prior.median);
}
