//! Tables in CSV files, as text: separated by commas, semicolons or tabs, UTF-8, with a header.
//!
//! Quoted cells, CRLF line ends, a byte order mark, spaces around cells and blank rows at the end are all accepted. All cells lie one after the other in one
//! string, so that a table takes little more memory than its file; what they mean is decided later, column by column.

use std::path::Path;

use csv::StringRecord;

use super::csv_cells::{Lines, check_header, read_header, reader, separator};
use super::csv_source::TableText;
use super::error::{excerpt, show};
use super::given::GIVEN;
use super::targets::is_missing;
use super::{DataError, Request, Task, csv_source};
use crate::memory;

/// Cells that there is room for anywhere.
const UNCHECKED: usize = 1 << 20;
/// Bytes that a cell takes before its table is in sets: twice where it ends, for these grow by doubling, and twice the number that it becomes.
const BYTES_OF_A_CELL: u64 = 4 * 8;

/// What the rows of a table are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rows {
    /// To train and to test: empty ones at the end say nothing.
    Learning,
    /// To predict for: each has its prediction, whatever it lacks.
    New,
}

/// The columns to read, as positions in the header.
#[derive(Debug)]
pub(super) struct Columns {
    /// Inputs, in the order of the file.
    pub inputs: Vec<usize>,
    /// Targets.
    pub targets: Vec<usize>,
    /// Columns without a name, which are left out.
    pub nameless: usize,
}

/// A table of text.
pub(super) struct TextTable {
    /// The header; a column without a name has the name "".
    pub header: Vec<String>,
    /// What stands between cells.
    pub separator: u8,
    /// Line in the file of each row.
    pub lines: Vec<usize>,
    /// Columns that are categories, although their cells look like numbers.
    categories: Vec<String>,
    /// All cells, row by row.
    text: String,
    /// Where each cell ends.
    ends: Vec<usize>,
}

impl TextTable {
    /// Reads a table from its text.
    ///
    /// # Errors
    /// Anything that makes it no table: bytes that are not UTF-8, rows of other lengths, no rows; or more cells than there is memory for.
    pub(super) fn read(path: &Path, text: &TableText, rows: Rows) -> Result<Self, DataError> {
        let TableText {
            bytes, is_columnar, ..
        } = text;
        let is_tsv = path.extension().is_some_and(|extension| extension == "tsv");
        let separator = match (is_columnar, is_tsv) {
            (true, _) => b',',
            (false, true) => b'\t',
            (false, false) => separator(bytes),
        };
        let mut reader = reader(bytes, separator);
        let header = read_header(path, &mut reader)?;
        if !is_columnar {
            check_header(path, &header)?;
        }
        let mut table = Self::empty(header, separator);
        table.categories.clone_from(&text.categories);
        let mut lines = Lines::new(bytes);
        let mut record = StringRecord::new();
        let mut blank = None;
        let has_blank_rows = !is_columnar && rows == Rows::New && table.header.len() == 1;
        let no_value = StringRecord::from(vec![""]);
        loop {
            let offset = reader.position().byte() as usize;
            let blank_lines = lines.blank(offset);
            let line = lines.at(offset);
            for above in (1..=blank_lines).rev().filter(|_| has_blank_rows) {
                table.push(path, line.saturating_sub(above), &no_value)?;
            }
            match reader.read_record(&mut record) {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) => {
                    let problem = format!("line {line} is not UTF-8 text; save the file as UTF-8");
                    return Err(DataError::malformed(path, problem));
                }
            }
            let is_new_row = rows == Rows::New && record.len() == table.header.len();
            if !is_columnar && !is_new_row && record.iter().all(str::is_empty) {
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
        if !self.has_room() {
            return Err(csv_source::too_large(path));
        }
        self.push_row(line, record.iter());
        Ok(())
    }

    /// Whether there is memory for a row, and for what becomes of all. Short cells take far more of it than their text, so that a small file, compressed, can
    /// ask for more than there is. The system is asked where cells grow, which is seldom.
    fn has_room(&self) -> bool {
        let cells = self.ends.len();
        let grows = cells + self.header.len() > self.ends.capacity();
        !grows || cells < UNCHECKED || cells as u64 * BYTES_OF_A_CELL <= memory::left()
    }

    /// A table without rows.
    pub(super) fn empty(header: Vec<String>, separator: u8) -> Self {
        Self {
            header,
            separator,
            lines: Vec::new(),
            categories: Vec::new(),
            text: String::new(),
            ends: Vec::new(),
        }
    }

    /// Adds a row of as many cells as the header has.
    pub(super) fn push_row<'a>(&mut self, line: usize, cells: impl Iterator<Item = &'a str>) {
        for cell in cells {
            self.text.push_str(cell);
            self.ends.push(self.text.len());
        }
        self.lines.push(line);
    }

    /// The table that a request names.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(super) fn of(request: &Request, rows: Rows) -> Result<Self, DataError> {
        let path = csv_source::shown(&request.source);
        match (request.source.as_str(), &request.content) {
            (GIVEN, Some(bytes)) => Self::given(path, bytes),
            (GIVEN, None) => {
                let problem = "a table that a program gave is known to its run alone; give a file";
                Err(DataError::malformed(path, problem))
            }
            _ => Self::read(path, &csv_source::text(request)?, rows),
        }
    }

    /// Whether the file says of a column that its numbers are categories.
    pub(super) fn is_category(&self, column: usize) -> bool {
        self.categories.contains(&self.header[column])
    }

    /// How many rows.
    pub(super) fn rows(&self) -> usize {
        self.lines.len()
    }

    /// A cell, without spaces around it.
    pub(super) fn cell(&self, row: usize, column: usize) -> &str {
        let at = row * self.header.len() + column;
        let start = match at {
            0 => 0,
            _ => self.ends[at - 1],
        };
        &self.text[start..self.ends[at]]
    }

    /// The cells of a column that have a value, with their rows.
    pub(super) fn values<'a>(
        &'a self,
        rows: &'a [usize],
        column: usize,
    ) -> impl Iterator<Item = (usize, &'a str)> + Clone {
        let cells = rows.iter().map(move |&row| (row, self.cell(row, column)));
        cells.filter(|(_, cell)| !is_missing(cell))
    }

    /// Position of the column `name`.
    ///
    /// # Errors
    /// No such column; the nearest is named.
    pub(super) fn position(&self, path: &Path, name: &str) -> Result<usize, DataError> {
        self.find(name).ok_or_else(|| {
            let named = self.header.iter().filter(|name| !name.is_empty());
            DataError::unknown_column(path, name, &named.cloned().collect::<Vec<_>>())
        })
    }

    /// Position of the column `name`, if there is one.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        let is_it = |column: &String| column == name && !name.is_empty();
        self.header.iter().position(is_it)
    }

    /// Targets as asked for (default: the last column that is not ignored); all other columns are inputs, but those that are ignored.
    ///
    /// # Errors
    /// A column that does not exist, or that is asked for as two things.
    pub(super) fn choose(&self, path: &Path, request: &Request) -> Result<Columns, DataError> {
        let unsuitable = |problem: String| DataError::unsuitable(&show(path), problem);
        let positions = |names: &[String]| {
            let positions = names.iter().map(|name| self.position(path, name));
            positions.collect::<Result<Vec<_>, _>>()
        };
        let name = |column: usize| excerpt(&self.header[column]);
        let ignored = positions(&request.ignore)?;
        let categorical = positions(&request.categorical)?;
        let mut usable = (0..self.header.len())
            .filter(|&column| !self.header[column].is_empty() && !ignored.contains(&column));
        let targets = match &request.target {
            None => usable.clone().next_back().into_iter().collect(),
            Some(names) => positions(names)?,
        };
        if let Some(&both) = targets.iter().find(|&target| ignored.contains(target)) {
            return Err(unsuitable(format!(
                "`{}` is both a --target and to be left out (--ignore); name it once",
                name(both)
            )));
        }
        if let Some(&wrong) = categorical
            .iter()
            .find(|&column| !usable.clone().any(|own| own == *column) || targets.contains(column))
        {
            return Err(unsuitable(format!(
                "--categorical `{}` is no input column; name inputs only",
                name(wrong)
            )));
        }
        if let [only] = self.header.as_slice() {
            return Err(DataError::malformed(
                path,
                format!(
                    "the header has the single column `{}`; at least one input and one target are needed, separated by commas, semicolons or tabs",
                    excerpt(only)
                ),
            ));
        }
        if targets.is_empty() {
            return Err(unsuitable(
                "the list of targets is empty; name at least one column".to_owned(),
            ));
        }
        if let Some(twice) = (1..targets.len()).find(|&n| targets[..n].contains(&targets[n])) {
            return Err(unsuitable(format!(
                "target `{}` is named twice; name it once",
                name(targets[twice])
            )));
        }
        if targets.len() > 1 && request.task == Task::Classification {
            return Err(unsuitable(
                "classification takes one target column; name one".to_owned(),
            ));
        }
        let inputs: Vec<usize> = usable
            .by_ref()
            .filter(|column| !targets.contains(column))
            .collect();
        if inputs.is_empty() {
            return Err(unsuitable(match ignored.is_empty() {
                true => "every column is a target; leave at least one for the inputs",
                false => "every column is a target or left out by --ignore; leave at least one for the inputs",
            }.to_owned()));
        }
        Ok(Columns {
            inputs,
            targets,
            nameless: self.header.iter().filter(|name| name.is_empty()).count(),
        })
    }
}
