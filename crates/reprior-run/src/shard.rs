//! Rows of a table as a shard of a posterior whose other rows are elsewhere.
//!
//! Nothing is chosen, scaled or held out, since a shard does not see the other rows: settings say everything, and inputs and targets are
//! taken as they are.

use std::sync::Arc;

use reprior::compute::{Purpose, Stream};
use reprior::model::dataset::{Dataset, InputKind, Targets};
use reprior::model::likelihood::name::LikelihoodName;
use reprior::model::standardisation::{Affine, Standardisation};
use reprior::model::{InputReduction, Model};
use reprior::posterior::{Coordinates, Recorder, Shard, Total};

use crate::failure::Failure;
use crate::method::{Of, Predictions, choose_variances};
use crate::predict::PredictedRows;
use crate::predictive::PredictionKind;
use crate::settings::{
    ModelSettings, NETWORK_AUTO, NoiseSetting, ScalesSetting, Settings, arrange,
};
use crate::stored::Stored;

/// Rows of a table.
#[derive(Debug, Clone)]
pub struct ShardRows {
    /// Row-major, rows × columns.
    pub inputs: Vec<f64>,
    /// Columns of the inputs.
    pub columns: usize,
    /// Targets of the rows; classes have the names of all of them, whichever there are here.
    pub targets: Targets,
}

/// The rows as shard number `shard`, from 0.
///
/// # Errors
/// A wrong request: something that would have to be chosen for all rows, or values that do not fit the settings.
pub fn shard<R: Stored>(
    settings: &Settings,
    rows: ShardRows,
    shard: usize,
) -> Result<Shard<R>, Failure> {
    let settings = resolved(settings)?;
    let made = model(&settings.model, rows, &[])?;
    of_model(&settings, Arc::new(made), shard)
}

/// With every default of the model written out.
fn resolved(settings: &Settings) -> Result<Settings, Failure> {
    let mut settings = settings.clone();
    check(&settings.model)?;
    choose_variances(&mut settings.model, true);
    settings.model.resolve();
    Ok(settings)
}

/// The model of some rows, and of inputs to predict at.
fn model<R: Stored>(
    model: &ModelSettings,
    rows: ShardRows,
    test_inputs: &[f64],
) -> Result<Model<R>, Failure> {
    let ShardRows {
        inputs,
        columns,
        targets,
    } = rows;
    model.check_targets(&targets)?;
    let mut given = inputs.iter().chain(test_inputs);
    if given.any(|value| !value.is_finite()) {
        return Err(Failure::request("inputs of shards must be finite numbers"));
    }
    let train = Dataset {
        rows: inputs.len() / columns.max(1),
        inputs: inputs.into(),
        columns,
        column_names: (0..columns).map(|at| format!("x{at}")).collect(),
        kind: InputKind::Table,
        targets,
    };
    let off = InputReduction::Off;
    let outputs = model.likelihood().outputs(&train.targets);
    let architecture = model.architecture(train.kind, columns, outputs, off)?;
    let as_it_is = Standardisation::none(&train);
    let coded = model.likelihood().code(&train.targets, &as_it_is);
    let [inputs, test_inputs] = [&train.inputs, &test_inputs.to_vec().into()].map(|inputs| {
        let inputs = as_it_is.standardise_inputs(inputs);
        arrange(&architecture, train.kind, inputs)
    });
    let likelihood = model.likelihood();
    let likelihood = likelihood
        .of_targets(&train.targets, model.likelihood_parameters())
        .map_err(Failure::request)?;
    let noise = model.noise();
    let made = Model::new(architecture, noise, &inputs, coded, &test_inputs, off)
        .map_err(Failure::request)?
        .with_likelihood(likelihood);
    match model.scale_prior() {
        Some(prior) => made.with_learned_scales(prior, true),
        None => Ok(made),
    }
    .map_err(Failure::request)
}

fn of_model<R: Stored>(
    settings: &Settings,
    model: Arc<Model<R>>,
    shard: usize,
) -> Result<Shard<R>, Failure> {
    // other coordinates than these are not made of sums over rows
    let default = match model.likelihood.is_gaussian() {
        true => Coordinates::Marginal,
        false => Coordinates::Standard,
    };
    let coordinates = settings.sampler.coordinates.unwrap_or(default);
    Shard::new(model, coordinates, shard).map_err(Failure::request)
}

/// Positions of the posterior whose rows are in shards.
#[derive(Debug, Clone, Copy)]
pub struct ShardPositions<'a> {
    /// How many.
    pub count: usize,
    /// Positions × coordinates.
    pub positions: &'a [f64],
    /// Positions × moments: of each position the sum over all shards.
    pub moments: &'a [f64],
    /// Rows of all shards.
    pub rows: usize,
    /// Number of the first position, by which what a position leaves open is drawn with the run's seed.
    pub first: u64,
}

/// What positions predict at new inputs (rows × columns), noise included or not. `one` is any row of any shard: it says what the targets are.
///
/// # Errors
/// As for [`shard`]; a position that cannot be evaluated.
pub fn predict_by_shards<R: Stored>(
    settings: &Settings,
    one: ShardRows,
    inputs: &[f64],
    at: ShardPositions<'_>,
    with_noise: bool,
) -> Result<PredictedRows, Failure> {
    let settings = resolved(settings)?;
    let (columns, is_classification) =
        (one.columns, matches!(one.targets, Targets::Classes { .. }));
    let outputs = one.targets.outputs();
    let made = Arc::new(model::<R>(&settings.model, one, inputs)?);
    let mut recorder = Recorder::new(Arc::clone(&made));
    let mut shard = of_model(&settings, Arc::clone(&made), 0)?;
    let kind = PredictionKind::new(&settings.model, is_classification);
    let rows = inputs.len() / columns.max(1);
    let mut found = Predictions::none(kind, rows, outputs);
    let maps = vec![Affine::IDENTITY; outputs];
    let (dimension, count) = (shard.dim(), shard.moment_count());
    for position in 0..at.count {
        let z = &at.positions[position * dimension..(position + 1) * dimension];
        let z: Vec<R> = z.iter().map(|&z| R::from_f64(z)).collect();
        let total = Total {
            moments: &at.moments[position * count..(position + 1) * count],
            rows: at.rows,
        };
        let number = at.first + position as u64;
        let mut stream = Stream::new(settings.run.seed, 0, Purpose::Prediction, number);
        let record = shard.record(&mut recorder, &z, total, &mut stream);
        let record = record.map_err(Failure::run)?;
        found.push(record, Of::Position, &*made.likelihood, &maps);
    }
    let noise = with_noise.then_some(&found.noise[..]);
    Ok(PredictedRows::of(found.block, noise))
}

/// Refuses what would be chosen for the data.
fn check(model: &ModelSettings) -> Result<(), Failure> {
    if model.likelihood.get() == Some(LikelihoodName::Poisson) {
        return Err(Failure::request(
            "the poisson likelihood takes its rate from the mean of all counts, which no shard has: use another likelihood",
        ));
    }
    let open = if model.network == NETWORK_AUTO && model.layers.is_none() {
        "--network"
    } else if model.likelihood.is_open() {
        "--likelihood"
    } else if model.likelihood().has_scale()
        && matches!(model.noise, None | Some(NoiseSetting::Auto))
    {
        "--noise (a number, or learn)"
    } else if model.scales == Some(ScalesSetting::Evidence) {
        "--scales learn or none"
    } else {
        return Ok(());
    };
    Err(Failure::Request(format!(
        "shards choose nothing for the data, since none of them has all rows: give {open}"
    )))
}
