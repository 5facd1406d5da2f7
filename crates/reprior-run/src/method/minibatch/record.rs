//! The observer that writes what a chain of a minibatch method produces: epochs, draws, checkpoints.

use std::sync::Arc;
use std::time::Instant;

use reprior::chain::minibatch::{
    Epoch, MinibatchChain, MinibatchCounters, MinibatchDraw, MinibatchObserver, UpdateStatistics,
};
use reprior::chain::moments::WeightMoments;
use reprior::compute::{Purpose, Stream};
use reprior::model::likelihood::Likelihood;
use reprior::model::standardisation::Affine;
use reprior::network::parameters::ParameterLayout;
use reprior::posterior::projection::Projection;
use reprior::stochastic::average::{Averaging, PosteriorMean};
use reprior::stochastic::ensemble::Ensemble;
use reprior::stochastic::swag::Swag;
use reprior::stochastic::update::StochasticGradientState;
use reprior_io::run::{Checkpoint, DrawWriter, RunError, Tensor, Values};
use serde::{Deserialize, Serialize};

use super::schema::{Corrections, EPOCHS, OfUpdates, Validation};
use super::score::TrainingRows;
use crate::predictive::PredictionKind;
use crate::record::{
    BATCH_NORM, LOG_LIKELIHOOD, LayerTensors, POSITIONS, PredictionRecord, WEIGHTS, count,
    split_layer,
};
use crate::stored::Stored;

/// Of a checkpoint: the coordinates of a learned σ.
const NOISE_COORDINATES: &str = "noise_coordinates";

/// What is the same for every chain.
pub struct SharedByChains {
    pub seed: u64,
    pub predictions: PredictionRecord,
    pub layout: ParameterLayout,
    pub tensors: Vec<LayerTensors>,
    /// Maps of the outputs back to their own units; for classes, identities.
    pub outputs: Vec<Affine>,
    pub likelihood: Arc<dyn Likelihood>,
    pub learns_noise: bool,
    /// Whether predictions are of the network linearised where training ended.
    pub is_linearised: bool,
    /// When this process began, and the seconds that earlier ones took.
    pub clock: (Instant, f64),
}

/// Writes what one chain produces.
pub struct MinibatchRecorder<R> {
    common: Arc<SharedByChains>,
    writer: DrawWriter,
    /// Of the test rows, if there are any.
    test: Option<Ensemble<R>>,
    /// Training rows whose log-likelihoods are recorded, if there are any.
    scored: Option<TrainingRows<R>>,
    projection: Projection<R>,
    /// Where the network is linearised, once that is known; none of draws that are predicted with by the network itself.
    linearised_at: Option<Vec<R>>,
    pub moments: WeightMoments,
    pub mean: PosteriorMean<R>,
}

/// The part of a checkpoint that is not numbers of the network's precision.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Document {
    pub counters: MinibatchCounters,
    /// Updates made.
    pub update: u64,
    thermostat: f64,
    moments_count: u64,
    mean_count: u64,
    swag_count: u64,
    /// Wall-clock seconds that the whole run has taken so far.
    pub seconds: f64,
}

/// What a checkpoint keeps.
pub struct Restored<R> {
    pub counters: MinibatchCounters,
    pub updates: StochasticGradientState<R>,
    pub moments: WeightMoments,
    pub mean: PosteriorMean<R>,
    pub swag: Option<Swag<R>>,
}

impl<R: Stored> MinibatchRecorder<R> {
    pub fn new(
        common: Arc<SharedByChains>,
        writer: DrawWriter,
        test: Option<Ensemble<R>>,
        projections: usize,
        moments: WeightMoments,
        mean: PosteriorMean<R>,
    ) -> Self {
        let layers = common.layout.layers.iter();
        let shapes: Vec<_> = layers.map(|layer| (layer.rows, layer.units)).collect();
        Self {
            projection: Projection::of_shapes(&shapes, projections, common.seed),
            linearised_at: None,
            common,
            writer,
            test,
            scored: None,
            moments,
            mean,
        }
    }

    /// The same with the log-likelihoods of training rows.
    pub fn with_scored_rows(mut self, scored: Option<TrainingRows<R>>) -> Self {
        self.scored = scored;
        self
    }

    /// What the network predicts for the test rows at one position, in the target's own units (of classes
    /// the logarithms of their probabilities); none without test rows. Statistics are those of batch normalisation, where they are
    /// trained.
    pub fn predict(&mut self, position: &[R], statistics: &[f64]) -> Vec<f64> {
        self.predict_with_noise(position, statistics, &[])[0].clone()
    }

    /// The same, and the σ of every target where it is another for every row.
    fn predict_with_noise(
        &mut self,
        position: &[R],
        statistics: &[f64],
        scales: &[f64],
    ) -> [Vec<f64>; 2] {
        let (mut mean, mut noise) = (Vec::new(), Vec::new());
        let common = &self.common;
        if let Some(test) = &mut self.test {
            test.set_statistics(statistics);
            let count = test.outputs_count();
            let outputs = match &self.linearised_at {
                Some(mode) => test.linearised(mode, position),
                None => test.outputs(position),
            };
            for row in outputs.chunks_exact(count) {
                let outputs: Vec<f64> = row.iter().map(|f| f.to_f64()).collect();
                let (likelihood, maps) = (&*common.likelihood, &common.outputs);
                PredictionKind::push_row_noise(likelihood, maps, [&outputs, scales], &mut noise);
                let kind = common.predictions.kind;
                kind.push_mean(likelihood, maps, outputs.into_iter(), &mut mean);
            }
        }
        [mean, noise]
    }

    /// The test rows' inputs, row-major.
    pub fn test_inputs(&self) -> Option<&[R]> {
        self.test.as_ref().map(Ensemble::inputs)
    }

    fn push_predictions(&mut self, made: MinibatchDraw<'_, R>, draw: u64) -> Result<(), RunError> {
        let Some(test) = &self.test else {
            return Ok(());
        };
        let predictions = self.common.predictions;
        if !predictions.takes(draw) {
            return Ok(());
        }
        let rows = test.rows();
        let [mean, mut sd] = self.predict_with_noise(made.position, made.statistics, made.scales);
        // otherwise the function is what the draw says, without a spread of its own
        sd.resize(
            rows * predictions.kind.spread(self.common.outputs.len()),
            0.0,
        );
        predictions.push(&mut self.writer, draw, &mean, &sd)
    }

    fn push_weights(&mut self, position: &[R]) -> Result<(), RunError> {
        let mut parts: Vec<Vec<R>> = Vec::new();
        for (layer, tensors) in self.common.layout.layers.iter().zip(&self.common.tensors) {
            split_layer(tensors, &position[layer.range.clone()], &mut parts);
        }
        let values: Vec<Values<'_>> = parts.iter().map(|part| R::values(part)).collect();
        self.writer.push(WEIGHTS, &values)
    }
}

impl<R: Stored> MinibatchObserver<R> for MinibatchRecorder<R> {
    type Error = RunError;

    fn epoch(&mut self, epoch: &Epoch) -> Result<(), RunError> {
        let (updates, corrections) = of(&epoch.tally);
        let validation = Validation {
            validation_nll: epoch.validation_nll,
        };
        let values = [updates.values(), validation.values(), corrections.values()];
        self.writer.push(EPOCHS, &values.concat())
    }

    fn trained(&mut self, mode: &[R]) -> Result<(), RunError> {
        self.linearised_at = self.common.is_linearised.then(|| mode.to_vec());
        Ok(())
    }

    fn draw(&mut self, made: MinibatchDraw<'_, R>, draw: u64) -> Result<(), RunError> {
        let MinibatchDraw {
            position,
            statistics,
            scales,
            since,
        } = made;
        let mut squares = vec![0.0; self.projection.layers()];
        let mut projections = vec![0.0; self.projection.count()];
        // nothing is left open: the stream is not used
        let mut stream = Stream::new(self.common.seed, 0, Purpose::Recording, 0);
        self.projection
            .project(position, &mut stream, &mut projections, &mut squares);
        let mut posterior = vec![Values::F64(&squares)];
        if !projections.is_empty() {
            posterior.push(Values::F64(&projections));
        }
        let outputs = scales.iter().zip(&self.common.outputs);
        let noise: Vec<f64> = outputs.map(|(noise, map)| noise * map.scale).collect();
        if self.common.learns_noise {
            posterior.push(Values::F64(&noise));
        }
        self.writer.push("posterior", &posterior)?;
        let (updates, corrections) = of(since);
        let values = [updates.values(), corrections.values()];
        self.writer.push("sample_stats", &values.concat())?;
        if let Some(scored) = &mut self.scored {
            let mode = self.linearised_at.as_deref();
            let values = scored.log_likelihood(made, mode);
            self.writer.push(LOG_LIKELIHOOD, &[Values::F64(values)])?;
        }
        self.push_predictions(made, draw)?;
        self.moments.add(position);
        self.mean.add(position);
        let keeping = self.common.predictions.keeping;
        if draw.is_multiple_of(keeping.positions_every) {
            let mut values = vec![R::values(position)];
            if !statistics.is_empty() {
                values.push(Values::F64(statistics));
            }
            if self.common.learns_noise {
                values.push(Values::F64(&noise));
            }
            self.writer.push(POSITIONS, &values)?;
        }
        if keeping
            .weights_every
            .is_some_and(|every| draw.is_multiple_of(every))
        {
            self.push_weights(position)?;
        }
        Ok(())
    }

    fn checkpoint(&mut self, chain: &MinibatchChain<R>) -> Result<(), RunError> {
        let (start, before) = self.common.clock;
        let state = chain.updates().state();
        let document = Document {
            counters: *chain.counters(),
            update: state.update,
            thermostat: state.thermostat,
            moments_count: self.moments.count,
            mean_count: self.mean.count,
            swag_count: chain.swag().map_or(0, |swag| swag.count),
            seconds: before + start.elapsed().as_secs_f64(),
        };
        let document =
            serde_json::to_value(document).map_err(|error| RunError::Request(error.to_string()))?;
        let mut named: Vec<(String, Values<'_>)> = vec![
            ("position".to_owned(), R::values(&state.position)),
            ("momentum".to_owned(), R::values(&state.momentum)),
            (
                "preconditioner".to_owned(),
                R::values(&state.preconditioner),
            ),
            ("moments_mean".to_owned(), Values::F64(&self.moments.mean)),
            (
                "moments_squares".to_owned(),
                Values::F64(&self.moments.squares),
            ),
            ("posterior_mean".to_owned(), R::values(&self.mean.mean)),
        ];
        if !state.noise.is_empty() {
            named.push((NOISE_COORDINATES.to_owned(), Values::F64(&state.noise)));
        }
        if !state.statistics.is_empty() {
            named.push((BATCH_NORM.to_owned(), Values::F64(&state.statistics)));
        }
        if let Some(swag) = chain.swag() {
            named.push(("swag_mean".to_owned(), R::values(&swag.mean)));
            named.push(("swag_spread".to_owned(), R::values(&swag.spread)));
            for (index, difference) in swag.differences.iter().enumerate() {
                named.push((format!("swag_difference_{index}"), R::values(difference)));
            }
        }
        let shapes: Vec<[usize; 1]> = named.iter().map(|(_, values)| [values.len()]).collect();
        let tensors: Vec<Tensor<'_>> = named
            .iter()
            .zip(&shapes)
            .map(|((name, values), shape)| Tensor {
                name,
                shape,
                values: *values,
            })
            .collect();
        self.writer.checkpoint(&document, &tensors)
    }
}

/// The statistics of some updates.
fn of(updates: &UpdateStatistics) -> (OfUpdates, Corrections) {
    let of_updates = OfUpdates {
        train_nll: updates.nll(),
        step_size: updates.step_size,
        configurational_temperature: updates.configurational_temperature(),
        kinetic_temperature: updates.kinetic_temperature(),
    };
    let corrections = Corrections {
        n_corrections: count(updates.corrections),
    };
    (of_updates, corrections)
}

/// The document of a checkpoint.
///
/// # Errors
/// A damaged checkpoint.
pub fn read_document(checkpoint: &Checkpoint) -> Result<Document, RunError> {
    checkpoint.document_as()
}

/// What a checkpoint keeps of a chain of so many parameters; `rank` is that of swag, where draws are of it.
///
/// # Errors
/// A damaged checkpoint, or one of another problem.
pub fn restore<R: Stored>(
    checkpoint: &Checkpoint,
    parameters: usize,
    averaging: Averaging,
    rank: Option<usize>,
) -> Result<Restored<R>, RunError> {
    let document = read_document(checkpoint)?;
    let length_of = |name: &str| -> usize {
        let found = checkpoint.tensors().find(|(found, _)| *found == name);
        found.map_or(0, |(_, shape)| shape.iter().product())
    };
    let of_any_length = |name: &str| R::tensor(checkpoint, name, &[length_of(name)]);
    let doubles = |name: &str| match length_of(name) {
        0 => Ok(Vec::new()),
        length => checkpoint.f64(name, &[length]),
    };
    let of_parameters = |name: &str| R::tensor(checkpoint, name, &[parameters]);
    let mut mean = PosteriorMean::new(averaging, 0);
    mean.count = document.mean_count;
    mean.mean = of_parameters("posterior_mean")?;
    let swag = match rank {
        None => None,
        Some(rank) => {
            let mut swag = Swag::new(0, rank);
            swag.count = document.swag_count;
            swag.mean = of_parameters("swag_mean")?;
            swag.spread = of_parameters("swag_spread")?;
            let kept = rank.min(usize::try_from(swag.count).unwrap_or(usize::MAX));
            for index in 0..kept {
                let difference = of_parameters(&format!("swag_difference_{index}"))?;
                swag.differences.push_back(difference);
            }
            Some(swag)
        }
    };
    Ok(Restored {
        counters: document.counters,
        updates: StochasticGradientState {
            update: document.update,
            position: of_parameters("position")?,
            momentum: of_any_length("momentum")?,
            thermostat: document.thermostat,
            preconditioner: of_any_length("preconditioner")?,
            statistics: doubles(BATCH_NORM)?,
            noise: doubles(NOISE_COORDINATES)?,
        },
        moments: WeightMoments {
            count: document.moments_count,
            mean: checkpoint.f64("moments_mean", &[parameters])?,
            squares: checkpoint.f64("moments_squares", &[parameters])?,
        },
        mean,
        swag,
    })
}
