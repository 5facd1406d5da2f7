//! Chains over a network's posterior, and what papers read off them: acceptance, effective draws, R-hat, traces.

use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reprior::chain::snapshot::Snapshot;
use reprior::chain::{Chain, Control, Observer, RunOutcome, Schedule, Statistics, run};
use reprior::compute::kernels::{dot, symmetric_eigen};
use reprior::compute::{Purpose, Real, Stream};
use reprior::diagnostics::{Draws, Estimator, Spread, Truncation};
use reprior::model::Model;
use reprior::posterior::{Coordinates, Posterior, PosteriorSettings, Recorder, Regulariser};
use reprior::sampler::{SamplerSettings, State};

use crate::{Bench, Failure};

/// Directions in which weights and predictions are watched.
pub const DIRECTIONS: usize = 50;

/// What to run.
#[derive(Debug, Clone)]
pub struct ChainPlan {
    /// The sampler.
    pub settings: SamplerSettings,
    /// The coordinates.
    pub coordinates: Coordinates,
    /// λ of `repriorised` coordinates.
    pub regulariser: Regulariser,
    /// How long.
    pub schedule: Schedule,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Sampled {
    /// Chains.
    pub chains: usize,
    /// Mean acceptance rate after warm-up.
    pub acceptance: f64,
    /// Mean step size after warm-up; NaN without one.
    pub step_size: f64,
    /// Wall-clock time of all transitions after warm-up, recording included.
    pub seconds: f64,
    /// Transitions of all chains after warm-up.
    pub transitions: u64,
    /// Evaluations of the gradient after warm-up.
    pub n_gradients: u64,
    /// Evaluations of ℓ after warm-up.
    pub n_evaluations: u64,
    /// Per direction of all weights that the chain has (of reduced inputs: that the data touch), draws chain after chain.
    pub weights: Vec<Vec<f64>>,
    /// Per direction of the readout's weights θ, draws chain after chain.
    pub readout: Vec<Vec<f64>>,
    /// Per direction of the outputs f(x; θ), as papers have it, draws chain after chain.
    pub predictions: Vec<Vec<f64>>,
    /// Per direction of the outputs' means given the inner weights, which runs keep, draws chain after chain.
    pub means: Vec<Vec<f64>>,
    /// log density of every draw, chain after chain.
    pub log_densities: Vec<f64>,
}

/// Directions of weights, one rank-one matrix abᵀ for each layer, all entries N(0, 1), over √D.
///
/// Unlike the library's [`Projection`] these leave out what reduced inputs leave out: those weights are drawn afresh, so
/// that directions with them would seem to mix better than the chain does.
struct Directions {
    /// Rows and units of each layer, the readout last.
    shapes: Vec<(usize, usize)>,
    /// a and b, layer by layer, direction by direction.
    factors: Vec<(Vec<f64>, Vec<f64>)>,
}

impl Directions {
    fn new<R: Real>(model: &Model<R>) -> Self {
        let shapes = model.reduced_network().layer_shapes();
        let mut factors = Vec::new();
        for (layer, &(rows, units)) in shapes.iter().enumerate() {
            for direction in 0..DIRECTIONS {
                let mut stream =
                    Stream::new(9, layer as u64, Purpose::Projection, direction as u64);
                let (mut a, mut b) = (vec![0.0; rows], vec![0.0; units]);
                stream.fill_normal(&mut a);
                stream.fill_normal(&mut b);
                factors.push((a, b));
            }
        }
        Self { shapes, factors }
    }

    /// aᵀWb of every layer, summed; and of the readout alone.
    fn project<R: Real>(&self, weights: &[R]) -> [Vec<f64>; 2] {
        let mut all = vec![0.0; DIRECTIONS];
        let mut readout = vec![0.0; DIRECTIONS];
        let mut start = 0;
        for (layer, &(rows, units)) in self.shapes.iter().enumerate() {
            let weights = &weights[start..start + rows * units];
            start += rows * units;
            let factors = &self.factors[layer * DIRECTIONS..];
            for (index, (a, b)) in factors.iter().take(DIRECTIONS).enumerate() {
                let unit = |(column, b): (&[R], &f64)| {
                    let pairs = column.iter().zip(a);
                    b * pairs.map(|(w, a)| w.to_f64() * a).sum::<f64>()
                };
                let value: f64 = weights.chunks_exact(rows).zip(b).map(unit).sum();
                all[index] += value;
                if layer + 1 == self.shapes.len() {
                    readout[index] = value;
                }
            }
        }
        let scale = (start as f64).sqrt().recip();
        all.iter_mut().for_each(|value| *value *= scale);
        [all, readout]
    }
}

/// Keeps projections of weights and predictions of one chain.
struct Watch<R> {
    recorder: Recorder<R>,
    weight_directions: Directions,
    directions: Vec<Vec<f64>>,
    seed: u64,
    chain: usize,
    weights: Vec<f64>,
    readout: Vec<f64>,
    predictions: Vec<f64>,
    means: Vec<f64>,
    log_densities: Vec<f64>,
    failure: Option<String>,
    started: Option<Instant>,
    ended: Option<Instant>,
}

impl<R: Real> Watch<R> {
    fn new(model: &Arc<Model<R>>, seed: u64, chain: usize) -> Self {
        let size = model.test_design.rows() * model.architecture.outputs;
        let direction = |index: usize| {
            let mut values = vec![0.0; size];
            Stream::new(8, 0, Purpose::Projection, index as u64).fill_normal(&mut values);
            values
        };
        Self {
            recorder: Recorder::new(Arc::clone(model)),
            weight_directions: Directions::new(model),
            directions: (0..DIRECTIONS).map(direction).collect(),
            seed,
            chain,
            weights: Vec::new(),
            readout: Vec::new(),
            predictions: Vec::new(),
            means: Vec::new(),
            log_densities: Vec::new(),
            failure: None,
            started: None,
            ended: None,
        }
    }

    fn record(&mut self, posterior: &mut Posterior<R>, z: &[R], transition: u64) {
        let mut stream = Stream::new(self.seed, self.chain as u64, Purpose::Recording, transition);
        match self.recorder.record(posterior, z, &mut stream) {
            Ok(record) => {
                let [all, readout] = self.weight_directions.project(&record.weights);
                self.weights.extend(all);
                self.readout.extend(readout);
                let scale = (record.mean.len().max(1) as f64).sqrt().recip();
                for direction in &self.directions {
                    self.predictions
                        .push(scale * dot(direction, &record.outputs));
                    self.means.push(scale * dot(direction, &record.mean));
                }
            }
            Err(error) => self.failure = Some(error.to_string()),
        }
    }
}

impl<R: Real> Observer<Posterior<R>> for Watch<R> {
    type Error = Infallible;

    fn warmup(&mut self, _: &Statistics, _: [f64; 2]) -> Result<(), Infallible> {
        self.started = Some(Instant::now());
        Ok(())
    }

    fn draw(
        &mut self,
        target: &mut Posterior<R>,
        state: &State<R>,
        _: &Statistics,
        log_density: [f64; 2],
        transition: u64,
    ) -> Result<(), Infallible> {
        self.record(target, &state.position, transition);
        self.log_densities.push(log_density[1]);
        self.ended = Some(Instant::now());
        Ok(())
    }

    fn checkpoint(&mut self, _: &Snapshot<R>) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Runs the chains of `plan` on `model`.
///
/// # Errors
/// Chains that could not start or go on; a request to stop.
pub fn sample<R: Real>(
    model: &Arc<Model<R>>,
    plan: &ChainPlan,
    bench: &Bench<'_>,
) -> Result<Sampled, Failure> {
    let schedule = plan.schedule;
    let coordinates = PosteriorSettings {
        regulariser: plan.regulariser,
        seed: schedule.seed,
        ..plan.coordinates.into()
    };
    let start = |index| {
        let target = Posterior::new(Arc::clone(model), coordinates).map_err(Failure::failed)?;
        let chain = Chain::start(index, schedule, &plan.settings, target);
        let chain = chain.map_err(Failure::failed)?;
        Ok((chain, Watch::new(model, schedule.seed, index)))
    };
    let walks = (0..schedule.chains)
        .map(start)
        .collect::<Result<Vec<_>, Failure>>()?;
    let control = Control {
        threads: bench.threads,
        checkpoint_every: Duration::from_secs(3600),
        stop: bench.stop,
    };
    let total = schedule.transitions().max(1) as f64;
    let begun = Instant::now();
    let (walks, outcome) = run(walks, control, &|progress| {
        (bench.progress)(progress.transition as f64 / total);
    });
    if outcome.map_err(Failure::failed)? == RunOutcome::Stopped {
        return Err(Failure::Stopped);
    }
    let mut sampled = Sampled {
        chains: schedule.chains,
        weights: vec![Vec::new(); DIRECTIONS],
        readout: vec![Vec::new(); DIRECTIONS],
        predictions: vec![Vec::new(); DIRECTIONS],
        means: vec![Vec::new(); DIRECTIONS],
        ..Sampled::default()
    };
    let mut statistics = Statistics::default();
    let mut step_sizes = Vec::new();
    for (chain, watch) in &walks {
        if let Some(failure) = &watch.failure {
            return Err(Failure::failed(failure));
        }
        let snapshot = chain.snapshot();
        statistics.merge(&snapshot.sampling);
        step_sizes.extend(snapshot.step_size);
        for index in 0..DIRECTIONS {
            let of = |values: &[f64]| -> Vec<f64> {
                values
                    .iter()
                    .skip(index)
                    .step_by(DIRECTIONS)
                    .copied()
                    .collect()
            };
            sampled.weights[index].extend(of(&watch.weights));
            sampled.readout[index].extend(of(&watch.readout));
            sampled.predictions[index].extend(of(&watch.predictions));
            sampled.means[index].extend(of(&watch.means));
        }
        sampled
            .log_densities
            .extend_from_slice(&watch.log_densities);
        let (first, last) = (watch.started.unwrap_or(begun), watch.ended.unwrap_or(begun));
        sampled.seconds = sampled.seconds.max((last - first).as_secs_f64());
    }
    sampled.acceptance = statistics.acceptance_rate();
    sampled.transitions = statistics.transitions;
    sampled.n_gradients = statistics.n_gradients;
    sampled.n_evaluations = statistics.n_evaluations;
    sampled.step_size = step_sizes.iter().sum::<f64>() / step_sizes.len() as f64;
    Ok(sampled)
}

impl Sampled {
    /// Draws of one chain.
    pub fn length(&self) -> usize {
        self.log_densities.len() / self.chains.max(1)
    }

    /// Effective draws per draw of every direction, chain by chain, as the papers have it: TFP's estimator of one chain.
    pub fn ess_per_draw(&self, directions: &[Vec<f64>]) -> Spread {
        let mut estimator = Estimator::new();
        let length = self.length().max(1);
        let one = |values: &Vec<f64>| {
            let chains = values.chunks_exact(length);
            let sum: f64 = chains
                .map(|chain| estimator.ess_tfp(chain, Truncation::FirstNegative))
                .sum();
            sum / values.len() as f64
        };
        Spread::of(directions.iter().map(one))
    }

    /// Effective draws of all chains together (Vehtari et al. 2021), every direction.
    pub fn ess(&self, directions: &[Vec<f64>]) -> Spread {
        let mut estimator = Estimator::new();
        let one = |values: &Vec<f64>| match Draws::new(values, self.chains) {
            Ok(draws) => estimator.ess_mean(draws),
            Err(_) => f64::NAN,
        };
        Spread::of(directions.iter().map(one))
    }

    /// Rank-normalised R-hat of every direction.
    pub fn rhat(&self, directions: &[Vec<f64>]) -> Spread {
        let mut estimator = Estimator::new();
        self.over(directions, 0..self.length(), |draws| {
            estimator.rhat_rank(draws)
        })
    }

    /// Hron's R̂² (their eq. 6) over the first `length` draws of every chain.
    pub fn rhat_squared(&self, directions: &[Vec<f64>], length: usize) -> Spread {
        self.over(directions, 0..length, |draws| draws.rhat_squared_hron())
    }

    /// A statistic of some draws of every chain, counted from its first, over the directions.
    pub fn over(
        &self,
        directions: &[Vec<f64>],
        draws: Range<usize>,
        mut statistic: impl FnMut(Draws<'_>) -> f64,
    ) -> Spread {
        let one = |values: &Vec<f64>| {
            let chains = values.chunks_exact(self.length().max(1));
            let some: Vec<f64> = chains
                .flat_map(|chain| &chain[draws.clone()])
                .copied()
                .collect();
            match Draws::new(&some, self.chains) {
                Ok(draws) => statistic(draws),
                Err(_) => f64::NAN,
            }
        };
        Spread::of(directions.iter().map(one))
    }
}

/// The first `count` principal components of what was watched in several directions: one value a draw each.
pub fn principal_components(directions: &[Vec<f64>], count: usize) -> Vec<Vec<f64>> {
    let (k, n) = (directions.len(), directions.first().map_or(0, Vec::len));
    let centred: Vec<Vec<f64>> = directions
        .iter()
        .map(|values| {
            let mean = values.iter().sum::<f64>() / n as f64;
            values.iter().map(|value| value - mean).collect()
        })
        .collect();
    let mut covariance = vec![0.0; k * k];
    for i in 0..k {
        for j in 0..k {
            covariance[i * k + j] = dot(&centred[i], &centred[j]) / n as f64;
        }
    }
    // of finite numbers; what is not finite has no components
    let (_, vectors) =
        symmetric_eigen(&covariance, k).unwrap_or((Vec::new(), vec![f64::NAN; k * k]));
    let component = |rank: usize| {
        let mut out = vec![0.0; n];
        for (values, weight) in centred
            .iter()
            .zip(&vectors[(k - 1 - rank) * k..(k - rank) * k])
        {
            for (out, value) in out.iter_mut().zip(values) {
                *out += weight * value;
            }
        }
        out
    };
    (0..count.min(k)).map(component).collect()
}
