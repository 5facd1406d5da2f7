//! Can it be believed? The warnings of `summary`, and each number that they rest on with what it means.

use crate::words::{NOTHING_AGAINST, number};
use crate::{Nature, Run, Summary};

/// How much speaks for belief.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// There is nothing to say.
    Silent,
    /// Nothing speaks against it.
    Good,
    /// There is something to know first.
    Caution,
    /// Not yet.
    Bad,
}

impl Level {
    /// A sign that is understood without its colour.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Silent => "–",
            Self::Good => "✓",
            Self::Caution => "▲",
            Self::Bad => "✕",
        }
    }

    /// The same in a word, for who does not see the sign.
    pub fn word(self) -> &'static str {
        match self {
            Self::Silent => "not applicable",
            Self::Good => "good",
            Self::Caution => "caution",
            Self::Bad => "bad",
        }
    }

    /// Class in the style sheet.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Silent => "silent",
            Self::Good => "good",
            Self::Caution => "caution",
            Self::Bad => "bad",
        }
    }
}

/// One number and what it means.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// What was measured.
    pub name: &'static str,
    /// What was found.
    pub value: String,
    /// What it means.
    pub meaning: String,
    /// For belief.
    pub level: Level,
}

/// What to think of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The worst of everything.
    pub level: Level,
    /// In a sentence.
    pub sentence: String,
    /// Number by number.
    pub checks: Vec<Check>,
}

/// R-hat beyond which chains are plainly elsewhere (Gelman et al.'s old limit).
const FAR_APART: f64 = 1.1;
/// Least effective draws for quantiles that can be trusted, as in `summary`.
const LEAST_EFFECTIVE: f64 = 100.0;
/// Effective draws, on average over variables, with which not even a mean is known.
const HARDLY_ANY: f64 = 10.0;

impl Verdict {
    /// Of a run.
    pub fn of(run: &Run) -> Self {
        let checks = checks(run);
        let summary = &run.summary;
        let worst = checks.iter().map(|check| check.level).max();
        let warned = match summary.warnings.is_empty() {
            true => Level::Good,
            false => Level::Caution,
        };
        let level = match summary.draws {
            0 => Level::Bad,
            _ => worst.unwrap_or(Level::Silent).max(warned),
        };
        let things = match summary.warnings.len() {
            1 => "one thing".to_owned(),
            count => format!("{count} things"),
        };
        let sentence = match level {
            _ if summary.draws == 0 => "There are no draws yet.".to_owned(),
            Level::Bad => "Do not believe these draws yet.".to_owned(),
            _ if !summary.warnings.is_empty() => match run.nature {
                Nature::Chains | Nature::ApproximateChains => {
                    format!("Believe these draws with {things} in mind.")
                }
                _ => format!("There is {things} to know before believing this."),
            },
            Level::Caution if summary.draws < summary.draws_planned => {
                "The run has not ended: what there is may change.".to_owned()
            }
            Level::Caution => "Believe these draws with the numbers below in mind.".to_owned(),
            _ if run.nature == Nature::ClosedForm => {
                "A closed form: there are no draws that could be wrong.".to_owned()
            }
            _ => NOTHING_AGAINST.to_owned(),
        };
        Self {
            level,
            sentence,
            checks,
        }
    }
}

fn checks(run: &Run) -> Vec<Check> {
    let summary = &run.summary;
    let mut checks = Vec::new();
    let (draws, planned) = (summary.draws, summary.draws_planned);
    if draws < planned {
        checks.push(Check {
            name: "draws",
            value: format!("{draws} of {planned} a chain"),
            meaning: "the run was stopped or is still going; `reprior resume` goes on".to_owned(),
            level: Level::Caution,
        });
    }
    if !run.nature.has_chains() || draws == 0 {
        return checks;
    }
    if let Some(stationarity) = &summary.stationarity {
        let (meaning, level) = match stationarity.is_reached {
            true => ("chains agree and no longer move one way", Level::Good),
            false => ("the chains are still on their way", Level::Bad),
        };
        checks.push(Check {
            name: "log-density",
            value: format!(
                "R-hat {}, drift {:+.1} standard errors",
                number(stationarity.rhat),
                stationarity.drift
            ),
            meaning: meaning.to_owned(),
            level,
        });
    }
    checks.push(rhat(summary));
    for (block, name) in [
        ("prediction", "effective draws, predictions"),
        ("weights", "effective draws, weights"),
    ] {
        checks.extend(effective(summary, block, name));
    }
    if run.nature == Nature::Chains {
        checks.push(acceptance(summary));
        checks.push(divergences(summary));
    }
    checks
}

fn rhat(summary: &Summary) -> Check {
    let blocks = ["prediction", "weights"];
    let blocks = blocks.iter().filter_map(|block| summary.ess_of(block));
    let disagreeing: usize = blocks.map(|ess| ess.disagreeing).sum();
    let rhat = summary.rhat_max;
    let (meaning, level) = if rhat.is_nan() {
        match summary.chains {
            1 => (
                "one chain cannot show whether others agree".to_owned(),
                Level::Caution,
            ),
            _ => ("too few draws, or none that vary".to_owned(), Level::Silent),
        }
    } else if disagreeing > 0 {
        let level = match rhat > FAR_APART {
            true => Level::Bad,
            false => Level::Caution,
        };
        let meaning = format!("chains disagree about {disagreeing} variables");
        (meaning, level)
    } else if rhat > FAR_APART {
        let meaning = "chains lie apart, with too few effective draws to tell whether by chance";
        (meaning.to_owned(), Level::Caution)
    } else if rhat <= 1.01 {
        ("chains agree".to_owned(), Level::Good)
    } else {
        ("no more than chance explains".to_owned(), Level::Good)
    };
    Check {
        name: "R-hat, largest",
        value: number(rhat),
        meaning,
        level,
    }
}

fn effective(summary: &Summary, block: &str, name: &'static str) -> Option<Check> {
    let ess = summary.ess_of(block)?;
    let (meaning, level) = if ess.min.is_nan() {
        ("too few draws to tell".to_owned(), Level::Silent)
    } else if ess.mean < HARDLY_ANY {
        ("hardly any: nothing can be said yet".to_owned(), Level::Bad)
    } else if block == "prediction" && ess.min < LEAST_EFFECTIVE {
        (
            format!("fewer than {LEAST_EFFECTIVE} for some predictions: their quantiles are rough"),
            Level::Caution,
        )
    } else {
        let meaning = format!(
            "each draw counts as {} of an independent one",
            number(ess.per_draw)
        );
        (meaning, Level::Good)
    };
    Some(Check {
        name,
        value: format!("{} (least {})", number(ess.mean), number(ess.min)),
        meaning,
        level,
    })
}

fn acceptance(summary: &Summary) -> Check {
    let rate = summary.acceptance_rate;
    let (meaning, level) = if rate.is_nan() {
        ("no transitions yet", Level::Silent)
    } else if rate < 0.1 {
        ("hardly any proposal is taken", Level::Caution)
    } else {
        ("the share of proposals that were taken", Level::Good)
    };
    Check {
        name: "acceptance rate",
        value: number(rate),
        meaning: meaning.to_owned(),
        level,
    }
}

fn divergences(summary: &Summary) -> Check {
    let transitions = summary.chains as u64 * summary.draws * summary.thin;
    let found = summary.divergences;
    let (meaning, level) = if found == 0 {
        ("every transition could be computed".to_owned(), Level::Good)
    } else if found * 1000 > transitions {
        let meaning = format!("of {transitions} transitions: too many");
        (meaning, Level::Bad)
    } else {
        (format!("of {transitions} transitions: rare"), Level::Good)
    };
    Check {
        name: "divergences",
        value: found.to_string(),
        meaning,
        level,
    }
}
