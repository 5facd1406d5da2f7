//! Diagnostics and metrics of what a run recorded, read block by block.

use reprior::diagnostics::{
    Convergence, Draws, Estimator, Summaries, Truncation, map_variables, rhat_squared_hron, spread,
};
use reprior::model::Targets;
use reprior_io::run::{DrawReader, Selection};
use serde::Serialize;

use crate::error::Failure;
use crate::fit::{Fit, FitSummary};
use crate::keeping::Traces;
use crate::predictive::{Block, Gatherer, Kind, Metrics};
use crate::problem::DataDescription;
use crate::schema::{NOISE, PREDICTIONS, TRACES};
use crate::settings::Settings;

/// Variables of predictions that diagnostics are computed for, evenly spread over rows and outputs.
const MOST_VARIABLES: u64 = 500;
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
    /// Variables about which the chains disagree (see [`Convergence`]).
    pub disagreeing: usize,
    /// Of the others, those with fewer than 100 effective draws, in the bulk or in a tail.
    pub too_short: usize,
    /// Of the others, those with fewer than 100 effective draws of every chain.
    pub short: usize,
    /// Of the others, those of which nothing can be said.
    pub unknown: usize,
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
    let count = |finding: Convergence| {
        let all = summaries.variables.iter();
        all.filter(|s| Convergence::of(s, chains) == finding)
            .count()
    };
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
        disagreeing: count(Convergence::Disagreeing),
        too_short: count(Convergence::TooShort),
        short: count(Convergence::Short),
        unknown: count(Convergence::Unknown),
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

/// What is found of a run's predictions for the test rows.
#[derive(Default)]
pub struct Predicted {
    pub ess: Option<Ess>,
    pub metrics: Option<Metrics>,
    pub fit: Option<FitSummary>,
}

/// Reads predictions block by block: diagnostics of some, metrics of all.
pub fn predictions(
    reader: &DrawReader,
    settings: &Settings,
    description: &DataDescription,
    draws: u64,
    rates: &Rates,
) -> Result<Predicted, Failure> {
    let (rows, outputs) = (description.test_rows, description.output_names.len());
    if draws == 0 || rows == 0 {
        return Ok(Predicted::default());
    }
    let truth = read_truth(reader, description)?;
    let kind = Kind::new(&settings.model, description.is_classification);
    let mut fit = Fit::new(
        kind,
        rows,
        &read_targets(reader, description, "observed_data")?,
    );
    let mut traces = read_traces(reader, kind, draws)?;
    // those that were not recorded by themselves
    let chosen: Vec<usize> = match traces.is_empty() {
        true => Traces::of((rows * outputs) as u64, MOST_VARIABLES)
            .positions()
            .collect(),
        false => Vec::new(),
    };
    let mut gatherer = Gatherer::default();
    for_each_block(
        reader,
        settings,
        description,
        draws,
        |start, block, noise| {
            let width = block.rows * outputs;
            let own = start * outputs..start * outputs + width;
            for &at in chosen.iter().filter(|at| own.contains(at)) {
                let trace = block.mean.iter().skip(at - own.start).step_by(width);
                traces.push(trace.map(|&x| block.kind.shown(x)).collect());
            }
            gatherer.add(block, &truth, start)?;
            fit.add(block, noise, &truth, start)
        },
    )?;
    let ess = diagnose(
        traces.len(),
        reader.chains() as usize,
        draws as usize,
        rates,
        |variable, out| {
            out.copy_from_slice(&traces[variable]);
        },
    )?;
    Ok(Predicted {
        ess,
        metrics: gatherer.finish()?,
        fit: fit.finish(),
    })
}

/// Draws of each chain whose predictions for all test rows can be read, of its first `draws`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    pub draws: u64,
    /// Every how many draws they are.
    every: u64,
}

impl Recorded {
    /// Of a run's first draws.
    pub fn of(reader: &DrawReader, draws: u64) -> Self {
        let find = |name: &str| reader.groups().find(|group| group.name == name);
        let planned = find("sample_stats").and_then(|group| group.planned);
        let (planned, group) = (planned.unwrap_or(1), find(PREDICTIONS));
        // an even spacing is known from the two numbers
        let recorded = group.and_then(|group| group.planned).unwrap_or(0).max(1);
        let every = planned.div_ceil(recorded).max(1);
        let visible = group.and_then(|group| group.draws).unwrap_or(0);
        Self {
            draws: visible.min(draws.div_ceil(every)),
            every,
        }
    }

    /// Of numbers of every draw, chain after chain, so many each, those of the recorded draws.
    fn pick(self, all: &[f64], draws: u64, of_each: usize) -> Vec<f64> {
        let of_chain = draws as usize * of_each;
        if of_chain == 0 {
            return Vec::new();
        }
        let of_draw = |chain: &'_ [f64], index: u64| {
            let start = (index * self.every) as usize * of_each;
            chain[start..start + of_each].to_vec()
        };
        all.chunks_exact(of_chain)
            .flat_map(|chain| (0..self.draws).flat_map(move |index| of_draw(chain, index)))
            .collect()
    }
}

/// Draws of the predictions that were recorded at every draw because not all were, one vector each; none otherwise.
fn read_traces(reader: &DrawReader, kind: Kind, draws: u64) -> Result<Vec<Vec<f64>>, Failure> {
    if reader.groups().all(|group| group.name != TRACES) {
        return Ok(Vec::new());
    }
    let all = kind
        .read(reader, TRACES, &first(draws))
        .map_err(Failure::request)?;
    let count = all.len() / (reader.chains() as usize * draws as usize).max(1);
    let of_trace = |at: usize| {
        let own = all.iter().skip(at).step_by(count);
        own.map(|&x| kind.shown(x)).collect()
    };
    Ok((0..count).map(of_trace).collect())
}

/// The recorded predictions of the first draws for the test rows, noise included, block by block: the first row, the block, and
/// every recorded draw's [`noise_variances`].
///
/// # Errors
/// A run folder that cannot be read; what `each` says.
pub fn for_each_block(
    reader: &DrawReader,
    settings: &Settings,
    description: &DataDescription,
    draws: u64,
    mut each: impl FnMut(usize, &Block, &[f64]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (rows, outputs) = (description.test_rows, description.output_names.len());
    let recorded = Recorded::of(reader, draws);
    let total = reader.chains() as usize * recorded.draws as usize;
    if total == 0 {
        return Ok(());
    }
    let block_rows = (BLOCK_NUMBERS / (total * outputs).max(1)).clamp(1, rows.max(1));
    let kind = Kind::new(&settings.model, description.is_classification);
    let noise = noise_variances(reader, settings, description, draws)?;
    let noise = recorded.pick(&noise, draws, kind.spread(outputs));
    for start in (0..rows).step_by(block_rows) {
        let end = (start + block_rows).min(rows);
        let selection = Selection {
            rest: std::iter::once(start as u64..end as u64).collect(),
            ..first(recorded.draws)
        };
        let read = |name| {
            reader
                .read::<f64>(PREDICTIONS, name, &selection)
                .map_err(Failure::request)
        };
        let mean = kind
            .read(reader, PREDICTIONS, &selection)
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
        each(start, &block, &noise)?;
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
    if spread == 0 || !settings.model.likelihood.has_scale() {
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
    read_targets(reader, description, "predictions_constant_data")
}

fn read_targets(
    reader: &DrawReader,
    description: &DataDescription,
    group: &str,
) -> Result<Targets, Failure> {
    let (all, names) = (Selection::all(), description.output_names.clone());
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
