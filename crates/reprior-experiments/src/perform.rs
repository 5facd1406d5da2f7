//! Runs the cells of an experiment one after the other, each recorded when it is done, so that what was stopped goes on.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
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
struct Header {
    experiment: String,
    size: String,
    data: String,
    version: String,
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
    let header = Header {
        experiment: about.name.to_owned(),
        size: bench.size.to_string(),
        data: about
            .data
            .map_or("none".to_owned(), |name| bench.data.described(name)),
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
        bench.advance(1.0)?;
        let seconds = start.elapsed().as_secs_f64();
        let entry = Entry {
            cell: cell.clone(),
            rows,
            seconds,
        };
        append(&mut file, &entry).map_err(Failure::io(&path))?;
        entries.push(entry);
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
    Ok(Outcome {
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
fn read(path: &Path, header: &Header) -> Result<Vec<Entry>, Failure> {
    let Ok(file) = File::open(path) else {
        return Ok(Vec::new());
    };
    let mut lines = BufReader::new(file).lines();
    let refuse = |what: String| {
        Err(Failure::Request(format!(
            "{} is the record of {what}: give --out another folder, or remove this one",
            path.display()
        )))
    };
    match lines.next() {
        None => return Ok(Vec::new()),
        Some(first) => {
            let first = first.map_err(Failure::io(path))?;
            match serde_json::from_str::<Header>(&first) {
                Ok(found) if found == *header => {}
                Ok(found) => {
                    return refuse(format!(
                        "{} ({}, data: {}, version {}), not of {} ({}, data: {}, version {})",
                        found.experiment,
                        found.size,
                        found.data,
                        found.version,
                        header.experiment,
                        header.size,
                        header.data,
                        header.version
                    ));
                }
                Err(_) => return refuse("something else".to_owned()),
            }
        }
    }
    let mut entries = Vec::new();
    for line in lines {
        match serde_json::from_str(&line.map_err(Failure::io(path))?) {
            Ok(entry) => entries.push(entry),
            Err(_) => break,
        }
    }
    Ok(entries)
}

/// The record, written anew with what was read of it.
fn open(path: &Path, header: &Header, entries: &[Entry]) -> Result<File, Failure> {
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
