//! Learned scales of weights: against the same network with the scales multiplied in by hand, against differences, and
//! draws from the joint law of scales, weights and data, which transitions must leave as it is.

use std::sync::Arc;

use reprior::compute::{Purpose, Stream};
use reprior::model::likelihood::{Gaussian, GaussianHeteroscedastic, Likelihood, StudentT};
use reprior::model::{InputReduction, Model, ModelError, Noise, NoisePrior, ScalePrior};
use reprior::network::layer::{
    BatchNorm, Branch, Combination, Convolution, Dense, Layer, Padding, Parallel, Shape, Window,
};
use reprior::network::parameters::ParameterLayout;
use reprior::network::{Activation, Composition, LayerScale};
use reprior::posterior::features::FeatureMap;
use reprior::posterior::target::Ellipse;
use reprior::posterior::{
    Coordinates, Posterior, PosteriorError, PosteriorSettings, Recorder, Regulariser, Space, Target,
};
use reprior::sampler::{Method, SamplerSettings};

const INPUTS: usize = 3;
const ROWS: usize = 5;
const OUTPUTS: usize = 2;
const PRIORS: [ScalePrior; 2] = [
    ScalePrior::LogNormal { spread: 0.7 },
    ScalePrior::HalfNormal,
];

fn normals(count: usize, index: u64) -> Vec<f64> {
    let mut values = vec![0.0; count];
    Stream::new(41, 0, Purpose::Initial, index).fill_normal(&mut values);
    values
}

fn plain(hidden: &[usize], targets: Vec<f64>, likelihood: Arc<dyn Likelihood>) -> Model<f64> {
    let architecture = Composition::fully_connected(INPUTS, hidden, OUTPUTS, Activation::Gelu);
    let noise = Noise::Learned(NoisePrior {
        median: 0.5,
        spread: 0.4,
        per_output: false,
    });
    let (x, test) = (normals(ROWS * INPUTS, 1), normals(2 * INPUTS, 2));
    let model = Model::new(architecture, noise, &x, targets, &test, InputReduction::Off);
    model.unwrap().with_likelihood(likelihood)
}

fn scaled(model: Model<f64>, prior: ScalePrior) -> Arc<Model<f64>> {
    Arc::new(model.with_learned_scales(prior, true).unwrap())
}

/// Inner weights by hand: the first layer's rows are the inputs and a bias, those of others the units below and a bias.
fn by_hand(hidden: &[usize], prior: ScalePrior, inner: &[f64], u: &[f64]) -> Vec<f64> {
    let factor = |u: f64| match prior {
        ScalePrior::LogNormal { spread } => (spread * u).exp(),
        ScalePrior::HalfNormal => u,
    };
    let mut out = inner.to_vec();
    let (mut start, mut below) = (0, INPUTS);
    for (layer, &units) in hidden.iter().enumerate() {
        for unit in 0..units {
            for row in 0..below {
                let of = if layer == 0 { row } else { INPUTS + layer - 1 };
                out[start + unit * (below + 1) + row] *= factor(u[of]);
            }
        }
        start += units * (below + 1);
        below = units;
    }
    assert_eq!(start, inner.len());
    out
}

/// Every likelihood and coordinate system that they are for.
fn cases() -> Vec<(Arc<dyn Likelihood>, PosteriorSettings)> {
    let settings = |coordinates: Coordinates, space, regulariser| PosteriorSettings {
        space: Some(space),
        regulariser,
        ..coordinates.into()
    };
    let (matched, other) = (Regulariser::Matched, Regulariser::Value(0.7));
    let gaussian: Arc<dyn Likelihood> = Arc::new(Gaussian);
    let student: Arc<dyn Likelihood> = Arc::new(StudentT::new(4.0).unwrap());
    let by_row: Arc<dyn Likelihood> = Arc::new(GaussianHeteroscedastic::default());
    let mut all = Vec::new();
    for space in [Space::Feature, Space::Data] {
        all.push((
            Arc::clone(&gaussian),
            settings(Coordinates::Marginal, space, matched),
        ));
        all.push((
            Arc::clone(&gaussian),
            settings(Coordinates::Repriorised, space, other),
        ));
        for likelihood in [&student, &by_row] {
            all.push((
                Arc::clone(likelihood),
                settings(Coordinates::Repriorised, space, matched),
            ));
        }
    }
    for likelihood in [gaussian, student, by_row] {
        all.push((
            likelihood,
            settings(Coordinates::Standard, Space::Data, matched),
        ));
    }
    all
}

#[test]
fn scales_are_those_multiplied_in_by_hand() {
    for hidden in [&[4][..], &[4, 3], &[3, 5, 2]] {
        for (likelihood, settings) in cases() {
            for prior in PRIORS {
                let targets = normals(ROWS * OUTPUTS, 3);
                let known = plain(hidden, targets.clone(), Arc::clone(&likelihood));
                let learned = scaled(plain(hidden, targets, Arc::clone(&likelihood)), prior);
                let count = INPUTS + hidden.len() - 1;
                assert_eq!(learned.scale_coordinates(), count);
                assert_eq!(learned.scales.as_ref().unwrap().of_inputs(), INPUTS);
                let inner = known.inner_parameters();
                let mut known = Posterior::new(Arc::new(known), settings).unwrap();
                let mut learned = Posterior::new(learned, settings).unwrap();
                assert_eq!(learned.dim(), known.dim() + count);
                let z = normals(learned.dim(), 4);
                let (below, rest) = z.split_at(inner);
                let (noise, rest) = rest.split_at(1);
                let (u, readout) = rest.split_at(count);
                let same = [&by_hand(hidden, prior, below, u)[..], noise, readout].concat();
                let (found, expected) = (learned.log_ratio(&z), known.log_ratio(&same));
                let (found, expected) = (found.unwrap(), expected.unwrap());
                assert!((found - expected).abs() < 1e-12 * (1.0 + expected.abs()));
                // recorded weights are those that the network has
                let mut recorder = Recorder::new(Arc::clone(learned.model()));
                let mut stream = Stream::new(0, 0, Purpose::Recording, 0);
                let record = recorder.record(&mut learned, &z, &mut stream).unwrap();
                assert_eq!(record.weights[..inner], same[..inner]);
                let sizes = record.weight_scales.iter().zip(u);
                for (scale, u) in sizes {
                    assert_eq!(*scale, prior.scale(*u));
                }
            }
        }
    }
}

#[test]
fn one_scale_for_all_inputs_is_the_same_for_each() {
    let prior = PRIORS[0];
    let targets = normals(ROWS * OUTPUTS, 3);
    let model = || plain(&[4, 3], targets.clone(), Arc::new(Gaussian));
    let each = Posterior::new(scaled(model(), prior), Coordinates::Marginal);
    let one = Arc::new(model().with_learned_scales(prior, false).unwrap());
    assert_eq!(
        (
            one.scale_coordinates(),
            one.scales.as_ref().unwrap().of_inputs()
        ),
        (2, 0)
    );
    let (mut each, mut one) = (
        each.unwrap(),
        Posterior::new(one, Coordinates::Marginal).unwrap(),
    );
    let z = normals(one.dim(), 4);
    let (below, u) = z.split_at(z.len() - 2);
    let same = [below, &[u[0]; INPUTS], &[u[1]]].concat();
    let (found, expected) = (one.log_ratio(&z).unwrap(), each.log_ratio(&same).unwrap());
    assert!((found - expected).abs() < 1e-13 * (1.0 + expected.abs()));
}

#[test]
fn gradients_agree_with_central_differences() {
    for hidden in [&[4][..], &[4, 3]] {
        for (likelihood, settings) in cases() {
            for prior in PRIORS {
                let targets = normals(ROWS * OUTPUTS, 3);
                let model = scaled(plain(hidden, targets, Arc::clone(&likelihood)), prior);
                let mut target = Posterior::new(model, settings).unwrap();
                let z = normals(target.dim(), 5);
                let what = format!("{likelihood:?} {settings:?} {prior:?}");
                check_gradient(&mut target, &z, &what);
            }
        }
    }
}

/// Images of 4 × 4 through a convolution, normalisation, two parallel branches and a dense layer.
fn of_images() -> Composition {
    let scale = LayerScale::HIDDEN;
    let convolution = |size: usize| {
        Layer::Convolution(Convolution {
            channels: 2,
            window: Window {
                size: [size; 2],
                stride: [1; 2],
                padding: Padding::Same,
            },
            scale,
        })
    };
    let function = Activation::Gelu;
    let branch = |layers: Vec<Layer>| Branch {
        factor: 0.8,
        layers,
    };
    Composition {
        input: Shape::from([4, 4, 1]),
        layers: vec![
            convolution(2),
            Layer::BatchNorm(BatchNorm {
                mean: vec![0.1, -0.2],
                variance: vec![1.0, 0.5],
                epsilon: 1e-5,
            }),
            Layer::Activation { function },
            Layer::Parallel(Parallel {
                branches: vec![branch(Vec::new()), branch(vec![convolution(1)])],
                combination: Combination::Sum,
            }),
            Layer::Flatten,
            Layer::Dense(Dense { units: 3, scale }),
            Layer::Activation { function },
        ],
        outputs: OUTPUTS,
        readout_scale: LayerScale::READOUT,
    }
}

/// Of other networks every layer has one scale, and normalisation none.
#[test]
fn layers_of_images_have_scales_of_their_weights_alone() {
    let architecture = of_images();
    let model = || {
        let (x, noise) = (normals(ROWS * 16, 1), Noise::from(0.5));
        let targets = normals(ROWS * OUTPUTS, 3);
        let network = architecture.clone();
        Model::<f64>::new(network, noise, &x, targets, &[], InputReduction::Off).unwrap()
    };
    let layout = ParameterLayout::new(&architecture);
    let weights: Vec<_> = (layout.layers.iter())
        .filter(|layer| layer.range.end <= architecture.inner_parameters())
        .filter(|layer| !layer.is_normalisation)
        .collect();
    assert_eq!(weights.len(), 3);
    for prior in PRIORS {
        let mut known = Posterior::new(Arc::new(model()), Coordinates::Marginal).unwrap();
        let mut learned = Posterior::new(scaled(model(), prior), Coordinates::Marginal).unwrap();
        let z = normals(learned.dim(), 4);
        let (below, u) = z.split_at(known.dim());
        assert_eq!(u.len(), 3);
        let mut same = below.to_vec();
        for (layer, &u) in weights.iter().zip(u) {
            let factor = match prior {
                ScalePrior::LogNormal { spread } => (spread * u).exp(),
                ScalePrior::HalfNormal => u,
            };
            for unit in same[layer.range.clone()].chunks_exact_mut(layer.rows) {
                unit[..layer.fan_in()]
                    .iter_mut()
                    .for_each(|weight| *weight *= factor);
            }
        }
        let (found, expected) = (learned.log_ratio(&z), known.log_ratio(&same));
        let (found, expected) = (found.unwrap(), expected.unwrap());
        assert!((found - expected).abs() < 1e-12 * (1.0 + expected.abs()));
        check_gradient(&mut learned, &z, &format!("{prior:?}"));
    }
}

/// Compares every derivative with a central difference of fourth order.
fn check_gradient(target: &mut Posterior<f64>, z: &[f64], what: &str) {
    let mut gradient = vec![f64::NAN; z.len()];
    target.log_ratio_and_gradient(z, &mut gradient).unwrap();
    for at in 0..z.len() {
        let mut value = |step: f64| {
            let mut moved = z.to_vec();
            moved[at] += step;
            target.log_ratio(&moved).unwrap()
        };
        let h = 1e-4;
        let far = value(2.0 * h) - value(-2.0 * h);
        let numeric = (8.0 * (value(h) - value(-h)) - far) / (12.0 * h);
        let error = (gradient[at] - numeric).abs() / (1.0 + numeric.abs());
        assert!(error < 1e-6, "{what} {at}");
    }
}

#[test]
fn points_of_ellipses_are_points() {
    let targets = normals(ROWS * OUTPUTS, 3);
    let model = scaled(plain(&[4, 3], targets, Arc::new(Gaussian)), PRIORS[0]);
    let mut target = Posterior::new(model, Coordinates::Marginal).unwrap();
    let (position, direction) = (normals(target.dim(), 6), normals(target.dim(), 7));
    let mut point = vec![0.0; target.dim()];
    for (angle, is_new) in [(0.3, true), (-0.8, false)] {
        let ellipse = Ellipse {
            position: &position,
            direction: &direction,
            point: &mut point,
            is_new,
        };
        let found = target.log_ratio_on_ellipse(ellipse, angle).unwrap();
        let expected: Vec<f64> = position
            .iter()
            .zip(&direction)
            .map(|(p, d)| p * angle.cos() + d * angle.sin())
            .collect();
        assert!((found - target.log_ratio(&expected).unwrap()).abs() < 1e-10);
    }
}

/// The largest z-score of moments of scales and of what they multiply, after transitions from draws of the joint law; `model_prior` is what
/// the posterior is told, `truth` what the weights are drawn with.
fn largest_score(truth: ScalePrior, told: ScalePrior, settings: PosteriorSettings) -> f64 {
    let (hidden, replicates, transitions) = (&[3, 2][..], 4000_u64, 5);
    let blank = plain(hidden, vec![0.0; ROWS * OUTPUTS], Arc::new(Gaussian));
    let mut map = FeatureMap::new(&blank);
    let (inner, count) = (blank.inner_parameters(), INPUTS + hidden.len() - 1);
    let readout = blank.architecture.readout_parameters();
    let p = blank.architecture.readout_rows();
    let factor = blank.architecture.readout_scale.factor(p - 1);
    let mut sums: Vec<[f64; 2]> = Vec::new();
    for replicate in 0..replicates {
        let mut stream = Stream::new(5, replicate, Purpose::Initial, 0);
        let mut z = vec![0.0; inner + 1 + count + readout];
        stream.fill_normal(&mut z);
        let (below, rest) = z.split_at(inner);
        let (u, theta) = rest[1..].split_at(count);
        let weights = by_hand(hidden, truth, below, u);
        map.evaluate(&blank, &weights, false, |_| {});
        let features = map.features(&blank);
        let sigma = 0.5 * (0.4 * rest[0]).exp();
        let mut targets = vec![0.0; ROWS * OUTPUTS];
        for (at, y) in targets.iter_mut().enumerate() {
            let (output, row) = (at / ROWS, at % ROWS);
            let products = (0..p).map(|k| features[(row, k)] * theta[output * p + k]);
            *y = factor * products.sum::<f64>() + sigma * stream.normal();
        }
        let model = scaled(plain(hidden, targets, Arc::new(Gaussian)), told);
        let mut target = Posterior::new(model, settings).unwrap();
        z.truncate(target.dim());
        let mut sampler = SamplerSettings {
            method: Method::HmcInfinite,
            step_size: Some(0.15),
            trajectory: Some(0.8),
            damping: Some(1.0),
            ..Default::default()
        }
        .sampler();
        let mut state = sampler.init(&mut target, z).unwrap();
        for transition in 1..=transitions {
            let mut stream = Stream::new(5, replicate, Purpose::Transition, transition);
            sampler.step(&mut target, &mut state, &mut stream).unwrap();
        }
        let z = &state.position;
        let u = &z[inner + 1..inner + 1 + count];
        let mut statistics: Vec<f64> = u.iter().flat_map(|u| [*u, u * u - 1.0]).collect();
        statistics.push(z[..inner].iter().map(|z| z * z - 1.0).sum());
        statistics.extend(u.iter().map(|u| u * z[0]));
        sums.resize(statistics.len(), [0.0; 2]);
        for (sum, value) in sums.iter_mut().zip(&statistics) {
            sum[0] += value;
            sum[1] += value * value;
        }
    }
    let n = replicates as f64;
    let scores = sums.iter().map(|[sum, squares]| {
        let (mean, square) = (sum / n, squares / n);
        mean.abs() / ((square - mean * mean) / n).sqrt()
    });
    scores.fold(0.0, f64::max)
}

/// Fourteen moments or so: the largest of as many scores is above 4.5 in one test of 10,000.
#[test]
fn transitions_leave_the_joint_law_as_it_is() {
    for coordinates in [Coordinates::Marginal, Coordinates::Standard] {
        for prior in PRIORS {
            let score = largest_score(prior, prior, coordinates.into());
            assert!(score < 4.5, "{coordinates} {prior:?} {score}");
        }
    }
}

#[test]
fn another_prior_of_scales_is_found() {
    let (truth, told) = (
        ScalePrior::LogNormal { spread: 1.5 },
        ScalePrior::LogNormal { spread: 0.3 },
    );
    let score = largest_score(truth, told, Coordinates::Marginal.into());
    assert!(score > 6.0, "{score}");
}

#[test]
fn what_cannot_be_is_refused() {
    let model = || plain(&[4], vec![0.0; ROWS * OUTPUTS], Arc::new(Gaussian));
    for spread in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let wrong = model().with_learned_scales(ScalePrior::LogNormal { spread }, true);
        assert!(matches!(wrong.err(), Some(ModelError::ScaleSpread(_))));
    }
    let architecture = Composition::fully_connected(9, &[4], 1, Activation::Gelu);
    let inputs = normals(18, 8);
    let reduced = Model::<f64>::new(
        architecture,
        0.1,
        &inputs,
        vec![0.0; 2],
        &[],
        InputReduction::On,
    );
    let wrong = reduced
        .unwrap()
        .with_learned_scales(ScalePrior::HalfNormal, true);
    assert_eq!(wrong.err(), Some(ModelError::ReducedScales));
    let mut known = model();
    known.noise = Noise::from(0.1);
    let learned = scaled(known, ScalePrior::HalfNormal);
    let wrong = Posterior::new(learned, Coordinates::Tangent).err();
    assert_eq!(wrong, Some(PosteriorError::TangentScales));
}
