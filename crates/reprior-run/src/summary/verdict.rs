//! Can it be believed? Each finding with what it means, and the worst of them in a sentence.

use serde::Serialize;

/// How much speaks for belief.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
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
    pub fn class(self) -> &'static str {
        match self {
            Self::Silent => "silent",
            Self::Good => "good",
            Self::Caution => "caution",
            Self::Bad => "bad",
        }
    }
}

/// One finding and what it means.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: String,
    /// What was found.
    pub value: String,
    /// What it means.
    pub meaning: String,
    /// What to do about it; empty where there is nothing to do.
    pub advice: String,
    /// For belief.
    pub level: Level,
}

/// What to think of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The worst of everything.
    pub level: Level,
    /// In a sentence, without its capital and its full stop.
    pub sentence: String,
    /// Finding by finding.
    pub checks: Vec<Check>,
}

impl Default for Verdict {
    /// Nothing was judged.
    fn default() -> Self {
        Self {
            level: Level::Silent,
            sentence: "nothing was judged".to_owned(),
            checks: Vec::new(),
        }
    }
}
