//! Progress on stderr: bars where it is a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use reprior::chain::{Progress, ProgressDetails};
use reprior_run::words::{duration, number};
use reprior_run::{Failure, RhatSoFar, Watcher};

use crate::stop::catch_ctrl_c;
use crate::table::to_stderr;

/// Time between lines where stderr is not a terminal.
const LINE_EVERY: Duration = Duration::from_secs(15);
/// More chains than this share one bar.
const MOST_BARS: usize = 8;

/// Shows how chains get on.
pub struct RunDisplay {
    is_quiet: bool,
    shown: Mutex<Option<Shown>>,
}

enum ProgressKind {
    Bars(Vec<ProgressBar>),
    Lines,
}

struct Shown {
    kind: ProgressKind,
    chains: Vec<Option<Progress>>,
    so_far: RhatSoFar,
    start: Instant,
    /// Transitions that were already made when this process began.
    before: u64,
    last_line: Instant,
}

impl RunDisplay {
    /// A display, or with `is_quiet` none.
    pub fn new(is_quiet: bool) -> Self {
        Self {
            is_quiet,
            shown: Mutex::new(None),
        }
    }

    fn shown(&self) -> MutexGuard<'_, Option<Shown>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher for RunDisplay {
    fn note(&self, text: &str) {
        if !self.is_quiet {
            to_stderr(text);
        }
    }

    fn begin(&self, made: &[u64], total: u64) -> Result<(), Failure> {
        catch_ctrl_c()?;
        if !self.is_quiet {
            *self.shown() = Some(Shown::new(made, total));
        }
        Ok(())
    }

    fn update(&self, progress: Progress) {
        let mut shown = self.shown();
        let Some(shown) = shown.as_mut() else { return };
        shown.chains[progress.chain] = Some(progress);
        shown.so_far.update(&progress);
        let agreement = shown.agreement();
        match &shown.kind {
            ProgressKind::Bars(bars) if bars.len() == shown.chains.len() => {
                // where time decides, the length is an estimate
                bars[progress.chain].set_length(progress.total);
                bars[progress.chain].set_position(progress.transition);
                let is_first = progress.chain == 0;
                let agreement = if is_first { agreement.as_str() } else { "" };
                bars[progress.chain].set_message(in_words(&progress) + agreement);
            }
            ProgressKind::Bars(bars) => {
                bars[0].set_length(progress.total * shown.chains.len() as u64);
                bars[0].set_position(shown.made());
                bars[0].set_message(in_words(&progress) + &agreement);
            }
            ProgressKind::Lines => {
                if shown.last_line.elapsed() >= LINE_EVERY {
                    shown.last_line = Instant::now();
                    to_stderr(&(shown.line(&progress) + &agreement));
                }
            }
        }
    }

    fn end(&self) {
        if let Some(Shown {
            kind: ProgressKind::Bars(bars),
            ..
        }) = &*self.shown()
        {
            bars.iter().for_each(ProgressBar::abandon);
        }
    }
}

impl Shown {
    /// For chains that have already made `made` transitions of `total` each.
    fn new(made: &[u64], total: u64) -> Self {
        let kind = match std::io::stderr().is_terminal() {
            true => ProgressKind::Bars(bars(made, total)),
            false => ProgressKind::Lines,
        };
        let now = Instant::now();
        Self {
            kind,
            chains: vec![None; made.len()],
            so_far: RhatSoFar::new(made.len()),
            start: now,
            before: made.iter().sum(),
            last_line: now,
        }
    }

    fn made(&self) -> u64 {
        self.chains
            .iter()
            .flatten()
            .map(|chain| chain.transition)
            .sum()
    }

    /// How far chains agree so far, where that can be said.
    fn agreement(&mut self) -> String {
        let rhat = self.so_far.value();
        rhat.map_or_else(String::new, |rhat| {
            format!("; R-hat of the likelihood {rhat:.2} so far")
        })
    }

    fn line(&self, progress: &Progress) -> String {
        let total = progress.total * self.chains.len() as u64;
        let made = self.made();
        let rate = made.saturating_sub(self.before) as f64 / self.start.elapsed().as_secs_f64();
        let steps = match progress.news {
            ProgressDetails::Transitions { .. } => "transitions",
            ProgressDetails::Updates { .. } => "updates",
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

/// One bar a chain, or one for all if they are many.
fn bars(made: &[u64], total: u64) -> Vec<ProgressBar> {
    let chains = made.len();
    let bars = MultiProgress::new();
    let style = ProgressStyle::with_template(
        "{prefix:>9} {bar:24} {pos}/{len}  {per_sec}  {eta} left  {msg}",
    );
    let count = if chains > MOST_BARS { 1 } else { chains };
    let bar = |index: usize| {
        let (length, position, name) = match count {
            1 => (
                total * chains as u64,
                made.iter().sum(),
                "chains".to_owned(),
            ),
            _ => (total, made[index], format!("chain {index}")),
        };
        let bar = bars.add(ProgressBar::new(length));
        if let Ok(style) = &style {
            bar.set_style(style.clone());
        }
        bar.set_position(position);
        bar.reset_eta();
        bar.set_prefix(name);
        bar
    };
    (0..count).map(bar).collect()
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
        ProgressDetails::Transitions {
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
        ProgressDetails::Updates {
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

/// Shows how far work over rows is that may take some seconds: a bar where stderr is a terminal, a line now and then elsewhere.
pub struct RowsDisplay {
    what: &'static str,
    bar: Option<ProgressBar>,
    last_line: Instant,
}

impl RowsDisplay {
    /// Of rows that this is done with.
    pub fn new(what: &'static str) -> Self {
        Self {
            what,
            bar: None,
            last_line: Instant::now(),
        }
    }

    /// So many rows of all.
    pub fn update(&mut self, done: u64, total: u64) {
        if std::io::stderr().is_terminal() {
            let bar = self.bar.get_or_insert_with(|| ProgressBar::new(total));
            bar.set_length(total);
            bar.set_position(done);
            if done >= total {
                bar.finish_and_clear();
                self.bar = None;
            }
        } else if self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            to_stderr(&format!("{done} of {total} {}", self.what));
        }
    }
}
