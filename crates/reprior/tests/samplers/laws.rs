//! Closed forms and quadrature.

use std::sync::Arc;

use reprior::chain::{Collect, Schedule};
use reprior::compute::{Purpose, Stream};
use reprior::model::{InputReduction, Model};
use reprior::network::{Activation, Composition};
use reprior::posterior::projection::Projection;
use reprior::posterior::{
    Coordinates, EvaluationError, Posterior, PosteriorSettings, Recorder, Space, Target,
};
use reprior::sampler::{Method, SamplerSettings};

use super::{Line, SIGMA, Y, exact_methods, gentle, one_point_model, sample_on, settings, z_score};

#[test]
fn a_gaussian_posterior_has_its_mean_and_variance() {
    let total = SIGMA * SIGMA + 1.25;
    let (mean, variance) = (Y / total, 1.0 - 1.0 / total);
    let mut all: Vec<SamplerSettings> = exact_methods().map(settings).collect();
    for (method, damping, trajectory) in [
        (Method::HmcInfinite, Some(0.3), Some(0.5)),
        (Method::HmcInfinite, Some(0.05), Some(0.1)),
        (Method::HmcInfinite, None, Some(2.5)),
        (Method::Hmc, None, Some(0.4)),
        (Method::Langevin, Some(1.0), None),
        (Method::Langevin, Some(0.1), None),
    ] {
        all.push(SamplerSettings {
            damping,
            trajectory,
            ..settings(method)
        });
    }
    for settings in all {
        let schedule = Schedule {
            chains: 4,
            warmup: 500,
            draws: 5000,
            thin: 4,
            seed: 1,
        };
        let chains = sample_on(|| Line, &settings, schedule, 2);
        let first = |f: &dyn Fn(f64) -> f64| -> Vec<Vec<f64>> {
            chains
                .iter()
                .map(|c| c.positions.iter().map(|z| f(z[0])).collect())
                .collect()
        };
        let z = z_score(&first(&|x| x), mean);
        assert!(
            z.abs() < 4.5,
            "{settings:?}: mean off by {z} standard errors"
        );
        let z = z_score(&first(&|x| (x - mean) * (x - mean)), variance);
        assert!(
            z.abs() < 4.5,
            "{settings:?}: variance off by {z} standard errors"
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
    for method in [
        Method::HmcInfinite,
        Method::Pcn,
        Method::Pcnl,
        Method::Elliptical,
    ] {
        let schedule = Schedule {
            chains: 2,
            warmup: 100,
            draws: 4000,
            thin: 2,
            seed: 2,
        };
        let chains = sample_on(|| Prior, &settings(method), schedule, 2);
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

/// Without Metropolis correction Langevin dynamics keeps the energy of the leapfrog instead of the target's: for N(0, 1)
/// momenta stay N(0, 1) and positions have the variance 1/(1 − h²/4).
#[test]
fn uncorrected_langevin_has_the_law_of_the_leapfrog() {
    for (h, damping) in [(1.0, 0.3), (0.3, 0.1)] {
        let settings = SamplerSettings {
            metropolis: false,
            step_size: Some(h),
            damping: Some(damping),
            ..settings(Method::Langevin)
        };
        let schedule = Schedule {
            chains: 2,
            warmup: 200,
            draws: 5000,
            thin: 4,
            seed: 14,
        };
        let chains = sample_on(|| Prior, &settings, schedule, 2);
        let norm = |z: &Vec<f32>| z.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
        let norms: Vec<Vec<f64>> = chains
            .iter()
            .map(|c| c.positions.iter().map(norm).collect())
            .collect();
        let z = z_score(&norms, 30.0 / (1.0 - 0.25 * h * h));
        assert!(z.abs() < 4.5, "h = {h}: {z}");
        // every step is taken, and what a correction would have done is reported
        let all = || chains.iter().flat_map(|c| &c.statistics);
        assert!(all().all(|s| s.accepted == s.transitions));
        let rates: f64 = all().map(|s| s.acceptance_rate()).sum();
        let rate = rates / all().count() as f64;
        assert!(if h == 1.0 { rate < 0.75 } else { rate > 0.97 }, "{rate}");
    }
}

/// N(0, I) in many dimensions.
struct Wide(usize);

impl Target for Wide {
    type Real = f32;
    fn dim(&self) -> usize {
        self.0
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

/// One leapfrog step changes the energy by (h²/8)(‖z'‖² − ‖z‖²) up to higher orders, of variance dim·h⁶/16: the acceptance
/// rate is 2Φ(−√dim·h³/8) at stationarity, and shrinks with width whatever the data.
#[test]
fn langevin_accepts_as_the_dimension_allows() {
    let dim = 20_000;
    for h in [0.1, 0.2, 0.3] {
        let settings = SamplerSettings {
            step_size: Some(h),
            // rates of neighbouring steps are as alike as their momenta are
            damping: Some(0.5),
            ..settings(Method::Langevin)
        };
        let schedule = Schedule {
            chains: 2,
            warmup: 20,
            draws: 1500,
            thin: 1,
            seed: 15,
        };
        let chains = sample_on(|| Wide(dim), &settings, schedule, 2);
        let rates = |c: &Collect<f32>| c.statistics.iter().map(|s| s.acceptance_sum).collect();
        let rates: Vec<Vec<f64>> = chains.iter().map(rates).collect();
        let mean = rates.concat().iter().sum::<f64>() / 3000.0;
        let exact = libm::erfc((dim as f64).sqrt() * h.powi(3) / 8.0 / 2.0_f64.sqrt());
        assert!((mean - exact).abs() < 0.02, "h = {h}: {mean} {exact}");
    }
}

/// Posterior mean of the function at the training point by quadrature over the prior of the inner weights: with one
/// training point the first layer is one Gaussian number per unit; here there is one unit per layer.
fn quadrature(model: &Model<f64>, make: impl Fn() -> Posterior<f64>) -> (f64, f64) {
    let mut target = make();
    let mut recorder =
        Recorder::new(Arc::clone(target.model())).with_projection(Projection::new(model, 1, 0));
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

fn recorded(chains: &[Collect<f64>], make: impl Fn() -> Posterior<f64>) -> [Vec<Vec<f64>>; 2] {
    let mut target = make();
    let model = Arc::clone(target.model());
    let mut recorder =
        Recorder::new(Arc::clone(&model)).with_projection(Projection::new(&model, 1, 0));
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

/// Every method and several activations.
fn one_training_point_agrees_with_quadrature_in(coordinates: Coordinates) {
    for activation in [Activation::Gelu, Activation::Identity, Activation::Sin] {
        let model = one_point_model(&[1], activation, 3);
        let marginal = || Posterior::new(Arc::clone(&model), Coordinates::Marginal).unwrap();
        let exact = quadrature(&model, marginal);
        for method in exact_methods() {
            let make = || Posterior::new(Arc::clone(&model), coordinates).unwrap();
            let is_slow = coordinates == Coordinates::Standard
                && matches!(method, Method::Pcnl | Method::Mala | Method::Langevin);
            let schedule = Schedule {
                chains: 4,
                warmup: 300,
                draws: 2500,
                thin: if is_slow { 20 } else { 4 },
                seed: 3,
            };
            let chains = sample_on(make, &gentle(method), schedule, 2);
            let [means, squares] = recorded(&chains, make);
            for (values, exact) in [(means, exact.0), (squares, exact.1)] {
                let z = z_score(&values, exact);
                assert!(z.abs() < 4.5, "{method} {coordinates} {activation}: {z}");
            }
        }
    }
}

#[test]
fn one_training_point_agrees_with_quadrature_in_marginal_coordinates() {
    one_training_point_agrees_with_quadrature_in(Coordinates::Marginal);
}

#[test]
fn one_training_point_agrees_with_quadrature_in_repriorised_coordinates() {
    one_training_point_agrees_with_quadrature_in(Coordinates::Repriorised);
}

#[test]
fn one_training_point_agrees_with_quadrature_in_standard_coordinates() {
    one_training_point_agrees_with_quadrature_in(Coordinates::Standard);
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
            let make = || {
                Posterior::new(
                    Arc::clone(&model),
                    PosteriorSettings::in_space(coordinates, space),
                )
                .unwrap()
            };
            let schedule = Schedule {
                chains: 4,
                warmup: 300,
                draws: 2500,
                thin: 2,
                seed: 4,
            };
            let chains = sample_on(make, &settings(Method::HmcInfinite), schedule, 2);
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
    let architecture = Composition::fully_connected(d, &[], 1, Activation::Identity);
    let model =
        Arc::new(Model::new(architecture, 0.5, &x, y, &x[..d], InputReduction::Auto).unwrap());
    // the marginal coordinates have nothing left to sample: their prediction is the closed form
    let marginal = || Posterior::new(Arc::clone(&model), Coordinates::Marginal).unwrap();
    let empty = Collect {
        positions: vec![vec![]],
        statistics: vec![],
        log_ratios: vec![],
    };
    let [exact_mean, exact_square] = recorded(&[empty], marginal);
    for method in exact_methods() {
        let make = || Posterior::new(Arc::clone(&model), Coordinates::Standard).unwrap();
        let schedule = Schedule {
            chains: 4,
            warmup: 300,
            draws: 3000,
            thin: 5,
            seed: 5,
        };
        let chains = sample_on(make, &settings(method), schedule, 2);
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
    let chains = sample_on(
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
