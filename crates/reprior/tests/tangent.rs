//! Tangent coordinates: exact for linear networks, determinants against differences of the map and against the series, gradients
//! against differences of ℓ, and the law of tiny networks against quadrature and against the coordinates of their weights.

use std::sync::Arc;

use reprior::chain::Schedule;
use reprior::compute::kernels::log_determinant;
use reprior::compute::{Purpose, Stream};
use reprior::model::likelihood::Categorical;
use reprior::model::{InputReduction, Model, Noise, NoisePrior};
use reprior::network::layer::Layer;
use reprior::network::{Activation, Composition, LayerScale};
use reprior::posterior::projection::Projection;
use reprior::posterior::tangent::TangentMap;
use reprior::posterior::{
    Coordinates, EvaluationError, Posterior, PosteriorError, PosteriorSettings, Recorder,
    Regulariser, TangentDeterminant, Target,
};
use reprior::sampler::{Method, SamplerSettings};

use crate::common::{mean_and_error, sample, settings};

fn noise(count: usize, index: u64) -> Vec<f64> {
    let mut values = vec![0.0; count];
    Stream::new(51, 0, Purpose::Initial, index).fill_normal(&mut values);
    values
}

fn model(
    architecture: Composition,
    rows: usize,
    sigma: impl Into<Noise>,
    reduction: InputReduction,
) -> Arc<Model<f64>> {
    let x = noise(rows * architecture.inputs(), 1);
    let y = noise(rows * architecture.outputs, 2);
    let test = noise(2 * architecture.inputs(), 3);
    Arc::new(Model::new(architecture, sigma, &x, y, &test, reduction).unwrap())
}

const EXACT: TangentDeterminant = TangentDeterminant::Exact;

fn series(terms: usize, probes: usize) -> TangentDeterminant {
    TangentDeterminant::Series { terms, probes }
}

fn hessian(terms: usize, probes: usize) -> TangentDeterminant {
    TangentDeterminant::Hessian { terms, probes }
}

/// A regulariser and how the determinant is computed.
#[derive(Debug, Clone, Copy)]
struct Kind(Regulariser, TangentDeterminant);

impl From<TangentDeterminant> for Kind {
    fn from(determinant: TangentDeterminant) -> Self {
        Self(Regulariser::Matched, determinant)
    }
}

impl From<Kind> for PosteriorSettings {
    fn from(Kind(regulariser, determinant): Kind) -> Self {
        Self {
            regulariser,
            determinant: Some(determinant),
            seed: 5,
            ..Coordinates::Tangent.into()
        }
    }
}

fn map(model: &Arc<Model<f64>>, kind: impl Into<Kind>) -> TangentMap<f64> {
    TangentMap::new(Arc::clone(model), kind.into().into()).unwrap()
}

fn refusable(
    model: &Arc<Model<f64>>,
    kind: impl Into<Kind>,
) -> Result<Posterior<f64>, PosteriorError> {
    Posterior::new(Arc::clone(model), kind.into())
}

fn posterior(model: &Arc<Model<f64>>, kind: impl Into<Kind>) -> Posterior<f64> {
    refusable(model, kind).unwrap()
}

/// Linear in all its parameters: nothing below the readout. The constant is log N(y; 0, σ²I + K) without its 2π.
#[test]
fn a_linear_network_is_white() {
    for (sigma, outputs) in [(vec![0.1], 1), (vec![0.3, 0.05], 2)] {
        let architecture = Composition::fully_connected(3, &[], outputs, Activation::Identity);
        let model = model(architecture, 5, Noise::Known(sigma), InputReduction::Auto);
        for determinant in [EXACT, series(2, 3)] {
            let mut target = posterior(&model, determinant);
            let mut marginal = Posterior::new(Arc::clone(&model), Coordinates::Marginal).unwrap();
            let constant = marginal.log_ratio(&[]).unwrap();
            for index in 0..20 {
                let phi = noise(target.dim(), 10 + index);
                let value = target.log_ratio(&phi).unwrap();
                assert!((value - constant).abs() < 1e-8, "{value} {constant}");
                if index < 3 {
                    let mut gradient = vec![f64::NAN; phi.len()];
                    target.log_ratio_and_gradient(&phi, &mut gradient).unwrap();
                    assert!(gradient.iter().all(|g| g.abs() < 1e-6), "{gradient:?}");
                }
            }
            let mut sampler = SamplerSettings {
                method: Method::Pcn,
                step_size: Some(1.0),
                ..SamplerSettings::default()
            }
            .sampler();
            let mut state = sampler
                .init(&mut target, noise(target_dim(&model), 4))
                .unwrap();
            for transition in 0..100 {
                let mut stream = Stream::new(1, 0, Purpose::Transition, transition);
                let info = sampler.step(&mut target, &mut state, &mut stream).unwrap();
                assert!(info.is_accepted && info.acceptance_rate > 1.0 - 1e-8);
            }
        }
    }
}

fn target_dim(model: &Model<f64>) -> usize {
    Posterior::dimension(model, Coordinates::Standard)
}

fn networks() -> Vec<(Composition, usize, InputReduction)> {
    let mut biasless = Composition::fully_connected(2, &[4, 3], 2, Activation::Tanh);
    *biasless.hidden_scales_mut()[1] = LayerScale {
        weight: 0.8,
        bias: 0.0,
    };
    let mut composed = Composition::fully_connected(2, &[3], 1, Activation::Gelu);
    let function = Activation::Identity;
    composed.layers.push(Layer::Activation { function });
    vec![
        (biasless.clone(), 3, InputReduction::Off),
        (
            Composition::fully_connected(6, &[3], 1, Activation::Erf),
            4,
            InputReduction::Auto,
        ),
        (biasless, 2, InputReduction::On),
        (composed, 3, InputReduction::Auto),
    ]
}

/// θ = R(φ) of the model has the outputs that the model's own posterior gives it, and the determinant is that of central
/// differences of R.
#[test]
fn determinants_are_those_of_central_differences() {
    let maps = [Kind::from(EXACT), Kind(Regulariser::Value(0.8), EXACT)];
    let networks = networks()
        .into_iter()
        .flat_map(|n| maps.map(|map| (n.clone(), map)));
    for ((architecture, rows, reduction), kind) in networks {
        let model = model(architecture, rows, 0.7, reduction);
        let (mut tangent, mut target) = (map(&model, kind), posterior(&model, kind));
        let dim = target.dim();
        assert_eq!(dim, target_dim(&model));
        let mut standard = Posterior::new(Arc::clone(&model), Coordinates::Standard).unwrap();
        for index in 0..5 {
            let phi = noise(dim, 20 + index);
            let h = 1e-4;
            let mut map = |step: f64, parameter: usize| {
                let mut moved = phi.clone();
                moved[parameter] += step;
                tangent.weights(&moved).unwrap().to_vec()
            };
            let mut jacobian = Vec::new();
            for parameter in 0..dim {
                let [a, b] = [h, 2.0 * h].map(|h| {
                    let (up, down) = (map(h, parameter), map(-h, parameter));
                    let pairs = up.into_iter().zip(down);
                    pairs.map(|(up, down)| up - down).collect::<Vec<f64>>()
                });
                let column = a.iter().zip(&b).map(|(a, b)| (8.0 * a - b) / (12.0 * h));
                jacobian.extend(column);
            }
            let (value, sign) = log_determinant(&jacobian, dim);
            let exact = tangent.log_determinant(&phi).unwrap();
            assert_eq!(exact.sign, Some(sign));
            assert!(
                (exact.value - value).abs() < 1e-7 * (1.0 + value.abs()),
                "{exact:?} {value}"
            );
            let theta = tangent.weights(&phi).unwrap().to_vec();
            let norms = |z: &[f64]| z.iter().map(|z| z * z).sum::<f64>();
            let expected = standard.log_ratio(&theta).unwrap() - 0.5 * norms(&theta)
                + 0.5 * norms(&phi)
                + value;
            match target.log_ratio(&phi) {
                Ok(found) => assert!(sign > 0.0 && (found - expected).abs() < 1e-6),
                Err(EvaluationError::Recoverable(_)) => assert!(sign <= 0.0),
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// The map of eq. 10 with the inverse of K by elimination: θ = φ + Jᵀ(λI + JJᵀ)⁻¹(y − f(φ)), of one output and three rows, J and f
/// by differences.
#[test]
fn with_a_regulariser_the_map_is_a_step_of_levenberg_and_marquardt() {
    let rows = 3;
    let architecture = Composition::fully_connected(1, &[4], 1, Activation::Erf);
    let (x, targets) = (noise(rows, 1), noise(rows, 2));
    let reduction = InputReduction::Off;
    let model = Model::new(architecture, 0.7, &x, targets.clone(), &x, reduction);
    let model = Arc::new(model.unwrap());
    let mut standard = Posterior::new(Arc::clone(&model), Coordinates::Standard).unwrap();
    let dim = standard.dim();
    for (regulariser, lambda) in [
        (Regulariser::Value(0.2), 0.2),
        (Regulariser::PerRow(2.0), 2.0 * 3.0 * 0.49),
    ] {
        let mut tangent = map(&model, Kind(regulariser, EXACT));
        let phi = noise(dim, 60);
        let mut outputs = |weights: &[f64]| -> Vec<f64> {
            let mut recorder = Recorder::new(Arc::clone(&model));
            let mut stream = Stream::new(1, 0, Purpose::Recording, 0);
            let record = recorder.record(&mut standard, weights, &mut stream);
            record.unwrap().outputs.clone()
        };
        let f = outputs(&phi);
        let jacobian: Vec<Vec<f64>> = (0..dim)
            .map(|parameter| {
                let [up, down] = [1e-5, -1e-5].map(|h| {
                    let mut moved = phi.clone();
                    moved[parameter] += h;
                    outputs(&moved)
                });
                let pairs = up.into_iter().zip(down);
                pairs.map(|(up, down)| (up - down) / 2e-5).collect()
            })
            .collect();
        let entry = |i: usize, j: usize| jacobian.iter().map(|c| c[i] * c[j]).sum::<f64>();
        let k = |i, j| entry(i, j) + if i == j { lambda } else { 0.0 };
        // Gauss-Seidel: K is positive definite
        let mut v = vec![0.0; rows];
        for _ in 0..20_000 {
            for i in 0..rows {
                let others: f64 = (0..rows).filter(|&j| j != i).map(|j| k(i, j) * v[j]).sum();
                v[i] = (targets[i] - f[i] - others) / k(i, i);
            }
        }
        let theta = tangent.weights(&phi).unwrap();
        for (parameter, column) in jacobian.iter().enumerate() {
            let step: f64 = column.iter().zip(&v).map(|(j, v)| j * v).sum();
            assert!((theta[parameter] - phi[parameter] - step).abs() < 1e-7);
        }
    }
}

/// For all parameters, both maps, all determinants. The determinant's third derivatives are differences themselves: the error is
/// below 10⁻⁷ of the largest entry.
#[test]
fn gradients_are_those_of_central_differences_of_the_density() {
    let damped = Regulariser::Value(0.8);
    let kinds = [
        Kind::from(EXACT),
        Kind::from(series(3, 2)),
        Kind(damped, EXACT),
        Kind(damped, series(3, 2)),
        Kind(Regulariser::PerRow(0.5), hessian(1, 2)),
        Kind(Regulariser::PerRow(0.5), hessian(4, 2)),
    ];
    let mut compared = 0;
    for (architecture, rows, reduction) in networks() {
        let outputs = architecture.outputs;
        let scales = [0.7, 0.9][..outputs].to_vec();
        let model = model(architecture, rows, Noise::Known(scales), reduction);
        for kind in kinds {
            let mut target = posterior(&model, kind);
            for index in 0..2 {
                let phi = noise(target.dim(), 20 + index);
                let mut gradient = vec![f64::NAN; phi.len()];
                let Ok(value) = target.log_ratio_and_gradient(&phi, &mut gradient) else {
                    continue;
                };
                assert_eq!(value, target.log_ratio(&phi).unwrap());
                let largest = gradient.iter().fold(0.0_f64, |a, g| a.max(g.abs()));
                for parameter in 0..phi.len() {
                    let mut at = |step: f64| {
                        let mut moved = phi.clone();
                        moved[parameter] += step;
                        target.log_ratio(&moved).unwrap()
                    };
                    let h = 3e-4;
                    let [a, b] = [h, 2.0 * h].map(|h| at(h) - at(-h));
                    let numeric = (8.0 * a - b) / (12.0 * h);
                    let error = (gradient[parameter] - numeric).abs();
                    assert!(
                        error < 1e-7 * (1.0 + largest),
                        "{kind:?} {parameter}: {} {numeric}",
                        gradient[parameter]
                    );
                }
                compared += 1;
            }
        }
    }
    assert!(compared > 30, "{compared} of 48 did not fold");
}

/// At width 128 the eigenvalues of E are small: more terms take the series nearer to the exact determinant, as far as the
/// probes allow (with 200 of them 0.1), and the last of six is below 0.002.
#[test]
fn the_series_tends_to_the_exact_determinant() {
    let mut worst = [0.0_f64; 3];
    let model = model(
        Composition::fully_connected(1, &[128], 1, Activation::Erf),
        3,
        0.5,
        InputReduction::Auto,
    );
    for index in 0..2 {
        let phi = noise(target_dim(&model), 40 + index);
        let exact = map(&model, EXACT).log_determinant(&phi).unwrap();
        assert_eq!(exact.sign, Some(1.0));
        for (at, terms) in [1, 2, 6].into_iter().enumerate() {
            let mut map = map(&model, series(terms, 200));
            let found = map.log_determinant(&phi).unwrap();
            let error = (found.value - exact.value).abs();
            assert!((found.known - exact.known).abs() < 1e-10);
            worst[at] = worst[at].max(error);
            if terms == 6 {
                assert!(error < 4.0 * found.standard_error + 2.0 * found.last_term.abs());
                assert!(found.standard_error < 0.12 && found.last_term.abs() < 2e-3);
            }
        }
    }
    assert!(worst[2] < worst[1] && worst[1] < worst[0], "{worst:?}");
}

/// One hidden unit and one row: θ is three numbers, (v, w, b).
fn tiny() -> Arc<Model<f64>> {
    let mut architecture = Composition::fully_connected(1, &[1], 1, Activation::Tanh);
    *architecture.hidden_scales_mut()[0] = LayerScale {
        weight: 0.4,
        bias: 0.2,
    };
    architecture.readout_scale = LayerScale {
        weight: 1.0,
        bias: 0.5,
    };
    let model = Model::new(
        architecture,
        1.0,
        &[1.2],
        vec![1.5],
        &[0.4],
        InputReduction::Auto,
    );
    Arc::new(model.unwrap())
}

/// What moments are taken of.
fn statistics(theta: &[f64]) -> [f64; 5] {
    let [v, w, b] = theta[..] else {
        panic!("three weights")
    };
    [b, v * w, w * w, v * v, b * b]
}

#[test]
fn a_tiny_network_has_the_moments_of_quadrature() {
    let model = tiny();
    let mut standard = Posterior::new(Arc::clone(&model), Coordinates::Standard).unwrap();
    let steps = 84;
    let grid: Vec<f64> = (0..=steps)
        .map(|i| -7.0 + 14.0 * f64::from(i) / f64::from(steps))
        .collect();
    let (mut total, mut sums) = (0.0, [0.0; 5]);
    for &v in &grid {
        for &w in &grid {
            for &b in &grid {
                let theta = [v, w, b];
                let prior = -0.5 * (v * v + w * w + b * b);
                let p = (prior + standard.log_ratio(&theta).unwrap()).exp();
                total += p;
                for (sum, value) in sums.iter_mut().zip(statistics(&theta)) {
                    *sum += p * value;
                }
            }
        }
    }
    let exact = sums.map(|sum| sum / total);
    let damped = Regulariser::Value(2.0);
    let matched = Regulariser::Matched;
    for (method, regulariser) in [
        (Method::Elliptical, matched),
        (Method::Pcn, matched),
        (Method::Rwm, matched),
        (Method::Langevin, matched),
        (Method::Langevin, damped),
        (Method::HmcInfinite, damped),
    ] {
        let kind = Kind(regulariser, EXACT);
        let schedule = Schedule {
            chains: 2,
            warmup: 500,
            draws: 10_000,
            thin: 2,
            seed: 3,
        };
        let make = || posterior(&model, kind);
        let chains = sample(make, &settings(method), schedule);
        let folds: u64 = chains
            .iter()
            .flat_map(|c| &c.statistics)
            .map(|s| s.divergences)
            .sum();
        // R folds where nearly none of the mass is
        assert!(folds < 200, "{method}: {folds} of 40,000");
        let mut map = map(&model, kind);
        let mut found = vec![Vec::new(); 5];
        // the same with every eighth draw, weighed as if the determinant had been left at what is known of it
        let (mut weight, mut weighed) = (0.0, [0.0; 5]);
        for chain in &chains {
            let mut own = vec![Vec::new(); 5];
            for (index, phi) in chain.positions.iter().enumerate() {
                let mut ratio = 0.0;
                if index % 8 == 0 {
                    let determinant = map.log_determinant(phi).unwrap();
                    ratio = (determinant.known - determinant.value).exp();
                }
                let theta = map.weights(phi).unwrap();
                weight += ratio;
                for (which, value) in statistics(theta).into_iter().enumerate() {
                    own[which].push(value);
                    weighed[which] += ratio * value;
                }
            }
            for (found, own) in found.iter_mut().zip(own) {
                found.push(own);
            }
        }
        let mut farthest = 0.0_f64;
        for (which, (found, exact)) in found.iter().zip(exact).enumerate() {
            let (mean, error) = mean_and_error(found);
            let z = (mean - exact) / error;
            assert!(z.abs() < 4.0, "{method} {kind:?} {which}: {z}");
            farthest = farthest.max((weighed[which] / weight - exact).abs() / error);
        }
        // the same density for all methods: it is enough that those with the most effective draws see the determinant
        let is_plain = !method.needs_gradients();
        let sees = farthest > 6.0;
        assert!(
            sees || !is_plain,
            "{method}: it takes more draws: {farthest}"
        );
    }
}

/// Two rows, three units: moments of the outputs and weights against those of the weights' own coordinates, predictions by
/// the recorder.
#[test]
fn a_small_network_has_the_law_that_its_weights_have() {
    let mut architecture = Composition::fully_connected(1, &[4], 1, Activation::Erf);
    *architecture.hidden_scales_mut()[0] = LayerScale {
        weight: 0.5,
        bias: 0.2,
    };
    let model = model(architecture, 2, 1.0, InputReduction::Auto);
    let schedule = Schedule {
        chains: 2,
        warmup: 500,
        draws: 6000,
        thin: 2,
        seed: 4,
    };
    let settings = settings(Method::Elliptical);
    let record = |positions: &[Vec<f64>], tangent: bool| -> [Vec<f64>; 3] {
        let mut map = map(&model, EXACT);
        let mut own = if tangent {
            posterior(&model, EXACT)
        } else {
            Posterior::new(Arc::clone(&model), Coordinates::Standard).unwrap()
        };
        let projection = Projection::new(&model, 1, 1);
        let mut recorder = Recorder::new(Arc::clone(&model)).with_projection(projection);
        let mut all = [Vec::new(), Vec::new(), Vec::new()];
        for (index, z) in positions.iter().enumerate() {
            let theta = if tangent { map.weights(z).unwrap() } else { z };
            let mut stream = Stream::new(1, 0, Purpose::Recording, index as u64);
            let record = recorder.record(&mut own, z, &mut stream).unwrap();
            all[0].push(record.mean[0]);
            all[1].push(record.mean_squares[0]);
            all[2].push(theta.iter().map(|x| x * x).sum());
        }
        all
    };
    let make = || posterior(&model, EXACT);
    let tangent = sample(make, &settings, schedule);
    let folds = tangent.iter().flat_map(|c| &c.statistics);
    let folds: u64 = folds.map(|s| s.divergences).sum();
    let make = || Posterior::new(Arc::clone(&model), Coordinates::Standard).unwrap();
    let standard = sample(make, &settings, schedule);
    let [tangent, standard] = [(tangent, true), (standard, false)].map(|(chains, is_tangent)| {
        let records: Vec<_> = chains
            .iter()
            .map(|c| record(&c.positions, is_tangent))
            .collect();
        [0, 1, 2].map(|which| {
            let chains: Vec<Vec<f64>> = records.iter().map(|r| r[which].clone()).collect();
            mean_and_error(&chains)
        })
    });
    for ((a, error_a), (b, error_b)) in tangent.into_iter().zip(standard) {
        let z = (a - b) / error_a.hypot(error_b);
        assert!(z.abs() < 4.0, "{a} {b} {z}");
    }
    assert!(folds < 10, "{folds}");
}

/// The spectral radius of E, and with it folds, vanishes with the width: prior draws at which the map folds.
#[test]
fn folds_vanish_with_the_width() {
    let count = |width: usize| {
        let architecture = Composition::fully_connected(1, &[width], 1, Activation::Tanh);
        let model = model(architecture, 2, 0.3, InputReduction::Auto);
        let mut map = map(&model, EXACT);
        let draws = (0..60).map(|index| noise(target_dim(&model), 100 + index));
        let draws: Vec<Vec<f64>> = draws.collect();
        let folded = draws.iter().filter(|phi| {
            let found = map.log_determinant(phi).unwrap();
            found.sign != Some(1.0)
        });
        folded.count()
    };
    let (narrow, wide) = (count(1), count(48));
    assert!(narrow > wide, "{narrow} {wide}");
}

#[test]
fn what_tangent_coordinates_are_not_for_is_refused() {
    let architecture = || Composition::fully_connected(1, &[2], 1, Activation::Tanh);
    let known = model(architecture(), 2, 0.5, InputReduction::Auto);
    let learned = Noise::Learned(NoisePrior::default());
    let learned = model(architecture(), 2, learned, InputReduction::Auto);
    let refused = |model, determinant| refusable(model, determinant).err();
    assert_eq!(refused(&learned, EXACT), Some(PosteriorError::TangentNoise));
    assert_eq!(refused(&known, series(0, 1)), Some(PosteriorError::Series));
    assert_eq!(refused(&known, series(1, 0)), Some(PosteriorError::Series));
    let other = Model::<f64>::new(
        architecture(),
        0.5,
        &[0.1],
        vec![1.0],
        &[],
        InputReduction::Auto,
    );
    let other = Arc::new(other.unwrap().with_likelihood(Arc::new(Categorical)));
    assert_eq!(
        refused(&other, EXACT),
        Some(PosteriorError::TangentLikelihood)
    );
    let alone = Some(PosteriorError::HessianDeterminant);
    assert_eq!(refused(&known, hessian(2, 4)), alone);
    let negative = refusable(&known, Kind(Regulariser::Value(-1.0), EXACT)).err();
    assert_eq!(negative, Some(PosteriorError::Regulariser));
    for text in [
        "series(1)",
        "hessian(0,1)",
        "exact()",
        "laplace(2,2)",
        "hessian",
    ] {
        assert!(text.parse::<TangentDeterminant>().is_err(), "{text}");
    }
    for determinant in [EXACT, series(4, 8), hessian(2, 3)] {
        assert_eq!(determinant.to_string().parse(), Ok(determinant));
    }
    assert_eq!(
        series(4, 8).description(),
        "approximate: 4 Taylor terms, 8 Hutchinson probes"
    );
}
