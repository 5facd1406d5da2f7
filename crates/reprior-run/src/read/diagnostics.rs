//! Diagnostics and metrics of what a run recorded, read block by block.

use reprior::diagnostics::{Convergence, Draws, Estimator, Spread, Truncation, VariableSummary};
use serde::Serialize;

use super::fit::{TestRows, TestRowsCheck};
use super::modes::EnsembleOfModes;
use super::recorded::{Recorded, first};
use crate::by_target::{ByTarget, TargetMetrics};
use crate::failure::Failure;
use crate::predictive::{Gatherer, Metrics};
use crate::record::{SPREAD, TRACES, Traces};

/// Variables of predictions that diagnostics are computed for, evenly spread over rows and outputs.
const MOST_VARIABLES: u64 = 500;

/// Effective sample sizes.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct EssSummary {
    /// Of predictions for test rows.
    pub prediction: Option<Ess>,
    /// Of the logarithms of the test rows' noise, where it depends on the inputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row_noise: Option<Ess>,
    /// Of random projections of all weights.
    pub weights: Option<Ess>,
}

/// Bulk effective sample sizes of all chains together, over variables.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Ess {
    /// How many variables.
    pub variables: usize,
    /// Mean over variables.
    pub mean: f64,
    /// Minimum over variables.
    pub min: f64,
    /// Maximum over variables.
    pub max: f64,
    /// Minimum over variables of the effective draws in the tails.
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
    /// Maximum over variables.
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

/// What effective sample sizes are divided by.
pub struct Rates {
    pub draws: f64,
    pub steps: f64,
    pub gradients: f64,
    pub evaluations: f64,
    pub seconds: f64,
}

impl Rates {
    /// Where nothing by the draw, the step or the second is asked for.
    pub const UNIT: Self = Self {
        draws: 1.0,
        steps: 1.0,
        gradients: 0.0,
        evaluations: 1.0,
        seconds: 1.0,
    };
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
            of_variable.rhat_squared_hron(),
        )
    };
    let all = Estimator::map_variables(variables, chains, draws, read, of_variable)
        .map_err(Failure::run)?;
    let tfp = all.iter().flat_map(|(_, tfp, _)| tfp).copied();
    let tfp_per_draw = Spread::of(tfp).mean / draws as f64;
    let rhat_squared_max = Spread::of(all.iter().map(|(_, _, squared)| *squared)).max;
    let summaries: Vec<VariableSummary> = all.into_iter().map(|(summary, ..)| summary).collect();
    let bulk = Spread::over(&summaries, |s| s.ess_bulk);
    let count = |finding: Convergence| {
        let all = summaries.iter();
        all.filter(|s| Convergence::of(s, chains) == finding)
            .count()
    };
    Ok(Some(Ess {
        variables,
        mean: bulk.mean,
        min: bulk.min,
        max: bulk.max,
        tail_min: Spread::over(&summaries, |s| s.ess_tail).min,
        per_draw: bulk.mean / rates.draws,
        per_step: bulk.mean / rates.steps,
        per_gradient: (rates.gradients > 0.0).then(|| bulk.mean / rates.gradients),
        per_evaluation: bulk.mean / rates.evaluations,
        per_second: bulk.mean / rates.seconds,
        tfp_per_draw,
        rhat_max: Spread::over(&summaries, |s| s.rhat).max,
        disagreeing: count(Convergence::Disagreeing),
        too_short: count(Convergence::TooShort),
        short: count(Convergence::Short),
        unknown: count(Convergence::Unknown),
        rhat_squared_max,
    }))
}

/// What is found of a run's predictions for the test rows.
#[derive(Default)]
pub struct PredictionDiagnostics {
    pub ess: Option<Ess>,
    /// Of the rows' noise, where every row has its own.
    pub row_noise: Option<Ess>,
    pub metrics: Option<Metrics>,
    /// Of every target, where there are several.
    pub metrics_by_target: Vec<TargetMetrics>,
    /// Where chains disagree.
    pub modes: Option<EnsembleOfModes>,
    pub fit: Option<TestRowsCheck>,
}

impl Recorded {
    /// Diagnostics of the random projections of all weights.
    ///
    /// # Errors
    /// A run folder that cannot be read.
    pub(crate) fn projections(&self, rates: &Rates) -> Result<Option<Ess>, Failure> {
        let variables = self
            .reader
            .variables("posterior")
            .map_err(Failure::request)?;
        if self.draws == 0 || variables.iter().all(|v| v.name != "projection") {
            return Ok(None);
        }
        let all = self
            .reader
            .read::<f64>("posterior", "projection", &first(self.draws))
            .map_err(Failure::request)?;
        let (count, draws) = (all.shape[2], self.draws as usize);
        diagnose(count, self.chains(), draws, rates, |variable, out| {
            for (out, draw) in out.iter_mut().zip(all.values.chunks_exact(count)) {
                *out = draw[variable];
            }
        })
    }

    /// Reads predictions block by block: diagnostics of some, metrics of all.
    ///
    /// # Errors
    /// A run folder that cannot be read.
    pub(crate) fn predictions(&self, rates: &Rates) -> Result<PredictionDiagnostics, Failure> {
        let (rows, outputs) = (self.description.test_rows, self.outputs());
        if self.draws == 0 || rows == 0 {
            return Ok(PredictionDiagnostics::default());
        }
        let truth = self.truth()?;
        let train = self.targets("observed_data")?;
        let mut fit = TestRows::new(self.kind, rows, &train);
        let mut traces = self.traces(self.kind.variable())?;
        // those that were not recorded by themselves
        let chosen: Vec<usize> = match traces.is_empty() {
            true => Traces::of((rows * outputs) as u64, MOST_VARIABLES)
                .positions()
                .collect(),
            false => Vec::new(),
        };
        let spread = match self.kind.has_row_noise() {
            true => self.kind.spread(outputs),
            false => 0,
        };
        let mut row_noise = match spread {
            0 => Vec::new(),
            _ => self.traces(SPREAD)?,
        };
        row_noise.iter_mut().flatten().for_each(|sd| *sd = sd.ln());
        let noisy: Vec<usize> = match row_noise.is_empty() {
            true => {
                let all = Traces::of((rows * spread) as u64, MOST_VARIABLES);
                all.positions().collect()
            }
            false => Vec::new(),
        };
        let mut gatherer = Gatherer::default();
        let mut by_target = ByTarget::default();
        let predicting = self.predicting(self.spacing().draws as usize)?;
        self.for_each_block(|start, block, noise| {
            let width = block.rows * outputs;
            let own = start * outputs..start * outputs + width;
            for &at in chosen.iter().filter(|at| own.contains(at)) {
                let trace = block.mean.iter().skip(at - own.start).step_by(width);
                traces.push(trace.map(|&x| block.kind.shown(x)).collect());
            }
            let width = block.rows * spread;
            let own = start * spread..start * spread + width;
            for &at in noisy.iter().filter(|at| own.contains(at)) {
                let trace = block.variance.iter().skip(at - own.start);
                row_noise.push(trace.step_by(width).map(|&x| 0.5 * x.ln()).collect());
            }
            let weighted = predicting
                .as_ref()
                .map(|draws| block.of_draws(draws, noise));
            let (block, noise) = match &weighted {
                Some((block, noise)) => (block, noise.as_slice()),
                None => (block, noise),
            };
            gatherer.add(block, &truth, start)?;
            by_target.add(block, &truth, start)?;
            fit.add(block, noise, &truth, start)
        })?;
        let (chains, draws) = (self.chains(), self.draws as usize);
        let ess = diagnose(traces.len(), chains, draws, rates, |variable, out| {
            out.copy_from_slice(&traces[variable]);
        })?;
        let has_chains = self.settings.sampler.method().nature().has_chains();
        let apart = ess.as_ref().filter(|ess| has_chains && ess.disagreeing > 0);
        let modes = apart.map(|ess| self.modes(&traces, ess)).transpose()?;
        let row_noise = diagnose(row_noise.len(), chains, draws, rates, |variable, out| {
            out.copy_from_slice(&row_noise[variable]);
        })?;
        Ok(PredictionDiagnostics {
            ess,
            row_noise,
            metrics: gatherer.finish()?,
            metrics_by_target: by_target.finish(),
            modes,
            fit: fit.finish(),
        })
    }

    /// Draws of a variable of the predictions that were recorded at every draw because not all were, one vector each; none otherwise.
    fn traces(&self, variable: &str) -> Result<Vec<Vec<f64>>, Failure> {
        if self.reader.groups().all(|group| group.name != TRACES) {
            return Ok(Vec::new());
        }
        let all = self.read(TRACES, variable)?;
        let count = all.len() / (self.chains() * self.draws as usize).max(1);
        let of_trace = |at: usize| {
            let own = all.iter().skip(at).step_by(count);
            own.map(|&x| self.kind.shown(x)).collect()
        };
        Ok((0..count).map(of_trace).collect())
    }
}
