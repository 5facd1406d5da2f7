//! Tables in CSV files: comma-separated, UTF-8, with a header.
//!
//! Quoted cells, CRLF line ends, a byte order mark, spaces around cells and blank rows at the end are all accepted. Input cells have to be finite numbers. The
//! target is read as text first: it may turn out to be a class. The file is held in memory once, as bytes, so that messages can give its lines.

use std::path::Path;

use csv::StringRecord;
use reprior::model::dataset::{Dataset, InputKind, Split, Targets};

use super::csv_cells::{Lines, missing, number, read_header, reader};
use super::error::{excerpt, show};
use super::targets;
use super::{DataError, Request, Task, split};
use crate::regular;

/// The columns to read, as positions in the header.
pub(super) struct Columns {
    /// Inputs, in the order they are wanted.
    pub inputs: Vec<usize>,
    /// Targets.
    pub targets: Vec<usize>,
}

/// A table with its inputs read and its targets still text.
pub(super) struct CsvTable {
    /// The header.
    pub header: Vec<String>,
    /// Which columns were read.
    pub columns: Columns,
    /// Row-major inputs.
    pub inputs: Vec<f64>,
    /// Line in the file of each row.
    pub lines: Vec<usize>,
    /// Cells of each target column.
    pub cells: Vec<Vec<String>>,
}

/// Loads and splits a table.
pub(super) fn load(path: &Path, request: &Request) -> Result<Split, DataError> {
    let table = read(path, |header| choose(path, header, request))?;
    let targets = table.targets(path, request.task)?;
    let rows = table.lines.len();
    let data = Dataset {
        rows,
        columns: table.columns.inputs.len(),
        column_names: names(&table.header, &table.columns.inputs),
        inputs: table.inputs.into(),
        kind: InputKind::Table,
        targets,
    };
    split::split_table(&data, request, rows * 4 / 5)
}

/// The names of the target columns.
pub(super) fn target_columns(path: &Path, request: &Request) -> Result<Vec<String>, DataError> {
    let bytes = regular::read(path).map_err(|cause| DataError::from_io(path, cause))?;
    let header = read_header(path, &mut reader(&bytes))?;
    let columns = choose(path, &header, request)?;
    Ok(names(&header, &columns.targets))
}

fn names(header: &[String], columns: &[usize]) -> Vec<String> {
    let name = |&column: &usize| header[column].clone();
    columns.iter().map(name).collect()
}

/// Targets as asked for (default: the last column); all other columns are inputs.
fn choose(path: &Path, header: &[String], request: &Request) -> Result<Columns, DataError> {
    if header.len() < 2 {
        return Err(DataError::malformed(
            path,
            format!(
                "the header has the single column `{}`; at least one input and one target are needed, separated by commas",
                excerpt(&header[0])
            ),
        ));
    }
    let targets = match &request.target {
        None => vec![header.len() - 1],
        Some(names) => names
            .iter()
            .map(|name| position(path, header, name))
            .collect::<Result<Vec<_>, _>>()?,
    };
    if targets.is_empty() {
        return Err(DataError::unsuitable(
            &request.source,
            "the list of targets is empty; name at least one column",
        ));
    }
    if let Some(twice) = (1..targets.len()).find(|&n| targets[..n].contains(&targets[n])) {
        let name = excerpt(&header[targets[twice]]);
        return Err(DataError::unsuitable(
            &request.source,
            format!("target `{name}` is named twice; name it once"),
        ));
    }
    if targets.len() > 1 && request.task == Task::Classification {
        return Err(DataError::unsuitable(
            &request.source,
            "classification takes one target column; name one",
        ));
    }
    let inputs: Vec<usize> = (0..header.len())
        .filter(|column| !targets.contains(column))
        .collect();
    if inputs.is_empty() {
        return Err(DataError::unsuitable(
            &request.source,
            "every column is a target; leave at least one for the inputs",
        ));
    }
    Ok(Columns { inputs, targets })
}

/// Position of the column `name`.
pub(super) fn position(path: &Path, header: &[String], name: &str) -> Result<usize, DataError> {
    header
        .iter()
        .position(|column| column == name)
        .ok_or_else(|| DataError::unknown_column(path, name, header))
}

/// Reads the columns that `choose` picks from the header.
pub(super) fn read(
    path: &Path,
    choose: impl FnOnce(&[String]) -> Result<Columns, DataError>,
) -> Result<CsvTable, DataError> {
    let bytes = regular::read(path).map_err(|cause| DataError::from_io(path, cause))?;
    let mut reader = reader(&bytes);
    let header = read_header(path, &mut reader)?;
    let columns = choose(&header)?;
    let cells = vec![Vec::new(); columns.targets.len()];
    let mut table = CsvTable {
        header,
        columns,
        inputs: Vec::new(),
        lines: Vec::new(),
        cells,
    };
    let mut lines = Lines::new(&bytes);
    let mut record = StringRecord::new();
    let mut blank = None;
    loop {
        let line = lines.at(reader.position().byte() as usize);
        match reader.read_record(&mut record) {
            Ok(true) => {}
            Ok(false) => break,
            Err(_) => {
                let problem = format!("line {line} is not UTF-8 text; save the file as UTF-8");
                return Err(DataError::malformed(path, problem));
            }
        }
        if record.iter().all(str::is_empty) {
            blank = blank.or(Some(line));
            continue;
        }
        if let Some(line) = blank {
            let problem = "the row is empty, but rows follow; fill it or delete it";
            return Err(DataError::cell(path, line, &table.header[0], problem));
        }
        table.push(path, line, &record)?;
    }
    if table.lines.is_empty() {
        return Err(DataError::empty(path, "rows below the header"));
    }
    Ok(table)
}

impl CsvTable {
    fn push(&mut self, path: &Path, line: usize, record: &StringRecord) -> Result<(), DataError> {
        if record.len() != self.header.len() {
            let (found, expected) = (record.len(), self.header.len());
            return Err(DataError::RaggedRow {
                path: show(path),
                line,
                found,
                expected,
            });
        }
        for &column in &self.columns.inputs {
            let advice = "inputs have to be numbers: encode the column as numbers, delete it, or make it the target of a classification";
            self.inputs.push(number(
                path,
                line,
                &self.header[column],
                &record[column],
                advice,
            )?);
        }
        for (cells, &column) in self.cells.iter_mut().zip(&self.columns.targets) {
            cells.push(record[column].to_string());
        }
        self.lines.push(line);
        Ok(())
    }

    /// The targets as classes or real values.
    fn targets(&self, path: &Path, task: Task) -> Result<Targets, DataError> {
        let is_class = match task {
            Task::Classification => true,
            Task::Regression => false,
            Task::Auto => {
                self.cells.len() == 1
                    && self.cells[0]
                        .iter()
                        .all(|cell| cell.parse::<f64>().is_err())
            }
        };
        if is_class {
            self.classes(path)
        } else {
            self.real(path)
        }
    }

    /// Real targets.
    pub(super) fn real(&self, path: &Path) -> Result<Targets, DataError> {
        let names = names(&self.header, &self.columns.targets);
        let advice = "this target has to be a number: correct the cell, or ask for classification";
        let mut values = Vec::with_capacity(self.lines.len() * names.len());
        for (row, &line) in self.lines.iter().enumerate() {
            for (cells, name) in self.cells.iter().zip(&names) {
                values.push(number(path, line, name, &cells[row], advice)?);
            }
        }
        Ok(Targets::Real { values, names })
    }

    /// The classes of the first target column.
    pub(super) fn classes(&self, path: &Path) -> Result<Targets, DataError> {
        let (cells, column) = (&self.cells[0], &self.header[self.columns.targets[0]]);
        for (cell, &line) in cells.iter().zip(&self.lines) {
            if targets::is_missing(cell) {
                return Err(missing(path, line, column, cell));
            }
        }
        let numbers: Option<Vec<f64>> = cells
            .iter()
            .map(|cell| cell.parse().ok().filter(|number: &f64| number.is_finite()))
            .collect();
        let classes = match numbers {
            Some(numbers) => targets::classes_of_numbers(&numbers, cells),
            None => targets::classes_of_texts(cells),
        };
        let (labels, names) =
            classes.map_err(|classes| DataError::too_many_classes(path, column, classes))?;
        Ok(Targets::Classes { labels, names })
    }
}
