//! Predictions for new inputs from the kept positions of chains.

use std::sync::Arc;

use reprior::compute::{Purpose, Stream};
use reprior::model::likelihood::Likelihood;
use reprior::model::standardisation::Affine;
use reprior::posterior::{Coordinates, DrawRecord, Posterior, PosteriorSettings, Recorder};
use reprior_io::run::{Number, Selection};

use crate::failure::Failure;
use crate::method::{Predict, Predictions};
use crate::predictive::PredictiveDraws;
use crate::problem::Problem;
use crate::read::Recorded;
use crate::record::{POSITION, POSITIONS};
use crate::settings::Precision;
use crate::stored::Stored;

/// Predicts from kept positions.
pub struct ChainPredictor<'a> {
    pub problem: &'a Problem,
    pub run: &'a Recorded,
}

impl Predict for ChainPredictor<'_> {
    fn predict(&mut self, inputs: &[f64]) -> Result<Predictions, Failure> {
        match self.problem.settings.sampler.precision {
            Precision::Auto | Precision::F32 => predict::<f32>(self.problem, self.run, inputs),
            Precision::F64 => predict::<f64>(self.problem, self.run, inputs),
        }
    }
}

/// Means and variances (without noise) in the target's own units, and squared noise scales, for every kept position.
fn predict<R: Stored + Number>(
    problem: &Problem,
    run: &Recorded,
    inputs: &[f64],
) -> Result<Predictions, Failure> {
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
    let mut predictions = Predictions {
        block: PredictiveDraws {
            kind: problem.kind(),
            rows,
            outputs: problem.description.output_names.len(),
            mean: Vec::new(),
            variance: Vec::new(),
        },
        noise: Vec::new(),
        clamped: 0,
    };
    let has_scale = settings.model.likelihood.has_scale();
    let mut failure = None;
    let mut add = |chain: u64, draw: u64, z: &[R]| {
        let mut stream = Stream::new(settings.run.seed, chain, Purpose::Prediction, draw);
        match recorder.record(&mut posterior, z, &mut stream) {
            Ok(record) => push(
                &mut predictions,
                record,
                &*model.likelihood,
                &maps,
                has_scale,
            ),
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

/// Appends what one position predicts.
fn push<R>(
    predictions: &mut Predictions,
    record: &DrawRecord<R>,
    likelihood: &dyn Likelihood,
    maps: &[Affine],
    has_scale: bool,
) {
    let block = &mut predictions.block;
    let (kind, rows) = (block.kind, block.rows);
    let spread = kind.spread(maps.len());
    for row in 0..rows {
        let of_row = (0..maps.len()).map(|output| record.mean[output * rows + row]);
        kind.push_mean(likelihood, maps, of_row, &mut block.mean);
        for (output, map) in maps.iter().enumerate().take(spread) {
            let variance = record.variance[output * rows + row];
            block.variance.push(map.scale.powi(2) * variance);
        }
    }
    for (scale, map) in record.noise.iter().zip(maps).take(spread) {
        let variance = (map.scale * scale).powi(2);
        predictions
            .noise
            .push(if has_scale { variance } else { 0.0 });
    }
}
