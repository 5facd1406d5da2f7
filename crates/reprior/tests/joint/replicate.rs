//! One replicate after another: weights and data from their joint law, some transitions, statistics.

use std::sync::Arc;

use reprior::compute::{Matrix, Purpose, Stream};
use reprior::model::{Model, Noise};
use reprior::network::{Activation, Architecture};
use reprior::posterior::{DrawRecord, FeatureMap, NetworkPosterior, Projection, Recorder};
use reprior::sampler::Sampler;

use crate::case::{Case, Kind};
use crate::distorted::{Distorted, Distortion};
use crate::inverse::position;
use crate::prior::{INPUTS, prior_covariance};
use crate::statistics::{Largest, Statistics};

const ROWS: usize = 4;
const TEST: usize = 2;
const OUTPUTS: usize = 2;
const PROJECTIONS: usize = 5;
const TRANSITIONS: u64 = 4;

/// What came of a case.
#[derive(Debug)]
pub struct Outcome {
    pub largest: Largest,
    /// Mean acceptance rate.
    pub acceptance_rate: f64,
}

/// What all replicates of a case share.
struct Experiment<'a> {
    case: &'a Case,
    x: Vec<f64>,
    test: Vec<f64>,
    /// The model without its data.
    blank: Model<f64>,
    map: FeatureMap<f64>,
    statistics: Statistics,
}

/// A replicate's weights and data before the transitions.
struct Truth {
    model: Arc<Model<f64>>,
    weights: Vec<f64>,
    noise_coordinates: Vec<f64>,
    projections: Vec<f64>,
}

fn noise(count: usize, index: u64) -> Vec<f64> {
    let mut values = vec![0.0; count];
    Stream::new(31, 0, Purpose::Initial, index).fill_normal(&mut values);
    values
}

/// Function values (column-major) of the readout `weights` (column-major) at features.
pub fn functions(
    architecture: &Architecture,
    features: Matrix<'_, f64>,
    weights: &[f64],
) -> Vec<f64> {
    let p = architecture.readout_rows();
    let factor = architecture.readout_scale.factor(p - 1);
    let value = |w: &[f64], i| factor * (0..p).map(|k| features[(i, k)] * w[k]).sum::<f64>();
    let column = |w| (0..features.nrows()).map(move |i| value(w, i));
    weights.chunks(p).flat_map(column).collect()
}

impl Experiment<'_> {
    /// Weights and noise from the prior, data from the likelihood.
    fn truth(&mut self, stream: &mut Stream) -> (Truth, Projection<f64>) {
        let (blank, architecture) = (&self.blank, &self.blank.architecture);
        let inner = blank.inner_parameters();
        let mut weights = vec![0.0; inner + architecture.readout_parameters()];
        stream.fill_normal(&mut weights);
        let mut noise_coordinates = vec![0.0; blank.noise_coordinates()];
        stream.fill_normal(&mut noise_coordinates);
        let mut scales = [0.0; OUTPUTS];
        blank.noise.scales(&noise_coordinates, &mut scales);
        self.map.evaluate(blank, &weights[..inner], false);
        let f = functions(architecture, self.map.features(blank), &weights[inner..]);
        let mut targets = vec![0.0; f.len()];
        for row in 0..ROWS {
            let mut y = [0.0; OUTPUTS];
            let outputs: [f64; OUTPUTS] = std::array::from_fn(|j| f[j * ROWS + row]);
            let likelihood = &blank.likelihood;
            likelihood.simulate(&outputs, &scales, stream, &mut y);
            (0..OUTPUTS).for_each(|j| targets[j * ROWS + row] = y[j]);
        }
        let model = Arc::new(Model {
            architecture: architecture.clone(),
            likelihood: Arc::clone(&blank.likelihood),
            noise: blank.noise.clone(),
            targets,
            design: blank.design.clone(),
            test_design: blank.test_design.clone(),
        });
        let mut projection = Projection::new(&model, PROJECTIONS, 7);
        let mut projections = vec![0.0; PROJECTIONS];
        let mut mean_squares = vec![0.0; self.case.hidden.len() + 1];
        projection.project(&weights, stream, &mut projections, &mut mean_squares);
        let truth = Truth {
            model,
            weights,
            noise_coordinates,
            projections,
        };
        (truth, projection)
    }

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
        let (inner, readout) = record.weights.split_at(model.inner_parameters());
        self.map.evaluate(model, inner, false);
        let fitted = functions(&model.architecture, self.map.features(model), readout);
        let statistics = &mut self.statistics;
        let is_shallow = self.case.hidden.len() == 1;
        let kind = self.case.kind;
        let mut totals = [0.0; 3];
        for (at, f) in fitted.iter().enumerate() {
            let (output, row) = (at / ROWS, at % ROWS);
            let outputs: [f64; OUTPUTS] = std::array::from_fn(|j| fitted[j * ROWS + row]);
            let scale = record.noise[output];
            let [residual, square] = kind.residual(output, model.targets[at], &outputs, scale);
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
            if is_shallow {
                let x = &self.x[row * INPUTS..(row + 1) * INPUTS];
                let name = || format!("fit {at} squared");
                statistics.add(name, f * f, prior_covariance(x, x));
            }
            if kind != Kind::Gaussian {
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
        let is_gaussian = self.case.kind == Kind::Gaussian;
        let old = if is_gaussian {
            &truth.model.targets
        } else {
            fitted
        };
        let mut stream = Stream::new(
            self.case.seed,
            self.statistics.replicate(),
            Purpose::Prediction,
            0,
        );
        for (index, mean) in record.mean.iter().enumerate() {
            let (output, t) = (index / TEST, index % TEST);
            let f = mean + record.variance[index].sqrt() * stream.normal();
            let at = &self.test[t * INPUTS..(t + 1) * INPUTS];
            let (name, expected) = (
                || format!("new value {index} squared"),
                prior_covariance(at, at),
            );
            self.statistics.add(name, f * f, expected);
            for (i, old) in old.iter().enumerate() {
                let row = &self.x[i % ROWS * INPUTS..(i % ROWS + 1) * INPUTS];
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
    let architecture = Architecture::new(INPUTS, case.hidden, OUTPUTS, Activation::Gelu);
    let mut x = noise(ROWS * INPUTS, 1);
    x.copy_within(0..INPUTS, 2 * INPUTS); // an exactly repeated row
    let test = [x[..INPUTS].to_vec(), noise(INPUTS, 2)].concat(); // a known input and a new one
    let targets = vec![0.0; ROWS * OUTPUTS];
    let blank = Model::new(
        architecture,
        case.noise.clone(),
        &x,
        targets,
        &test,
        case.reduction,
    );
    let blank = blank.unwrap().with_likelihood(case.kind.likelihood());
    let mut experiment = Experiment {
        case,
        x,
        test,
        map: FeatureMap::new(&blank),
        blank,
        statistics: Statistics::default(),
    };
    let mut acceptance = 0.0;
    for replicate in 0..case.replicates {
        let mut stream = Stream::new(case.seed, replicate, Purpose::Initial, 0);
        let (truth, projection) = experiment.truth(&mut stream);
        let model = Arc::clone(&truth.model);
        let mut recorder = Recorder::new(Arc::clone(&model), projection);
        let frame = case.frame;
        let (space, regulariser) = (Some(frame.space), frame.regulariser);
        let mut posterior =
            NetworkPosterior::with_regulariser(model, frame.coordinates, space, regulariser);
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
        experiment.add_weights(&truth, record, noise);
        experiment.add_residuals(&truth, record, noise);
        experiment.statistics.finish_replicate();
    }
    Outcome {
        largest: experiment.statistics.largest(),
        acceptance_rate: acceptance / (TRANSITIONS * case.replicates) as f64,
    }
}
