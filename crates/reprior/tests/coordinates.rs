//! Every likelihood, noise and regulariser in every coordinate system: gradients against central differences, the map T
//! against its Jacobian, and the coordinates against each other.

use std::sync::Arc;

use reprior::compute::kernels::Cholesky;
use reprior::compute::{Purpose, Stream};
use reprior::model::likelihood::{
    Bernoulli, Categorical, Gaussian, GaussianHeteroscedastic, Likelihood, Poisson, StudentT,
    StudentTHeteroscedastic,
};
use reprior::model::{InputReduction, Model, Noise, NoisePrior};
use reprior::network::{Activation, Composition};
use reprior::posterior::projection::Projection;
use reprior::posterior::target::Ellipse;
use reprior::posterior::{
    Coordinates, Posterior, PosteriorError, PosteriorSettings, Recorder, Regulariser, Space, Target,
};

const SPACES: [Space; 3] = [Space::Feature, Space::Data, Space::DataSymmetric];
const REGULARISERS: [Regulariser; 3] = [
    Regulariser::Matched,
    Regulariser::Value(0.7),
    Regulariser::PerRow(2.0),
];

fn noise(count: usize, index: u64) -> Vec<f64> {
    let mut values = vec![0.0; count];
    Stream::new(12, 0, Purpose::Initial, index).fill_normal(&mut values);
    values
}

fn learned(per_output: bool) -> Noise {
    Noise::Learned(NoisePrior {
        per_output,
        ..Default::default()
    })
}

fn likelihoods(outputs: usize) -> Vec<(Arc<dyn Likelihood>, Noise)> {
    let each: Vec<f64> = (0..outputs).map(|j| 0.3 + 0.2 * j as f64).collect();
    let mut all: Vec<(Arc<dyn Likelihood>, Noise)> = Vec::new();
    for noise in [
        Noise::from(0.4),
        Noise::Known(each),
        learned(false),
        learned(true),
    ] {
        all.push((Arc::new(Gaussian), noise.clone()));
        all.push((Arc::new(StudentT::new(3.0).unwrap()), noise));
    }
    if outputs.is_multiple_of(2) {
        all.push((Arc::new(GaussianHeteroscedastic::default()), learned(false)));
        let heavy = StudentTHeteroscedastic::new(3.0).unwrap();
        all.push((Arc::new(heavy), learned(false)));
    }
    all.push((Arc::new(Categorical), Noise::from(1.0)));
    all.push((Arc::new(Bernoulli), Noise::from(1.0)));
    let means = (1..=outputs).map(|j| j as f64).collect();
    all.push((Arc::new(Poisson::new(means).unwrap()), Noise::from(1.0)));
    all
}

/// A model whose targets are drawn from its likelihood at random outputs.
fn model(
    hidden: &[usize],
    rows: usize,
    outputs: usize,
    likelihood: &Arc<dyn Likelihood>,
    noise_scale: &Noise,
) -> Arc<Model<f64>> {
    let architecture = Composition::fully_connected(3, hidden, outputs, Activation::Gelu);
    let mut targets = vec![0.0; rows * outputs];
    let mut stream = Stream::new(13, 0, Purpose::Initial, 0);
    for row in 0..rows {
        let mut y = vec![0.0; outputs];
        likelihood.simulate(
            &noise(outputs, 70 + row as u64),
            &vec![0.4; outputs],
            &mut stream,
            &mut y,
        );
        for (j, y) in y.into_iter().enumerate() {
            targets[j * rows + row] = y;
        }
    }
    let (x, test) = (noise(rows * 3, 1), noise(6, 2));
    let reduction = InputReduction::Auto;
    let model = Model::new(
        architecture,
        noise_scale.clone(),
        &x,
        targets,
        &test,
        reduction,
    );
    Arc::new(model.unwrap().with_likelihood(Arc::clone(likelihood)))
}

fn relative(a: f64, b: f64) -> f64 {
    (a - b).abs() / (1.0 + b.abs())
}

fn posterior(
    model: Arc<Model<f64>>,
    coordinates: Coordinates,
    space: Space,
    regulariser: Regulariser,
) -> Posterior<f64> {
    let settings = PosteriorSettings {
        space: Some(space),
        regulariser,
        ..coordinates.into()
    };
    Posterior::new(model, settings).unwrap()
}

/// Along random directions and along some axes, by fourth-order differences.
fn check_gradient(target: &mut Posterior<f64>, what: &str) {
    let z = noise(target.dim(), 9);
    let mut gradient = vec![f64::NAN; z.len()];
    let value = target.log_ratio_and_gradient(&z, &mut gradient).unwrap();
    assert!(relative(value, target.log_ratio(&z).unwrap()) < 1e-13);
    for trial in 0..7_usize {
        let mut direction = noise(z.len(), 20 + trial as u64);
        if trial > 2 {
            direction.fill(0.0);
            direction[(trial * 7919) % z.len()] = 1.0;
        }
        let mut at = |step: f64| {
            let moved: Vec<f64> = z
                .iter()
                .zip(&direction)
                .map(|(z, d)| z + step * d)
                .collect();
            target.log_ratio(&moved).unwrap()
        };
        let h = 1e-4;
        let numeric = (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
        let exact: f64 = gradient.iter().zip(&direction).map(|(g, d)| g * d).sum();
        assert!(relative(exact, numeric) < 1e-6, "{what}: {exact} {numeric}");
    }
}

#[test]
fn gradients_agree_with_central_differences() {
    for (hidden, rows, outputs) in [
        (&[4][..], 6, 2),
        (&[9, 7], 5, 3),
        (&[], 6, 2),
        (&[70], 5, 1),
        (&[5], 8, 4),
        (&[9], 4, 4),
    ] {
        for (likelihood, noise) in likelihoods(outputs) {
            let model = model(hidden, rows, outputs, &likelihood, &noise);
            let check = |coordinates, space, regulariser| {
                let mut target = posterior(Arc::clone(&model), coordinates, space, regulariser);
                let what = format!("{likelihood:?} {noise:?} {coordinates} {space} {regulariser}");
                check_gradient(&mut target, &what);
            };
            check(Coordinates::Standard, Space::Data, Regulariser::Matched);
            for space in SPACES {
                if likelihood.is_gaussian() && !(hidden.is_empty() && noise == Noise::from(0.4)) {
                    let dimension = Posterior::dimension(&model, Coordinates::Marginal);
                    if dimension > 0 {
                        check(Coordinates::Marginal, space, Regulariser::Matched);
                    }
                }
                for regulariser in REGULARISERS {
                    check(Coordinates::Repriorised, space, regulariser);
                }
            }
        }
    }
}

/// Layers that are worked through in more than one block of units.
#[test]
fn gradients_of_wide_layers_agree_with_central_differences() {
    let likelihood: Arc<dyn Likelihood> = Arc::new(Gaussian);
    for (hidden, rows) in [(&[300][..], 5), (&[131, 3], 5), (&[127], 200)] {
        for noise_scale in [Noise::from(0.4), learned(true)] {
            let model = model(hidden, rows, 2, &likelihood, &noise_scale);
            for space in SPACES {
                let mut target = Posterior::new(
                    Arc::clone(&model),
                    PosteriorSettings::in_space(Coordinates::Marginal, space),
                )
                .unwrap();
                check_gradient(&mut target, &format!("{hidden:?} {space:?}"));
            }
        }
    }
}

/// What elliptical slice sampling evaluates is what it moves to.
#[test]
fn points_of_ellipses_are_points() {
    let likelihoods = likelihoods(2);
    for hidden in [&[][..], &[4], &[130], &[4, 3]] {
        for (likelihood, noise_scale) in &likelihoods {
            let model = model(hidden, 6, 2, likelihood, noise_scale);
            for coordinates in [
                Coordinates::Marginal,
                Coordinates::Repriorised,
                Coordinates::Standard,
            ] {
                if coordinates == Coordinates::Marginal && !likelihood.is_gaussian() {
                    continue;
                }
                let mut target = Posterior::new(Arc::clone(&model), coordinates).unwrap();
                let dim = target.dim();
                let mut point = vec![f64::NAN; dim];
                for pair in 0..2 {
                    let (position, direction) = (noise(dim, 80 + pair), noise(dim, 90 + pair));
                    for (trial, angle) in [0.3, -2.0, 1e-3].into_iter().enumerate() {
                        let mut ellipse = Ellipse {
                            position: &position,
                            direction: &direction,
                            point: &mut point,
                            is_new: trial == 0,
                        };
                        ellipse.write_point(0, angle);
                        let expected = target.log_ratio(ellipse.point).unwrap();
                        ellipse.point.fill(f64::NAN);
                        let value = target.log_ratio_on_ellipse(ellipse, angle).unwrap();
                        assert!(
                            relative(value, expected) < 1e-11,
                            "{hidden:?} {coordinates} {likelihood:?}: {value} {expected}"
                        );
                    }
                }
            }
        }
    }
}

/// θ_out of a position, by the recorder.
fn theta(target: &mut Posterior<f64>, z: &[f64]) -> Vec<f64> {
    let model = Arc::clone(target.model());
    let mut recorder =
        Recorder::new(Arc::clone(&model)).with_projection(Projection::new(&model, 1, 0));
    let mut stream = Stream::new(0, 0, Purpose::Recording, 0);
    let record = recorder.record(target, z, &mut stream).unwrap();
    record.weights[model.inner_parameters()..].to_vec()
}

/// T is affine in φ_out: its Jacobian by differences has JJᵀ = λ(λI + ΨᵀΨ)⁻¹, is symmetric for the symmetric root, and
/// its determinant is the one in ℓ = log p(y|T(φ)) − ½‖θ_out‖² + ½‖φ_out‖² + log|det|.
#[test]
fn the_map_has_the_right_jacobian() {
    for (hidden, rows) in [(&[3][..], 7), (&[8], 4)] {
        for (likelihood, noise_scale) in likelihoods(2) {
            let model = model(hidden, rows, 2, &likelihood, &noise_scale);
            let scales = model.noise.typical(2);
            let variances = likelihood.approximation(&model.targets, &scales).variances;
            let is_plain = !matches!(&noise_scale, Noise::Learned(_)) && model.noise.count(2) == 1;
            let p = model.architecture.readout_rows();
            for (space, regulariser) in SPACES
                .into_iter()
                .flat_map(|s| REGULARISERS.map(|r| (s, r)))
            {
                if regulariser == Regulariser::Matched && likelihood.is_gaussian() && !is_plain {
                    continue; // λ is then that of each output's own noise, at every position
                }
                let make = |coordinates| {
                    let model = Arc::clone(&model);
                    posterior(model, coordinates, space, regulariser)
                };
                let mut target = make(Coordinates::Repriorised);
                let z = noise(target.dim(), 15);
                let start = z.len() - 2 * p;
                let base = theta(&mut target, &z);
                // features by outputs of unit readout weights in standard coordinates: Ψ = ∂f/∂θ, through a Gaussian twin
                let psi = features(&model, &z[..model.inner_parameters()]);
                let gram = |i: usize, j: usize| -> f64 {
                    psi.iter().map(|row| row[i] * row[j]).sum::<f64>()
                };
                let mut log_determinant = 0.0;
                for (output, variance) in variances.iter().enumerate() {
                    let lambda = regulariser.value(rows, *variance);
                    let (own, other) = (output * p, (1 - output) * p);
                    let mut jacobian = vec![0.0; p * p];
                    for k in 0..p {
                        let mut moved = z.clone();
                        moved[start + own + k] += 1.0;
                        let image = theta(&mut target, &moved);
                        for i in 0..p {
                            jacobian[k * p + i] = image[own + i] - base[own + i];
                            // outputs do not mix
                            assert!((image[other + i] - base[other + i]).abs() < 1e-10);
                        }
                    }
                    if space == Space::DataSymmetric {
                        for (i, k) in (0..p).flat_map(|i| (0..p).map(move |k| (i, k))) {
                            assert!((jacobian[k * p + i] - jacobian[i * p + k]).abs() < 1e-9);
                        }
                    }
                    let mut cholesky = Cholesky::new(p);
                    cholesky
                        .factorise(|i, j| gram(i, j) / lambda + if i == j { 1.0 } else { 0.0 })
                        .unwrap();
                    let (mut sigma, mut work) = (vec![0.0; p * p], vec![0.0; p * p]);
                    cholesky.inverse(&mut sigma, &mut work);
                    for i in 0..p {
                        for j in 0..=i {
                            let product: f64 = (0..p)
                                .map(|k| jacobian[k * p + i] * jacobian[k * p + j])
                                .sum();
                            assert!(
                                (product - sigma[j * p + i]).abs() < 1e-9,
                                "{space} {regulariser}"
                            );
                        }
                    }
                    log_determinant -= 0.5 * cholesky.log_determinant();
                }
                let mut standard = make(Coordinates::Standard);
                let mut whole = z[..start].to_vec();
                whole.extend(&base);
                let half = |v: &[f64]| 0.5 * v.iter().map(|x| x * x).sum::<f64>();
                let direct = standard.log_ratio(&whole).unwrap() - half(&base)
                    + half(&z[start..])
                    + log_determinant;
                let value = target.log_ratio(&z).unwrap();
                assert!(
                    relative(value, direct) < 1e-9,
                    "{likelihood:?} {space} {regulariser}: {value} {direct}"
                );
            }
        }
    }
}

/// Rows of Ψ at the training inputs.
fn features(model: &Model<f64>, inner: &[f64]) -> Vec<Vec<f64>> {
    let mut map = reprior::posterior::features::FeatureMap::new(model);
    map.evaluate(model, inner, false, |_| {});
    let h = map.features(model);
    let factor = model.architecture.readout_scale.factor(h.ncols() - 1);
    (0..h.nrows())
        .map(|i| (0..h.ncols()).map(|j| factor * h[(i, j)]).collect())
        .collect()
}

#[test]
fn with_the_noise_variance_as_regulariser_the_general_formula_is_the_marginal_one() {
    for space in SPACES {
        let likelihood: Arc<dyn Likelihood> = Arc::new(Gaussian);
        let model = model(&[5], 6, 2, &likelihood, &Noise::from(0.4));
        let make = |coordinates, regulariser| {
            let model = Arc::clone(&model);
            posterior(model, coordinates, space, regulariser)
        };
        let mut general = make(Coordinates::Repriorised, Regulariser::Value(0.4 * 0.4));
        let mut marginal = make(Coordinates::Marginal, Regulariser::Matched);
        let z = noise(general.dim(), 16);
        let inner = marginal.dim();
        let (mut g, mut h) = (vec![0.0; z.len()], vec![0.0; inner]);
        let value = general.log_ratio_and_gradient(&z, &mut g).unwrap();
        let exact = marginal
            .log_ratio_and_gradient(&z[..inner], &mut h)
            .unwrap();
        assert!(relative(value, exact) < 1e-10, "{space}: {value} {exact}");
        h.resize(z.len(), 0.0); // nothing depends on φ_out
        assert!(g.iter().zip(&h).all(|(g, h)| (g - h).abs() < 1e-8));
    }
}

#[test]
fn the_map_tends_to_the_identity_as_the_regulariser_grows() {
    for (likelihood, noise_scale) in likelihoods(2) {
        let model = model(&[5], 6, 2, &likelihood, &noise_scale);
        for space in SPACES {
            let mut last = f64::INFINITY;
            for lambda in [1e2, 1e4, 1e6] {
                let make = |coordinates| {
                    let regulariser = Regulariser::Value(lambda);
                    let model = Arc::clone(&model);
                    posterior(model, coordinates, space, regulariser)
                };
                let mut repriorised = make(Coordinates::Repriorised);
                let z = noise(repriorised.dim(), 17);
                let image = theta(&mut repriorised, &z);
                let phi = &z[z.len() - image.len()..];
                let distance = image
                    .iter()
                    .zip(phi)
                    .map(|(a, b)| (a - b).powi(2))
                    .sum::<f64>()
                    .sqrt();
                assert!(distance < 0.03 * last, "{space} {lambda}: {distance}");
                last = distance;
                let standard = make(Coordinates::Standard).log_ratio(&z).unwrap();
                if lambda == 1e6 {
                    assert!(relative(repriorised.log_ratio(&z).unwrap(), standard) < 1e-2);
                }
            }
        }
    }
}

/// A learned scale at u is the known scale m·exp(s·u); outputs with scales of their own are models of their own.
#[test]
fn learned_and_separate_scales_are_those_of_known_and_separate_models() {
    let likelihood: Arc<dyn Likelihood> = Arc::new(Gaussian);
    for space in [Space::Feature, Space::Data] {
        for coordinates in [
            Coordinates::Marginal,
            Coordinates::Repriorised,
            Coordinates::Standard,
        ] {
            let each = model(&[5], 6, 2, &likelihood, &learned(true));
            let mut target = Posterior::new(
                Arc::clone(&each),
                PosteriorSettings::in_space(coordinates, space),
            )
            .unwrap();
            let z = noise(target.dim(), 18);
            let value = target.log_ratio(&z).unwrap();
            let inner = each.inner_parameters();
            let scales = [0.3 * z[inner].exp(), 0.3 * z[inner + 1].exp()];
            let mut without = z.clone();
            without.drain(inner..inner + 2);
            let known = Noise::Known(scales.to_vec());
            let twin = model(&[5], 6, 2, &likelihood, &known);
            let mut target =
                Posterior::new(twin, PosteriorSettings::in_space(coordinates, space)).unwrap();
            assert!(relative(value, target.log_ratio(&without).unwrap()) < 1e-12);
            if coordinates == Coordinates::Marginal {
                let mut sum = 0.0;
                for (output, scale) in scales.into_iter().enumerate() {
                    let targets = each.targets[output * 6..(output + 1) * 6].to_vec();
                    let architecture = Composition::fully_connected(3, &[5], 1, Activation::Gelu);
                    let reduction = InputReduction::Auto;
                    let one =
                        Model::new(architecture, scale, &noise(18, 1), targets, &[], reduction);
                    let one = Arc::new(one.unwrap());
                    let mut target =
                        Posterior::new(one, PosteriorSettings::in_space(coordinates, space))
                            .unwrap();
                    sum += target.log_ratio(&without).unwrap();
                }
                assert!(relative(value, sum) < 1e-12);
            }
        }
    }
}

#[test]
fn coordinates_that_a_model_does_not_have_are_refused() {
    let likelihood: Arc<dyn Likelihood> = Arc::new(Categorical);
    let model = model(&[5], 6, 2, &likelihood, &Noise::from(1.0));
    let refused = |coordinates: Coordinates, regulariser| {
        let settings = PosteriorSettings {
            regulariser,
            ..coordinates.into()
        };
        Posterior::new(Arc::clone(&model), settings).err()
    };
    let (marginal, repriorised) = (Coordinates::Marginal, Coordinates::Repriorised);
    let wrong = Some(PosteriorError::Regulariser);
    assert_eq!(
        refused(marginal, Regulariser::Matched),
        Some(PosteriorError::Marginal)
    );
    assert_eq!(refused(repriorised, Regulariser::Value(0.0)), wrong);
    assert_eq!(refused(repriorised, Regulariser::Value(f64::NAN)), wrong);
    assert_eq!(refused(repriorised, Regulariser::PerRow(1.0)), None);
}

#[test]
fn regularisers_are_read_and_written() {
    for text in ["matched", "0.01", "1n", "0.5n"] {
        assert_eq!(text.parse::<Regulariser>().unwrap().to_string(), text);
    }
    for text in ["", "n", "-1", "0", "inf", "1m", "nan"] {
        assert!(text.parse::<Regulariser>().is_err(), "{text}");
    }
}
