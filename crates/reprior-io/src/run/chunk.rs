//! The chunk of one variable in memory, and its file.

use super::layout::Array;
use super::values::{DataType, Values};
use super::{Files, RunError};

/// The chunk of one variable that is being filled.
#[derive(Debug)]
pub(crate) struct Chunk {
    data_type: DataType,
    /// Draws that a chunk holds.
    pub(crate) capacity: u64,
    /// Bytes of one draw.
    pub(crate) draw_bytes: usize,
    /// The bytes of the whole chunk.
    pub(crate) bytes: Vec<u8>,
    /// Draws of the chain that are written.
    pub(crate) written: u64,
}

impl Chunk {
    /// The chunk in which draw number `draws` goes, with the draws before it in that chunk read.
    pub(crate) fn restore(
        files: &Files,
        array: &Array,
        group: &str,
        chain: u64,
        draws: u64,
    ) -> Result<Self, RunError> {
        let data_type = array.data_type()?;
        let size = array.chunk_bytes().unwrap_or(u64::MAX);
        let capacity = array.chunk_shape.get(1).copied().unwrap_or(1);
        for index in 0..draws.div_ceil(capacity) {
            check_size(files, &array.chunk(group, chain, index), size)?;
        }
        let mut bytes = Vec::new();
        let length = usize::try_from(size).ok();
        let reserved = length.filter(|&length| bytes.try_reserve_exact(length).is_ok());
        let Some(length) = reserved else {
            return Err(RunError::request(format!(
                "a chunk of the variable {:?} takes {size} bytes, more than there is memory",
                array.name
            )));
        };
        bytes.resize(length, 0);
        let draw_bytes = length / capacity as usize;
        let present = (draws % capacity) as usize * draw_bytes;
        let (before, after) = bytes.split_at_mut(present);
        if present > 0 {
            let name = array.chunk(group, chain, draws / capacity);
            let read = files.open(&name)?.read_at(0, before);
            read.map_err(|error| files.error("read", &name, error))?;
        }
        data_type.fill(after);
        Ok(Self {
            data_type,
            capacity,
            draw_bytes,
            bytes,
            written: draws,
        })
    }

    pub(crate) fn check(&self, array: &Array, values: &Values<'_>) -> Result<(), RunError> {
        let expected = self.draw_bytes / self.data_type.size();
        if values.data_type() == self.data_type && values.len() == expected {
            return Ok(());
        }
        Err(RunError::request(format!(
            "a draw of the variable {:?} has {expected} values of type {}, not {} of type {}",
            array.name,
            self.data_type.name(),
            values.len(),
            values.data_type().name()
        )))
    }

    /// Puts the draw number `draws` into its place.
    pub(crate) fn push(&mut self, draws: u64, values: &Values<'_>) {
        values.encode(self.place_of(draws));
    }

    /// The same of a draw's bytes.
    pub(crate) fn push_bytes(&mut self, draws: u64, bytes: &[u8]) {
        self.place_of(draws).copy_from_slice(bytes);
    }

    fn place_of(&mut self, draws: u64) -> &mut [u8] {
        let position = (draws % self.capacity) as usize;
        if position == 0 {
            self.data_type.fill(&mut self.bytes);
        }
        let start = position * self.draw_bytes;
        &mut self.bytes[start..start + self.draw_bytes]
    }
}

/// Refuses a chunk that is missing or has the wrong size.
pub(crate) fn check_size(files: &Files, name: &str, expected: u64) -> Result<(), RunError> {
    let what = match files.size(name)? {
        Some(size) if size == expected => return Ok(()),
        Some(size) => format!("has {size} bytes instead of {expected}"),
        None => "is missing".to_owned(),
    };
    Err(RunError::damaged(
        &files.place(name),
        format!("this chunk of draws {what}: the run cannot be read or resumed from here"),
    ))
}
