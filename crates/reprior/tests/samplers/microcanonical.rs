//! Microcanonical Langevin steps: how far their law is off, that it is right as they become small, and what warm-up finds.

use std::sync::Arc;

use reprior::chain::{Chain, Collect, Schedule};
use reprior::compute::{Purpose, Stream};
use reprior::model::{InputReduction, Model};
use reprior::network::{Activation, Composition};
use reprior::posterior::{Coordinates, EvaluationError, Posterior, Target};
use reprior::sampler::{Method, SamplerSettings};

use super::{Line, SIGMA, Y, sample_on, settings, z_score};

/// Independent normal coordinates, N(0, 1/(1 + κ_i)) with κ from 0 to 3.
struct Gaussian(Vec<f64>);

impl Gaussian {
    fn new(dimension: usize) -> Self {
        let at = |i: usize| 3.0 * (i as f64 / (dimension - 1) as f64).powi(2);
        Self((0..dimension).map(at).collect())
    }

    /// Σ_i z_i²(1 + κ_i)/d, whose mean is 1.
    fn mean_square(&self, z: &[f64]) -> f64 {
        let terms = z.iter().zip(&self.0).map(|(z, k)| z * z * (1.0 + k));
        terms.sum::<f64>() / z.len() as f64
    }
}

impl Target for Gaussian {
    type Real = f64;
    fn dim(&self) -> usize {
        self.0.len()
    }
    fn log_ratio(&mut self, z: &[f64]) -> Result<f64, EvaluationError> {
        let terms = z.iter().zip(&self.0).map(|(z, k)| k * z * z);
        Ok(-0.5 * terms.sum::<f64>())
    }
    fn log_ratio_and_gradient(
        &mut self,
        z: &[f64],
        gradient: &mut [f64],
    ) -> Result<f64, EvaluationError> {
        for ((g, z), k) in gradient.iter_mut().zip(z).zip(&self.0) {
            *g = -k * z;
        }
        self.log_ratio(z)
    }
}

const SCHEDULE: Schedule = Schedule {
    chains: 4,
    warmup: 1000,
    draws: 10_000,
    thin: 4,
    seed: 31,
};

/// Mean of a function of positions, and its standard error.
fn mean_and_error<R>(chains: &[Collect<R>], f: impl Fn(&[R]) -> f64) -> [f64; 2] {
    let values = |c: &Collect<R>| c.positions.iter().map(|z| f(z)).collect();
    let values: Vec<Vec<f64>> = chains.iter().map(values).collect();
    let all = values.concat();
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    // the z-score of a mean that is wrong by 1
    [mean, 1.0 / z_score(&values, mean - 1.0)]
}

/// E[ΔE²]/d of the recorded steps.
fn energy_variance(chains: &[Collect<f64>]) -> f64 {
    let errors = chains.iter().flat_map(|c| &c.statistics);
    let squares: Vec<f64> = errors
        .map(|s| s.energy_error.unwrap_or(f64::INFINITY).powi(2))
        .collect();
    let dimension = chains[0].positions[0].len();
    squares.iter().sum::<f64>() / (squares.len() * dimension) as f64
}

/// The mean square of a Gaussian is too large by an amount ∝ h²: four times for steps twice as long, up to the next order.
#[test]
fn the_bias_falls_with_the_square_of_the_step() {
    let target = Gaussian::new(50);
    let bias = |h: f64| {
        let settings = SamplerSettings {
            step_size: Some(h),
            trajectory: Some(0.8),
            ..settings(Method::Mclmc)
        };
        let chains = sample_on(|| Gaussian::new(50), &settings, SCHEDULE, 2);
        let [mean, error] = mean_and_error(&chains, |z| target.mean_square(z));
        [mean - 1.0, error]
    };
    let [[long, long_error], [middle, error], [short, short_error]] = [0.8, 0.4, 0.2].map(bias);
    // measured: 0.131, 0.0303, 0.0095, errors about 0.001
    let spread = 4.5 * (long_error + 4.0 * error);
    assert!(
        (long - 4.0 * middle).abs() < spread + 0.15 * long,
        "{long} {middle} {spread}"
    );
    let spread = 4.5 * (error + 4.0 * short_error);
    assert!(
        (middle - 4.0 * short).abs() < spread + 0.05 * middle,
        "{middle} {short} {spread}"
    );
    assert!(middle > 20.0 * error, "{middle} {error}");
}

/// Warm-up finds the energy variance that is asked for and the width of the posterior; the bias is then a few per cent, and seen.
#[test]
fn warm_up_finds_step_and_length() {
    for (variance, largest) in [(None, 0.04), (Some(2e-2), 0.15), (Some(1e-6), 0.01)] {
        for dimension in [10, 50] {
            let target = Gaussian::new(dimension);
            let settings = SamplerSettings {
                energy_variance: variance,
                ..settings(Method::Mclmc)
            };
            let chains = sample_on(|| Gaussian::new(dimension), &settings, SCHEDULE, 2);
            let [mean, error] = mean_and_error(&chains, |z| target.mean_square(z));
            let bias = mean - 1.0;
            assert!(
                bias.abs() < largest + 4.5 * error,
                "{dimension} {variance:?} {bias} ± {error}"
            );
            if variance != Some(1e-6) {
                assert!(
                    bias > 4.5 * error,
                    "{dimension} {variance:?} {bias} ± {error}"
                );
            }
            // the last step of an adaptation with a memory of 75 is off by up to √(2/150)/6 of itself, E[ΔE²] by six times that
            let ratio = energy_variance(&chains) / variance.unwrap_or(5e-4);
            assert!(
                (0.55..1.8).contains(&ratio),
                "{dimension} {variance:?} {ratio}"
            );
            let mut chain = Chain::start(0, SCHEDULE, &settings, Gaussian::new(dimension)).unwrap();
            chain.advance_to(1000, &mut Collect::default()).unwrap();
            let total: f64 = target.0.iter().map(|k| 1.0 / (1.0 + k)).sum();
            let width = (total / dimension as f64).sqrt();
            let found = chain.snapshot().tuned.unwrap();
            assert!((found / width - 1.0).abs() < 0.25, "{found} {width}");
        }
    }
}

/// In one dimension no force turns a direction; what is left is corrected, and exact.
#[test]
fn in_one_dimension_it_is_exact() {
    /// [`Line`] with z₂ at its prior integrated out.
    struct Point;
    impl Target for Point {
        type Real = f64;
        fn dim(&self) -> usize {
            1
        }
        fn log_ratio(&mut self, z: &[f64]) -> Result<f64, EvaluationError> {
            Ok(-0.5 * (Y - z[0]).powi(2) / (SIGMA * SIGMA + 0.25))
        }
        fn log_ratio_and_gradient(
            &mut self,
            z: &[f64],
            gradient: &mut [f64],
        ) -> Result<f64, EvaluationError> {
            gradient[0] = (Y - z[0]) / (SIGMA * SIGMA + 0.25);
            self.log_ratio(z)
        }
    }
    let total = SIGMA * SIGMA + 1.25;
    let (mean, variance) = (Y / total, 1.0 - 1.0 / total);
    let chains = sample_on(|| Point, &settings(Method::Mclmc), SCHEDULE, 2);
    for (f, exact) in [
        (&(|z: f64| z) as &dyn Fn(f64) -> f64, mean),
        (&|z: f64| (z - mean).powi(2), variance),
    ] {
        let [found, error] = mean_and_error(&chains, |z| f(z[0]));
        assert!(
            (found - exact).abs() < 4.5 * error,
            "{found} {exact} ± {error}"
        );
    }
    // in two dimensions it is not, and the smaller the step the nearer
    let settings = SamplerSettings {
        energy_variance: Some(1e-7),
        ..settings(Method::Mclmc)
    };
    let long = Schedule {
        thin: 20,
        ..SCHEDULE
    };
    let chains = sample_on(|| Line, &settings, long, 2);
    let [found, error] = mean_and_error(&chains, |z| z[0]);
    assert!(
        (found - mean).abs() < 4.5 * error,
        "{found} {mean} ± {error}"
    );
}

/// Two narrow layers and noisy rows: a posterior that is far from Gaussian, in every coordinate system.
#[test]
fn small_steps_agree_with_the_corrected_sampler() {
    let (n, d) = (12, 2);
    let (mut x, mut noise) = (vec![0.0; n * d], vec![0.0; n]);
    let mut stream = Stream::new(16, 0, Purpose::Initial, 0);
    stream.fill_normal(&mut x);
    stream.fill_normal(&mut noise);
    let function = |x: &[f64]| (2.0 * x[0]).sin() + 0.5 * x[1];
    let y: Vec<f64> = x
        .chunks(d)
        .zip(&noise)
        .map(|(x, e)| function(x) + 0.3 * e)
        .collect();
    let architecture = Composition::fully_connected(d, &[3, 3], 1, Activation::Relu);
    let model = Model::<f64>::new(architecture, 0.3, &x, y, &[], InputReduction::Auto).unwrap();
    let model = Arc::new(model);
    for coordinates in [
        Coordinates::Marginal,
        Coordinates::Repriorised,
        Coordinates::Standard,
    ] {
        let make = || Posterior::new(Arc::clone(&model), coordinates).unwrap();
        let found = |settings: &SamplerSettings, thin| {
            let schedule = Schedule {
                chains: 4,
                warmup: 1000,
                draws: 2000,
                thin,
                seed: 17,
            };
            let chains = sample_on(make, settings, schedule, 2);
            let fits: Vec<Vec<f64>> = chains.iter().map(|c| c.log_ratios.clone()).collect();
            let mean = fits.concat().iter().sum::<f64>() / fits.concat().len() as f64;
            let fit = [mean, 1.0 / z_score(&fits, mean - 1.0)];
            let norm = mean_and_error(&chains, |z| z.iter().map(|z| z * z).sum());
            [fit, norm]
        };
        let exact = found(&settings(Method::Mams), 2);
        let small = SamplerSettings {
            energy_variance: Some(1e-4),
            ..settings(Method::Mclmc)
        };
        for ([a, e], [b, f]) in exact.into_iter().zip(found(&small, 15)) {
            let z = (a - b) / (e * e + f * f).sqrt();
            assert!(z.abs() < 4.5, "{coordinates}: {a} ± {e}, {b} ± {f}");
        }
    }
}
