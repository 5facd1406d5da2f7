//! What a run takes: memory, disk, operations; and the check that comes before anything is allocated.

use reprior_io::memory;
use reprior_io::run::Schema;
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::problem::Problem;
use crate::record::{Destination, Keeping, megabytes};
use crate::settings::{Nature, Settings};
use crate::words::bytes;

/// What a run takes.
pub struct Plan {
    pub(crate) schema: Schema,
    /// Bytes of each chain's checkpoint.
    pub(crate) checkpoint_bytes: u64,
    /// Bytes that the run folder holds of each chain besides draws.
    pub(crate) kept_bytes: u64,
    /// Bytes of memory that it needs.
    pub memory_bytes: u64,
    /// Bytes of memory that are free.
    pub available_bytes: u64,
    /// What would fit; said after what does not. Empty where all fits.
    pub way_out: String,
    /// What there is to say of it: names and values.
    pub rows: Vec<[String; 2]>,
    /// The same as JSON.
    pub document: Map<String, Value>,
}

impl Plan {
    /// Of a run that records so much and needs so much memory; `way_out` says what fits into so many bytes.
    pub(crate) fn new(
        schema: Schema,
        [memory_bytes, checkpoint_bytes]: [u64; 2],
        way_out: impl FnOnce(u64) -> String,
    ) -> Self {
        let available_bytes = available_memory();
        let fits = memory_bytes <= available_bytes;
        let document = [
            ("memory_bytes", json!(memory_bytes)),
            ("memory_bytes_available", json!(available_bytes)),
            ("fits", json!(fits)),
        ];
        Self {
            schema,
            checkpoint_bytes,
            kept_bytes: 0,
            memory_bytes,
            available_bytes,
            way_out: match fits {
                true => String::new(),
                false => way_out(available_bytes),
            },
            rows: Vec::new(),
            document: document
                .map(|(key, value)| (key.to_owned(), value))
                .into_iter()
                .collect(),
        }
    }

    /// Whether there is memory enough.
    pub fn fits(&self) -> bool {
        self.memory_bytes <= self.available_bytes
    }

    /// Says one thing more.
    pub(crate) fn say(&mut self, name: &str, value: impl ToString) {
        self.rows.push([name.to_owned(), value.to_string()]);
    }

    /// Says one thing more in JSON.
    pub(crate) fn note(&mut self, key: &str, value: impl Into<Value>) {
        self.document.insert(key.to_owned(), value.into());
    }

    /// Says what memory it takes in all, in the words of a table.
    pub(crate) fn say_memory(&mut self, name: &str) {
        let [needed, free] =
            [self.memory_bytes, self.available_bytes].map(|count| bytes(count as f64));
        self.say(name, format!("{needed} of {free} free"));
    }

    /// Says what it takes on disk, and how many draws it keeps whole.
    ///
    /// # Errors
    /// A run so large that its size cannot be counted.
    pub(crate) fn say_disk(&mut self, problem: &Problem) -> Result<(), Failure> {
        let folder = self.schema.bytes_on_disk().map_err(Failure::request)?;
        let kept = self.kept_bytes.saturating_mul(self.schema.chains);
        let folder = folder.saturating_add(kept);
        let checkpoints = self.checkpoint_bytes.saturating_mul(self.schema.chains);
        let disk = folder.saturating_add(checkpoints);
        let schedule = problem.settings.schedule();
        let keeping = Keeping::new(&problem.settings);
        let predictions = match problem.description.test_rows {
            0 => 0,
            _ => keeping.predictions(schedule.draws),
        };
        let [kept, recorded, draws] = [
            keeping.positions(schedule.draws),
            predictions,
            schedule.draws,
        ]
        .map(|count| count.saturating_mul(schedule.chains as u64));
        self.say("disk, while it runs", bytes(disk as f64));
        self.say("run folder, at the end", bytes(folder as f64));
        self.say(
            "positions kept for `predict`",
            format!("{kept} of {draws} draws"),
        );
        self.say(
            "predictions recorded",
            format!("{recorded} of {draws} draws"),
        );
        self.note("disk_bytes", disk);
        self.note("run_folder_bytes", folder);
        self.note("positions_kept", kept);
        self.note("predictions_recorded", recorded);
        Ok(())
    }

    /// Whether the states of chains stay in the run when it has ended.
    pub(crate) fn keeps_states(&self, settings: &Settings) -> bool {
        let state = self.checkpoint_bytes.saturating_add(self.kept_bytes);
        keeps_states(settings, self.schema.chains, state)
    }

    /// Refuses a run that this machine has not the memory for.
    ///
    /// # Errors
    /// A wrong request, with what would fit.
    pub fn check_memory(&self) -> Result<(), Failure> {
        if self.fits() {
            return Ok(());
        }
        let [needed, free] =
            [self.memory_bytes, self.available_bytes].map(|count| bytes(count as f64));
        Err(Failure::request(format!(
            "the run needs {needed} of memory, {free} are free{}",
            self.way_out
        )))
    }

    /// Refuses a run that this machine has not the memory or the disk for.
    ///
    /// # Errors
    /// A wrong request, with what would fit.
    pub(crate) fn check(&self, place: Destination<'_>) -> Result<(), Failure> {
        self.check_memory()?;
        self.check_disk(place)
    }

    /// Refuses a run that there is not the disk for.
    ///
    /// # Errors
    /// A wrong request, with what would fit.
    pub(crate) fn check_disk(&self, place: Destination<'_>) -> Result<(), Failure> {
        place.check(&self.schema, self.checkpoint_bytes + self.kept_bytes)
    }
}

/// Whether states of so many bytes of each of so many chains on all data are small enough to stay in a run that has ended, so that it can go on
/// for longer.
pub(crate) fn keeps_states(settings: &Settings, chains: u64, state: u64) -> bool {
    let budget = megabytes(settings).saturating_mul(1_000_000);
    let is_small = state.saturating_mul(chains) <= budget / 10;
    settings.sampler.method().nature() == Nature::Chains && is_small
}

/// Bytes of memory that are free on this machine, the limits of a container and of the process included; no limit where the
/// system does not tell.
pub(crate) fn available_memory() -> u64 {
    let Ok(mut system) = sysinfo::System::new() else {
        return memory::left();
    };
    system.refresh_memory();
    let limit = system
        .cgroup_limits()
        .map_or(u64::MAX, |limits| limits.free_memory);
    system.available_memory().min(limit).min(memory::left())
}
