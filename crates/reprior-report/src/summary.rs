//! What `reprior summary --json` says of a run, read back: a number that is null (JSON has no NaN) is NaN.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// Diagnostics and metrics of a run.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// `complete` or `incomplete`.
    pub status: String,
    /// Name of the likelihood.
    pub likelihood: String,
    /// Name of the method.
    pub method: String,
    /// Name of the coordinates.
    pub coordinates: String,
    /// How many.
    pub chains: usize,
    /// Of each chain, those that can be read.
    pub draws: u64,
    /// Of each chain, those that were asked for.
    pub draws_planned: u64,
    /// Transitions from draw to draw.
    pub thin: u64,
    /// Transitions before the first draw.
    pub warmup: u64,
    /// Transitions of all chains.
    pub steps: u64,
    /// Wall-clock time.
    #[serde(deserialize_with = "number")]
    pub seconds: f64,
    /// Transitions of all chains a second.
    #[serde(deserialize_with = "number")]
    pub steps_per_second: f64,
    /// Mean over transitions after warm-up.
    #[serde(deserialize_with = "number")]
    pub acceptance_rate: f64,
    /// Of each chain after warm-up.
    pub step_size: Vec<Option<f64>>,
    /// Transitions that diverged or could not be evaluated.
    pub divergences: u64,
    /// Evaluations of the density without gradient.
    pub n_evaluations: u64,
    /// Evaluations with gradient.
    pub n_gradients: u64,
    /// Of the recorded transitions.
    pub energy_error: Option<EnergyErrors>,
    /// Whether the log-density has settled.
    pub stationarity: Option<Stationarity>,
    /// Learned noise scales.
    pub noise: Vec<Noise>,
    /// Of a closed form, or of a Laplace approximation (that of its best mode), in nats, of standardised targets.
    pub log_marginal_likelihood: Option<f64>,
    /// Over all variables.
    #[serde(deserialize_with = "number")]
    pub rhat_max: f64,
    /// Effective sample sizes of `prediction` and `weights`.
    pub ess: BTreeMap<String, Option<Ess>>,
    /// Of the predictions for the test rows.
    pub metrics: Option<BTreeMap<String, Option<f64>>>,
    /// Of methods by minibatches.
    pub minibatch: Option<Minibatch>,
    /// What a user should know before believing the draws.
    pub warnings: Vec<String>,
    /// Whether the run can be believed.
    pub verdict: crate::Verdict,
}

/// Effective sample sizes over variables.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Ess {
    /// How many variables.
    pub variables: usize,
    /// Mean over variables.
    #[serde(deserialize_with = "number")]
    pub mean: f64,
    /// Minimum over variables.
    #[serde(deserialize_with = "number")]
    pub min: f64,
    /// Mean over draws of all chains.
    #[serde(deserialize_with = "number")]
    pub per_draw: f64,
    /// Mean over transitions after warm-up.
    #[serde(deserialize_with = "number")]
    pub per_step: f64,
    /// Mean over gradients after warm-up.
    pub per_gradient: Option<f64>,
    /// Mean over wall-clock seconds, warm-up included.
    #[serde(deserialize_with = "number")]
    pub per_second: f64,
    /// Variables about which chains disagree more than by chance.
    pub disagreeing: usize,
}

/// Spread of the energy errors.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct EnergyErrors {
    /// Standard deviation.
    #[serde(deserialize_with = "number")]
    pub sd: f64,
}

/// Whether the log-density has settled.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Stationarity {
    /// R-hat over chains.
    #[serde(deserialize_with = "number")]
    pub rhat: f64,
    /// Second halves of the chains against the first, in standard errors.
    #[serde(deserialize_with = "number")]
    pub drift: f64,
    /// Whether neither says that the chains are still on their way.
    pub is_reached: bool,
}

/// A learned noise scale, in the target's own units.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Noise {
    /// Of which output.
    pub output: String,
    /// Posterior mean.
    #[serde(deserialize_with = "number")]
    pub mean: f64,
    /// 5 % quantile.
    #[serde(deserialize_with = "number")]
    pub q05: f64,
    /// 95 % quantile.
    #[serde(deserialize_with = "number")]
    pub q95: f64,
}

/// What methods by minibatches say besides.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Minibatch {
    /// Name of the preconditioner.
    pub preconditioner: String,
    /// Of the step size.
    pub schedule: String,
    /// Rows of a minibatch.
    pub batch: usize,
    /// Complete ones of every chain.
    pub epochs: u64,
    /// Training rows that are held out.
    pub held_out: usize,
    /// At the running mean of the draws.
    pub metrics_of_mean: Option<BTreeMap<String, Option<f64>>>,
    /// Of the linearised network, in closed form.
    pub metrics_in_closed_form: Option<BTreeMap<String, Option<f64>>>,
}

/// Names of metrics in `summary --json`, and what they are called; in the order in which they are shown.
const METRICS: [(&str, &str); 10] = [
    ("accuracy", "accuracy"),
    ("rmse", "root mean squared error"),
    ("nll", "negative log-likelihood"),
    ("coverage_90", "coverage of 90 % intervals"),
    ("confidence", "mean confidence"),
    ("brier", "Brier score"),
    ("ece", "expected calibration error"),
    ("ece_adaptive", "the same, bins of equal counts"),
    ("mce", "maximum calibration error"),
    ("auroc", "AUROC"),
];

/// Names and numbers of metrics, in order.
pub(crate) fn named(metrics: &BTreeMap<String, Option<f64>>) -> Vec<(&'static str, f64)> {
    let find = |(key, name): &(&str, &'static str)| {
        let value = metrics.get(*key)?;
        Some((*name, value.unwrap_or(f64::NAN)))
    };
    METRICS.iter().filter_map(find).collect()
}

impl Summary {
    /// Effective sample sizes of `prediction` or `weights`.
    pub(crate) fn ess_of(&self, block: &str) -> Option<&Ess> {
        self.ess.get(block).and_then(Option::as_ref)
    }

    /// One metric; NaN where there is none.
    pub(crate) fn metric(&self, key: &str) -> f64 {
        let all = self.metrics.as_ref();
        let found = all.and_then(|all| all.get(key).copied().flatten());
        found.unwrap_or(f64::NAN)
    }
}
