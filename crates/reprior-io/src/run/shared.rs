//! What the writers of a run share: the layout, and how far each chain has got.

use super::layout::{ROOT, StoreLayout};
use super::metadata::{self, to_bytes};
use super::{Files, RunError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Between two changes of the metadata while chains go on: each is a synced file for every variable.
const SHOWN_EVERY: Duration = Duration::from_secs(1);

/// What all writers of a run share. Its size does not depend on the number of draws.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) files: Files,
    pub(crate) layout: StoreLayout,
    progress: Mutex<DrawProgress>,
}

/// Per group: the draws that each chain has written, and the draws that the metadata show, since when.
#[derive(Debug)]
struct DrawProgress {
    written: Vec<Vec<u64>>,
    visible: Vec<u64>,
    shown: Vec<Option<Instant>>,
}

impl Shared {
    pub(crate) fn new(files: Files, layout: StoreLayout, visible: Vec<u64>) -> Self {
        let chains = layout.chains as usize;
        let written = visible.iter().map(|&draws| vec![draws; chains]).collect();
        let shown = vec![None; visible.len()];
        Self {
            files,
            layout,
            progress: Mutex::new(DrawProgress {
                written,
                visible,
                shown,
            }),
        }
    }

    /// A kill in the middle of a change leaves arrays that differ from the root: the root is right.
    pub(crate) fn write_all_lengths(&self) -> Result<(), RunError> {
        let progress = self.progress();
        (0..self.layout.groups.len()).try_for_each(|group| self.write_lengths(group, &progress))
    }

    fn progress(&self) -> MutexGuard<'_, DrawProgress> {
        // Counts are changed one at a time, so a panic elsewhere leaves nothing half done.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note that `chain` has `draws` draws of `group` on disk, and shows what all chains have unless that was done a moment
    /// ago: [`show`](Self::show) follows when the chain is flushed. What is gone is hidden at once.
    pub(crate) fn set_written(&self, group: usize, chain: u64, draws: u64) -> Result<(), RunError> {
        let mut progress = self.progress();
        progress.written[group][chain as usize] = draws;
        let was_just_shown = progress.shown[group].is_some_and(|at| at.elapsed() < SHOWN_EVERY);
        if was_just_shown && progress.of_all(group) > progress.visible[group] {
            return Ok(());
        }
        self.show_of(group, &mut progress)
    }

    /// Shows the draws of `group` that all chains have.
    pub(crate) fn show(&self, group: usize) -> Result<(), RunError> {
        self.show_of(group, &mut self.progress())
    }

    fn show_of(&self, group: usize, progress: &mut DrawProgress) -> Result<(), RunError> {
        let (all, before) = (progress.of_all(group), progress.visible[group]);
        if all == before {
            return Ok(());
        }
        progress.visible[group] = all;
        // chunks first, then what says that they are there
        let settled = self.files.settle();
        let lengths = settled.and_then(|()| self.write_lengths(group, progress));
        let shown = lengths.and_then(|()| {
            let root = metadata::root_document(&self.layout, &progress.visible);
            self.files.write(ROOT, &to_bytes(root))
        });
        match shown {
            Ok(()) => progress.shown[group] = Some(Instant::now()),
            Err(_) => progress.visible[group] = before,
        }
        shown
    }

    /// Brings the arrays' own metadata of `group` in line with the draws to show.
    fn write_lengths(&self, group: usize, progress: &DrawProgress) -> Result<(), RunError> {
        let layout = &self.layout.groups[group];
        for array in layout.variables.iter().chain(&layout.coordinates) {
            if array.draw_axis().is_some() {
                let document = metadata::array_document(array, progress.visible[group]);
                self.files
                    .write_changed(&array.document(&layout.name), &to_bytes(document))?;
            }
        }
        Ok(())
    }
}

impl DrawProgress {
    /// The draws of `group` that all chains have on disk.
    fn of_all(&self, group: usize) -> u64 {
        self.written[group].iter().copied().min().unwrap_or(0)
    }
}

/// Reads the description of a run's draws.
pub(crate) fn read_root(files: &Files) -> Result<(StoreLayout, Vec<u64>), RunError> {
    metadata::parse_root(&files.place(ROOT), &files.read_present(ROOT)?)
}
