//! Walks through the part of one array that is to be read, chunk by chunk.

use super::chunk::check_size;
use super::layout::{Array, GroupLayout};
use super::selection::Runs;
use super::values::{DataType, Number};
use super::{Files, RunError};
use std::ops::Range;

/// What to read of one array.
pub(crate) struct ReadPlan<'a> {
    pub(crate) files: &'a Files,
    pub(crate) group: &'a GroupLayout,
    pub(crate) array: &'a Array,
    pub(crate) data_type: DataType,
    pub(crate) chunk_bytes: u64,
    pub(crate) chunk_draws: u64,
    pub(crate) sampled: bool,
    pub(crate) chains: Range<u64>,
    pub(crate) draws: Range<u64>,
    pub(crate) runs: Runs,
}

impl ReadPlan<'_> {
    pub(crate) fn shape(&self) -> Vec<usize> {
        let length = |range: &Range<u64>| (range.end - range.start) as usize;
        let mut shape = Vec::new();
        if self.sampled {
            shape.extend([length(&self.chains), length(&self.draws)]);
        }
        shape.extend_from_slice(&self.runs.shape);
        shape
    }

    pub(crate) fn chunks(&self) -> Range<u64> {
        if self.draws.is_empty() {
            return 0..0;
        }
        self.draws.start / self.chunk_draws..self.draws.end.div_ceil(self.chunk_draws)
    }

    /// The name of a chunk's file, which is there and has the right size.
    pub(crate) fn check(&self, chain: u64, chunk: u64) -> Result<String, RunError> {
        let name = self.array.chunk(&self.group.name, chain, chunk);
        if !self.sampled && self.files.size(&name)?.is_none() {
            return Err(RunError::damaged(
                &self.files.place(&name),
                format!("the run has not written {:?} yet", self.array.name),
            ));
        }
        check_size(self.files, &name, self.chunk_bytes)?;
        Ok(name)
    }

    /// The error of a piece for which there is no memory.
    fn too_large(&self) -> RunError {
        RunError::request(format!(
            "a draw of the variable {:?} of shape {:?} does not fit into memory",
            self.array.name, self.runs.shape
        ))
    }

    pub(crate) fn run<T: Number>(
        &self,
        mut each: impl FnMut(u64, u64, &[T]),
    ) -> Result<(), RunError> {
        let mut bytes: Vec<u8> = Vec::new();
        let mut values: Vec<T> = Vec::new();
        for chain in self.chains.clone() {
            for chunk in self.chunks() {
                let name = self.check(chain, chunk)?;
                let mut file = self.files.open(&name)?;
                let first = chunk * self.chunk_draws;
                let draws =
                    first.max(self.draws.start)..(first + self.chunk_draws).min(self.draws.end);
                // Whole draws lie side by side and are read together; parts of draws one by one.
                let together = match self.runs.is_whole() {
                    true => draws.end - draws.start,
                    false => 1,
                };
                let size = self.data_type.size();
                let draw_bytes = self.chunk_bytes / self.chunk_draws;
                let span = self.runs.span().checked_mul(size);
                let read = span.and_then(|span| span.checked_mul(usize::try_from(together).ok()?));
                let (Some(span), Some(read)) = (span, read) else {
                    return Err(self.too_large());
                };
                // after the file's size was looked at: what a damaged description claims is not on disk
                bytes.clear();
                values.clear();
                if bytes.try_reserve_exact(read).is_err()
                    || values
                        .try_reserve_exact(self.runs.elements_picked())
                        .is_err()
                {
                    return Err(self.too_large());
                }
                bytes.resize(read, 0);
                let mut draw = draws.start;
                while draw < draws.end {
                    let start = (draw - first) * draw_bytes + (self.runs.start() * size) as u64;
                    file.read_at(start, &mut bytes)
                        .map_err(|error| self.files.error("read", &name, error))?;
                    for offset in 0..together {
                        let draw_start = span * offset as usize;
                        let draw_bytes = &bytes[draw_start..draw_start + span];
                        values.clear();
                        for run in self.runs.iter() {
                            let run = &draw_bytes[run.start * size..run.end * size];
                            T::decode(self.data_type, run, &mut values);
                        }
                        each(chain, draw + offset, &values);
                    }
                    draw += together;
                }
            }
        }
        Ok(())
    }
}
