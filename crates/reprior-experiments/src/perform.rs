//! Runs the cells of an experiment one after the other, each recorded when it is done, so that what was stopped goes on.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::{Bench, Cell, Experiment, Failure, Outcome, Row, Table};

/// What [`perform`] tells while it works.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// Cells done before.
    pub done: usize,
    /// Cells in all.
    pub of: usize,
    /// The cell that begins; none when all are done.
    pub cell: Option<&'a Cell>,
}

/// The first line of a record: what it is a record of.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct RecordHeader {
    experiment: String,
    size: String,
    data: String,
    source: String,
    version: String,
}

impl RecordHeader {
    fn in_words(&self) -> String {
        format!(
            "{} ({}, data: {} {}, version {})",
            self.experiment, self.size, self.data, self.source, self.version
        )
    }
}

/// Every other line: a cell and what was measured.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    cell: Cell,
    rows: Vec<Row>,
    seconds: f64,
}

/// The file of the record.
const RECORD: &str = "record.jsonl";

/// Measures what `folder` has no record of; `cells` are [`Experiment::cells`] or some of them.
///
/// # Errors
/// [`Failure`]; what was measured is kept. A record of something else is refused.
pub fn perform(
    experiment: &dyn Experiment,
    cells: &[Cell],
    bench: &Bench<'_>,
    folder: &Path,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Outcome, Failure> {
    let about = experiment.about();
    let header = RecordHeader {
        experiment: about.name.to_owned(),
        size: bench.size.to_string(),
        data: about
            .data
            .map_or("none".to_owned(), |name| bench.data.described(name)),
        source: bench.data.folder(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    fs::create_dir_all(folder).map_err(Failure::io(folder))?;
    let path = folder.join(RECORD);
    let mut entries = read(&path, &header)?;
    let mut file = open(&path, &header, &entries)?;
    for (done, cell) in cells.iter().enumerate() {
        if entries.iter().any(|entry| entry.cell == *cell) {
            continue;
        }
        tell(Event {
            done,
            of: cells.len(),
            cell: Some(cell),
        });
        let start = Instant::now();
        let rows = experiment.measure(cell, bench)?;
        let seconds = start.elapsed().as_secs_f64();
        let entry = Entry {
            cell: cell.clone(),
            rows,
            seconds,
        };
        append(&mut file, &entry).map_err(Failure::io(&path))?;
        entries.push(entry);
        bench.advance(1.0)?;
    }
    tell(Event {
        done: cells.len(),
        of: cells.len(),
        cell: None,
    });
    let (mut rows, mut seconds) = (Vec::new(), 0.0);
    for cell in cells {
        if let Some(entry) = entries.iter().find(|entry| entry.cell == *cell) {
            rows.extend(entry.rows.iter().cloned());
            seconds += entry.seconds;
        }
    }
    let tables = Table::all(rows);
    let own = experiment.cells(bench.size, false);
    Ok(Outcome {
        as_published: cells.iter().any(|cell| !own.contains(cell)),
        about,
        size: bench.size,
        data: header.data,
        version: header.version,
        seconds,
        findings: experiment.findings(&tables),
        figures: experiment.figures(),
        tables,
    })
}

/// What the record holds; a last line that was cut off is as if it were not there.
fn read(path: &Path, header: &RecordHeader) -> Result<Vec<Entry>, Failure> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Failure::io(path)(error)),
    };
    // bytes, not text: a line may be cut off in the middle of a character
    let mut lines = bytes.split(|&byte| byte == b'\n');
    let first = lines.next().unwrap_or_default();
    if first.is_empty() {
        return Ok(Vec::new());
    }
    let found = serde_json::from_slice::<RecordHeader>(first);
    if found.as_ref().ok() != Some(header) {
        let what = found.map_or("something else".to_owned(), |found| found.in_words());
        return Err(Failure::Request(format!(
            "{} is the record of {what}, not of {}: give --out another folder, or remove this one",
            path.display(),
            header.in_words()
        )));
    }
    Ok(lines
        .map_while(|line| serde_json::from_slice(line).ok())
        .collect())
}

/// The record, written anew with what was read of it.
fn open(path: &Path, header: &RecordHeader, entries: &[Entry]) -> Result<File, Failure> {
    let fresh = path.with_extension("new");
    let mut file = File::create(&fresh).map_err(Failure::io(&fresh))?;
    let write = |file: &mut File| -> std::io::Result<()> {
        writeln!(file, "{}", serde_json::to_string(header)?)?;
        for entry in entries {
            writeln!(file, "{}", serde_json::to_string(entry)?)?;
        }
        file.sync_all()
    };
    write(&mut file).map_err(Failure::io(&fresh))?;
    fs::rename(&fresh, path).map_err(Failure::io(path))?;
    OpenOptions::new()
        .append(true)
        .open(path)
        .map_err(Failure::io(path))
}

fn append(file: &mut File, entry: &Entry) -> std::io::Result<()> {
    writeln!(file, "{}", serde_json::to_string(entry)?)?;
    file.sync_all()
}
