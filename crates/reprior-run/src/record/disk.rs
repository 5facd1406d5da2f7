//! Whether the disk has room for what a run has still to write.

use std::path::Path;

use reprior_io::run::{Schema, free_bytes, overwritten_bytes};

use crate::failure::Failure;
use crate::words::bytes;

/// The run folder that a run is to be written into.
#[derive(Debug, Clone, Copy)]
pub enum Destination<'a> {
    /// Of a new run; an earlier one there is removed before anything is written, if it may be.
    New { out: &'a Path, overwrite: bool },
    /// Of a run that goes on.
    Resumed(&'a Path),
}

impl Destination<'_> {
    /// Refuses a run that the disk has no room for: of `schema`, with so many bytes of a checkpoint for each chain.
    ///
    /// # Errors
    /// A wrong request.
    pub fn check(self, schema: &Schema, checkpoint: u64) -> Result<(), Failure> {
        // an unreadable disk will say so itself when the folder is written to
        let free = |path: &Path| free_bytes(path).ok().flatten().unwrap_or(u64::MAX);
        match self {
            Self::New { out, overwrite } => {
                let whole = schema.bytes_on_disk().map_err(Failure::request)?;
                let checkpoints = checkpoint.saturating_mul(schema.chains);
                let freed = if overwrite {
                    overwritten_bytes(out).unwrap_or(0)
                } else {
                    0
                };
                let needed = whole.saturating_add(checkpoints);
                refuse(needed, free(out), freed, self)
            }
            Self::Resumed(run) => {
                let needed = schema.bytes_to_write(run, checkpoint);
                let needed = needed.map_err(Failure::request)?;
                refuse(needed, free(run), 0, self)
            }
        }
    }
}

/// Refuses where fewer bytes are `free` and `freed` than are `needed`.
fn refuse(needed: u64, free: u64, freed: u64, place: Destination<'_>) -> Result<(), Failure> {
    if needed <= free.saturating_add(freed) {
        return Ok(());
    }
    let [needed, free, freed] = [needed, free, freed].map(|count| bytes(count as f64));
    Err(Failure::Request(match place {
        Destination::Resumed(run) => format!(
            "the run has still to write {needed}, {free} are free at `{}`: make room there, or move the folder to a larger disk",
            run.display()
        ),
        Destination::New { out, overwrite } => {
            let and = if overwrite {
                format!(" and {freed} more once the run there is removed")
            } else {
                String::new()
            };
            format!(
                "the run folder will take {needed}, {free} are free at `{}`{and}; record less (--draws, --test, --keep, --keep-weights) or choose another --out",
                out.display()
            )
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_still_to_be_written_must_be_free() {
        let run = Path::new("runs/a");
        let new = |overwrite| Destination::New {
            out: run,
            overwrite,
        };
        // the last byte counts
        assert!(refuse(1000, 1000, 0, new(false)).is_ok());
        assert!(refuse(1001, 1000, 0, new(false)).is_err());
        // a run that is replaced makes room, one that is complete needs none
        assert!(refuse(1001, 900, 101, new(true)).is_ok());
        assert!(refuse(1002, 900, 101, new(true)).is_err());
        assert!(refuse(0, 0, 0, Destination::Resumed(run)).is_ok());
        assert!(refuse(u64::MAX, u64::MAX, u64::MAX, new(true)).is_ok());
    }

    #[test]
    fn a_refusal_says_what_can_be_done() {
        let run = Path::new("runs/a");
        let message = |place| match refuse(3_000_000, 2_000_000, 512, place) {
            Err(Failure::Request(message)) => message,
            other => format!("{other:?}"),
        };
        let resumed = message(Destination::Resumed(run));
        assert!(
            resumed.contains("still to write 3.0 MB") && resumed.contains("make room"),
            "{resumed}"
        );
        // what is recorded is fixed by then
        assert!(!resumed.contains("--draws"), "{resumed}");
        let replaced = message(Destination::New {
            out: run,
            overwrite: true,
        });
        assert!(
            replaced.contains("once the run there is removed"),
            "{replaced}"
        );
    }
}
