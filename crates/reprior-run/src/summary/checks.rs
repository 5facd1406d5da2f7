//! The findings: each with its number, what it means, what to do, and how much it speaks against belief.

use super::remedy::{cause, outliers};
use super::{Check, Level, Summary};
use crate::predictive::Metrics;
use crate::read::{Ess, TestRowsCheck};
use crate::settings::Settings;
use crate::words::number;
use reprior::diagnostics::Convergence;
use reprior::metrics::predictive_check::Expectation;
use reprior::model::likelihood::name::LikelihoodName;

/// Effective draws of every chain with which not even a mean is known.
const HARDLY_ANY: f64 = 10.0;
/// Mean squared energy error per coordinate at which the log-density was seen to be off by a standard deviation.
const FAR_TOO_MUCH: f64 = 0.02;
/// Share of hits below the least that chance allows from which on predictions are plainly wrong.
const FAR_OFF: f64 = 0.1;
/// Below this a probability is not told.
const LEAST_P_VALUE: f64 = 1e-12;

impl Summary {
    pub(super) fn of_predictions(&self, ess: &Ess, settings: &Settings) -> Check {
        let mut check = self.of_block("predictions", ess, settings);
        if ess.disagreeing > 0 {
            check.meaning = format!(
                "the chains disagree about {} of {}",
                ess.disagreeing, ess.variables
            );
            if let Some(modes) = &self.modes {
                check.meaning += &format!(
                    "; {} of the predictions' variance is between chains",
                    percent(modes.between)
                );
            }
        }
        check
    }

    /// Of the noise of the test rows, where it depends on the inputs: intervals are made of it.
    pub(super) fn of_row_noise(&self, ess: &Ess, settings: &Settings) -> Check {
        let mut check = self.of_block("noise of the rows", ess, settings);
        if ess.disagreeing > 0 {
            check.meaning = format!(
                "the chains disagree about the noise of {} of {}, and so about intervals",
                ess.disagreeing, ess.variables
            );
        }
        check
    }

    pub(super) fn of_weights(&self, ess: &Ess, settings: &Settings) -> Check {
        let mut check = self.of_block("weights", ess, settings);
        let predictions = self.ess.prediction.as_ref();
        let agrees = |ess: &Ess| ess.disagreeing == 0 && ess.unknown == 0;
        let row_noise = self.ess.row_noise.as_ref();
        let agree = predictions.is_some_and(agrees) && row_noise.is_none_or(agrees);
        if ess.disagreeing > 0 {
            check.meaning = format!(
                "the chains are at different weights ({} of {} projections)",
                ess.disagreeing, ess.variables
            );
            if agree {
                check.meaning += " and predict the same: hidden units can change places without a change of the function";
                check.advice = "read nothing off single weights".to_owned();
            } else if predictions.is_some() {
                check.meaning += ", and predict differently";
            }
        } else if agree && ess.too_short > 0 {
            check.meaning += "; predictions count, and they have more";
        } else if agree && ess.unknown == 0 {
            // chains that agree about weights have means of them; runs end when predictions have draws enough
            check.advice.clear();
            check.level = Level::Good;
        }
        // a prediction that can be believed does not need weights that can
        if predictions.is_some() {
            check.level = check.level.min(Level::Caution);
        }
        check
    }

    /// R-hat and effective draws of one block of variables.
    fn of_block(&self, name: &str, ess: &Ess, settings: &Settings) -> Check {
        let least = ess.min.min(ess.tail_min);
        let recommended = Convergence::ESS_RECOMMENDED_PER_CHAIN * self.chains as f64;
        let mut advice = self.remedy(settings);
        let (meaning, level) = if ess.disagreeing > 0 {
            let level = match ess.rhat_max > Convergence::RHAT_APART {
                true => Level::Bad,
                false => Level::Caution,
            };
            (String::new(), level)
        } else if ess.too_short > 0 {
            let level = match least < HARDLY_ANY * self.chains as f64 {
                true => Level::Bad,
                false => Level::Caution,
            };
            let meaning = format!(
                "fewer than {} effective draws of {} of {}: means are rough, quantiles more so",
                Convergence::ESS_NEEDED,
                ess.too_short,
                ess.variables
            );
            (meaning, level)
        } else if ess.unknown > 0 && self.chains == 1 && self.draws >= 4 {
            advice = "use --chains 4".to_owned();
            let meaning = "one chain cannot show whether other starts agree".to_owned();
            (meaning, Level::Caution)
        } else if ess.unknown > 0 {
            let meaning = match self.draws {
                0..4 => "too few draws to tell: at least 4 of each chain are needed".to_owned(),
                _ => format!(
                    "{} of {} cannot be judged: they are not numbers",
                    ess.unknown, ess.variables
                ),
            };
            (meaning, Level::Bad)
        } else if ess.short > 0 {
            let meaning = format!(
                "the chains agree; fewer than the recommended {recommended} effective draws of {} of {}: quantiles are rough",
                ess.short, ess.variables
            );
            (meaning, Level::Caution)
        } else {
            advice.clear();
            ("the chains agree".to_owned(), Level::Good)
        };
        Check {
            name: name.to_owned(),
            value: in_numbers(ess.rhat_max, least),
            meaning,
            advice,
            level,
        }
    }

    /// What [`noise`](Self::noise) is called.
    pub fn noise_name(&self) -> &'static str {
        let likelihood = self.likelihood.parse::<LikelihoodName>();
        match likelihood.is_ok_and(LikelihoodName::has_row_noise) {
            true => "scale of the learned noise",
            false => "learned noise",
        }
    }

    pub(super) fn of_noise(&self, settings: &Settings) -> Vec<Check> {
        let is_of_rows = settings.model.likelihood().has_row_noise();
        let rest = match is_of_rows {
            true => "; that of a row is this times a factor, which can make up for it",
            false => "",
        };
        // the rows' own noise is what counts, where it is known
        let is_known = is_of_rows && self.ess.row_noise.is_some();
        let apart = self
            .noise
            .iter()
            .filter(|noise| noise.disagrees && !is_known);
        apart
            .map(|noise| Check {
                name: self.noise_name().to_owned(),
                value: format!("R-hat {}", number(noise.rhat)),
                meaning: format!(
                    "the chains disagree about the noise of {}{rest}",
                    noise.output
                ),
                advice: self.remedy(settings),
                level: Level::Caution,
            })
            .collect()
    }

    /// Learned scales of weights, of which relevance is read off.
    pub(super) fn of_weight_scales(&self, settings: &Settings) -> Option<Check> {
        let apart = self.weight_scales.iter().filter(|scale| scale.disagrees);
        let worst = apart
            .clone()
            .max_by(|one, other| one.rhat.total_cmp(&other.rhat))?;
        Some(Check {
            name: "scales of weights".to_owned(),
            value: format!("R-hat {}", number(worst.rhat)),
            meaning: format!(
                "the chains disagree about {} of {}, most about that of {}",
                apart.count(),
                self.weight_scales.len(),
                worst.weights
            ),
            advice: self.remedy(settings),
            level: Level::Caution,
        })
    }

    pub(super) fn of_log_density(&self, settings: &Settings) -> Option<Check> {
        let found = self.stationarity.as_ref()?;
        let predictions = self.ess.prediction.as_ref();
        let agree = predictions.is_some_and(|ess| ess.disagreeing == 0);
        let (meaning, level) = if found.is_drifting {
            let meaning = format!(
                "it still moves one way: its mean over the second halves of the chains is {:+.1} Monte Carlo standard errors from that over the first",
                found.drift
            );
            (meaning, Level::Bad)
        } else if !found.is_reached {
            let meaning =
                "the chains fit the training data differently well: they are in different places";
            let level = match agree {
                true => Level::Caution,
                false => Level::Bad,
            };
            (meaning.to_owned(), level)
        } else {
            let meaning = match self.chains {
                1 => "the chain no longer moves one way",
                _ => "the chains agree and no longer move one way",
            };
            (meaning.to_owned(), Level::Good)
        };
        Some(Check {
            name: "log-density".to_owned(),
            value: format!("R-hat {}", number(found.rhat)),
            meaning,
            advice: match level {
                Level::Good => String::new(),
                _ => self.remedy(settings),
            },
            level,
        })
    }

    /// What to do about it is said by the warnings, which know the method's flags.
    pub(super) fn of_acceptance(&self) -> Check {
        let rate = self.acceptance_rate;
        let (meaning, level) = if rate.is_nan() {
            ("no transitions yet", Level::Silent)
        } else if rate < 0.1 {
            ("hardly any proposal is taken", Level::Caution)
        } else {
            ("the share of proposals that were taken", Level::Good)
        };
        Check {
            name: "acceptance rate".to_owned(),
            value: number(rate),
            meaning: meaning.to_owned(),
            advice: String::new(),
            level,
        }
    }

    /// Of steps that nothing corrects: what their draws are off by grows with their energy errors.
    pub(super) fn of_energy(variance: f64) -> Check {
        let (meaning, level) = match variance > FAR_TOO_MUCH {
            true => (
                "no step was corrected, and errors are so large that the draws are not of the posterior",
                Level::Bad,
            ),
            false => (
                "no step was corrected: the draws are biased, the more the larger this is",
                Level::Caution,
            ),
        };
        Check {
            name: "energy error".to_owned(),
            value: format!("{} per coordinate, mean square", number(variance)),
            meaning: meaning.to_owned(),
            advice: "compare with --method mams, or lower --energy-variance (or --step-size)"
                .to_owned(),
            level,
        }
    }

    pub(super) fn of_divergences(&self) -> Check {
        let transitions = self.transitions;
        let found = self.divergences;
        let (meaning, level) = if found == 0 {
            ("every transition could be computed".to_owned(), Level::Good)
        } else if found * 1000 > transitions {
            (
                format!("of {transitions} transitions: too many"),
                Level::Bad,
            )
        } else {
            (format!("of {transitions} transitions: rare"), Level::Good)
        };
        Check {
            name: "divergences".to_owned(),
            value: found.to_string(),
            meaning,
            advice: String::new(),
            level,
        }
    }

    pub(super) fn of_fit(&self, fit: &TestRowsCheck, settings: &Settings) -> Vec<Check> {
        let is_classes = matches!(self.metrics, Some(Metrics::Classification { .. }));
        let cause = |is_too_sure: bool| cause(settings, is_classes, is_too_sure);
        let [low, high] = fit.expected;
        let what = match is_classes {
            true => "of the test rows are predicted right",
            false => "of the test values are within their 90 % intervals",
        };
        let error = (fit.hits * (1.0 - fit.hits) / fit.rows.max(1) as f64).sqrt();
        let value = format!(
            "{:.0} ± {:.0} % {what}, {} to {} expected",
            100.0 * fit.hits,
            // an error is not rounded down to none
            (100.0 * error).ceil(),
            percent(low),
            percent(high)
        );
        let (meaning, advice, level) = match fit.expectation {
            Expectation::TooFew => {
                let level = match fit.hits < low - FAR_OFF {
                    true => Level::Bad,
                    false => Level::Caution,
                };
                ("the predictions are too sure", cause(true), level)
            }
            Expectation::TooMany => (
                "the predictions are not sure enough",
                cause(false),
                Level::Caution,
            ),
            Expectation::Met => ("as sure as they should be", String::new(), Level::Good),
        };
        let mut checks = vec![Check {
            name: "calibration".to_owned(),
            value,
            meaning: meaning.to_owned(),
            advice,
            level,
        }];
        if fit.is_worse_than_constant {
            checks.push(Check {
                name: "likelihood".to_owned(),
                value: format!(
                    "a test row costs {} nats, and {} with a constant prediction",
                    number(fit.nll),
                    number(fit.nll_constant)
                ),
                meaning: "the inputs do harm instead of good".to_owned(),
                advice: cause(true),
                level: Level::Bad,
            });
        }
        if let Some(outlier) = &fit.outlier {
            let p_value = match outlier.p_value < LEAST_P_VALUE {
                true => format!("p < {LEAST_P_VALUE:.0e}"),
                false => format!("p = {:.0e}", outlier.p_value),
            };
            checks.push(Check {
                name: "outliers".to_owned(),
                value: format!("test row {}, counted from 0: {p_value}", outlier.row),
                meaning: "its value is farther from what is predicted than any should be, and costs many nats"
                    .to_owned(),
                advice: outliers(settings),
                level: Level::Caution,
            });
        }
        checks
    }
}

/// The largest R-hat and the smallest effective sample size, where there are any.
fn in_numbers(rhat: f64, least: f64) -> String {
    let rhat = match rhat.is_nan() {
        true => "no R-hat".to_owned(),
        false => format!("R-hat {rhat:.3} at most"),
    };
    let effective = match least {
        _ if least.is_nan() => "no effective sample size".to_owned(),
        ..10.0 => format!("{least:.1} effective draws at least"),
        _ => format!("{least:.0} effective draws at least"),
    };
    format!("{rhat}, {effective}")
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}
