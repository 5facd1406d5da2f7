//! Writes the draws of one chain, chunk by chunk.
//!
//! Each variable has one chunk in memory. A full chunk goes to disk at once, a partial one at
//! [`flush`](DrawWriter::flush), padded with NaN (zero for integers) to its full size. Chunks of
//! different variables hold different numbers of draws; a draw is shown to readers once all variables
//! of its group have it on disk, in all chains: at the next flush, and between flushes about once a second.
//!
//! The order that makes a killed run resume exactly: chunks first, then what says that they are there,
//! which is the metadata for a reader and the checkpoint for the chain. New chunks are many small files: they are made durable
//! together, before something says that they are there. [`checkpoint`](DrawWriter::checkpoint) keeps to it.

use super::RunError;
use super::checkpoint;
use super::chunk::Chunk;
use super::cursor::Cursor;
use super::shared::Shared;
use super::tensor_file::Tensor;
use super::values::Values;
use std::sync::Arc;

/// Writes the draws of one chain. Can be sent to the thread that drives the chain.
///
/// Memory: one chunk of each sampled variable ([`Schema::bytes_in_memory`](super::Schema::bytes_in_memory)),
/// however long the run.
#[derive(Debug)]
pub struct DrawWriter {
    shared: Arc<Shared>,
    chain: u64,
    groups: Vec<GroupWriter>,
    /// Whether there are chunks that may not survive a loss of power.
    is_unsettled: bool,
}

/// The chunks of one sampled group.
#[derive(Debug)]
struct GroupWriter {
    /// Position of the group in the layout.
    index: usize,
    /// Draws pushed.
    draws: u64,
    chunks: Vec<Chunk>,
}

impl DrawWriter {
    pub(crate) fn new(shared: Arc<Shared>, chain: u64, cursor: &Cursor) -> Result<Self, RunError> {
        let layout = &shared.layout;
        if chain >= layout.chains {
            return Err(RunError::request(format!(
                "there is no chain {chain}: the run has {}, counted from 0",
                layout.chains
            )));
        }
        let mut groups = Vec::new();
        for (index, group) in layout.groups.iter().enumerate() {
            let Some(planned) = group.draws else { continue };
            let draws = cursor.draws(&group.name);
            if draws > planned {
                return Err(RunError::request(format!(
                    "the cursor is at draw {draws} of the group {:?}, which has {planned}",
                    group.name
                )));
            }
            let chunks = group
                .variables
                .iter()
                .map(|array| Chunk::restore(&shared.files, array, &group.name, chain, draws))
                .collect::<Result<_, _>>()?;
            groups.push(GroupWriter {
                index,
                draws,
                chunks,
            });
        }
        // Groups come and go with the number of draws that is planned; draws do not.
        let is_sampled = |name: &str| {
            layout
                .group(name)
                .is_ok_and(|(_, group)| group.draws.is_some())
        };
        let mut with_draws = cursor.draws.iter().filter(|(_, draws)| **draws > 0);
        if let Some((name, _)) = with_draws.find(|(name, _)| !is_sampled(name)) {
            return Err(RunError::request(format!(
                "the cursor has draws of the group {name:?}, which the run does not sample"
            )));
        }
        // Before anything beyond the cursor is overwritten, it is no longer shown.
        for group in &groups {
            shared.set_written(group.index, chain, group.draws)?;
        }
        Ok(Self {
            shared,
            chain,
            groups,
            is_unsettled: false,
        })
    }

    /// The chain that this writes.
    pub fn chain(&self) -> u64 {
        self.chain
    }

    /// How many draws have been pushed, for the checkpoint.
    pub fn cursor(&self) -> Cursor {
        let groups = &self.shared.layout.groups;
        Cursor {
            draws: self
                .groups
                .iter()
                .map(|group| (groups[group.index].name.clone(), group.draws))
                .collect(),
        }
    }

    /// Appends one draw of `group`: the values of each variable, in the schema's order.
    ///
    /// Cost: a copy into memory; when a chunk is full, also its writing.
    ///
    /// # Errors
    /// [`RunError::Request`] for an unknown group, a wrong number of variables, type or length, or more draws than
    /// planned: nothing is appended then. [`RunError::Io`] when a full chunk cannot be written: the draw is appended
    /// in memory, and `flush` tries again.
    pub fn push(&mut self, group: &str, values: &[Values<'_>]) -> Result<(), RunError> {
        let (index, layout) = self.shared.layout.group(group)?;
        let planned = layout.draws.unwrap_or(0);
        let writer = self.groups.iter_mut().find(|writer| writer.index == index);
        let Some(writer) = writer else {
            return Err(RunError::request(format!(
                "the group {group:?} has no draws"
            )));
        };
        if writer.draws == planned {
            return Err(RunError::request(format!(
                "the group {group:?} has all of its {planned} draws"
            )));
        }
        if values.len() != writer.chunks.len() {
            return Err(RunError::request(format!(
                "the group {group:?} has {} variables, but values of {} were given",
                writer.chunks.len(),
                values.len()
            )));
        }
        for ((chunk, array), values) in writer.chunks.iter().zip(&layout.variables).zip(values) {
            chunk.check(array, values)?;
        }
        self.is_unsettled = true;
        // Only a chunk whose writing failed is both full and unwritten here.
        writer.write_full(&self.shared, self.chain)?;
        for (chunk, values) in writer.chunks.iter_mut().zip(values) {
            chunk.push(writer.draws, values);
        }
        writer.draws += 1;
        writer.write_full(&self.shared, self.chain)
    }

    /// Writes what is only in memory. Readers see it once every chain has got as far.
    ///
    /// Cost: at most one chunk of each variable, and the lengths of all, each synced; nothing where nothing is new.
    ///
    /// # Errors
    /// [`RunError::Io`] when the disk refuses; what is in memory stays there, so that it can be tried again.
    pub fn flush(&mut self) -> Result<(), RunError> {
        for group in &mut self.groups {
            group.write(&self.shared, self.chain, |_, _| true)?;
            self.shared.show(group.index)?;
        }
        Ok(())
    }

    /// Writes what is only in memory, then replaces the chain's checkpoint: [`checkpoint::load`] gives back the
    /// `document`, the `tensors` and the cursor from which [`writer_at`](super::DrawStore::writer_at) goes on.
    ///
    /// JSON has no infinities and no NaN: numbers of `document` that may be such belong into a tensor. All others come
    /// back bit for bit. Cost: that of [`flush`](Self::flush).
    ///
    /// # Errors
    /// [`RunError::Request`] for two tensors of one name or a shape that contradicts the values; [`RunError::Io`].
    pub fn checkpoint(
        &mut self,
        document: &serde_json::Value,
        tensors: &[Tensor<'_>],
    ) -> Result<(), RunError> {
        self.flush()?;
        if self.is_unsettled {
            self.shared.files.settle()?;
            self.is_unsettled = false;
        }
        checkpoint::save(
            &self.shared.files,
            self.chain,
            &self.cursor(),
            document,
            tensors,
        )
    }
}

impl GroupWriter {
    fn write_full(&mut self, shared: &Shared, chain: u64) -> Result<(), RunError> {
        self.write(shared, chain, |chunk, draws| {
            draws.is_multiple_of(chunk.capacity)
        })
    }

    /// Writes the chunks that have unwritten draws and that `select` picks; then notes what all variables have.
    fn write(
        &mut self,
        shared: &Shared,
        chain: u64,
        select: impl Fn(&Chunk, u64) -> bool,
    ) -> Result<(), RunError> {
        let layout = &shared.layout.groups[self.index];
        let mut changed = false;
        for (chunk, array) in self.chunks.iter_mut().zip(&layout.variables) {
            if chunk.written < self.draws && select(chunk, self.draws) {
                let index = (self.draws - 1) / chunk.capacity;
                let name = array.chunk(&layout.name, chain, index);
                match chunk.written <= index * chunk.capacity {
                    true => shared.files.write_unsettled(&name, &chunk.bytes)?,
                    // a checkpoint may need what the file has already
                    false => shared.files.write(&name, &chunk.bytes)?,
                }
                chunk.written = self.draws;
                changed = true;
            }
        }
        if !changed {
            return Ok(());
        }
        let written = self.chunks.iter().map(|chunk| chunk.written).min();
        shared.set_written(self.index, chain, written.unwrap_or(self.draws))
    }
}
