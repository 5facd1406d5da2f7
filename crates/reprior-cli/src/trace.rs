//! Diagnostics of the sampler's own numbers: ℓ, energy errors, learned noise scales.

use reprior::diagnostics::{Draws, Estimator, rhat_disagrees};
use reprior_io::run::DrawReader;
use serde::Serialize;

use crate::effective::first;
use crate::error::Failure;
use crate::problem::DataDescription;
use crate::schema::NOISE;

/// Whether ℓ has settled.
#[derive(Debug, Clone, Serialize)]
pub struct Stationarity {
    /// Mean of ℓ over all draws.
    pub log_ratio_mean: f64,
    /// Its standard deviation over all draws.
    pub log_ratio_sd: f64,
    /// R-hat of ℓ over chains.
    pub rhat: f64,
    /// Second halves of the chains against the first, in standard errors.
    pub drift: f64,
    /// Whether the drift is more than chance explains.
    pub is_drifting: bool,
    /// Whether neither says that the chains are still on their way.
    pub is_reached: bool,
}

/// Greatest |drift| of chains that have settled: exceeded by chance with probability 6·10⁻⁵.
const MOST_DRIFT: f64 = 4.0;

/// Spread of the energy errors of recorded transitions.
#[derive(Debug, Clone, Serialize)]
pub struct EnergyErrors {
    pub mean: f64,
    pub sd: f64,
    /// Greatest absolute value.
    pub max: f64,
}

/// A learned noise scale, in the target's own units.
#[derive(Debug, Clone, Serialize)]
pub struct NoiseScale {
    pub output: String,
    pub mean: f64,
    pub sd: f64,
    pub q05: f64,
    pub q95: f64,
    pub rhat: f64,
    pub ess: f64,
    /// Whether the chains disagree about it.
    pub disagrees: bool,
}

fn read(reader: &DrawReader, group: &str, name: &str, draws: u64) -> Result<Vec<f64>, Failure> {
    let read = reader.read::<f64>(group, name, &first(draws));
    read.map(|all| all.values).map_err(Failure::request)
}

fn mean_and_sd(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    (mean, (squares / (values.len() as f64 - 1.0)).sqrt())
}

/// Whether ℓ has settled; nothing where it does not vary (a linear model with its readout integrated out).
///
/// # Errors
/// A run folder that cannot be read.
pub fn stationarity(reader: &DrawReader, draws: u64) -> Result<Option<Stationarity>, Failure> {
    if draws < 8 {
        return Ok(None);
    }
    let values = read(reader, "sample_stats", "log_ratio", draws)?;
    let (log_ratio_mean, log_ratio_sd) = mean_and_sd(&values);
    if log_ratio_sd <= 1e-9 * log_ratio_mean.abs() {
        return Ok(None);
    }
    let chains = reader.chains() as usize;
    let all = Draws::new(&values, chains).map_err(Failure::run)?;
    let mut estimator = Estimator::new();
    let drift = estimator.drift(all);
    let found = estimator.summary(all);
    let is_drifting = drift.abs() > MOST_DRIFT;
    Ok(Some(Stationarity {
        log_ratio_mean,
        log_ratio_sd,
        rhat: found.rhat,
        drift,
        is_drifting,
        // one chain has no R-hat, and does not disagree
        is_reached: !rhat_disagrees(chains, found.rhat, found.ess_within) && !is_drifting,
    }))
}

/// Energy errors of the recorded transitions, those that could be evaluated; nothing for elliptical slices, which have
/// none to speak of.
///
/// # Errors
/// A run folder that cannot be read.
pub fn energy_errors(reader: &DrawReader, draws: u64) -> Result<Option<EnergyErrors>, Failure> {
    if draws < 2 {
        return Ok(None);
    }
    let mut values = read(reader, "sample_stats", "energy_error", draws)?;
    values.retain(|error| error.is_finite());
    if values.len() < 2 {
        return Ok(None);
    }
    let (mean, sd) = mean_and_sd(&values);
    let max = values
        .iter()
        .fold(0.0_f64, |max, error| max.max(error.abs()));
    Ok(Some(EnergyErrors { mean, sd, max }))
}

/// Learned noise scales; one for the outputs of a classification, which share it.
///
/// # Errors
/// A run folder that cannot be read.
pub fn noise_scales(
    reader: &DrawReader,
    description: &DataDescription,
    draws: u64,
) -> Result<Vec<NoiseScale>, Failure> {
    if draws == 0 {
        return Ok(Vec::new());
    }
    let values = read(reader, "posterior", NOISE, draws)?;
    let outputs = description.output_names.len();
    let shown = if description.is_classification {
        1
    } else {
        outputs
    };
    let mut estimator = Estimator::new();
    let mut scales = Vec::with_capacity(shown);
    for output in 0..shown {
        let own: Vec<f64> = values
            .iter()
            .skip(output)
            .step_by(outputs)
            .copied()
            .collect();
        let (mean, sd) = mean_and_sd(&own);
        let all = Draws::new(&own, reader.chains() as usize).map_err(Failure::run)?;
        let found = estimator.summary(all);
        let mut sorted = own.clone();
        sorted.sort_by(f64::total_cmp);
        let quantile = |p: f64| sorted[((sorted.len() - 1) as f64 * p).round() as usize];
        scales.push(NoiseScale {
            output: if description.is_classification {
                "every class".to_owned()
            } else {
                description.output_names[output].clone()
            },
            mean,
            sd,
            q05: quantile(0.05),
            q95: quantile(0.95),
            rhat: found.rhat,
            ess: found.ess_bulk,
            disagrees: rhat_disagrees(all.chains(), found.rhat, found.ess_within),
        });
    }
    Ok(scales)
}
