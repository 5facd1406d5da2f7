//! Samplers leave the right law invariant: closed forms, quadrature, and the Metropolis-Hastings ratio directly.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use reprior::chain::{Chain, Collect, Control, Outcome, Schedule, StartError, run};
use reprior::compute::{Purpose, Stream};
use reprior::diagnostics::{Draws, Estimator};
use reprior::model::{InputReduction, Model};
use reprior::network::{Activation, Architecture};
use reprior::posterior::{
    Coordinates, EvaluationError, NetworkPosterior, Projection, Recorder, Space, Target,
};
use reprior::sampler::{Method, Pcn, Sampler, SamplerSettings};

fn settings(method: Method) -> SamplerSettings {
    SamplerSettings {
        method,
        step_size: None,
        target_acceptance: None,
    }
}

const METHODS: [Method; 3] = [Method::HmcInfinite, Method::Pcn, Method::Elliptical];

/// Draws of each chain from targets made by `make`.
fn sample<T: Target>(
    make: impl Fn() -> T,
    settings: &SamplerSettings,
    schedule: Schedule,
    threads: usize,
) -> Vec<Collect<T::Real>> {
    let chains = (0..schedule.chains)
        .map(|index| {
            (
                Chain::start(index, schedule, settings, make()).unwrap(),
                Collect::default(),
            )
        })
        .collect();
    let stop = AtomicBool::new(false);
    let control = Control {
        threads,
        checkpoint_every: Duration::from_secs(1),
        stop: &stop,
    };
    let (done, outcome) = run(chains, control, &|_| {});
    assert_eq!(outcome.unwrap(), Outcome::Complete);
    done.into_iter().map(|(_, collected)| collected).collect()
}

/// z-score of the mean of chains against an exact value, with the Monte-Carlo error from the effective sample size.
fn z_score(chains: &[Vec<f64>], exact: f64) -> f64 {
    let flat: Vec<f64> = chains.concat();
    let n = flat.len() as f64;
    let mean = flat.iter().sum::<f64>() / n;
    let sd = (flat.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    let ess = Estimator::new().ess_mean(Draws::new(&flat, chains.len()).unwrap());
    assert!(ess > 100.0, "only {ess} effective draws");
    (mean - exact) / (sd / ess.sqrt())
}

/// One observation of z₁ + ½z₂ with Gaussian noise: a Gaussian posterior in closed form.
struct Line;

const SIGMA: f64 = 0.4;
const Y: f64 = 1.3;

impl Target for Line {
    type Real = f64;
    fn dim(&self) -> usize {
        2
    }
    fn log_ratio(&mut self, z: &[f64]) -> Result<f64, EvaluationError> {
        Ok(-0.5 * ((Y - z[0] - 0.5 * z[1]) / SIGMA).powi(2))
    }
    fn log_ratio_and_gradient(
        &mut self,
        z: &[f64],
        gradient: &mut [f64],
    ) -> Result<f64, EvaluationError> {
        let residual = (Y - z[0] - 0.5 * z[1]) / (SIGMA * SIGMA);
        gradient.copy_from_slice(&[residual, 0.5 * residual]);
        self.log_ratio(z)
    }
}

#[test]
fn a_gaussian_posterior_has_its_mean_and_variance() {
    let total = SIGMA * SIGMA + 1.25;
    let (mean, variance) = (Y / total, 1.0 - 1.0 / total);
    for method in METHODS {
        let schedule = Schedule {
            chains: 4,
            warmup: 500,
            draws: 5000,
            thin: 4,
            seed: 1,
        };
        let chains = sample(|| Line, &settings(method), schedule, 2);
        let first = |f: &dyn Fn(f64) -> f64| -> Vec<Vec<f64>> {
            chains
                .iter()
                .map(|c| c.positions.iter().map(|z| f(z[0])).collect())
                .collect()
        };
        let z = z_score(&first(&|x| x), mean);
        assert!(z.abs() < 4.5, "{method}: mean off by {z} standard errors");
        let z = z_score(&first(&|x| (x - mean) * (x - mean)), variance);
        assert!(
            z.abs() < 4.5,
            "{method}: variance off by {z} standard errors"
        );
    }
}

/// With no data in ℓ every proposal is accepted and the law is N(0, I).
struct Prior;

impl Target for Prior {
    type Real = f32;
    fn dim(&self) -> usize {
        30
    }
    fn log_ratio(&mut self, _: &[f32]) -> Result<f64, EvaluationError> {
        Ok(0.0)
    }
    fn log_ratio_and_gradient(
        &mut self,
        _: &[f32],
        gradient: &mut [f32],
    ) -> Result<f64, EvaluationError> {
        gradient.fill(0.0);
        Ok(0.0)
    }
}

#[test]
fn without_data_everything_is_accepted_and_the_prior_comes_back() {
    for method in METHODS {
        let schedule = Schedule {
            chains: 2,
            warmup: 100,
            draws: 4000,
            thin: 2,
            seed: 2,
        };
        let chains = sample(|| Prior, &settings(method), schedule, 2);
        let norms = |c: &Collect<f32>| -> Vec<f64> {
            c.positions
                .iter()
                .map(|z| z.iter().map(|x| f64::from(*x).powi(2)).sum())
                .collect()
        };
        let z = z_score(&chains.iter().map(norms).collect::<Vec<_>>(), 30.0);
        assert!(z.abs() < 4.5, "{method}: {z}");
        let rate = chains[0]
            .statistics
            .iter()
            .map(|s| s.acceptance_rate())
            .fold(1.0, f64::min);
        assert!(rate > 0.999_999, "{method}: {rate}");
    }
}

fn one_point_model(hidden: &[usize], activation: Activation, inputs: usize) -> Arc<Model<f64>> {
    let mut x = vec![0.0; inputs];
    Stream::new(5, 0, Purpose::Initial, 0).fill_normal(&mut x);
    let architecture = Architecture::new(inputs, hidden, 1, activation);
    let model = Model::new(architecture, 0.3, &x, vec![1.2], &x, InputReduction::Auto).unwrap();
    Arc::new(model)
}

/// Posterior mean of the function at the training point by quadrature over the prior of the inner weights: with one
/// training point the first layer is one Gaussian number per unit; here there is one unit per layer.
fn quadrature(model: &Model<f64>, make: impl Fn() -> NetworkPosterior<f64>) -> (f64, f64) {
    let mut target = make();
    let mut recorder = Recorder::new(Arc::clone(target.model()), Projection::new(model, 1, 0));
    let dim = target.dim();
    let points: Vec<f64> = (-150..=150).map(|i| f64::from(i) * 0.04).collect();
    let (mut mass, mut mean, mut square) = (0.0, 0.0, 0.0);
    let total = points.len().pow(dim as u32);
    for at in 0..total {
        let z: Vec<f64> = (0..dim)
            .map(|k| points[at / points.len().pow(k as u32) % points.len()])
            .collect();
        let norm: f64 = z.iter().map(|x| x * x).sum();
        let weight = (target.log_ratio(&z).unwrap() - 0.5 * norm).exp();
        let mut stream = Stream::new(0, 0, Purpose::Recording, 0);
        let record = recorder.record(&mut target, &z, &mut stream).unwrap();
        mass += weight;
        mean += weight * record.mean[0];
        square += weight * (record.variance[0] + record.mean[0].powi(2));
    }
    (mean / mass, square / mass)
}

fn recorded(
    chains: &[Collect<f64>],
    make: impl Fn() -> NetworkPosterior<f64>,
) -> [Vec<Vec<f64>>; 2] {
    let mut target = make();
    let model = Arc::clone(target.model());
    let mut recorder = Recorder::new(Arc::clone(&model), Projection::new(&model, 1, 0));
    let mut out = [vec![], vec![]];
    for chain in chains {
        let (mut means, mut squares) = (vec![], vec![]);
        for (i, z) in chain.positions.iter().enumerate() {
            let mut stream = Stream::new(9, 0, Purpose::Recording, i as u64);
            let record = recorder.record(&mut target, z, &mut stream).unwrap();
            means.push(record.mean[0]);
            squares.push(record.variance[0] + record.mean[0].powi(2));
        }
        out[0].push(means);
        out[1].push(squares);
    }
    out
}

#[test]
fn one_training_point_agrees_with_quadrature_in_every_coordinate_system() {
    for activation in [Activation::Gelu, Activation::Identity, Activation::Sin] {
        let model = one_point_model(&[1], activation, 3);
        let marginal = || NetworkPosterior::new(Arc::clone(&model), Coordinates::Marginal, None);
        let exact = quadrature(&model, marginal);
        for coordinates in [
            Coordinates::Marginal,
            Coordinates::Repriorised,
            Coordinates::Standard,
        ] {
            for method in METHODS {
                let make = || NetworkPosterior::new(Arc::clone(&model), coordinates, None);
                let schedule = Schedule {
                    chains: 4,
                    warmup: 300,
                    draws: 2500,
                    thin: 4,
                    seed: 3,
                };
                let chains = sample(make, &settings(method), schedule, 2);
                let [means, squares] = recorded(&chains, make);
                for (values, exact) in [(means, exact.0), (squares, exact.1)] {
                    let z = z_score(&values, exact);
                    assert!(z.abs() < 4.5, "{method} {coordinates} {activation}: {z}");
                }
            }
        }
    }
}

/// A deep linear network at one training point: K = α²‖h‖² + σ_b² has a law over the prior that is an integral over
/// chi-squared numbers; the posterior mean of the function is E[w(K)·Ky/(K + σ²)]/E[w(K)].
#[test]
fn a_linear_network_agrees_with_the_closed_form() {
    let width = 8;
    let model = one_point_model(&[width], Activation::Identity, 3);
    let scale = model.architecture.readout_scale;
    let design = model.design.matrix()[(0, 0)];
    let (y, s2) = (model.targets[0], model.noise.typical(1)[0].powi(2));
    // h = L·V, V ~ N(0, I): ‖h‖² = L² q with q chi-squared(width), density ∝ q^{width/2 − 1} e^{−q/2}
    let (mut mass, mut mean, mut square) = (0.0, 0.0, 0.0);
    for i in 1..200_000 {
        let q = f64::from(i) * 5e-4;
        let k = scale.weight.powi(2) / width as f64 * design.powi(2) * q + scale.bias.powi(2);
        let log_weight = (width as f64 / 2.0 - 1.0) * q.ln()
            - 0.5 * q
            - 0.5 * y * y / (k + s2)
            - 0.5 * (k + s2).ln();
        let weight = log_weight.exp();
        let m = k * y / (k + s2);
        mass += weight;
        mean += weight * m;
        square += weight * (m * m + k * s2 / (k + s2));
    }
    for coordinates in [
        Coordinates::Marginal,
        Coordinates::Repriorised,
        Coordinates::Standard,
    ] {
        for space in [Space::Feature, Space::Data] {
            let make = || NetworkPosterior::new(Arc::clone(&model), coordinates, Some(space));
            let schedule = Schedule {
                chains: 4,
                warmup: 300,
                draws: 2500,
                thin: 2,
                seed: 4,
            };
            let chains = sample(make, &settings(Method::HmcInfinite), schedule, 2);
            let [means, squares] = recorded(&chains, make);
            for (values, exact) in [(means, mean / mass), (squares, square / mass)] {
                let z = z_score(&values, exact);
                assert!(z.abs() < 4.5, "{coordinates} {space}: {z}");
            }
        }
    }
}

/// Bayesian linear regression: no hidden layers, `standard` coordinates; the posterior of predictions is the ridge
/// regression's.
#[test]
fn a_linear_model_is_bayesian_linear_regression() {
    let (n, d) = (6, 3);
    let (mut x, mut y) = (vec![0.0; n * d], vec![0.0; n]);
    let mut stream = Stream::new(6, 0, Purpose::Initial, 0);
    stream.fill_normal(&mut x);
    stream.fill_normal(&mut y);
    let architecture = Architecture::new(d, &[], 1, Activation::Identity);
    let model =
        Arc::new(Model::new(architecture, 0.5, &x, y, &x[..d], InputReduction::Auto).unwrap());
    // the marginal coordinates have nothing left to sample: their prediction is the closed form
    let marginal = || NetworkPosterior::new(Arc::clone(&model), Coordinates::Marginal, None);
    let empty = Collect {
        positions: vec![vec![]],
        statistics: vec![],
        log_ratios: vec![],
    };
    let [exact_mean, exact_square] = recorded(&[empty], marginal);
    for method in METHODS {
        let make = || NetworkPosterior::new(Arc::clone(&model), Coordinates::Standard, None);
        let schedule = Schedule {
            chains: 4,
            warmup: 300,
            draws: 3000,
            thin: 5,
            seed: 5,
        };
        let chains = sample(make, &settings(method), schedule, 2);
        // f(x₁) from the sampled weights themselves, not from the closed form given inner weights
        let f = |z: &Vec<f64>| {
            let factor = 1.0 / (d as f64).sqrt();
            let inner: f64 = x[..d].iter().zip(z).map(|(x, z)| x * z).sum();
            factor * inner + 0.1 * z[d]
        };
        let values: Vec<Vec<f64>> = chains
            .iter()
            .map(|c| c.positions.iter().map(f).collect())
            .collect();
        let squares = values
            .iter()
            .map(|c| c.iter().map(|v| v * v).collect())
            .collect::<Vec<_>>();
        let z = z_score(&values, exact_mean[0][0]);
        assert!(z.abs() < 4.5, "{method}: {z}");
        let z = z_score(&squares, exact_square[0][0]);
        assert!(z.abs() < 4.5, "{method}: {z}");
    }
    let chains = sample(
        marginal,
        &settings(Method::HmcInfinite),
        Schedule {
            chains: 1,
            warmup: 5,
            draws: 5,
            thin: 1,
            seed: 0,
        },
        1,
    );
    assert!(chains[0].positions.iter().all(Vec::is_empty));
}

/// log a of pCN equals log[π(z')q(z', z)/(π(z)q(z, z'))] computed from the densities.
#[test]
fn pcn_accepts_with_the_metropolis_hastings_ratio() {
    let beta: f64 = 0.3;
    let log_q = |from: &[f64], to: &[f64]| -> f64 {
        let keep = (1.0 - beta * beta).sqrt();
        from.iter()
            .zip(to)
            .map(|(a, b)| -0.5 * ((b - keep * a) / beta).powi(2))
            .sum()
    };
    let model = one_point_model(&[4, 3], Activation::Gelu, 5);
    let mut target = NetworkPosterior::new(Arc::clone(&model), Coordinates::Marginal, None);
    let mut sampler = Pcn::new(beta);
    let mut start = vec![0.0; target.dim()];
    Stream::new(8, 0, Purpose::Initial, 0).fill_normal(&mut start);
    let mut state = sampler.init(&mut target, start).unwrap();
    let mut log_pi =
        |z: &[f64]| target.log_ratio(z).unwrap() - 0.5 * z.iter().map(|x| x * x).sum::<f64>();
    let mut other = NetworkPosterior::new(model, Coordinates::Marginal, None);
    let mut accepted = 0;
    for transition in 0..200 {
        let before = state.clone();
        let mut stream = Stream::new(8, 0, Purpose::Transition, transition);
        let info = sampler.step(&mut other, &mut state, &mut stream).unwrap();
        if info.is_accepted {
            accepted += 1;
            let (u, v) = (&before.position, &state.position);
            let ratio = log_pi(v) + log_q(v, u) - log_pi(u) - log_q(u, v);
            assert!(
                (ratio + info.energy_error).abs() < 1e-10,
                "{ratio} {}",
                info.energy_error
            );
            assert!((info.acceptance_rate - ratio.min(0.0).exp()).abs() < 1e-10);
        } else {
            assert_eq!(before, state);
        }
    }
    assert!(accepted > 20);
}

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
    for method in METHODS {
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
