//! Posteriors of networks of any layers: a fully connected network described layer by layer is the same as the one that the
//! library has for itself, and gradients of the others are those of central differences.

use std::sync::Arc;

use reprior::compute::kernels::dot;
use reprior::compute::{Purpose, Stream};
use reprior::model::likelihood::{Categorical, Gaussian, Likelihood};
use reprior::model::{InputReduction, Model};
use reprior::network::layer::{Layer, Shape};
use reprior::network::named::NamedNetwork;
use reprior::network::{Activation, Composition, LayerScale};
use reprior::posterior::projection::Projection;
use reprior::posterior::{
    Coordinates, Posterior, PosteriorSettings, Recorder, Regulariser, Space, Target,
};
use reprior::sampler::{Method, SamplerSettings};

fn noise(count: usize, index: u64) -> Vec<f64> {
    let mut values = vec![0.0; count];
    Stream::new(7, 0, Purpose::Initial, index).fill_normal(&mut values);
    values
}

fn model(
    architecture: &Composition,
    rows: usize,
    test_rows: usize,
    likelihood: Arc<dyn Likelihood>,
) -> Arc<Model<f64>> {
    let (inputs, outputs) = (architecture.inputs(), architecture.outputs);
    let targets = if likelihood.is_gaussian() {
        noise(rows * outputs, 1)
    } else {
        let hot = |at: usize| f64::from(u8::from(at % rows % outputs == at / rows));
        (0..rows * outputs).map(hot).collect()
    };
    let (x, x_test) = (noise(rows * inputs, 0), noise(test_rows * inputs, 2));
    let reduction = InputReduction::Off;
    let model = Model::new(architecture.clone(), 0.3, &x, targets, &x_test, reduction);
    Arc::new(model.unwrap().with_likelihood(likelihood))
}

/// A layer that does nothing leaves parameters and their order alone, but makes the network one of any layers.
#[test]
fn a_fully_connected_network_is_the_same_as_one_of_any_layers() {
    let mut dense = Composition::fully_connected(4, &[6, 5], 3, Activation::Gelu);
    *dense.hidden_scales_mut()[1] = LayerScale {
        weight: 0.7,
        bias: 0.4,
    };
    let mut composed = dense.clone();
    let function = Activation::Identity;
    composed.layers.push(Layer::Activation { function });
    assert!(dense.as_fully_connected().is_some() && composed.as_fully_connected().is_none());
    assert_eq!(dense.parameters(), composed.parameters());
    assert_eq!(dense.features(), composed.features());
    let likelihoods: [Arc<dyn Likelihood>; 2] = [Arc::new(Gaussian), Arc::new(Categorical)];
    for likelihood in likelihoods {
        let models = [&dense, &composed].map(|a| model(a, 9, 5, Arc::clone(&likelihood)));
        for coordinates in [
            Coordinates::Marginal,
            Coordinates::Repriorised,
            Coordinates::Standard,
        ] {
            if coordinates == Coordinates::Marginal && !likelihood.is_gaussian() {
                continue;
            }
            let mut found = Vec::new();
            for model in &models {
                let mut target = Posterior::new(Arc::clone(model), coordinates).unwrap();
                let z = noise(target.dim(), 3);
                let mut gradient = vec![f64::NAN; z.len()];
                let value = target.log_ratio(&z).unwrap();
                let same = target.log_ratio_and_gradient(&z, &mut gradient).unwrap();
                assert!((value - same).abs() < 1e-10);
                let projection = Projection::new(model, 3, 1);
                let mut recorder = Recorder::new(Arc::clone(model)).with_projection(projection);
                let mut stream = Stream::new(1, 0, Purpose::Recording, 0);
                let record = recorder.record(&mut target, &z, &mut stream).unwrap();
                let rest = [&record.mean, &record.variance, &record.projections];
                let mut all = [vec![value], gradient].concat();
                all.extend(rest.into_iter().flatten());
                all.extend(&record.mean_squares);
                found.push(all);
            }
            for (at, (x, y)) in found[0].iter().zip(&found[1]).enumerate() {
                assert!(
                    (x - y).abs() < 1e-9 * (1.0 + y.abs()),
                    "{coordinates} {at}: {x} {y}"
                );
            }
        }
    }
}

fn named(name: &str, input: [usize; 3], outputs: usize) -> Composition {
    let network: NamedNetwork = name.parse().unwrap();
    let (activation, scale) = (Activation::Gelu, LayerScale::HIDDEN);
    let network = network.network(Shape::from(input), outputs, activation, scale);
    network.unwrap()
}

#[test]
fn gradients_agree_with_central_differences() {
    let networks = [
        named("resnet:8,width=2,scaling=progressive-one", [4, 4, 2], 2),
        named("lenet", [16, 16, 1], 2),
        named("resnet-small", [4, 4, 1], 2),
    ];
    for architecture in &networks {
        let model = model(architecture, 3, 0, Arc::new(Gaussian));
        let matched = Regulariser::Matched;
        for (coordinates, regulariser) in [
            (Coordinates::Marginal, matched),
            (Coordinates::Repriorised, matched),
            // n·σ², as published for residual networks
            (Coordinates::Repriorised, Regulariser::PerRow(1.0)),
            (Coordinates::Standard, matched),
        ] {
            let mut target = Posterior::new(
                Arc::clone(&model),
                PosteriorSettings {
                    space: Some(Space::Data),
                    regulariser,
                    ..coordinates.into()
                },
            )
            .unwrap();
            let z = noise(target.dim(), 3);
            let mut gradient = vec![f64::NAN; z.len()];
            target.log_ratio_and_gradient(&z, &mut gradient).unwrap();
            for index in 0..4 {
                let mut direction = noise(z.len(), 10 + index);
                let norm = dot(&direction, &direction).sqrt();
                direction.iter_mut().for_each(|d| *d /= norm);
                // short, so that few maxima and rectifiers change their sides on the way
                let length = 1e-6;
                let mut at = |t: f64| {
                    let moved = z.iter().zip(&direction).map(|(z, d)| z + t * d);
                    target.log_ratio(&moved.collect::<Vec<_>>()).unwrap()
                };
                let difference = (at(length) - at(-length)) / (2.0 * length);
                let exact = dot(&gradient, &direction);
                assert!(
                    (exact - difference).abs() < 1e-5 * (1.0 + exact.abs()),
                    "{coordinates}, {regulariser}: {exact} {difference}"
                );
            }
        }
    }
}

/// Every method moves on a residual network, and gradient methods accept what they should.
#[test]
fn every_method_runs_on_a_residual_network() {
    let architecture = named("resnet:8,width=2", [4, 4, 1], 2);
    let model = model(&architecture, 5, 0, Arc::new(Gaussian));
    for method in Method::ALL {
        let settings = SamplerSettings {
            method,
            step_size: (method != Method::Elliptical).then_some(0.02),
            ..SamplerSettings::default()
        };
        let mut target = Posterior::new(Arc::clone(&model), Coordinates::Marginal).unwrap();
        let mut sampler = settings.sampler();
        let position = noise(target.dim(), 4);
        let mut state = sampler.init(&mut target, position).unwrap();
        let mut rate = 0.0;
        for transition in 0..20 {
            let mut stream = Stream::new(5, 0, Purpose::Transition, transition);
            let info = sampler.step(&mut target, &mut state, &mut stream).unwrap();
            rate += info.acceptance_rate / 20.0;
        }
        assert!(rate > 0.1, "{method}: {rate}");
    }
}
