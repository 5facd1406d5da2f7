//! Where the truth ranks among a chain's draws, and whether ranks are uniform.

use std::convert::Infallible;
use std::sync::Arc;

use reprior::chain::snapshot::Snapshot;
use reprior::chain::{Observer, Statistics};
use reprior::compute::{Purpose, Stream};
use reprior::model::Model;
use reprior::sampler::State;

use super::case::Case;
use super::distorted::Distorted;
use super::experiment::{Experiment, Probe, Truth, fixed};

/// Components of Neyman's smooth test: polynomials of the ranks of degree 1 to 4.
pub const DEGREES: usize = 4;

/// Counts how many draws of one chain are below the truth, in each of several quantities.
pub struct Ranks {
    model: Arc<Model<f64>>,
    train: Probe,
    test: Probe,
    truth: Vec<f64>,
    pub below: Vec<usize>,
    seed: u64,
    index: u64,
}

impl Ranks {
    pub fn new(case: &Case, experiment: &Experiment<'_>, truth: &Truth, index: u64) -> Self {
        let mut ranks = Self {
            model: Arc::clone(&truth.model),
            train: Probe::new(case, &experiment.x, &[]),
            test: Probe::new(case, &experiment.test, &[]),
            truth: Vec::new(),
            below: Vec::new(),
            seed: case.seed,
            index,
        };
        ranks.truth = ranks.quantities(&truth.weights, &truth.noise_coordinates);
        ranks.below = vec![0; ranks.truth.len()];
        ranks
    }

    /// Function values at two inputs, a projection of the weights, their norm, the size of the features,
    /// the log-likelihood, noise coordinates.
    fn quantities(&mut self, weights: &[f64], noise: &[f64]) -> Vec<f64> {
        let mut quantities = self.test.outputs(weights);
        let direction = fixed(weights.len(), 3);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        quantities.push(dot(&direction, weights));
        quantities.push(dot(weights, weights));
        let model = &self.model;
        let f = self.train.outputs(weights);
        quantities.push(self.train.spread());
        let mut scales = vec![0.0; model.architecture.outputs];
        model.noise.scales(noise, &mut scales);
        let likelihood = &model.likelihood;
        quantities.push(likelihood.log_density(&model.targets, &f, &scales, None));
        quantities.extend(noise);
        quantities
    }
}

impl Observer<Distorted> for Ranks {
    type Error = Infallible;

    fn warmup(&mut self, _: &Statistics, _: [f64; 2]) -> Result<(), Infallible> {
        Ok(())
    }

    fn draw(
        &mut self,
        target: &mut Distorted,
        state: &State<f64>,
        _: &Statistics,
        _: [f64; 2],
        transition: u64,
    ) -> Result<(), Infallible> {
        let mut stream = Stream::new(self.seed, self.index, Purpose::Recording, transition);
        let (posterior, recorder) = (&mut target.posterior, &mut target.recorder);
        let record = recorder.record(posterior, &state.position, &mut stream);
        let weights = &record.unwrap().weights;
        let inner = self.model.inner_parameters();
        let noise = &state.position[inner..inner + self.model.noise_coordinates()];
        let quantities = self.quantities(weights, noise);
        for ((below, draw), truth) in self.below.iter_mut().zip(quantities).zip(&self.truth) {
            *below += usize::from(draw < *truth);
        }
        Ok(())
    }

    fn checkpoint(&mut self, _: &Snapshot<f64>) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Legendre polynomials of degree 1 to 4 of the middle of cell `rank` among `draws` + 1 cells of [−1, 1].
fn polynomials(rank: usize, draws: usize) -> [f64; DEGREES] {
    let x = (2 * rank + 1) as f64 / (draws + 1) as f64 - 1.0;
    let s = x * x;
    [
        x,
        1.5 * s - 0.5,
        (2.5 * s - 1.5) * x,
        (4.375 * s - 3.75) * s + 0.375,
    ]
}

/// z-scores of the ranks' polynomials, for each quantity; their means and variances under uniform ranks are exact.
pub fn scores(ranks: &[Ranks], draws: usize) -> Vec<[f64; DEGREES]> {
    let cells = (draws + 1) as f64;
    let mut moments = [[0.0; 2]; DEGREES];
    for rank in 0..=draws {
        for (moments, value) in moments.iter_mut().zip(polynomials(rank, draws)) {
            moments[0] += value / cells;
            moments[1] += value * value / cells;
        }
    }
    let score = |quantity: usize, degree: usize| {
        let [mean, square] = moments[degree];
        let of = |ranks: &Ranks| polynomials(ranks.below[quantity], draws)[degree] - mean;
        let variance = ranks.len() as f64 * (square - mean * mean);
        ranks.iter().map(of).sum::<f64>() / variance.sqrt()
    };
    let quantities = ranks[0].below.len();
    let all = |quantity| std::array::from_fn(|degree| score(quantity, degree));
    (0..quantities).map(all).collect()
}
