//! Rows of a table as a shard of a posterior whose other rows are elsewhere.
//!
//! Nothing is chosen, scaled or held out, since a shard does not see the other rows: settings say everything, and inputs and targets are
//! taken as they are.

use std::sync::Arc;

use reprior::model::dataset::{Dataset, InputKind, Targets};
use reprior::model::likelihood::name::LikelihoodName;
use reprior::model::standardisation::Standardisation;
use reprior::model::{InputReduction, Model};
use reprior::posterior::{Coordinates, Shard};

use crate::failure::Failure;
use crate::method::choose_variances;
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
    let mut model = settings.model.clone();
    check(&model)?;
    choose_variances(&mut model, true);
    model.resolve();
    let ShardRows {
        inputs,
        columns,
        targets,
    } = rows;
    model.check_targets(&targets)?;
    if inputs.iter().any(|value| !value.is_finite()) {
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
    let inputs = as_it_is.standardise_inputs(&train.inputs);
    let inputs = arrange(&architecture, train.kind, inputs);
    let likelihood = model.likelihood();
    let likelihood = likelihood
        .of_targets(&train.targets, model.degrees_of_freedom())
        .map_err(Failure::request)?;
    let noise = model.noise();
    let made = Model::new(architecture, noise, &inputs, coded, &[], off)
        .map_err(Failure::request)?
        .with_likelihood(likelihood);
    let made = match model.scale_prior() {
        Some(prior) => made
            .with_learned_scales(prior, true)
            .map_err(Failure::request)?,
        None => made,
    };
    // other coordinates than these are not made of sums over rows
    let default = match model.likelihood().is_gaussian() {
        true => Coordinates::Marginal,
        false => Coordinates::Standard,
    };
    let coordinates = settings.sampler.coordinates.unwrap_or(default);
    Shard::new(Arc::new(made), coordinates, shard).map_err(Failure::request)
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
