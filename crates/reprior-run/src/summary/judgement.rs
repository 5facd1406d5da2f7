//! Whether a run can be believed: what was found, what it means and what to do about it, predictions and weights apart; the worst decides.
//!
//! The findings about chains are those of [`reprior::diagnostics::Convergence`], those about the test rows of [`TestRowsCheck`](crate::TestRowsCheck): claims with known
//! error rates. Predictions come first, because hidden units can change places: chains at different weights may predict the same.

use super::{Check, Level, Summary, Verdict};
use crate::settings::{Nature, Settings};

impl Summary {
    /// Judges; `others` are warnings that stand beside the checks.
    pub fn judge(&self, settings: &Settings, others: &[String]) -> Verdict {
        let nature = settings.sampler.method().nature();
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
            let row_noise = self.ess.row_noise.as_ref();
            checks.extend(row_noise.map(|ess| self.of_row_noise(ess, settings)));
            checks.extend(
                self.ess
                    .weights
                    .as_ref()
                    .map(|ess| self.of_weights(ess, settings)),
            );
            checks.extend(self.of_noise(settings));
            checks.extend(self.of_weight_scales(settings));
            checks.extend(self.of_log_density(settings));
        }
        if nature == Nature::Chains && self.draws > 0 {
            checks.extend(self.of_evidence());
            checks.extend(self.of_exchanges());
            checks.push(match self.energy_variance {
                Some(variance) => Self::of_energy(variance),
                None => self.of_acceptance(),
            });
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
                false => format!("do not believe the {what} yet{}", self.as_ensemble(checks)),
            };
        }
        if level == Level::Caution {
            // what has no advice of its own is among the others
            let has_advice = |check: &&Check| !check.advice.is_empty();
            let cautions = at(Level::Caution).filter(has_advice).count() + others;
            if others == 0
                && at(Level::Caution).all(|check| named(&check, &["weights"]))
                && self.ess.prediction.is_some()
            {
                return "believe the predictions, but read nothing off single weights".to_owned();
            }
            let things = match cautions {
                0 | 1 => "one thing".to_owned(),
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
            _ if self.chains == 1 => format!("believe the {what}{fits}"),
            _ => format!("believe the {what}: the chains agree{fits}"),
        }
    }

    /// What chains are that have settled apart from one another, and what the test rows say of them together; nothing of others.
    fn as_ensemble(&self, checks: &[Check]) -> String {
        let is_moving = self
            .stationarity
            .as_ref()
            .is_none_or(|found| found.is_drifting);
        let modes = self.modes.as_ref().filter(|modes| modes.are_apart());
        let (Some(modes), false) = (modes, is_moving) else {
            return String::new();
        };
        if !modes.have_settled() {
            return ": the chains are in different places, and have not settled there".to_owned();
        }
        let mut of_test_rows = checks.iter().filter(|check| check.name == "calibration");
        let together = match of_test_rows.next().map(|check| check.level) {
            Some(Level::Good) => ", which together predict the test rows as they should",
            _ => "",
        };
        format!(
            ": they are of an ensemble of {} modes, one a chain{together}",
            modes.chains.len()
        )
    }
}

/// A check in a warning's words.
pub fn in_words(check: &Check) -> String {
    let mut text = format!("{}: {}; {}", check.name, check.value, check.meaning);
    if !check.advice.is_empty() {
        text += &format!("; {}", check.advice);
    }
    text
}
