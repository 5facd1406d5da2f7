//! One replicate after another: weights and data from their joint law, some transitions, statistics.

use std::sync::Arc;

use reprior::compute::{Purpose, Stream};
use reprior::model::Noise;
use reprior::posterior::{DrawRecord, Recorder};
use reprior::sampler::Sampler;

use super::case::{Case, Kind};
use super::distorted::{Distorted, Distortion};
use super::experiment::{Experiment, OUTPUTS, ROWS, TEST, Truth};
use super::inverse::position;
use super::prior::{INPUTS, prior_covariance};
use super::statistics::{Largest, Statistics};

const TRANSITIONS: u64 = 4;

/// What came of a case.
#[derive(Debug)]
pub struct Outcome {
    pub largest: Largest,
    /// Mean acceptance rate.
    pub acceptance_rate: f64,
}

struct Replicates<'a> {
    experiment: Experiment<'a>,
    statistics: Statistics,
}

impl Replicates<'_> {
    /// Statistics of weights alone.
    fn add_weights(&mut self, truth: &Truth, record: &DrawRecord<f64>, noise: &[f64]) {
        let statistics = &mut self.statistics;
        for (i, w) in record.weights.iter().enumerate() {
            statistics.add(|| format!("weight {i}"), *w, 0.0);
            statistics.add(|| format!("weight {i} squared"), w * w, 1.0);
        }
        for (layer, value) in record.mean_squares.iter().enumerate() {
            statistics.add(|| format!("mean square of layer {layer}"), *value, 1.0);
        }
        let projections = record.projections.iter().zip(&truth.projections);
        for (i, (now, before)) in projections.enumerate() {
            statistics.add(|| format!("projection {i}"), *now, 0.0);
            let name = || format!("projection {i} squared");
            statistics.add(name, now * now, before * before);
        }
        for (i, u) in noise.iter().enumerate() {
            statistics.add(|| format!("noise {i}"), *u, 0.0);
            statistics.add(|| format!("noise {i} squared"), u * u, 1.0);
        }
        if let Noise::Learned(prior) = &truth.model.noise {
            for (output, scale) in record.noise.iter().enumerate() {
                let u = noise[output % noise.len()];
                let expected = prior.median * (prior.spread * u).exp();
                assert!((scale / expected - 1.0).abs() < 1e-14);
            }
        }
    }

    /// Statistics of weights and data: residuals are 0 on average whatever the weights are.
    fn add_residuals(&mut self, truth: &Truth, record: &DrawRecord<f64>, noise: &[f64]) {
        let model = &truth.model;
        let fitted = self.experiment.blank.outputs(&record.weights);
        let statistics = &mut self.statistics;
        let is_shallow = self.experiment.case.hidden.len() == 1;
        let kind = self.experiment.case.kind;
        let mut totals = [0.0; 3];
        for (at, f) in fitted.iter().enumerate() {
            let (output, row) = (at / ROWS, at % ROWS);
            let outputs: [f64; OUTPUTS] = std::array::from_fn(|j| fitted[j * ROWS + row]);
            let scale = record.noise[output];
            let target = model.targets[at];
            let found = kind.residual(output, target, &outputs, scale);
            if let Some([residual, square]) = found {
                let excess = residual * residual - square;
                statistics.add(|| format!("residual {at}"), residual, 0.0);
                statistics.add(|| format!("residual {at} squared"), excess, 0.0);
                statistics.add(|| format!("residual {at} times fit"), residual * f, 0.0);
                totals[0] += residual;
                totals[1] += excess;
                totals[2] += residual * f;
                for (i, u) in noise.iter().enumerate() {
                    let name = || format!("residual {at} squared times noise {i}");
                    statistics.add(name, excess * u, 0.0);
                }
            }
            if is_shallow {
                let x = &self.experiment.x[row * INPUTS..(row + 1) * INPUTS];
                let name = || format!("fit {at} squared");
                statistics.add(name, f * f, prior_covariance(x, x));
            }
            if let (Some([residual, _]), true) = (found, kind != Kind::Gaussian) {
                for (index, new) in record.mean.iter().enumerate() {
                    let name = || format!("residual {at} times new value {index}");
                    statistics.add(name, residual * new, 0.0);
                }
            }
        }
        for (name, total) in ["all residuals", "their squares", "their products with fits"]
            .into_iter()
            .zip(totals)
        {
            statistics.add(|| name.to_owned(), total, 0.0);
        }
        if is_shallow {
            self.add_new_values(truth, record, &fitted);
        }
    }

    /// Second moments of new function values with old ones, which the width does not change with one hidden layer.
    /// Under a Gaussian likelihood new values are drawn from their closed-form law and old ones are the targets.
    fn add_new_values(&mut self, truth: &Truth, record: &DrawRecord<f64>, fitted: &[f64]) {
        let is_gaussian = self.experiment.case.kind == Kind::Gaussian;
        let old = if is_gaussian {
            &truth.model.targets
        } else {
            fitted
        };
        let mut stream = Stream::new(
            self.experiment.case.seed,
            self.statistics.replicate(),
            Purpose::Prediction,
            0,
        );
        for (index, mean) in record.mean.iter().enumerate() {
            let (output, t) = (index / TEST, index % TEST);
            let f = mean + record.variance[index].sqrt() * stream.normal();
            let at = &self.experiment.test[t * INPUTS..(t + 1) * INPUTS];
            let (name, expected) = (
                || format!("new value {index} squared"),
                prior_covariance(at, at),
            );
            self.statistics.add(name, f * f, expected);
            for (i, old) in old.iter().enumerate() {
                let row = &self.experiment.x[i % ROWS * INPUTS..(i % ROWS + 1) * INPUTS];
                let is_same = i / ROWS == output;
                let expected = if is_same {
                    prior_covariance(at, row)
                } else {
                    0.0
                };
                let name = || format!("new value {index} times old value {i}");
                self.statistics.add(name, f * old, expected);
            }
        }
    }
}

/// Runs `case` with the sampler that `sampler` makes on a target with the given fault.
pub fn outcome(
    case: &Case,
    distortion: Distortion,
    sampler: &dyn Fn() -> Box<dyn Sampler<f64>>,
) -> Outcome {
    let mut replicates = Replicates {
        experiment: Experiment::new(case),
        statistics: Statistics::default(),
    };
    let mut acceptance = 0.0;
    for replicate in 0..case.replicates {
        let mut stream = Stream::new(case.seed, replicate, Purpose::Initial, 0);
        let (truth, projection) = replicates.experiment.truth(&mut stream);
        let model = Arc::clone(&truth.model);
        let mut recorder = Recorder::new(Arc::clone(&model)).with_projection(projection);
        let mut posterior = replicates.experiment.posterior(&model);
        let z = position(
            &mut posterior,
            &mut recorder,
            &truth.weights,
            &truth.noise_coordinates,
        );
        let mut target = Distorted::new(posterior, recorder, distortion);
        let mut sampler = sampler();
        let mut state = sampler.init(&mut target, z).unwrap();
        for transition in 1..=TRANSITIONS {
            let mut stream = Stream::new(case.seed, replicate, Purpose::Transition, transition);
            let info = sampler.step(&mut target, &mut state, &mut stream).unwrap();
            acceptance += info.acceptance_rate;
        }
        let mut stream = Stream::new(case.seed, replicate, Purpose::Recording, 0);
        let z = &state.position;
        let (posterior, recorder) = (&mut target.posterior, &mut target.recorder);
        let record = recorder.record(posterior, z, &mut stream).unwrap();
        let inner = truth.model.inner_parameters();
        let noise = &z[inner..inner + truth.noise_coordinates.len()];
        replicates.add_weights(&truth, record, noise);
        replicates.add_residuals(&truth, record, noise);
        replicates.statistics.finish_replicate();
    }
    Outcome {
        largest: replicates.statistics.largest(),
        acceptance_rate: acceptance / (TRANSITIONS * case.replicates) as f64,
    }
}
