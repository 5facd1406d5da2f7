//! How well a run predicts rows of its training data that it was not given: leave-one-out cross-validation.
//!
//! Of draws of the posterior by PSIS-LOO ([`LeaveOneOut`]), with the effective share of draws that ArviZ takes: the mean over all variables of the
//! group `posterior`. Of a closed form it is exact, and was written when the run was made. Draws that are not the posterior's have none. Where chains
//! disagree they are weighted ([`super::stacking`]).

use reprior::diagnostics::{Estimator, LARGEST_PARETO_K, LeaveOneOut, RowSum};
use reprior::model::dataset::Targets;
use serde::{Deserialize, Serialize};

use super::recorded::{Recorded, first};
use super::stacking::StackingSummary;
use crate::failure::{Failure, name_of};
use crate::predictive::PredictionKind;
use crate::record::{LOG_LIKELIHOOD, TARGET, scored_rows};
use crate::settings::Nature;
use crate::words::number;

/// The file of a run in closed form with what it says of every training row.
pub(crate) const LEAVE_ONE_OUT: &str = "leave-one-out.json";

/// Exact leave-one-out cross-validation, row by row, in the target's own units.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ExactLeaveOneOut {
    /// log p(y_i | y_−i).
    pub log_densities: Vec<f64>,
    /// log p(y_i | y).
    pub in_sample: Vec<f64>,
}

/// What `summary --json` says of leave-one-out cross-validation, under ArviZ's names where it has them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LeaveOneOutSummary {
    /// Rows that were left out, one at a time.
    pub rows: usize,
    /// Training rows; where they are more, those that were left out are a random choice.
    pub training_rows: usize,
    /// What every term of the sum is the logarithm of: the probability of a class, of a count, or a density.
    pub measure: &'static str,
    /// Whether it is a closed form.
    pub is_exact: bool,
    /// Sum over rows of log p(y_i | y_−i), in nats, targets in their own units.
    pub elpd_loo: f64,
    /// Its standard error.
    pub se: f64,
    /// The mean over rows.
    pub elpd_loo_per_row: f64,
    /// Its standard error.
    pub se_per_row: f64,
    /// Effective number of parameters, of those that are not integrated out.
    pub p_loo: f64,
    /// Share of draws that are effective, by which the length of the tails is chosen; null for a closed form.
    pub reff: Option<f64>,
    /// Largest Pareto k; null for a closed form, and where it is infinite.
    pub pareto_k_max: Option<f64>,
    /// Rows with k above 0.7, whose terms cannot be relied on.
    pub rows_above_07: usize,
    /// The k above which so many draws are too few, at most 0.7.
    pub good_k: f64,
    /// Rows above that.
    pub rows_above_good_k: usize,
    /// Weights of chains by stacking, where they disagree.
    pub stacking: Option<StackingSummary>,
}

/// Leave-one-out cross-validation row by row.
#[derive(Debug, Clone)]
pub struct LeftOutRows {
    /// Which of the training rows.
    pub rows: Vec<usize>,
    /// Estimates of log p(y_i | y_−i).
    pub log_densities: Vec<f64>,
    /// In sum.
    pub summary: LeaveOneOutSummary,
}

impl LeaveOneOutSummary {
    /// Of sums over rows.
    fn new(log_densities: &[f64], in_sample: &[f64]) -> Self {
        let elpd = RowSum::of(log_densities.iter().copied());
        let rows = log_densities.len();
        Self {
            rows,
            elpd_loo: elpd.total,
            se: elpd.standard_error,
            elpd_loo_per_row: elpd.total / rows as f64,
            se_per_row: elpd.standard_error / rows as f64,
            p_loo: in_sample.iter().sum::<f64>() - elpd.total,
            good_k: LARGEST_PARETO_K,
            ..Self::default()
        }
    }

    /// What it is of.
    pub fn title(&self) -> String {
        let how = match self.is_exact {
            true => "exact",
            false => "PSIS-LOO",
        };
        let rows = match self.rows < self.training_rows {
            true => format!(
                "{} of {} training rows, chosen at random",
                self.rows, self.training_rows
            ),
            false => format!("{} training rows", self.rows),
        };
        format!(
            "leave-one-out cross-validation ({how}), {rows}; {}",
            self.measure
        )
    }

    /// Names and values.
    pub fn named(&self) -> Vec<(String, String)> {
        let with_error = |value: f64, error: f64| format!("{} ± {}", number(value), number(error));
        let row = |name: &str, value: String| (name.to_owned(), value);
        let mut rows = vec![
            row("elpd_loo", with_error(self.elpd_loo, self.se)),
            row(
                "elpd_loo per row",
                with_error(self.elpd_loo_per_row, self.se_per_row),
            ),
            row("p_loo", number(self.p_loo)),
        ];
        if !self.is_exact {
            let value = format!("{} of {}", self.rows_above_07, self.rows);
            rows.push(row("rows with Pareto k > 0.7", value));
        }
        if let Some(stacking) = &self.stacking {
            let weights = stacking.weights.iter();
            let weights: Vec<String> = weights.map(|weight| format!("{weight:.2}")).collect();
            let name = match stacking.is_used {
                true => "weights of chains by stacking",
                false => "weights of chains by stacking, not used",
            };
            rows.push(row(name, weights.join(" ")));
            let value = with_error(stacking.elpd_loo, stacking.se);
            rows.push(row("elpd_loo of chains so weighted", value));
        }
        rows
    }

    /// In a line.
    pub fn in_short(&self) -> String {
        let how = match self.is_exact {
            true => "exact",
            false => "PSIS-LOO",
        };
        let doubt = if self.rows_above_07 > 0 {
            format!(
                "; do not trust it: Pareto k > 0.7 for {} of {} rows",
                self.rows_above_07, self.rows
            )
        } else if self.rows_above_good_k > 0 {
            "; more draws are needed before it can be trusted".to_owned()
        } else {
            String::new()
        };
        format!(
            "training rows, each left out in turn ({how}): log-likelihood {} ± {} a row{doubt}",
            number(self.elpd_loo_per_row),
            number(self.se_per_row)
        )
    }

    /// Whether to trust it, and why not.
    pub fn trust(&self) -> String {
        if self.is_exact {
            return "exact for this model: nothing is estimated".to_owned();
        }
        let mut text = if self.rows_above_07 > 0 {
            format!(
                "do not trust elpd_loo to its standard error: for {} of {} rows (Pareto k > 0.7) the draws say too little of the posterior without the row, \
                 more of them do not help, and the sum is more likely too high; compare on rows that were held out instead",
                self.rows_above_07, self.rows
            )
        } else if self.rows_above_good_k > 0 {
            format!(
                "more draws are needed before elpd_loo can be trusted: for {} of {} rows the Pareto k is above {}, the most that so many draws allow",
                self.rows_above_good_k,
                self.rows,
                number(self.good_k)
            )
        } else {
            "elpd_loo can be trusted: no row has too large a Pareto k".to_owned()
        };
        match &self.stacking {
            Some(stacking) if stacking.is_used => {
                text += "; the chains disagree, and predictions are of the mixture of them that stacking finds; elpd_loo is of all with the same weight";
            }
            Some(_) => {
                text += "; the chains disagree, and all have the same weight: stacking would take these estimates for more than they are";
            }
            None => {}
        }
        text
    }
}

impl Recorded {
    /// What leave-one-out cross-validation says, or why there is none.
    ///
    /// # Errors
    /// A run that cannot be read.
    pub fn leave_one_out(&self) -> Result<Result<LeftOutRows, String>, Failure> {
        let method = self.settings.sampler.method();
        let mut found = match method.nature() {
            Nature::Draws => {
                return Ok(Err(format!(
                    "the draws of {method} are not the posterior's"
                )));
            }
            Nature::ClosedForm => self.exact()?,
            Nature::Chains | Nature::ApproximateChains => self.by_importance()?,
        };
        if let Ok(found) = &mut found {
            found.summary.training_rows = self.description.train_rows;
            found.summary.measure = self.measure();
        }
        Ok(found)
    }

    fn measure(&self) -> &'static str {
        match self.kind {
            PredictionKind::Codes => "log-densities of class codes, not probabilities of classes",
            PredictionKind::Probabilities => "log-probabilities of classes",
            PredictionKind::Real(family) if family.is_discrete() => "log-probabilities of counts",
            PredictionKind::Real(_) | PredictionKind::RealByRow(_) => {
                "log-densities in the target's own units"
            }
        }
    }

    /// Of a closed form.
    fn exact(&self) -> Result<Result<LeftOutRows, String>, Failure> {
        let text = self
            .files
            .read_text(LEAVE_ONE_OUT)
            .map_err(Failure::request)?;
        let Some(text) = text else {
            return Ok(Err("the run was made by an earlier version".to_owned()));
        };
        let damaged = |what: String| {
            let path = name_of(&self.files);
            Failure::request(format!("`{path}/{LEAVE_ONE_OUT}` is damaged: {what}"))
        };
        let exact: ExactLeaveOneOut =
            serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        let rows = self.description.train_rows;
        if exact.log_densities.len() != rows || exact.in_sample.len() != rows {
            return Err(damaged(format!("it is not of {rows} rows")));
        }
        Ok(Ok(LeftOutRows {
            rows: (0..rows).collect(),
            summary: LeaveOneOutSummary {
                is_exact: true,
                ..LeaveOneOutSummary::new(&exact.log_densities, &exact.in_sample)
            },
            log_densities: exact.log_densities,
        }))
    }

    /// Of draws.
    fn by_importance(&self) -> Result<Result<LeftOutRows, String>, Failure> {
        let rows = scored_rows(&self.settings, &self.description);
        if rows.is_empty() {
            let text = "the run records no log-likelihoods (--keep-log-likelihood)";
            return Ok(Err(text.to_owned()));
        }
        if self.draws == 0 {
            return Ok(Err("there are no draws yet".to_owned()));
        }
        let values = self.read(LOG_LIKELIHOOD, TARGET)?;
        let efficiency = self.relative_efficiency()?;
        let found = LeaveOneOut::new(&values, rows.len(), efficiency).map_err(Failure::request)?;
        let largest = found.pareto_k.iter().copied().fold(f64::NAN, f64::max);
        let summary = LeaveOneOutSummary {
            reff: Some(efficiency),
            pareto_k_max: Some(largest).filter(|k| k.is_finite()),
            rows_above_07: found.rows_above(LARGEST_PARETO_K),
            good_k: found.good_k(),
            rows_above_good_k: found.rows_above(found.good_k()),
            stacking: self.stacking()?,
            ..LeaveOneOutSummary::new(&found.log_densities, &found.in_sample)
        };
        Ok(Ok(LeftOutRows {
            rows,
            log_densities: found.log_densities,
            summary,
        }))
    }

    /// The mean over all variables of the group `posterior` of the effective sample size for the mean, per draw; 1 for one chain.
    fn relative_efficiency(&self) -> Result<f64, Failure> {
        let (chains, draws) = (self.chains(), self.draws as usize);
        if chains == 1 {
            return Ok(1.0);
        }
        let variables = self
            .reader
            .variables("posterior")
            .map_err(Failure::request)?;
        let (mut total, mut count) = (0.0, 0.0);
        for variable in variables {
            let read = self
                .reader
                .read::<f64>("posterior", variable.name, &first(self.draws));
            let all = read.map_err(Failure::request)?.values;
            let width = all.len() / (chains * draws).max(1);
            let read = |own: usize, out: &mut [f64]| {
                for (out, draw) in out.iter_mut().zip(all.chunks_exact(width)) {
                    *out = draw[own];
                }
            };
            let sizes = Estimator::map_variables(width, chains, draws, read, Estimator::ess_mean);
            for size in sizes.map_err(Failure::run)? {
                if size.is_finite() && size > 0.0 {
                    total += size;
                    count += 1.0;
                }
            }
        }
        let found = total / count / (chains * draws) as f64;
        Ok(if found.is_finite() { found } else { 1.0 })
    }

    /// The training targets, one after another; of classes their indices.
    ///
    /// # Errors
    /// A run that cannot be read.
    pub fn training_targets(&self) -> Result<Vec<f64>, Failure> {
        Ok(match self.targets("observed_data")? {
            Targets::Real { values, .. } => values,
            Targets::Classes { labels, .. } => labels.into_iter().map(f64::from).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(change: impl FnOnce(&mut LeaveOneOutSummary)) -> LeaveOneOutSummary {
        let mut summary = LeaveOneOutSummary::new(&[-1.0, -2.0, -3.0], &[-1.0, -1.5, -2.5]);
        summary.training_rows = 3;
        change(&mut summary);
        summary
    }

    #[test]
    fn sums_are_over_rows() {
        let summary = of(|_| ());
        assert!((summary.elpd_loo + 6.0).abs() < 1e-12);
        assert!((summary.se - 3.0_f64.sqrt()).abs() < 1e-12);
        assert!((summary.elpd_loo_per_row + 2.0).abs() < 1e-12);
        assert!((summary.p_loo - 1.0).abs() < 1e-12);
    }

    #[test]
    fn large_shapes_are_said_plainly() {
        let bad = of(|summary| summary.rows_above_07 = 2).trust();
        assert!(
            bad.starts_with("do not trust elpd_loo")
                && bad.contains("2 of 3 rows (Pareto k > 0.7)"),
            "{bad}"
        );
        let short = of(|summary| {
            (summary.rows_above_good_k, summary.good_k) = (1, 0.4);
        });
        assert!(short.trust().contains("more draws"), "{}", short.trust());
        let good = of(|_| ()).trust();
        assert!(good.starts_with("elpd_loo can be trusted"), "{good}");
        let names: Vec<String> = of(|_| ()).named().into_iter().map(|row| row.0).collect();
        assert!(names.contains(&"rows with Pareto k > 0.7".to_owned()));
    }

    #[test]
    fn chains_that_disagree_show_their_weights() {
        let summary = of(|summary| {
            summary.stacking = Some(StackingSummary {
                weights: vec![0.75, 0.25],
                is_used: true,
                elpd_loo: -5.0,
                se: 1.0,
            });
        });
        let shown = summary.named();
        assert!(
            shown.iter().any(
                |(name, value)| name == "weights of chains by stacking" && value == "0.75 0.25"
            )
        );
        assert!(summary.trust().contains("the chains disagree"));
    }
}
