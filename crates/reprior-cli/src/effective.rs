//! Diagnostics and metrics of what a run recorded, read block by block.

use reprior::diagnostics::{
    Draws, Estimator, Summaries, Truncation, map_variables, rhat_by_chance, rhat_squared_hron,
    spread,
};
use reprior::metrics::Family;
use reprior::model::Targets;
use reprior_io::run::{DrawReader, Selection};
use serde::Serialize;

use crate::error::Failure;
use crate::predictive::{Block, Gatherer, Kind, Metrics};
use crate::problem::DataDescription;
use crate::schema::NOISE;
use crate::settings::Settings;

/// Variables of predictions that diagnostics are computed for, evenly spread over rows and outputs.
const MOST_VARIABLES: usize = 500;
/// Numbers of a block of predictions that is read at a time.
const BLOCK_NUMBERS: usize = 8 << 20;

#[derive(Debug, Serialize)]
pub struct EssSummary {
    pub prediction: Option<Ess>,
    pub weights: Option<Ess>,
}

/// Bulk effective sample sizes of all chains together, over variables.
#[derive(Debug, Clone, Serialize)]
pub struct Ess {
    pub variables: usize,
    pub mean: f64,
    pub min: f64,
    pub max: f64,
    pub tail_min: f64,
    /// Mean over draws of all chains.
    pub per_draw: f64,
    /// Mean over transitions of all chains after warm-up.
    pub per_step: f64,
    /// Mean over gradient evaluations of all chains after warm-up; none for methods without gradients.
    pub per_gradient: Option<f64>,
    /// Mean over evaluations of all chains after warm-up, with gradient or without.
    pub per_evaluation: f64,
    /// Mean over wall-clock seconds, warm-up included.
    pub per_second: f64,
    /// As Hron et al. 2022: mean over variables and chains of TFP's single-chain ESS over draws.
    pub tfp_per_draw: f64,
    pub rhat_max: f64,
    /// Variables whose R-hat is more than 1.01 and more than chance explains.
    pub disagreeing: usize,
    /// Hron et al. 2022, eq. 6.
    pub rhat_squared_max: f64,
}

/// The first draws of every chain.
pub fn first(draws: u64) -> Selection {
    Selection {
        draws: Some(0..draws),
        ..Selection::all()
    }
}

/// What effective sample sizes are divided by.
pub struct Rates {
    pub draws: f64,
    pub steps: f64,
    pub gradients: f64,
    pub evaluations: f64,
    pub seconds: f64,
}

/// Whether chains disagree about a variable: R-hat above 1.01, and more than chance explains.
pub fn disagrees(chains: usize, rhat: f64, ess: f64) -> bool {
    rhat > rhat_by_chance(chains, ess).max(1.01)
}

/// Diagnostics of variables whose draws `read(variable, buffer)` writes chain by chain.
fn diagnose(
    variables: usize,
    chains: usize,
    draws: usize,
    rates: &Rates,
    read: impl Fn(usize, &mut [f64]) + Sync,
) -> Result<Option<Ess>, Failure> {
    if variables == 0 || draws == 0 {
        return Ok(None);
    }
    let of_variable = |estimator: &mut Estimator, of_variable: Draws<'_>| {
        let of_chain = |chain| estimator.ess_tfp(chain, Truncation::FirstNegative);
        let tfp: Vec<f64> = of_variable.iter().map(of_chain).collect();
        (
            estimator.summary(of_variable),
            tfp,
            rhat_squared_hron(of_variable),
        )
    };
    let all = map_variables(variables, chains, draws, read, of_variable).map_err(Failure::run)?;
    let tfp = all.iter().flat_map(|(_, tfp, _)| tfp).copied();
    let tfp_per_draw = spread(tfp).mean / draws as f64;
    let rhat_squared_max = spread(all.iter().map(|(_, _, squared)| *squared)).max;
    let summaries = Summaries {
        variables: all.into_iter().map(|(summary, ..)| summary).collect(),
    };
    let bulk = summaries.over(|s| s.ess_bulk);
    Ok(Some(Ess {
        variables,
        mean: bulk.mean,
        min: bulk.min,
        max: bulk.max,
        tail_min: summaries.over(|s| s.ess_tail).min,
        per_draw: bulk.mean / rates.draws,
        per_step: bulk.mean / rates.steps,
        per_gradient: (rates.gradients > 0.0).then(|| bulk.mean / rates.gradients),
        per_evaluation: bulk.mean / rates.evaluations,
        per_second: bulk.mean / rates.seconds,
        tfp_per_draw,
        rhat_max: summaries.over(|s| s.rhat).max,
        disagreeing: summaries
            .variables
            .iter()
            .filter(|s| disagrees(chains, s.rhat, s.ess_bulk))
            .count(),
        rhat_squared_max,
    }))
}

pub fn projections(
    reader: &DrawReader,
    chains: usize,
    draws: u64,
    rates: &Rates,
) -> Result<Option<Ess>, Failure> {
    let has = reader
        .variables("posterior")
        .map_err(Failure::request)?
        .iter()
        .any(|v| v.name == "projection");
    if draws == 0 || !has {
        return Ok(None);
    }
    let all = reader
        .read::<f64>("posterior", "projection", &first(draws))
        .map_err(Failure::request)?;
    let count = all.shape[2];
    diagnose(count, chains, draws as usize, rates, |variable, out| {
        for (out, draw) in out.iter_mut().zip(all.values.chunks_exact(count)) {
            *out = draw[variable];
        }
    })
}

/// Reads predictions block by block: diagnostics of some, metrics of all.
pub fn predictions(
    reader: &DrawReader,
    settings: &Settings,
    description: &DataDescription,
    draws: u64,
    rates: &Rates,
) -> Result<(Option<Ess>, Option<Metrics>), Failure> {
    let (rows, outputs) = (description.test_rows, description.output_names.len());
    if draws == 0 || rows == 0 {
        return Ok((None, None));
    }
    let truth = read_truth(reader, description)?;
    let variables = (rows * outputs).min(MOST_VARIABLES);
    let chosen: Vec<usize> = (0..variables)
        .map(|k| k * rows * outputs / variables)
        .collect();
    let mut traces: Vec<Vec<f64>> = Vec::with_capacity(variables);
    let mut gatherer = Gatherer::default();
    for_each_block(reader, settings, description, draws, |start, block| {
        let width = block.rows * outputs;
        let own = start * outputs..start * outputs + width;
        for &at in chosen.iter().filter(|at| own.contains(at)) {
            let trace = block.mean.iter().skip(at - own.start).step_by(width);
            traces.push(trace.map(|&x| block.kind.shown(x)).collect());
        }
        gatherer.add(block, &truth, start)
    })?;
    let ess = diagnose(
        traces.len(),
        reader.chains() as usize,
        draws as usize,
        rates,
        |variable, out| {
            out.copy_from_slice(&traces[variable]);
        },
    )?;
    Ok((ess, gatherer.finish()?))
}

/// The first draws' predictions for the test rows, noise included, block by block with the first row of each.
///
/// # Errors
/// A run folder that cannot be read; what `each` says.
pub fn for_each_block(
    reader: &DrawReader,
    settings: &Settings,
    description: &DataDescription,
    draws: u64,
    mut each: impl FnMut(usize, &Block) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (rows, outputs) = (description.test_rows, description.output_names.len());
    let total = reader.chains() as usize * draws as usize;
    let block_rows = (BLOCK_NUMBERS / (total * outputs).max(1)).clamp(1, rows.max(1));
    let kind = Kind::new(&settings.model, description.is_classification);
    let noise = noise_variances(reader, settings, description, draws)?;
    for start in (0..rows).step_by(block_rows) {
        let end = (start + block_rows).min(rows);
        let selection = Selection {
            rest: std::iter::once(start as u64..end as u64).collect(),
            ..first(draws)
        };
        let read = |name| {
            reader
                .read::<f64>("predictions", name, &selection)
                .map_err(Failure::request)
        };
        let mean = kind
            .read(reader, "predictions", &selection)
            .map_err(Failure::request)?;
        let variance = if kind.has_function_variance() {
            read("sd")?.values.into_iter().map(|sd| sd * sd).collect()
        } else {
            vec![0.0; total * (end - start) * kind.spread(outputs)]
        };
        let mut block = Block {
            kind,
            rows: end - start,
            outputs,
            mean,
            variance,
        };
        block.add_noise(&noise);
        each(start, &block)?;
    }
    Ok(())
}

/// Squared noise scales of every draw in the units that predictions are stored in (draws of all chains × one for classes,
/// one per output for real targets); empty where there are none.
///
/// # Errors
/// A run folder that cannot be read.
pub fn noise_variances(
    reader: &DrawReader,
    settings: &Settings,
    description: &DataDescription,
    draws: u64,
) -> Result<Vec<f64>, Failure> {
    let total = reader.chains() as usize * draws as usize;
    let maps = &description.standardisation.targets;
    let kind = Kind::new(&settings.model, description.is_classification);
    let spread = kind.spread(maps.len());
    if spread == 0 || kind == Kind::Real(Family::Poisson) {
        return Ok(vec![0.0; total * spread]);
    }
    let squares = |scales: &[f64]| scales.iter().map(|s| s * s).collect::<Vec<f64>>();
    if settings.model.learns_noise() {
        let scales = reader
            .read::<f64>("posterior", NOISE, &first(draws))
            .map_err(Failure::request)?;
        // one per output was recorded; the outputs of a classification share theirs
        let kept = scales.values.chunks(maps.len());
        return Ok(kept.flat_map(|all| squares(&all[..spread])).collect());
    }
    let scales = settings.model.noise().typical(maps.len());
    let own: Vec<f64> = scales
        .iter()
        .zip(maps)
        .map(|(s, map)| s * map.scale)
        .collect();
    let own = squares(&own[..spread]);
    Ok(own.iter().copied().cycle().take(total * spread).collect())
}

/// The test targets.
///
/// # Errors
/// A run folder that cannot be read.
pub fn read_truth(reader: &DrawReader, description: &DataDescription) -> Result<Targets, Failure> {
    let (group, all, names) = (
        "predictions_constant_data",
        Selection::all(),
        description.output_names.clone(),
    );
    if description.is_classification {
        let labels = reader
            .read::<f64>(group, "y", &all)
            .map_err(Failure::request)?
            .values;
        let labels = labels.into_iter().map(|label| label as u32).collect();
        return Ok(Targets::Classes { labels, names });
    }
    let values = reader
        .read::<f64>(group, "y", &all)
        .map_err(Failure::request)?
        .values;
    Ok(Targets::Real { values, names })
}
