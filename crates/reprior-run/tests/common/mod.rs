//! Settings from flags, and runs that say nothing or are stopped at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Args, FromArgMatches};
use reprior::chain::Progress;
use reprior_run::{Flags, Options, Settings, Watcher};

/// Says nothing.
pub struct Silent;
impl Watcher for Silent {}

/// Stops the run at the first news of it.
pub struct Impatient<'a>(pub &'a AtomicBool);
impl Watcher for Impatient<'_> {
    fn update(&self, _: Progress) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// With a checkpoint after every transition.
pub fn options<'a>(threads: usize, stop: &'a AtomicBool, watcher: &'a dyn Watcher) -> Options<'a> {
    Options {
        threads: Some(threads),
        checkpoint_every: Duration::ZERO,
        stop,
        watcher,
        more: None,
        is_part: false,
    }
}

/// What the flags of `sample` say, split at white space.
pub fn settings(flags: &str) -> Settings {
    let command = Flags::augment_args(clap::Command::new("test"));
    let words = std::iter::once("test").chain(flags.split_whitespace());
    let matches = command.try_get_matches_from(words).unwrap();
    Flags::from_arg_matches(&matches)
        .unwrap()
        .settings()
        .unwrap()
}
