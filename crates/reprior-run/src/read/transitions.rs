//! Diagnostics of the sampler's own numbers: ℓ, energy errors, learned noise scales.

use reprior::diagnostics::{Convergence, Draws, Estimator};
use serde::Serialize;

use super::recorded::Recorded;
use crate::failure::Failure;
use crate::problem::scale_names;
use crate::record::{NOISE, WEIGHT_SCALE};

/// Whether ℓ has settled.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EnergyErrors {
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub sd: f64,
    /// Greatest absolute value.
    pub max: f64,
}

/// A learned scale of weights, in units of the prior that the flags give.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WeightScale {
    /// Of the weights of which input, or of which layer.
    pub weights: String,
    /// Posterior mean.
    pub mean: f64,
    /// Posterior standard deviation.
    pub sd: f64,
    /// 5 % quantile.
    pub q05: f64,
    /// 95 % quantile.
    pub q95: f64,
    /// R-hat over chains.
    pub rhat: f64,
    /// Bulk effective sample size.
    pub ess: f64,
    /// Whether the chains disagree about it.
    pub disagrees: bool,
}

/// A learned noise scale, in the target's own units.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NoiseScale {
    /// Of which output.
    pub output: String,
    /// Posterior mean.
    pub mean: f64,
    /// Posterior standard deviation.
    pub sd: f64,
    /// 5 % quantile.
    pub q05: f64,
    /// 95 % quantile.
    pub q95: f64,
    /// R-hat over chains.
    pub rhat: f64,
    /// Bulk effective sample size.
    pub ess: f64,
    /// Whether the chains disagree about it.
    pub disagrees: bool,
}

pub(super) fn mean_and_sd(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    (mean, (squares / (values.len() as f64 - 1.0)).sqrt())
}

impl Recorded {
    /// Whether ℓ has settled; nothing where it does not vary (a linear model with its readout integrated out).
    ///
    /// # Errors
    /// A run folder that cannot be read.
    pub(crate) fn stationarity(&self) -> Result<Option<Stationarity>, Failure> {
        if self.draws < 8 {
            return Ok(None);
        }
        let values = self.read("sample_stats", "log_ratio")?;
        let (log_ratio_mean, log_ratio_sd) = mean_and_sd(&values);
        if log_ratio_sd <= 1e-9 * log_ratio_mean.abs() {
            return Ok(None);
        }
        let chains = self.chains();
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
            is_reached: !Convergence::rhat_disagrees(chains, found.rhat, found.ess_within)
                && !is_drifting,
        }))
    }

    /// Energy errors of the recorded transitions, those that could be evaluated; nothing for elliptical slices, which have
    /// none to speak of.
    ///
    /// # Errors
    /// A run folder that cannot be read.
    pub(crate) fn energy_errors(&self) -> Result<Option<EnergyErrors>, Failure> {
        if self.draws < 2 {
            return Ok(None);
        }
        let mut values = self.read("sample_stats", "energy_error")?;
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

    /// Learned noise scales, if there are any; one for the outputs of a classification, which share it.
    ///
    /// # Errors
    /// A run folder that cannot be read.
    pub(crate) fn noise_scales(&self) -> Result<Vec<NoiseScale>, Failure> {
        if self.draws == 0 || !self.settings.model.learns_noise() {
            return Ok(Vec::new());
        }
        let (values, description) = (self.read("posterior", NOISE)?, &self.description);
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
            let output = if description.is_classification {
                "every class".to_owned()
            } else {
                description.output_names[output].clone()
            };
            scales.push(self.scale(output, own, &mut estimator)?);
        }
        Ok(scales)
    }

    /// Numbers of the draws of a scale.
    fn scale(
        &self,
        output: String,
        mut own: Vec<f64>,
        estimator: &mut Estimator,
    ) -> Result<NoiseScale, Failure> {
        let (mean, sd) = mean_and_sd(&own);
        let all = Draws::new(&own, self.chains()).map_err(Failure::run)?;
        let found = estimator.summary(all);
        let disagrees = Convergence::rhat_disagrees(all.chains(), found.rhat, found.ess_within);
        own.sort_by(f64::total_cmp);
        let quantile = |p: f64| own[((own.len() - 1) as f64 * p).round() as usize];
        Ok(NoiseScale {
            output,
            mean,
            sd,
            q05: quantile(0.05),
            q95: quantile(0.95),
            rhat: found.rhat,
            ess: found.ess_bulk,
            disagrees,
        })
    }

    /// Learned scales of weights; empty where none are.
    ///
    /// # Errors
    /// A run folder that cannot be read.
    pub(crate) fn weight_scales(&self) -> Result<Vec<WeightScale>, Failure> {
        if self.draws == 0 || self.settings.model.scale_prior().is_none() {
            return Ok(Vec::new());
        }
        let names = scale_names(&self.settings.model, &self.description)?;
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let values = self.read("posterior", WEIGHT_SCALE)?;
        let mut estimator = Estimator::new();
        let mut scales = Vec::with_capacity(names.len());
        for (at, name) in names.iter().enumerate() {
            let own = values.iter().skip(at).step_by(names.len());
            let found = self.scale(name.clone(), own.copied().collect(), &mut estimator)?;
            scales.push(WeightScale {
                weights: found.output,
                mean: found.mean,
                sd: found.sd,
                q05: found.q05,
                q95: found.q95,
                rhat: found.rhat,
                ess: found.ess,
                disagrees: found.disagrees,
            });
        }
        Ok(scales)
    }
}
