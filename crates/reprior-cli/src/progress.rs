//! Progress on stderr: bars where it is a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use reprior::chain::{News, Progress};

use crate::table::{duration, number, to_stderr};

/// Time between lines where stderr is not a terminal.
const LINE_EVERY: Duration = Duration::from_secs(15);
/// More chains than this share one bar.
const MOST_BARS: usize = 8;

/// Shows how chains get on.
pub struct Display {
    kind: Kind,
    latest: Mutex<Latest>,
}

enum Kind {
    Quiet,
    Bars(Vec<ProgressBar>),
    Lines,
}

struct Latest {
    chains: Vec<Option<Progress>>,
    start: Instant,
    /// Transitions that were already made when this process began.
    before: u64,
    last_line: Instant,
}

impl Display {
    /// A display for chains that have already made `made` transitions of `total` each.
    pub fn new(quiet: bool, made: &[u64], total: u64) -> Self {
        let chains = made.len();
        let kind = if quiet {
            Kind::Quiet
        } else if std::io::stderr().is_terminal() {
            let bars = MultiProgress::new();
            let style = ProgressStyle::with_template(
                "{prefix:>9} {bar:24} {pos}/{len}  {per_sec}  {eta} left  {msg}",
            );
            let count = if chains > MOST_BARS { 1 } else { chains };
            let bar = |index: usize| {
                let length = if count == 1 {
                    total * chains as u64
                } else {
                    total
                };
                let bar = bars.add(ProgressBar::new(length));
                if let Ok(style) = &style {
                    bar.set_style(style.clone());
                }
                let position = if count == 1 {
                    made.iter().sum()
                } else {
                    made[index]
                };
                bar.set_position(position);
                bar.reset_eta();
                bar.set_prefix(if count == 1 {
                    "chains".to_owned()
                } else {
                    format!("chain {index}")
                });
                bar
            };
            Kind::Bars((0..count).map(bar).collect())
        } else {
            Kind::Lines
        };
        let now = Instant::now();
        let latest = Latest {
            chains: vec![None; chains],
            start: now,
            before: made.iter().sum(),
            last_line: now,
        };
        Self {
            kind,
            latest: Mutex::new(latest),
        }
    }

    /// Takes news from any thread.
    pub fn update(&self, progress: Progress) {
        let mut latest = self
            .latest
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        latest.chains[progress.chain] = Some(progress);
        match &self.kind {
            Kind::Quiet => {}
            Kind::Bars(bars) if bars.len() == latest.chains.len() => {
                bars[progress.chain].set_position(progress.transition);
                bars[progress.chain].set_message(in_words(&progress));
            }
            Kind::Bars(bars) => {
                bars[0].set_position(latest.made());
                bars[0].set_message(in_words(&progress));
            }
            Kind::Lines => {
                if latest.last_line.elapsed() >= LINE_EVERY {
                    latest.last_line = Instant::now();
                    to_stderr(&latest.line(&progress));
                }
            }
        }
    }

    /// Leaves the bars as they are.
    pub fn finish(&self) {
        if let Kind::Bars(bars) = &self.kind {
            bars.iter().for_each(ProgressBar::abandon);
        }
    }
}

impl Latest {
    fn made(&self) -> u64 {
        self.chains
            .iter()
            .flatten()
            .map(|chain| chain.transition)
            .sum()
    }

    fn line(&self, progress: &Progress) -> String {
        let total = progress.total * self.chains.len() as u64;
        let made = self.made();
        let rate = made.saturating_sub(self.before) as f64 / self.start.elapsed().as_secs_f64();
        let steps = match progress.news {
            News::Transitions { .. } => "transitions",
            News::Updates { .. } => "updates",
        };
        let left = total.saturating_sub(made) as f64 / rate;
        format!(
            "{made}/{total} {steps}, {rate:.1}/s, {} left; chain {}: {}",
            duration(left),
            progress.chain,
            in_words(progress)
        )
    }
}

fn in_words(progress: &Progress) -> String {
    let phase = if progress.is_warmup {
        "warm-up"
    } else {
        "sampling"
    };
    let step = progress
        .step_size
        .map(|step| format!(", step {}", number(step)))
        .unwrap_or_default();
    match progress.news {
        News::Transitions {
            acceptance_rate,
            divergences,
            ..
        } => {
            let diverged = match divergences {
                0 => String::new(),
                count => format!(", {count} diverging"),
            };
            format!("{phase}, acceptance {acceptance_rate:.2}{step}{diverged}")
        }
        News::Updates {
            epochs,
            train_nll,
            validation_nll,
        } => {
            let nll = |name: &str, value: Option<f64>| {
                value.map_or_else(String::new, |value| format!(", {name} NLL {value:.4}"))
            };
            let (train, validation) = (nll("train", train_nll), nll("validation", validation_nll));
            format!("epoch {epochs}{train}{validation}{step}")
        }
    }
}
