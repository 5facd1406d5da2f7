//! Simulation-based calibration (Talts et al. 2018).
//!
//! Weights from the prior, data from the likelihood, and a chain that knows only the data: it starts at another draw of
//! the prior, adapts its step size in warm-up, and is thinned until its draws are nearly independent. Whatever the
//! quantity, the rank of its true value among the draws is then uniform. Over the chains, the first four polynomials of
//! the ranks (Neyman 1937) are z-scores: the first sees a bias, the second draws that spread too much or too little.
//!
//! At most 40 z-scores for each of 40 combinations of likelihood and sampler: the largest exceeds 5.5 with probability
//! 5e-5 over seeds.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use reprior::chain::{Chain, Control, Observer, Schedule, Statistics, run};
use reprior::compute::{Purpose, Stream};
use reprior::model::{InputReduction, Noise};
use reprior::posterior::{Coordinates, Recorder, Regulariser, Space, Target};
use reprior::sampler::{Method, Sampler, SamplerSettings};

use super::case::{Case, Frame, Kind, learned};
use super::distorted::{Distorted, Distortion};
use super::experiment::Experiment;
use super::kernel::Kernel;
use super::ranks::{Ranks, scores};

const LIMIT: f64 = 5.5;
/// Each with four z-scores.
const MOST_QUANTITIES: usize = 10;
const CHAINS: usize = 150;
const DRAWS: u64 = 15;
const WARMUP: u64 = 150;

/// What makes the chains.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// The library's chains, with adaptation and arrival.
    Chains,
    Kernel(Kernel),
}

/// Transitions after which little is left of where a chain was.
fn thin(case: &Case) -> u64 {
    match case.settings.method {
        Method::HmcInfinite => 8,
        Method::Hmc | Method::Mams | Method::Nuts => 4,
        Method::Elliptical => 25,
        Method::Pcnl | Method::Mala | Method::Langevin | Method::Mclmc => 40,
        Method::Pcn | Method::Rwm => 150,
    }
}

/// The largest |z| of a case.
fn largest(case: &Case, chain_count: usize, distortion: Distortion, way: Way) -> f64 {
    let mut experiment = Experiment::new(case);
    let schedule = Schedule {
        chains: chain_count,
        warmup: WARMUP,
        draws: DRAWS,
        thin: thin(case),
        seed: case.seed,
    };
    let mut chains = Vec::new();
    let mut done = Vec::new();
    for index in 0..chain_count {
        let mut stream = Stream::new(case.seed + 1, index as u64, Purpose::Initial, 0);
        let (truth, projection) = experiment.truth(&mut stream);
        let recorder = Recorder::new(truth.model.clone()).with_projection(projection);
        let target = Distorted::new(experiment.posterior(&truth.model), recorder, distortion);
        let ranks = Ranks::new(case, &experiment, &truth, index as u64);
        match way {
            Way::Chains => {
                let chain = Chain::start(index, schedule, &case.settings, target);
                chains.push((chain.unwrap(), ranks));
            }
            Way::Kernel(kernel) => done.push(by_hand(kernel, target, ranks, index, schedule)),
        }
    }
    let control = Control {
        threads: 1,
        checkpoint_every: Duration::MAX,
        stop: &AtomicBool::new(false),
    };
    let (ended, outcome) = run(chains, control, &|_| ());
    outcome.unwrap();
    for (chain, _) in &ended {
        let rate = chain.snapshot().sampling.acceptance_rate();
        assert!(rate > 0.01, "{case:?}: chain {} is stuck", chain.index());
    }
    done.extend(ended.into_iter().map(|(_, ranks)| ranks));
    let scores = scores(&done, DRAWS as usize);
    assert!(scores.len() <= MOST_QUANTITIES);
    let all = scores.iter().flatten().map(|z| z.abs());
    all.fold(0.0, f64::max)
}

/// A chain of a sampler that is not the library's.
fn by_hand(
    mut kernel: Kernel,
    mut target: Distorted,
    mut ranks: Ranks,
    index: usize,
    schedule: Schedule,
) -> Ranks {
    let stream = |transition| {
        let purpose = Purpose::Transition;
        Stream::new(schedule.seed, index as u64, purpose, transition)
    };
    let mut position = vec![0.0; target.dim()];
    stream(0).fill_normal(&mut position);
    let mut state = kernel.init(&mut target, position).unwrap();
    for transition in 1..=schedule.transitions() {
        kernel
            .step(&mut target, &mut state, &mut stream(transition))
            .unwrap();
        let since = transition.saturating_sub(schedule.warmup);
        if since > 0 && since % schedule.thin == 0 {
            let nothing = Statistics::default();
            let drawn = ranks.draw(&mut target, &state, &nothing, [0.0; 2], transition);
            drawn.unwrap();
        }
    }
    ranks
}

/// Coordinates that suit a likelihood, in turns.
fn frame(kind: Kind, turn: usize) -> Frame {
    let coordinates = match (kind, turn % 2) {
        (_, 0) => Coordinates::Repriorised,
        (Kind::Gaussian, _) => Coordinates::Marginal,
        // rows of hardly any noise hold standard coordinates
        (Kind::Heteroscedastic | Kind::StudentTHeteroscedastic, _) => Coordinates::Repriorised,
        _ => Coordinates::Standard,
    };
    Frame {
        coordinates,
        space: [Space::Feature, Space::Data][turn / 2 % 2],
        regulariser: Regulariser::Matched,
    }
}

fn case(kind: Kind, noise: Noise, method: Method, turn: usize) -> Case {
    let has_row_noise = matches!(kind, Kind::Heteroscedastic | Kind::StudentTHeteroscedastic);
    let has_small_steps = has_row_noise && method == Method::Pcnl;
    Case {
        hidden: &[3],
        reduction: InputReduction::Off,
        kind,
        noise,
        frame: frame(kind, turn),
        settings: SamplerSettings {
            method,
            damping: (method == Method::Langevin).then_some(0.2),
            // a row of hardly any noise is a funnel, where steps for the rest of the posterior are rejected again and again
            target_acceptance: has_small_steps.then_some(0.9),
            ..Default::default()
        },
        replicates: 0,
        seed: 1000 + 10 * turn as u64,
    }
}

/// Five samplers, beginning with number `first`.
fn check(kind: Kind, noise: &Noise, first: usize) {
    for turn in first..first + 5 {
        // all but `mclmc`, which is biased
        let exact: Vec<Method> = Method::ALL.into_iter().filter(|m| m.is_exact()).collect();
        let method = exact[turn % exact.len()];
        let case = case(kind, noise.clone(), method, turn);
        let z = largest(&case, CHAINS, Distortion::None, Way::Chains);
        assert!(z < LIMIT, "{case:?}: {z}");
    }
}

#[test]
fn gaussian() {
    check(Kind::Gaussian, &Noise::from(0.4), 0);
}

#[test]
fn gaussian_with_a_learned_scale() {
    check(Kind::Gaussian, &learned(false), 5);
}

#[test]
fn student_t() {
    check(Kind::StudentT, &Noise::from(0.4), 10);
}

#[test]
fn student_t_with_learned_scales() {
    check(Kind::StudentT, &learned(true), 15);
}

#[test]
fn heteroscedastic() {
    check(Kind::Heteroscedastic, &Noise::from(2.0), 35);
}

#[test]
fn student_t_heteroscedastic() {
    check(Kind::StudentTHeteroscedastic, &Noise::from(2.0), 40);
}

#[test]
fn categorical() {
    check(Kind::Categorical, &Noise::from(1.0), 20);
}

#[test]
fn bernoulli() {
    check(Kind::Bernoulli, &Noise::from(1.0), 25);
}

#[test]
fn poisson() {
    check(Kind::Poisson, &Noise::from(1.0), 30);
}

/// A fault must be found, and the same code without it pass.
fn check_fault(case: &Case, chains: usize, [right, wrong]: [(Distortion, Way); 2]) {
    let z = largest(case, chains, right.0, right.1);
    assert!(z < LIMIT, "{case:?} {right:?}: {z}");
    let z = largest(case, chains, wrong.0, wrong.1);
    assert!(z > LIMIT, "{case:?} {wrong:?} is not found: {z}");
}

#[test]
fn faults_of_the_target_are_found() {
    let way = |distortion| (distortion, Way::Chains);
    let (repriorised, marginal) = (Coordinates::Repriorised, Coordinates::Marginal);
    let known = Noise::from(0.4);
    for (kind, noise, coordinates, fault) in [
        (
            Kind::StudentT,
            known.clone(),
            repriorised,
            Distortion::NoDeterminant,
        ),
        (
            Kind::Categorical,
            known.clone(),
            repriorised,
            Distortion::NoDeterminant,
        ),
        (
            Kind::Gaussian,
            known,
            repriorised,
            Distortion::LikelihoodAlone,
        ),
        (
            Kind::Gaussian,
            learned(false),
            marginal,
            Distortion::NoNormalisation,
        ),
    ] {
        let mut case = case(kind, noise, Method::Elliptical, 50);
        case.frame.coordinates = coordinates;
        check_fault(&case, 120, [way(Distortion::None), way(fault)]);
    }
}

#[test]
fn faults_of_the_sampler_are_found() {
    let way = |kernel| (Distortion::None, Way::Kernel(kernel));
    let root = std::f64::consts::SQRT_2;
    let pcn = |noise| way(Kernel::Pcn { beta: 0.4, noise });
    let langevin = |noise| way(Kernel::Langevin { step: 0.4, noise });
    let pcnl = |sign| way(Kernel::Pcnl { delta: 0.5, sign });
    // the method says only how much the draws are thinned
    for (kind, method, chains, ways) in [
        (Kind::Gaussian, Method::Pcnl, 100, [1.0, root].map(pcn)),
        (Kind::Gaussian, Method::Pcnl, 100, [1.0, root].map(langevin)),
        (Kind::StudentT, Method::Pcn, 250, [1.0, -1.0].map(pcnl)),
    ] {
        let case = case(kind, Noise::from(0.4), method, 60);
        check_fault(&case, chains, ways);
    }
}
