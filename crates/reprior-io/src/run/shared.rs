//! What the writers of a run share: the layout, and how far each chain has got.

use super::layout::{ROOT, StoreLayout};
use super::metadata::{self, to_bytes};
use super::{Files, RunError};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What all writers of a run share. Its size does not depend on the number of draws.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) files: Files,
    pub(crate) layout: StoreLayout,
    progress: Mutex<DrawProgress>,
}

/// Per group: the draws that each chain has written, and the draws that the metadata show.
#[derive(Debug)]
struct DrawProgress {
    written: Vec<Vec<u64>>,
    visible: Vec<u64>,
}

impl Shared {
    pub(crate) fn new(files: Files, layout: StoreLayout, visible: Vec<u64>) -> Self {
        let chains = layout.chains as usize;
        let written = visible.iter().map(|&draws| vec![draws; chains]).collect();
        Self {
            files,
            layout,
            progress: Mutex::new(DrawProgress { written, visible }),
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

    /// Takes note that `chain` has `draws` draws of `group` on disk, and shows what all chains have.
    pub(crate) fn set_written(&self, group: usize, chain: u64, draws: u64) -> Result<(), RunError> {
        let mut progress = self.progress();
        let written = &mut progress.written[group];
        written[chain as usize] = draws;
        let all = written.iter().copied().min().unwrap_or(0);
        let before = progress.visible[group];
        if all == before {
            return Ok(());
        }
        progress.visible[group] = all;
        let shown = self.write_lengths(group, &progress).and_then(|()| {
            let root = metadata::root_document(&self.layout, &progress.visible);
            self.files.write(ROOT, &to_bytes(root))
        });
        if shown.is_err() {
            progress.visible[group] = before;
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

/// Reads the description of a run's draws.
pub(crate) fn read_root(files: &Files) -> Result<(StoreLayout, Vec<u64>), RunError> {
    metadata::parse_root(&files.place(ROOT), &files.read_present(ROOT)?)
}
