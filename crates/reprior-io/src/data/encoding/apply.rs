//! The inputs that an encoding makes of the rows of a table.

use std::path::Path;

use super::super::DataError;
use super::super::csv_table::TextTable;
use super::super::dates::{self, DateForm};
use super::super::error::{excerpt, show};
use super::super::numbers::{self, NumberForm};
use super::super::targets::is_missing;
use super::kinds::boolean;
use super::{Becomes, ColumnEncoding, TableEncoding};

/// Encoded rows.
pub(in super::super) struct Encoded {
    /// Row-major inputs, all finite.
    pub values: Vec<f64>,
    /// Columns with missing cells that were filled, and how many.
    pub filled: Vec<(String, usize)>,
    /// Columns with levels that the training rows do not have, in how many rows, and one of them.
    pub unknown: Vec<(String, usize, String)>,
}

/// Applies an encoding to these rows; columns are found by their names.
///
/// # Errors
/// Columns that are missing, by name; cells that are not what the encoding takes.
pub(in super::super) fn encode(
    path: &Path,
    table: &TextTable,
    rows: &[usize],
    encoding: &TableEncoding,
) -> Result<Encoded, DataError> {
    let lacking = encoding
        .used()
        .filter(|own| table.find(&own.column).is_none());
    let lacking: Vec<String> = lacking.map(|own| own.column.clone()).collect();
    if !lacking.is_empty() {
        return Err(DataError::MissingColumns {
            path: show(path),
            columns: lacking,
        });
    }
    let width = encoding.input_names().len();
    let mut encoded = Encoded {
        values: vec![0.0; rows.len() * width],
        filled: Vec::new(),
        unknown: Vec::new(),
    };
    let mut start = 0;
    for own in encoding.used() {
        let Some(column) = table.find(&own.column) else {
            continue;
        };
        let inputs = own.input_names().len();
        let form = NumberForm::of(table, rows, column);
        let (mut filled, mut unknown) = (0, None);
        for (index, &row) in rows.iter().enumerate() {
            let cell = table.cell(row, column);
            let place = Place {
                path,
                line: table.lines[row],
                own,
                form,
            };
            let at = index * width + start;
            let out = &mut encoded.values[at..at + inputs];
            match is_missing(cell) {
                true => {
                    place.fill(cell, out)?;
                    filled += 1;
                }
                false if place.write(cell, out)? => {}
                false => unknown.get_or_insert((0, cell)).0 += 1,
            }
        }
        if filled > 0 {
            encoded.filled.push((own.column.clone(), filled));
        }
        if let Some((count, cell)) = unknown {
            let unknown = (own.column.clone(), count, excerpt(cell));
            encoded.unknown.push(unknown);
        }
        start += inputs;
    }
    Ok(encoded)
}

/// A cell's column and line.
struct Place<'a> {
    path: &'a Path,
    line: usize,
    own: &'a ColumnEncoding,
    form: NumberForm,
}

impl Place<'_> {
    fn error(&self, problem: String) -> DataError {
        DataError::cell(self.path, self.line, &self.own.column, problem)
    }

    /// Writes what stands for a missing cell.
    fn fill(&self, cell: &str, out: &mut [f64]) -> Result<(), DataError> {
        let none = || numbers::missing(self.path, self.line, &self.own.column, cell);
        match &self.own.becomes {
            Becomes::Number { fill } | Becomes::Boolean { fill } => {
                out[0] = fill.ok_or_else(none)?;
            }
            Becomes::Date {
                origin,
                has_time,
                fill,
                ..
            } => write_date(fill.ok_or_else(none)?, *origin, *has_time, out),
            Becomes::Levels { levels, fill, .. } => {
                let fill = fill.as_ref().ok_or_else(none)?;
                if let Some(level) = levels.iter().position(|level| level == fill) {
                    out[level] = 1.0;
                } else if !fill.is_empty() {
                    // the commonest is rare enough to be among the others
                    out[levels.len()..]
                        .iter_mut()
                        .take(1)
                        .for_each(|x| *x = 1.0);
                }
            }
            Becomes::LeftOut { .. } => {}
        }
        if self.own.has_indicator
            && let Some(last) = out.last_mut()
        {
            *last = 1.0;
        }
        Ok(())
    }

    /// Writes what a cell becomes; false for a level that is not known.
    fn write(&self, cell: &str, out: &mut [f64]) -> Result<bool, DataError> {
        match &self.own.becomes {
            Becomes::Number { .. } => {
                let advice = "the column has numbers: correct the cell, or empty it where missing cells are filled in";
                let (line, name) = (self.line, &self.own.column);
                out[0] = numbers::number(self.path, line, name, cell, self.form, advice)?;
            }
            Becomes::Boolean { .. } => {
                let is = boolean(cell).or(match cell {
                    "1" => Some(true),
                    "0" => Some(false),
                    _ => None,
                });
                let is = is.ok_or_else(|| {
                    self.error(format!(
                        "`{}` is none of true, false, yes and no, which the column has; correct the cell",
                        excerpt(cell)
                    ))
                })?;
                out[0] = f64::from(u8::from(is));
            }
            Becomes::Date {
                form,
                origin,
                has_time,
                ..
            } => {
                let moment = dates::parse(cell, *form)
                    .or_else(|| dates::parse(cell, DateForm::YearFirst))
                    .ok_or_else(|| {
                        self.error(format!(
                            "`{}` is not a date as {}, which the column has; correct the cell",
                            excerpt(cell),
                            form.example()
                        ))
                    })?;
                write_date(moment.days, *origin, *has_time, out);
            }
            Becomes::Levels {
                levels, has_other, ..
            } => match level_of(levels, cell) {
                Some(level) => out[level] = 1.0,
                None => {
                    if *has_other {
                        out[levels.len()] = 1.0;
                    }
                    return Ok(false);
                }
            },
            Becomes::LeftOut { .. } => {}
        }
        Ok(true)
    }
}

/// The level that a cell is: the one that equals it, or else the only one that is the same number. Programs write the whole numbers of a column with
/// a point where it has a missing cell, and without one where it has none.
fn level_of(levels: &[String], cell: &str) -> Option<usize> {
    let equal = levels.iter().position(|level| level == cell);
    equal.or_else(|| {
        let mut same = (0..levels.len()).filter(|&at| numbers::same_number(&levels[at], cell));
        same.next().filter(|_| same.next().is_none())
    })
}

fn write_date(days: f64, origin: f64, has_time: bool, out: &mut [f64]) {
    out[0] = days - origin;
    out[1..3].copy_from_slice(&dates::season(days));
    if has_time {
        out[3..5].copy_from_slice(&dates::hour(days));
    }
}
