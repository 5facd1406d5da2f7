//! The observer that writes what a chain of a minibatch method produces: epochs, draws, checkpoints.

use std::sync::Arc;
use std::time::Instant;

use reprior::chain::{Epoch, MinibatchChain, MinibatchCounters, MinibatchObserver, Moments, Tally};
use reprior::compute::{Purpose, Stream};
use reprior::model::Affine;
use reprior::model::likelihood::Likelihood;
use reprior::network::Layout;
use reprior::posterior::Projection;
use reprior::stochastic::{Averaging, Ensemble, LangevinState, PosteriorMean, Swag};
use reprior_io::run::{Checkpoint, DrawWriter, RunError, Tensor, Values};
use serde::{Deserialize, Serialize};

use super::schema::EPOCHS;
use crate::keeping::{Keeping, Traces};
use crate::predictive::Kind;
use crate::schema::{POSITIONS, PREDICTIONS, TRACES, WEIGHTS};
use crate::stored::Stored;

/// What is the same for every chain.
pub struct Recipe {
    pub seed: u64,
    pub keeping: Keeping,
    /// Predictions that are recorded at every draw, where not all are.
    pub traces: Option<Traces>,
    pub layout: Layout,
    /// Maps of the outputs back to their own units; for classes, identities.
    pub outputs: Vec<Affine>,
    pub kind: Kind,
    pub likelihood: Arc<dyn Likelihood>,
    /// Whether predictions are of the network linearised where training ended.
    pub is_linearised: bool,
    /// When this process began, and the seconds that earlier ones took.
    pub clock: (Instant, f64),
}

/// Writes what one chain produces.
pub struct Recording<R> {
    recipe: Arc<Recipe>,
    writer: DrawWriter,
    /// Of the test rows, if there are any.
    test: Option<Ensemble<R>>,
    projection: Projection<R>,
    /// Where the network is linearised, once that is known; none of draws that are predicted with by the network itself.
    linearised_at: Option<Vec<R>>,
    pub moments: Moments,
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
    pub langevin: LangevinState<R>,
    pub moments: Moments,
    pub mean: PosteriorMean<R>,
    pub swag: Option<Swag<R>>,
}

fn signed(count: u64) -> [i64; 1] {
    [i64::try_from(count).unwrap_or(i64::MAX)]
}

impl<R: Stored> Recording<R> {
    pub fn new(
        recipe: Arc<Recipe>,
        writer: DrawWriter,
        test: Option<Ensemble<R>>,
        projections: usize,
        moments: Moments,
        mean: PosteriorMean<R>,
    ) -> Self {
        let layers = recipe.layout.layers.iter();
        let shapes: Vec<_> = layers.map(|layer| (layer.rows, layer.units)).collect();
        Self {
            projection: Projection::of_shapes(&shapes, projections, recipe.seed),
            linearised_at: None,
            recipe,
            writer,
            test,
            moments,
            mean,
        }
    }

    /// What the network predicts for the test rows at one position, in the target's own units (of classes
    /// the logarithms of their probabilities); none without test rows.
    pub fn predict(&mut self, position: &[R]) -> Vec<f64> {
        let mut mean = Vec::new();
        let recipe = &self.recipe;
        if let Some(test) = &mut self.test {
            let count = recipe.outputs.len();
            let outputs = match &self.linearised_at {
                Some(mode) => test.linearised(mode, position),
                None => test.outputs(position),
            };
            for row in outputs.chunks_exact(count) {
                let outputs = row.iter().map(|f| f.to_f64());
                let likelihood = &*recipe.likelihood;
                recipe
                    .kind
                    .push_mean(likelihood, &recipe.outputs, outputs, &mut mean);
            }
        }
        mean
    }

    /// Name of the variable of what [`predict`](Self::predict) gives.
    pub fn variable(&self) -> &'static str {
        self.recipe.kind.variable()
    }

    /// The test rows' inputs, row-major.
    pub fn test_inputs(&self) -> Option<&[R]> {
        self.test.as_ref().map(Ensemble::inputs)
    }

    fn push_predictions(&mut self, position: &[R], draw: u64) -> Result<(), RunError> {
        let Some(test) = &self.test else {
            return Ok(());
        };
        let is_recorded = draw.is_multiple_of(self.recipe.keeping.predictions_every);
        if !is_recorded && self.recipe.traces.is_none() {
            return Ok(());
        }
        let rows = test.rows();
        let mean = self.predict(position);
        let kind = self.recipe.kind;
        let is_narrow = matches!(kind, Kind::Codes | Kind::Probabilities);
        if let Some(traces) = self.recipe.traces {
            let traced: Vec<f64> = traces.positions().map(|at| mean[at]).collect();
            let narrow: Vec<f32> = traced.iter().map(|&x| x as f32).collect();
            let values = match is_narrow {
                true => Values::F32(&narrow),
                false => Values::F64(&traced),
            };
            self.writer.push(TRACES, &[values])?;
        }
        if !is_recorded {
            return Ok(());
        }
        // the function is what the draw says, without a spread of its own
        let spread = if kind.has_function_variance() {
            rows * kind.spread(self.recipe.outputs.len())
        } else {
            0
        };
        let narrow: Vec<f32>;
        let (zeros, zeros_narrow) = (vec![0.0_f64; spread], vec![0.0_f32; spread]);
        let mut values = if is_narrow {
            narrow = mean.iter().map(|&x| x as f32).collect();
            vec![Values::F32(&narrow), Values::F32(&zeros_narrow)]
        } else {
            vec![Values::F64(&mean), Values::F64(&zeros)]
        };
        if spread == 0 {
            values.pop();
        }
        self.writer.push(PREDICTIONS, &values)
    }

    fn push_weights(&mut self, position: &[R]) -> Result<(), RunError> {
        let mut parts: Vec<Vec<R>> = Vec::new();
        for layer in &self.recipe.layout.layers {
            let units = position[layer.range.clone()].chunks_exact(layer.rows);
            let weights = units.clone().flat_map(|unit| &unit[..layer.fan_in()]);
            parts.push(weights.copied().collect());
            if layer.has_bias {
                parts.push(units.map(|unit| unit[layer.fan_in()]).collect());
            }
        }
        let values: Vec<Values<'_>> = parts.iter().map(|part| R::values(part)).collect();
        self.writer.push(WEIGHTS, &values)
    }
}

impl<R: Stored> MinibatchObserver<R> for Recording<R> {
    type Error = RunError;

    fn epoch(&mut self, epoch: &Epoch) -> Result<(), RunError> {
        let reals = tally_values(&epoch.tally);
        let mut values: Vec<Values<'_>> = reals.chunks(1).map(Values::F64).collect();
        let validation = [epoch.validation_nll];
        values.push(Values::F64(&validation));
        let corrections = signed(epoch.tally.corrections);
        values.push(Values::I64(&corrections));
        self.writer.push(EPOCHS, &values)
    }

    fn trained(&mut self, mode: &[R]) -> Result<(), RunError> {
        self.linearised_at = self.recipe.is_linearised.then(|| mode.to_vec());
        Ok(())
    }

    fn draw(&mut self, position: &[R], since: &Tally, draw: u64) -> Result<(), RunError> {
        let mut squares = vec![0.0; self.projection.layers()];
        let mut projections = vec![0.0; self.projection.count()];
        // nothing is left open: the stream is not used
        let mut stream = Stream::new(self.recipe.seed, 0, Purpose::Recording, 0);
        self.projection
            .project(position, &mut stream, &mut projections, &mut squares);
        let mut posterior = vec![Values::F64(&squares)];
        if !projections.is_empty() {
            posterior.push(Values::F64(&projections));
        }
        self.writer.push("posterior", &posterior)?;
        let reals = tally_values(since);
        let mut values: Vec<Values<'_>> = reals.chunks(1).map(Values::F64).collect();
        let corrections = signed(since.corrections);
        values.push(Values::I64(&corrections));
        self.writer.push("sample_stats", &values)?;
        self.push_predictions(position, draw)?;
        self.moments.add(position);
        self.mean.add(position);
        let keeping = self.recipe.keeping;
        if draw.is_multiple_of(keeping.positions_every) {
            self.writer.push(POSITIONS, &[R::values(position)])?;
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
        let (start, before) = self.recipe.clock;
        let state = chain.langevin().state();
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

/// Mean NLL, temperatures and step size.
fn tally_values(tally: &Tally) -> [f64; 4] {
    [
        tally.nll(),
        tally.step_size,
        tally.configurational_temperature(),
        tally.kinetic_temperature(),
    ]
}

/// The document of a checkpoint.
///
/// # Errors
/// A damaged checkpoint.
pub fn read_document(checkpoint: &Checkpoint) -> Result<Document, RunError> {
    serde_json::from_value(checkpoint.document().clone())
        .map_err(|error| RunError::Request(format!("a checkpoint is not understood: {error}")))
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
    let of_any_length = |name: &str| {
        let found = checkpoint.tensors().find(|(found, _)| *found == name);
        let length = found.map_or(0, |(_, shape)| shape.iter().product());
        R::tensor(checkpoint, name, &[length])
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
        langevin: LangevinState {
            update: document.update,
            position: of_parameters("position")?,
            momentum: of_any_length("momentum")?,
            thermostat: document.thermostat,
            preconditioner: of_any_length("preconditioner")?,
        },
        moments: Moments {
            count: document.moments_count,
            mean: checkpoint.f64("moments_mean", &[parameters])?,
            squares: checkpoint.f64("moments_squares", &[parameters])?,
        },
        mean,
        swag,
    })
}
