//! Whether a run can be believed: what was found, what it means and what to do about it, predictions and weights apart; the worst decides.
//!
//! The findings about chains are those of [`reprior::diagnostics::Convergence`], those about the test rows of [`crate::fit`]: claims with known
//! error rates. Predictions come first, because hidden units can change places: chains at different weights may predict the same.

use reprior::diagnostics::{ESS_NEEDED, ESS_RECOMMENDED_PER_CHAIN};
use reprior_report::{Check, Level, Nature, Verdict};

use crate::effective::Ess;
use crate::fit::FitSummary;
use crate::settings::Settings;
use crate::summary::Summary;
use crate::table::number;

/// Effective draws of every chain with which not even a mean is known.
const HARDLY_ANY: f64 = 10.0;
/// Share of hits below the least that chance allows from which on predictions are plainly wrong.
const FAR_OFF: f64 = 0.1;

/// What to try where chains disagree or are too short, by the family of methods.
fn remedy(settings: &Settings) -> String {
    use reprior::posterior::Coordinates;
    use reprior::sampler::Method;
    if settings.sampler.method.minibatch().is_some() {
        return "raise --epochs and --draws".to_owned();
    }
    let method = settings.sampler.method.chain();
    let other = if settings.coordinates() == Coordinates::Tangent {
        ", or try marginal coordinates"
    } else if !method.needs_gradients() {
        ", or try --method hmc-infinite"
    } else if method == Method::HmcInfinite {
        ""
    } else {
        ", or try the default --method"
    };
    format!("raise --warmup and --draws (or --thin){other}")
}

impl Summary {
    /// Judges; `others` are warnings that stand beside the checks.
    pub fn judge(&self, settings: &Settings, others: &[String]) -> Verdict {
        let nature = settings.nature();
        let mut checks = Vec::new();
        if self.draws < self.draws_planned {
            checks.push(Check {
                name: "draws".to_owned(),
                value: format!("{} of {} a chain", self.draws, self.draws_planned),
                meaning: "the run was stopped or is still going; what there is may change"
                    .to_owned(),
                advice: "`reprior resume` goes on".to_owned(),
                level: Level::Caution,
            });
        }
        if nature.has_chains() && self.draws > 0 {
            let predictions = self.ess.prediction.as_ref();
            checks.extend(predictions.map(|ess| self.of_predictions(ess, settings)));
            checks.extend(
                self.ess
                    .weights
                    .as_ref()
                    .map(|ess| self.of_weights(ess, settings)),
            );
            checks.extend(self.of_noise(settings));
            checks.extend(self.of_log_density(settings));
        }
        if nature == Nature::Chains && self.draws > 0 {
            checks.push(self.of_acceptance());
            checks.push(self.of_divergences());
        }
        if let Some(fit) = &self.fit {
            checks.extend(self.of_fit(fit, settings));
        }
        let worst = checks.iter().map(|check| check.level).max();
        let warned = match others.is_empty() {
            true => Level::Good,
            false => Level::Caution,
        };
        let level = match self.draws {
            0 => Level::Bad,
            _ => worst.unwrap_or(Level::Silent).max(warned),
        };
        Verdict {
            level,
            sentence: self.sentence(nature, level, &checks, others.len()),
            checks,
        }
    }

    fn sentence(&self, nature: Nature, level: Level, checks: &[Check], others: usize) -> String {
        let at = |level: Level| checks.iter().filter(move |check| check.level == level);
        let named = |check: &&Check, names: &[&str]| names.contains(&check.name.as_str());
        let what = match self.ess.prediction.is_some() || self.fit.is_some() {
            true => "predictions",
            false => "draws",
        };
        if self.draws == 0 {
            return "there are no draws yet".to_owned();
        }
        if level == Level::Bad {
            let of_fit = ["calibration", "likelihood"];
            return match at(Level::Bad).all(|check| named(&check, &of_fit)) {
                true => format!("do not believe the {what}: the test rows are not as predicted"),
                false => format!("do not believe the {what} yet"),
            };
        }
        if level == Level::Caution {
            let cautions = at(Level::Caution).count() + others;
            if others == 0
                && at(Level::Caution).all(|check| named(&check, &["weights"]))
                && self.ess.prediction.is_some()
            {
                return "believe the predictions, but read nothing off single weights".to_owned();
            }
            let things = match cautions {
                1 => "one thing".to_owned(),
                count => format!("{count} things"),
            };
            return match nature {
                Nature::Draws => format!(
                    "an approximation, not draws of the posterior: believe the {what} with {things} in mind"
                ),
                _ => format!("believe the {what} with {things} in mind"),
            };
        }
        let fits = match &self.fit {
            Some(_) => ", and the test rows are as predicted",
            None => "",
        };
        match nature {
            Nature::ClosedForm => {
                format!("believe the {what}: they are exact for this model{fits}")
            }
            Nature::Draws => format!("an approximation, not draws of the posterior{fits}"),
            _ => format!("believe the {what}: the chains agree{fits}"),
        }
    }

    fn of_predictions(&self, ess: &Ess, settings: &Settings) -> Check {
        let mut check = self.of_block("predictions", ess, settings);
        if ess.disagreeing > 0 {
            check.meaning = format!(
                "the chains disagree about {} of {}",
                ess.disagreeing, ess.variables
            );
        }
        check
    }

    fn of_weights(&self, ess: &Ess, settings: &Settings) -> Check {
        let mut check = self.of_block("weights", ess, settings);
        let predictions = self.ess.prediction.as_ref();
        let agree = predictions.is_some_and(|ess| ess.disagreeing == 0 && ess.unknown == 0);
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
        } else if agree && (ess.too_short > 0 || ess.short > 0) {
            check.meaning += "; predictions count, and they have more";
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
        let recommended = ESS_RECOMMENDED_PER_CHAIN * self.chains as f64;
        let mut advice = remedy(settings);
        let (meaning, level) = if ess.disagreeing > 0 {
            let level = match ess.rhat_max > reprior::diagnostics::RHAT_APART {
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
                "fewer than {ESS_NEEDED} effective draws of {} of {}: means are rough, quantiles more so",
                ess.too_short, ess.variables
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
            (meaning, Level::Caution)
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

    fn of_noise(&self, settings: &Settings) -> Vec<Check> {
        let apart = self.noise.iter().filter(|noise| noise.disagrees);
        apart
            .map(|noise| Check {
                name: "learned noise".to_owned(),
                value: format!("R-hat {}", number(noise.rhat)),
                meaning: format!("the chains disagree about the noise of {}", noise.output),
                advice: remedy(settings),
                level: Level::Caution,
            })
            .collect()
    }

    fn of_log_density(&self, settings: &Settings) -> Option<Check> {
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
            (
                "the chains agree and no longer move one way".to_owned(),
                Level::Good,
            )
        };
        Some(Check {
            name: "log-density".to_owned(),
            value: format!("R-hat {}", number(found.rhat)),
            meaning,
            advice: match level {
                Level::Good => String::new(),
                _ => remedy(settings),
            },
            level,
        })
    }

    /// What to do about it is said by the warnings, which know the method's flags.
    fn of_acceptance(&self) -> Check {
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

    fn of_divergences(&self) -> Check {
        let transitions = self.chains as u64 * self.draws * self.thin;
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

    fn of_fit(&self, fit: &FitSummary, settings: &Settings) -> Vec<Check> {
        let is_classes = matches!(
            self.metrics,
            Some(crate::predictive::Metrics::Classification { .. })
        );
        let cause = |is_too_sure: bool| cause(settings, is_classes, is_too_sure);
        let [low, high] = fit.expected;
        let what = match is_classes {
            true => "of the test rows are predicted right",
            false => "of the test values are within their 90 % intervals",
        };
        let value = format!(
            "{} {what}, {} to {} expected",
            percent(fit.hits),
            percent(low),
            percent(high)
        );
        let (meaning, advice, level) = match fit.expectation {
            "too few" => {
                let level = match fit.hits < low - FAR_OFF {
                    true => Level::Bad,
                    false => Level::Caution,
                };
                ("the predictions are too sure", cause(true), level)
            }
            "too many" => (
                "the predictions are not sure enough",
                cause(false),
                Level::Caution,
            ),
            _ => ("as sure as they should be", String::new(), Level::Good),
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
        checks
    }
}

/// The likely cause of predictions that are too sure, or not sure enough, and the way out.
fn cause(settings: &Settings, is_classes: bool, is_too_sure: bool) -> String {
    let model = &settings.model;
    if is_classes && model.likelihood.has_scale() {
        return "a likely cause is the gaussian likelihood on class codes; try --likelihood categorical".to_owned();
    }
    if model.likelihood.has_scale() && !model.learns_noise() {
        let size = match is_too_sure {
            true => "too small",
            false => "too large",
        };
        let scales = model.noise().typical(1);
        let noise = scales
            .first()
            .map_or(String::new(), |&noise| format!(" at {}", number(noise)));
        // methods without a chain for the noise take `auto`
        let way = match settings.sampler.method.minibatch().is_some()
            || settings.nature() == Nature::ClosedForm
        {
            true => "auto",
            false => "learn",
        };
        return format!(
            "a likely cause is the noise, fixed{noise} of the target's spread, which is {size}; try --noise {way}"
        );
    }
    match is_too_sure {
        true => "likely causes: test rows that differ from the training rows (try --shuffle 1), chains that do not agree yet, or a network that cannot fit".to_owned(),
        false => "a likely cause is a prior that is too wide, or test rows that are easier than the training rows".to_owned(),
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

/// A check in a warning's words.
pub fn in_words(check: &Check) -> String {
    let mut text = format!("{}: {}; {}", check.name, check.value, check.meaning);
    if !check.advice.is_empty() {
        text += &format!("; {}", check.advice);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effective::EssSummary;
    use crate::trace::Stationarity;

    fn ess(rhat: f64, least: f64) -> Ess {
        Ess {
            variables: 9,
            mean: 2.0 * least,
            min: least,
            max: 3.0 * least,
            tail_min: least,
            per_draw: 0.1,
            per_step: 0.1,
            per_gradient: None,
            per_evaluation: 0.1,
            per_second: 1.0,
            tfp_per_draw: 0.1,
            rhat_max: rhat,
            disagreeing: usize::from(rhat > 1.02),
            too_short: usize::from(least < 100.0),
            short: usize::from((100.0..400.0).contains(&least)),
            unknown: 0,
            rhat_squared_max: 1.0,
        }
    }

    fn fit(expectation: &'static str, hits: f64) -> FitSummary {
        FitSummary {
            rows: 100,
            hits,
            expected: [0.82, 0.97],
            expectation,
            nll: 1.0,
            nll_constant: 1.4,
            is_worse_than_constant: false,
        }
    }

    /// Four chains of 250 draws with these diagnostics of predictions and weights.
    fn judged(predictions: Ess, weights: Ess, change: impl FnOnce(&mut Summary)) -> Summary {
        let settings = Settings::default();
        let mut summary = Summary::bare(&settings, 1.0);
        (summary.chains, summary.draws, summary.draws_planned) = (4, 250, 250);
        summary.acceptance_rate = 0.8;
        summary.ess = EssSummary {
            prediction: Some(predictions),
            weights: Some(weights),
        };
        summary.fit = Some(fit("met", 0.9));
        change(&mut summary);
        summary.conclude(&settings, Vec::new());
        summary
    }

    #[test]
    fn the_worst_finding_decides() {
        let good = || ess(1.003, 700.0);
        let of = |predictions, weights| {
            let verdict = judged(predictions, weights, |_| ()).verdict;
            (verdict.level, verdict.sentence)
        };
        let believe =
            "believe the predictions: the chains agree, and the test rows are as predicted";
        assert_eq!(of(good(), good()), (Level::Good, believe.to_owned()));
        // of energy.csv: R-hat 1.65, 6.6 effective draws of the weights
        let (level, sentence) = of(good(), ess(1.65, 6.6));
        assert_eq!(level, Level::Caution);
        assert_eq!(
            sentence,
            "believe the predictions, but read nothing off single weights"
        );
        let (level, sentence) = of(ess(1.54, 7.0), ess(2.15, 5.3));
        assert_eq!(level, Level::Bad);
        assert_eq!(sentence, "do not believe the predictions yet");
        assert_eq!(of(ess(1.03, 300.0), good()).0, Level::Caution);
        assert_eq!(of(ess(1.003, 300.0), good()).0, Level::Caution);
        assert_eq!(of(ess(1.003, 80.0), good()).0, Level::Caution);
        assert_eq!(of(ess(1.003, 30.0), good()).0, Level::Bad);
        assert_eq!(of(good(), ess(1.003, 80.0)).0, Level::Caution);
    }

    #[test]
    fn weights_and_predictions_are_told_apart() {
        let weights_only = judged(ess(1.003, 700.0), ess(1.65, 6.6), |_| ());
        let [one] = weights_only.warnings.as_slice() else {
            panic!("{:?}", weights_only.warnings)
        };
        assert!(
            one.starts_with("weights:") && one.contains("predict the same"),
            "{one}"
        );
        let both = judged(ess(1.5, 20.0), ess(1.65, 6.6), |_| ());
        assert!(
            both.warnings[0].starts_with("predictions:"),
            "{:?}",
            both.warnings
        );
        assert!(
            both.warnings[1].contains("predict differently"),
            "{:?}",
            both.warnings
        );
        assert!(both.warnings[0].contains("--warmup"), "{:?}", both.warnings);
    }

    #[test]
    fn the_fit_takes_part() {
        let of = |fit: FitSummary| {
            judged(ess(1.003, 700.0), ess(1.003, 700.0), |summary| {
                summary.fit = Some(fit)
            })
        };
        let wine = of(fit("too few", 0.26));
        assert_eq!(wine.verdict.level, Level::Bad);
        let not_as_predicted = "do not believe the predictions: the test rows are not as predicted";
        assert_eq!(wine.verdict.sentence, not_as_predicted);
        assert!(
            wine.warnings[0].contains("the noise, fixed at 0.1000"),
            "{:?}",
            wine.warnings
        );
        assert!(
            wine.warnings[0].contains("too small; try --noise learn"),
            "{:?}",
            wine.warnings
        );
        let energy = of(fit("too many", 1.0));
        assert_eq!(energy.verdict.level, Level::Caution);
        assert!(
            energy.warnings[0].contains("too large"),
            "{:?}",
            energy.warnings
        );
        let mut worse = fit("met", 0.9);
        worse.is_worse_than_constant = true;
        assert_eq!(of(worse).verdict.level, Level::Bad);
    }

    #[test]
    fn what_is_still_on_its_way_is_bad() {
        let good = || ess(1.003, 700.0);
        let of = |change: fn(&mut Summary)| judged(good(), good(), change).verdict;
        assert_eq!(
            of(|summary| summary.draws = 0).sentence,
            "there are no draws yet"
        );
        assert_eq!(
            of(|summary| summary.draws_planned = 500).level,
            Level::Caution
        );
        assert_eq!(of(|summary| summary.divergences = 70).level, Level::Bad);
        assert_eq!(
            of(|summary| summary.acceptance_rate = 0.01).level,
            Level::Caution
        );
        let drifting = of(|summary| {
            summary.stationarity = Some(Stationarity {
                log_ratio_mean: 0.0,
                log_ratio_sd: 1.0,
                rhat: 1.3,
                drift: 9.0,
                is_drifting: true,
                is_reached: false,
            });
        });
        assert_eq!(drifting.level, Level::Bad);
    }
}
