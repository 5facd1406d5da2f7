//! What the sampler says about a network of finite width.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use reprior::chain::snapshot::Snapshot;
use reprior::chain::{Chain, Control, Observer, RunOutcome, Schedule, Statistics, run};
use reprior::compute::{Purpose, Stream};
use reprior::diagnostics::{Draws, Estimator};
use reprior::model::{InputReduction, Model};
use reprior::network::{Activation, Composition};
use reprior::posterior::projection::Projection;
use reprior::posterior::{Coordinates, EvaluationError, Posterior, Recorder};
use reprior::sampler::{Method, SamplerSettings, State};

use super::{INPUTS, Kinds, NOISE, OUTPUTS, Problem, Quantity, TEST, TRAIN};

/// An expectation and its standard error.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    pub value: f64,
    pub error: f64,
}

/// Keeps what the quantities need of each draw.
struct Keep {
    recorder: Recorder<f32>,
    draws: Vec<Kept>,
}

struct Kept {
    mean: Vec<f64>,
    variance: Vec<f64>,
    log_ratio: f64,
}

impl Observer<Posterior<f32>> for Keep {
    type Error = EvaluationError;

    fn warmup(&mut self, _: &Statistics, _: [f64; 2]) -> Result<(), EvaluationError> {
        Ok(())
    }

    fn draw(
        &mut self,
        target: &mut Posterior<f32>,
        state: &State<f32>,
        _: &Statistics,
        log_density: [f64; 2],
        transition: u64,
    ) -> Result<(), EvaluationError> {
        let mut stream = Stream::new(23, 0, Purpose::Recording, transition);
        let record = self.recorder.record(target, &state.position, &mut stream)?;
        let (mean, variance) = (record.mean.clone(), record.variance.clone());
        self.draws.push(Kept {
            mean,
            variance,
            log_ratio: log_density[0],
        });
        Ok(())
    }

    fn checkpoint(&mut self, _: &Snapshot<f32>) -> Result<(), EvaluationError> {
        Ok(())
    }
}

/// The quantities for a GELU network of the given width, from two chains. Variances are taken about the limit's
/// means, whose own error enters them squared.
pub fn sampled(
    width: usize,
    draws: u64,
    problem: &Problem,
    limit: &Kinds<Quantity>,
) -> Kinds<Estimate> {
    let architecture = Composition::fully_connected(INPUTS, &[width], OUTPUTS, Activation::Gelu);
    let (train, test) = problem.inputs.split_at(TRAIN * INPUTS);
    let targets = problem.targets.clone();
    let model = Model::new(
        architecture,
        NOISE,
        train,
        targets,
        test,
        InputReduction::Auto,
    );
    let model = Arc::new(model.unwrap());
    let schedule = Schedule {
        chains: 2,
        warmup: 100,
        draws,
        thin: 1,
        seed: 24,
    };
    let settings = SamplerSettings {
        method: Method::HmcInfinite,
        ..SamplerSettings::default()
    };
    let start = |index| {
        let target = Posterior::new(Arc::clone(&model), Coordinates::Marginal).unwrap();
        let recorder =
            Recorder::new(Arc::clone(&model)).with_projection(Projection::new(&model, 1, 0));
        let chain = Chain::start(index, schedule, &settings, target).unwrap();
        (
            chain,
            Keep {
                recorder,
                draws: vec![],
            },
        )
    };
    let stop = AtomicBool::new(false);
    let control = Control {
        threads: 2,
        checkpoint_every: Duration::from_secs(60),
        stop: &stop,
    };
    let (chains, outcome) = run((0..schedule.chains).map(start).collect(), control, &|_| {});
    assert_eq!(outcome.unwrap(), RunOutcome::Complete);
    let estimate = |value: &dyn Fn(&Kept) -> f64| {
        let values: Vec<f64> = chains
            .iter()
            .flat_map(|(_, keep)| keep.draws.iter().map(value))
            .collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let ess = Estimator::new().ess_mean(Draws::new(&values, chains.len()).unwrap());
        assert!(ess > 100.0, "only {ess} effective draws");
        Estimate {
            value: mean,
            error: (variance / ess).sqrt(),
        }
    };
    let means = (0..OUTPUTS * TEST).map(|i| estimate(&|kept| kept.mean[i]));
    let variances = (0..OUTPUTS * TEST).map(|i| {
        estimate(&|kept| kept.variance[i % TEST] + (kept.mean[i] - limit[0][i].limit).powi(2))
    });
    [
        means.collect(),
        variances.collect(),
        vec![estimate(&|kept| kept.log_ratio)],
    ]
}
