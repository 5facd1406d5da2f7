//! What the writers of a run share: the layout, and how far each chain has got.

use super::layout::{ROOT, StoreLayout};
use super::metadata::{self, to_bytes};
use super::{Files, RunError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// At least between two changes of the metadata while chains go on: each is a file for every variable.
const SHOWN_EVERY: Duration = Duration::from_secs(1);
/// The next one comes after so many times what one took: on a slow disk, or one that many share, no more than a twentieth of the time goes into them.
const SHOWN_AFTER: u32 = 20;

/// What all writers of a run share. Its size does not depend on the number of draws.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) files: Files,
    pub(crate) layout: StoreLayout,
    progress: Mutex<DrawProgress>,
}

/// Per group: the draws that each chain has written, the draws that the metadata show, and when they may show more.
#[derive(Debug)]
struct DrawProgress {
    written: Vec<Vec<u64>>,
    visible: Vec<u64>,
    next: Vec<Option<Instant>>,
}

impl Shared {
    pub(crate) fn new(files: Files, layout: StoreLayout, visible: Vec<u64>) -> Self {
        let chains = layout.chains as usize;
        let written = visible.iter().map(|&draws| vec![draws; chains]).collect();
        let next = vec![None; visible.len()];
        Self {
            files,
            layout,
            progress: Mutex::new(DrawProgress {
                written,
                visible,
                next,
            }),
        }
    }

    /// A kill in the middle of a change leaves arrays that differ from the root: the root is right.
    pub(crate) fn write_all_lengths(&self) -> Result<(), RunError> {
        let progress = self.progress();
        let mut groups = 0..self.layout.groups.len();
        groups.try_for_each(|group| self.write_lengths(group, &progress))?;
        self.files.settle()
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
        let is_too_soon = progress.next[group].is_some_and(|next| Instant::now() < next);
        if is_too_soon && progress.of_all(group) > progress.visible[group] {
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
        let begun = Instant::now();
        progress.visible[group] = all;
        // chunks first, then what says that they are there; the root says it of all arrays
        let settled = self.files.settle();
        let lengths = settled.and_then(|()| self.write_lengths(group, progress));
        let settled = lengths.and_then(|()| self.files.settle());
        let shown = settled.and_then(|()| {
            let root = metadata::root_document(&self.layout, &progress.visible);
            self.files.write(ROOT, &to_bytes(root))
        });
        match shown {
            Ok(()) => {
                let wait = SHOWN_EVERY.max(SHOWN_AFTER * begun.elapsed());
                progress.next[group] = Some(Instant::now() + wait);
            }
            Err(_) => progress.visible[group] = before,
        }
        shown
    }

    /// Brings the arrays' own metadata of `group` in line with the draws to show, unsettled.
    fn write_lengths(&self, group: usize, progress: &DrawProgress) -> Result<(), RunError> {
        let layout = &self.layout.groups[group];
        for array in layout.variables.iter().chain(&layout.coordinates) {
            if array.draw_axis().is_some() {
                let document = metadata::array_document(array, progress.visible[group]);
                self.files
                    .write_changed_unsettled(&array.document(&layout.name), &to_bytes(document))?;
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
