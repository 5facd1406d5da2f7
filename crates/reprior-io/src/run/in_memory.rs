//! Files in memory, each replaced as a whole.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Each file by its name. Who has read one goes on with the bytes that it had.
type Named = BTreeMap<String, Arc<Vec<u8>>>;

/// The files of a run in memory, which threads may share.
#[derive(Default)]
pub(crate) struct InMemory(Mutex<Named>);

impl InMemory {
    fn files(&self) -> MutexGuard<'_, Named> {
        // A file is replaced in one step, so a panic elsewhere leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<Vec<u8>>> {
        self.files().get(name).cloned()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.files().keys().cloned().collect()
    }

    pub(crate) fn put(&self, name: &str, bytes: Vec<u8>) {
        self.files().insert(name.to_owned(), Arc::new(bytes));
    }

    /// Puts a copy of `bytes`, if there is memory for it.
    pub(crate) fn put_copy(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut copy = Vec::new();
        copy.try_reserve_exact(bytes.len())?;
        copy.extend_from_slice(bytes);
        self.put(name, copy);
        Ok(())
    }

    /// Removes the file `name`, or all files of the folder of that name.
    pub(crate) fn remove(&self, name: &str) {
        let is_in = |key: &str| {
            let rest = key.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.files().retain(|key, _| !is_in(key));
    }

    /// The files of this moment, whoever writes from now on. Memory: their names.
    pub(crate) fn at_this_moment(&self) -> Self {
        Self(Mutex::new(self.files().clone()))
    }
}

/// Fills `bytes` with those of `file` from `start` on.
pub(crate) fn read_at(file: &[u8], start: u64, bytes: &mut [u8]) -> io::Result<()> {
    let start = usize::try_from(start).ok();
    let part = start.and_then(|start| file.get(start..)?.get(..bytes.len()));
    bytes.copy_from_slice(part.ok_or(ErrorKind::UnexpectedEof)?);
    Ok(())
}
