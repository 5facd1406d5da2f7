//! The joint law of weights and data (after Geweke 2004).
//!
//! With weights from the prior and data from the likelihood given them, the weights are an exact draw from the posterior
//! given the data. Transitions that leave every posterior invariant leave this joint law as it was, however few they
//! are: whatever was known of weights, data and new function values before holds after. No other sampler is needed, and
//! the whole path takes part: reduction of inputs, features, readout, sampler, recording.
//!
//! About 120 z-scores for each of 18 combinations; the largest of 2,160 exceeds 5 with probability 1.2e-3 over seeds.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use reprior::compute::{Matrix, Purpose, Stream};
use reprior::model::{InputReduction, Model};
use reprior::network::{Activation, Architecture, LayerScale};
use reprior::posterior::{Coordinates, FeatureMap, NetworkPosterior, Projection, Recorder, Space};
use reprior::sampler::{Method, SamplerSettings};

const ROWS: usize = 4;
const TEST: usize = 2;
const INPUTS: usize = 6;
const OUTPUTS: usize = 2;
const NOISE: f64 = 0.3;
const PROJECTIONS: usize = 5;
const REPLICATES: u64 = 4000;
const TRANSITIONS: u64 = 4;

/// What is sampled, and how. Step sizes are such that some proposals are accepted and some are not.
#[derive(Debug, Clone, Copy)]
struct Combination {
    hidden: &'static [usize],
    coordinates: Coordinates,
    space: Space,
    reduction: InputReduction,
    method: Method,
    step_size: Option<f64>,
}

/// Means of statistics over replicates, less what they should be.
#[derive(Default)]
struct Statistics {
    names: Vec<String>,
    sums: Vec<[f64; 2]>,
    next: usize,
    count: f64,
}

impl Statistics {
    /// Takes in one statistic of the present replicate; the same ones in the same order in each.
    fn add(&mut self, name: impl Fn() -> String, value: f64, expected: f64) {
        if self.next == self.sums.len() {
            self.names.push(name());
            self.sums.push([0.0; 2]);
        }
        let deviation = value - expected;
        self.sums[self.next][0] += deviation;
        self.sums[self.next][1] += deviation * deviation;
        self.next += 1;
    }

    fn finish_replicate(&mut self) {
        self.next = 0;
        self.count += 1.0;
    }

    fn check(&self, what: &Combination) {
        for ([sum, squares], name) in self.sums.iter().zip(&self.names) {
            let mean = sum / self.count;
            let variance = squares / self.count - mean * mean;
            let z = mean / (variance / self.count).sqrt();
            assert!(
                z.abs() < 5.0,
                "{what:?}: {name} is off by {z} standard errors"
            );
        }
    }
}

fn noise(count: usize, index: u64) -> Vec<f64> {
    let mut values = vec![0.0; count];
    Stream::new(31, 0, Purpose::Initial, index).fill_normal(&mut values);
    values
}

/// Function values (column-major) of the readout `weights` (column-major) at features.
fn functions(architecture: &Architecture, features: Matrix<'_, f64>, weights: &[f64]) -> Vec<f64> {
    let p = architecture.readout_rows();
    let factor = architecture.readout_scale.factor(p - 1);
    let value = |w: &[f64], i| factor * (0..p).map(|k| features[(i, k)] * w[k]).sum::<f64>();
    let column = |w| (0..features.nrows()).map(move |i| value(w, i));
    weights.chunks(p).flat_map(column).collect()
}

/// Prior covariance of one output of a network with one hidden GELU layer of any width, at two inputs.
fn prior_covariance(a: &[f64], b: &[f64]) -> f64 {
    let LayerScale { weight, bias } = LayerScale::HIDDEN;
    let inner = |a: &[f64], b: &[f64]| {
        let dot: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
        weight.powi(2) / INPUTS as f64 * dot + bias.powi(2)
    };
    let (k11, k22, k12) = (inner(a, a), inner(b, b), inner(a, b));
    let (p, p1) = (k11 * k22, (1.0 + k11) * (1.0 + k22));
    let d = (p1 - k12 * k12).sqrt();
    let unit = ((k12 * k12 + p * d * d) / (p1 * d) + k12 * k12.atan2(d)) / std::f64::consts::TAU
        + k12 / 4.0;
    LayerScale::READOUT.weight.powi(2) * unit + LayerScale::READOUT.bias.powi(2)
}

fn check(what: Combination) {
    let architecture = Architecture::new(INPUTS, what.hidden, OUTPUTS, Activation::Gelu);
    let mut x = noise(ROWS * INPUTS, 1);
    x.copy_within(0..INPUTS, 2 * INPUTS); // an exactly repeated row
    let test = [x[..INPUTS].to_vec(), noise(INPUTS, 2)].concat(); // a known input and a new one
    let model = |y| Model::new(architecture.clone(), NOISE, &x, y, &test, what.reduction).unwrap();
    let blank = model(vec![0.0; ROWS * OUTPUTS]);
    let mut map = FeatureMap::new(&blank);
    let settings = SamplerSettings {
        method: what.method,
        step_size: what.step_size,
        ..SamplerSettings::default()
    };
    let mut statistics = Statistics::default();
    for replicate in 0..REPLICATES {
        // weights from the prior, data from the likelihood
        let mut stream = Stream::new(32, replicate, Purpose::Initial, 0);
        let mut inner = vec![0.0; blank.inner_parameters()];
        stream.fill_normal(&mut inner);
        let mut readout = vec![0.0; architecture.readout_parameters()];
        stream.fill_normal(&mut readout);
        map.evaluate(&blank, &inner, false);
        let mut y = functions(&architecture, map.features(&blank), &readout);
        y.iter_mut().for_each(|y| *y += NOISE * stream.normal());
        let model = Arc::new(model(y.clone()));
        let mut projection = Projection::new(&model, PROJECTIONS, 7);
        let mut before = vec![0.0; PROJECTIONS];
        let weights = [inner.clone(), readout.clone()].concat();
        projection.project(
            &weights,
            &mut stream,
            &mut before,
            &mut vec![0.0; what.hidden.len() + 1],
        );

        // a few transitions
        let mut z = inner;
        match what.coordinates {
            Coordinates::Marginal => {}
            Coordinates::Repriorised => {
                // given inner weights and data, φ_out is N(0, I)
                stream.fill_normal(&mut readout);
                z.extend(readout);
            }
            Coordinates::Standard => z.extend(readout),
        }
        let mut target =
            NetworkPosterior::new(Arc::clone(&model), what.coordinates, Some(what.space));
        let mut sampler = settings.sampler();
        let mut state = sampler.init(&mut target, z).unwrap();
        for transition in 1..=TRANSITIONS {
            let mut stream = Stream::new(32, replicate, Purpose::Transition, transition);
            sampler.step(&mut target, &mut state, &mut stream).unwrap();
        }

        let mut recorder = Recorder::new(Arc::clone(&model), projection);
        let mut stream = Stream::new(32, replicate, Purpose::Recording, 0);
        let record = recorder
            .record(&mut target, &state.position, &mut stream)
            .unwrap();
        for (i, w) in record.weights.iter().enumerate() {
            statistics.add(|| format!("weight {i}"), *w, 0.0);
            statistics.add(|| format!("weight {i} squared"), w * w, 1.0);
        }
        for (layer, value) in record.mean_squares.iter().enumerate() {
            statistics.add(|| format!("mean square of layer {layer}"), *value, 1.0);
        }
        for (i, (now, before)) in record.projections.iter().zip(before).enumerate() {
            statistics.add(|| format!("projection {i}"), *now, 0.0);
            statistics.add(
                || format!("projection {i} squared"),
                now * now,
                before * before,
            );
        }
        let (inner, readout) = record.weights.split_at(blank.inner_parameters());
        map.evaluate(&model, inner, false);
        let fitted = functions(&architecture, map.features(&model), readout);
        for (i, (y, f)) in y.iter().zip(fitted).enumerate() {
            let residual = (y - f) / NOISE;
            statistics.add(|| format!("residual {i}"), residual, 0.0);
            statistics.add(|| format!("residual {i} squared"), residual * residual, 1.0);
        }
        if what.hidden.len() == 1 {
            for (index, mean) in record.mean.iter().enumerate() {
                let (output, t) = (index / TEST, index % TEST);
                let f = mean + record.variance[t].sqrt() * stream.normal();
                let at = &test[t * INPUTS..(t + 1) * INPUTS];
                statistics.add(
                    || format!("new value {index} squared"),
                    f * f,
                    prior_covariance(at, at),
                );
                for (i, y) in y.iter().enumerate() {
                    let row = &x[i % ROWS * INPUTS..(i % ROWS + 1) * INPUTS];
                    let expected = if i / ROWS == output {
                        prior_covariance(at, row)
                    } else {
                        0.0
                    };
                    statistics.add(
                        || format!("new value {index} times target {i}"),
                        f * y,
                        expected,
                    );
                }
            }
        }
        statistics.finish_replicate();
    }
    statistics.check(&what);
}

fn combinations(hidden: &'static [usize], reduction: InputReduction) -> Vec<Combination> {
    let methods = [
        (Method::HmcInfinite, Some(0.5)),
        (Method::Pcn, Some(0.6)),
        (Method::Elliptical, None),
        (Method::Pcnl, Some(0.6)),
        (Method::Langevin, Some(0.5)),
        (Method::Hmc, Some(0.5)),
    ];
    let small_steps = [
        (Method::HmcInfinite, Some(0.15)),
        (Method::Pcn, Some(0.2)),
        (Method::Elliptical, None),
        (Method::Pcnl, Some(0.15)),
        (Method::Mala, Some(0.15)),
        (Method::Rwm, Some(0.2)),
    ];
    let mut all = Vec::new();
    for (i, (coordinates, methods)) in [
        (Coordinates::Marginal, methods),
        (Coordinates::Repriorised, methods),
        (Coordinates::Standard, small_steps),
    ]
    .into_iter()
    .enumerate()
    {
        for (j, (method, step_size)) in methods.into_iter().enumerate() {
            // each coordinate system in both spaces, and each method
            let space = if (i + j) % 2 == 0 {
                Space::Feature
            } else {
                Space::Data
            };
            all.push(Combination {
                hidden,
                coordinates,
                space,
                reduction,
                method,
                step_size,
            });
        }
    }
    all
}

#[test]
fn one_hidden_layer_with_reduced_inputs() {
    combinations(&[3], InputReduction::On)
        .into_iter()
        .for_each(check);
}

#[test]
fn two_hidden_layers_with_whole_inputs() {
    combinations(&[3, 2], InputReduction::Off)
        .into_iter()
        .for_each(check);
}
