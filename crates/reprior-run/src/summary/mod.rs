//! Diagnostics and metrics of a run, and whether it can be believed.

mod checks;
mod evidence;
mod judgement;
mod minibatch;
mod remedy;
#[cfg(test)]
mod tests;
mod verdict;

use serde::Serialize;

pub use evidence::{EvidenceSummary, ExchangeSummary};
pub use minibatch::{LaplaceFitSummary, LeftOutSummary, MinibatchSummary};
pub use verdict::{Check, Level, Verdict};

use crate::by_target::TargetMetrics;
use crate::predictive::Metrics;
use crate::read::{
    EnergyErrors, EnsembleOfModes, EssSummary, LeaveOneOutSummary, NoiseScale, Stationarity,
    TestRowsCheck, WeightScale,
};
use crate::settings::Settings;

/// Diagnostics and metrics of a run. Field names are those of `summary --json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Summary {
    /// `complete` or `incomplete`.
    pub status: &'static str,
    /// Name of the likelihood.
    pub likelihood: String,
    /// Name of the method.
    pub method: String,
    /// Name of the coordinates.
    pub coordinates: String,
    /// How the determinant of tangent coordinates was computed; null in others.
    pub determinant: Option<String>,
    /// How many.
    pub chains: usize,
    /// The number of each, which its random draws hang on: from 0 unless `--first-chain` or `merge` says otherwise.
    pub chain_numbers: Vec<usize>,
    /// Draws of each chain that can be read.
    pub draws: u64,
    /// Draws of each chain that were asked for.
    pub draws_planned: u64,
    /// Transitions from draw to draw.
    pub thin: u64,
    /// Transitions before the first draw.
    pub warmup: u64,
    /// Transitions of all chains, warm-up included.
    pub steps: u64,
    /// Wall-clock time.
    pub seconds: f64,
    /// Transitions of all chains a second.
    pub steps_per_second: f64,
    /// Whether the states of its chains were kept, so that `resume --minutes` goes on with them.
    pub can_go_on: bool,
    /// Mean over transitions after warm-up.
    pub acceptance_rate: f64,
    /// Of each chain after warm-up; null for methods without one.
    pub step_size: Vec<Option<f64>>,
    /// Transitions after warm-up, of all chains and at all temperatures.
    pub transitions: u64,
    /// Of these, those that diverged or could not be evaluated.
    pub divergences: u64,
    /// Evaluations of the density without gradient.
    pub n_evaluations: u64,
    /// Evaluations with gradient.
    pub n_gradients: u64,
    /// Factorisations that needed jitter on the diagonal.
    pub n_jitter: u64,
    /// Predictive variances that rounding made negative, set to 0.
    pub n_clamped: u64,
    /// Of the recorded transitions.
    pub energy_error: Option<EnergyErrors>,
    /// Mean squared energy error of a recorded step, per coordinate; of methods without Metropolis correction only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_variance: Option<f64>,
    /// Log evidence of annealed particles, or of chains with replicas; absent for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<EvidenceSummary>,
    /// Of chains with replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchanges: Option<ExchangeSummary>,
    /// Whether the log-density has settled.
    pub stationarity: Option<Stationarity>,
    /// Learned noise scales; empty if they are known.
    pub noise: Vec<NoiseScale>,
    /// Learned scales of weights; empty if none are learned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub weight_scales: Vec<WeightScale>,
    /// Of a closed form, or of a Laplace approximation (that of its best mode), in nats, of standardised targets.
    pub log_marginal_likelihood: Option<f64>,
    /// Over all variables.
    pub rhat_max: f64,
    /// Effective sample sizes.
    pub ess: EssSummary,
    /// Of the predictions for the test rows.
    pub metrics: Option<Metrics>,
    /// The same of every target by itself, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics_by_target: Vec<TargetMetrics>,
    /// Draws of each chain that the metrics are of: those whose predictions were recorded.
    pub metrics_draws: u64,
    /// The chains one by one, where they disagree about predictions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modes: Option<EnsembleOfModes>,
    /// Of minibatch methods.
    pub minibatch: Option<MinibatchSummary>,
    /// Whether the test rows are as predicted; null without test rows or draws.
    pub fit: Option<TestRowsCheck>,
    /// Of training rows, each left out in turn; null for draws that are not the posterior's, or without log-likelihoods.
    pub loo: Option<LeaveOneOutSummary>,
    /// What a user should know before believing the draws.
    pub warnings: Vec<String>,
    /// Whether the run can be believed, with every finding that says so.
    pub verdict: Verdict,
}

impl Summary {
    /// The number of the chain at a place among all of them.
    pub fn chain_number(&self, place: usize) -> usize {
        self.chain_numbers.get(place).copied().unwrap_or(place)
    }

    /// What the metrics are of where they are not of all draws alike: a clause that follows "predictions", or nothing.
    pub fn predictions_are_of(&self) -> String {
        let loo = self.loo.as_ref();
        let mut text = match loo.and_then(|loo| loo.stacking.as_ref()) {
            Some(stacking) if stacking.is_used => {
                ", chains weighted by stacking as they disagree".to_owned()
            }
            _ => String::new(),
        };
        if self.metrics.is_some() && self.metrics_draws < self.draws {
            text += &format!(
                ", by {} of the {} draws of each chain (--keep-predictions)",
                self.metrics_draws, self.draws
            );
        }
        text
    }

    /// Judges, and puts what speaks against belief among the warnings, before `others` that stand beside it.
    pub(crate) fn conclude(&mut self, settings: &Settings, others: Vec<String>) {
        self.verdict = self.judge(settings, &others);
        let against = self.verdict.checks.iter();
        // what else there is to say of acceptance and divergences is among the others
        let against =
            against.filter(|check| check.level >= Level::Caution && !check.advice.is_empty());
        self.warnings = against.map(judgement::in_words).chain(others).collect();
    }

    /// Of a run with such settings, before anything is measured.
    pub(crate) fn new(settings: &Settings, draws: u64) -> Self {
        let schedule = settings.schedule();
        Self {
            status: match draws == schedule.draws {
                true => "complete",
                false => "incomplete",
            },
            likelihood: settings.model.likelihood().to_string(),
            method: settings.sampler.method().to_string(),
            chains: schedule.chains,
            chain_numbers: settings.chain_numbers(),
            draws,
            draws_planned: schedule.draws,
            thin: schedule.thin,
            warmup: schedule.warmup,
            acceptance_rate: f64::NAN,
            rhat_max: f64::NAN,
            ..Self::default()
        }
    }
}
