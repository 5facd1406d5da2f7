//! Draws laid out anew for another number of draws: a run that ends earlier than planned, or goes on for longer.
//!
//! The new layout is written beside the old one, in `RUN/next/draws.zarr`, and then takes its place. In between the caller writes
//! its settings, which decide: [`take_over`] on opening a run finishes what a kill interrupted after that, and forgets what it
//! interrupted before. Draws and their bytes stay; what differs is their number and the length of chunks.

use super::chunk::{Chunk, check_size};
use super::cursor::Cursor;
use super::folder::RunFolder;
use super::layout::{Array, DRAWS, GroupLayout, ROOT, StoreLayout};
use super::schema::Schema;
use super::shared::read_root;
use super::store::DrawStore;
use super::{Files, RunError};
use std::sync::Arc;

/// The folder of a layout that is to take the old one's place.
pub(crate) const NEXT: &str = "next";

/// A layout that is ready to take the old one's place.
#[must_use = "the draws are in the run once it has taken over"]
#[derive(Debug)]
pub struct NextLayout(Files);

impl NextLayout {
    /// Copies the draws of chains that are at these cursors into the layout of another schema: the same groups and variables, with
    /// other numbers of draws. Groups without draws are copied as far as they are written.
    ///
    /// Cost: every chunk read and written once; memory of two chunks.
    ///
    /// # Errors
    /// [`RunError::Request`] for fewer draws than there are, or another spacing of what is there; [`RunError::Damaged`];
    /// [`RunError::Io`].
    pub fn write(
        folder: &RunFolder,
        schema: &Schema,
        cursors: &[Cursor],
    ) -> Result<Self, RunError> {
        let files = folder.files();
        let (old, _) = read_root(files)?;
        files.remove(NEXT)?;
        let next = files.within(NEXT);
        let store = DrawStore::create_in(&next, schema)?;
        let layout = StoreLayout::from_schema(schema)?;
        for group in &layout.groups {
            let Ok((_, before)) = old.group(&group.name) else {
                continue;
            };
            match group.draws {
                None => copy_whole(files, &next, before, group)?,
                Some(planned) => {
                    let at = cursors.iter().map(|cursor| cursor.draws(&group.name));
                    for (chain, draws) in at.enumerate() {
                        if draws > planned {
                            return Err(RunError::request(format!(
                                "chain {chain} has {draws} draws of the group {:?} already, more than {planned}",
                                group.name
                            )));
                        }
                        // of a group without any the variables may have other shapes
                        if draws > 0 {
                            copy_draws(files, &next, [before, group], chain as u64, draws)?;
                        }
                    }
                }
            }
        }
        for (chain, cursor) in cursors.iter().enumerate() {
            // shows what is there
            store.writer_at(chain as u64, cursor)?;
        }
        Ok(Self(next))
    }

    /// Of draws in the folder of a next layout.
    pub(crate) fn of(next: Files) -> Self {
        Self(next)
    }

    /// Takes the old layout's place, if there is one.
    ///
    /// # Errors
    /// [`RunError::Io`].
    pub fn take_over(self, folder: &RunFolder) -> Result<(), RunError> {
        let files = folder.files();
        files.remove(DRAWS)?;
        files.take_from(&self.0, NEXT, DRAWS)
    }
}

/// What a kill left of a change of layout: finished if the run's settings were written, which ask for `schema`, and forgotten otherwise.
///
/// # Errors
/// [`RunError::Request`] when the schema contradicts itself; [`RunError::Io`].
pub fn take_over(folder: &RunFolder, schema: &Schema) -> Result<(), RunError> {
    let files = folder.files();
    let next = files.within(NEXT);
    let wanted = StoreLayout::from_schema(schema)?;
    match next.contains(ROOT) && read_root(&next).is_ok_and(|(layout, _)| layout.is_like(&wanted)) {
        true => NextLayout(next).take_over(folder),
        false => files.remove(NEXT),
    }
}

/// Copies what is written of a group without draws.
fn copy_whole(
    from: &Files,
    to: &Files,
    before: &GroupLayout,
    group: &GroupLayout,
) -> Result<(), RunError> {
    for array in &group.variables {
        if before.variable(&array.name).is_ok_and(|old| old == array) {
            let name = array.chunk(&group.name, 0, 0);
            if let Some(bytes) = from.read(&name)? {
                to.write(&name, &bytes)?;
            }
        }
    }
    Ok(())
}

/// Copies the first draws of a chain.
fn copy_draws(
    from: &Files,
    to: &Files,
    [before, group]: [&GroupLayout; 2],
    chain: u64,
    draws: u64,
) -> Result<(), RunError> {
    for array in &group.variables {
        let old = before.variable(&array.name)?;
        if !is_same_draw(old, array) {
            return Err(RunError::request(format!(
                "a draw of the variable {:?} would have another shape or type",
                array.name
            )));
        }
        let mut target = Chunk::restore(to, array, &group.name, chain, 0)?;
        let (capacity, size) = (old.chunk_shape[1], old.chunk_bytes().unwrap_or(u64::MAX));
        let mut source = Arc::default();
        for draw in 0..draws {
            let within = draw % capacity;
            if within == 0 {
                let name = old.chunk(&group.name, chain, draw / capacity);
                check_size(from, &name, size)?;
                source = from.read_present(&name)?;
            }
            let start = within as usize * target.draw_bytes;
            target.push_bytes(draw, &source[start..start + target.draw_bytes]);
            if (draw + 1) % target.capacity == 0 || draw + 1 == draws {
                let name = array.chunk(&group.name, chain, draw / target.capacity);
                to.write(&name, &target.bytes)?;
            }
        }
    }
    Ok(())
}

/// Whether a draw of both has the same bytes.
fn is_same_draw(one: &Array, other: &Array) -> bool {
    one.stored == other.stored && one.shape.get(2..) == other.shape.get(2..)
}
