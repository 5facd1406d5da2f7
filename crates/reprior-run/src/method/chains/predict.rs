//! Predictions for new inputs from the kept positions of chains.

use std::sync::Arc;

use reprior::compute::{Purpose, Stream};
use reprior::posterior::{Coordinates, Posterior, PosteriorSettings, Recorder};
use reprior_io::run::{Number, Selection};

use crate::failure::Failure;
use crate::method::{Of, Predict, Predictions};
use crate::problem::Problem;
use crate::read::Recorded;
use crate::record::{POSITION, POSITIONS};
use crate::settings::Precision;
use crate::stored::Stored;

/// Predicts from kept positions.
pub struct ChainPredictor<'a> {
    problem: &'a Problem,
    run: &'a Recorded,
    /// Every how many kept positions of a chain are used.
    every: u64,
}

impl<'a> ChainPredictor<'a> {
    /// From all kept positions.
    pub fn new(problem: &'a Problem, run: &'a Recorded) -> Self {
        Self {
            problem,
            run,
            every: 1,
        }
    }

    fn predict_of(&self, inputs: &[f64], what: Of) -> Result<Predictions, Failure> {
        match self.problem.settings.sampler.precision {
            Precision::Auto | Precision::F32 => predict::<f32>(self, inputs, what),
            Precision::F64 => predict::<f64>(self, inputs, what),
        }
    }
}

impl Predict for ChainPredictor<'_> {
    fn predict(&mut self, inputs: &[f64]) -> Result<Predictions, Failure> {
        self.predict_of(inputs, Of::Position)
    }

    fn functions(&mut self, inputs: &[f64]) -> Result<Predictions, Failure> {
        self.predict_of(inputs, Of::Function)
    }

    fn use_every(&mut self, every: u64) {
        self.every = every.max(1);
    }
}

/// Means and variances (without noise) in the target's own units, and squared noise scales, for the kept positions.
fn predict<R: Stored + Number>(
    predictor: &ChainPredictor<'_>,
    inputs: &[f64],
    what: Of,
) -> Result<Predictions, Failure> {
    let ChainPredictor {
        problem,
        run,
        every,
    } = *predictor;
    let settings = &problem.settings;
    let model = Arc::new(problem.model::<R>(inputs)?);
    // what is kept of a position, see `Recording`
    let coordinates = match model.likelihood.is_gaussian() {
        true => Coordinates::Marginal,
        false => Coordinates::Standard,
    };
    let chosen = PosteriorSettings {
        coordinates,
        ..settings.posterior()
    };
    let mut posterior = Posterior::new(Arc::clone(&model), chosen).map_err(Failure::request)?;
    let mut recorder = Recorder::new(Arc::clone(&model));
    let maps = problem.output_maps();
    let rows = inputs.len() / problem.description.columns;
    let outputs = problem.description.output_names.len();
    let mut predictions = Predictions::none(problem.kind(), rows, outputs);
    let mut failure = None;
    let predicting = run.predicting_positions(every)?;
    let numbers = settings.chain_numbers();
    let mut add = |chain: u64, draw: u64, z: &[R]| {
        if !predicting.has(chain, draw) {
            return;
        }
        let number = numbers.get(chain as usize).map_or(chain, |&own| own as u64);
        let mut stream = Stream::new(settings.run.seed, number, Purpose::Prediction, draw);
        match recorder.record(&mut posterior, z, &mut stream) {
            Ok(record) => predictions.push(record, what, &*model.likelihood, &maps),
            Err(error) => {
                failure.get_or_insert(error);
            }
        }
    };
    if Posterior::dimension(&model, coordinates) == 0 {
        // a linear model: the prediction is the closed form, whatever the draw
        add(0, 0, &[]);
    } else {
        run.reader
            .for_each_draw::<R>(POSITIONS, POSITION, &Selection::all(), &mut add)
            .map_err(Failure::request)?;
    }
    if let Some(error) = failure {
        return Err(Failure::run(error));
    }
    if predictions.block.mean.is_empty() {
        return Err(Failure::request(
            "the run has no draws yet: go on with `reprior resume`",
        ));
    }
    Ok(predictions)
}
