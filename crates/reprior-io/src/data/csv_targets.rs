//! The targets of a table: classes or real values.

use std::path::Path;

use reprior::model::dataset::Targets;

use super::csv_table::TextTable;
use super::error::excerpt;
use super::numbers::{self, NumberForm, missing, number};
use super::targets::{self, is_missing};
use super::{DataError, Task};

/// Rows from which on a target of texts that nearly all differ is refused.
const ENOUGH_ROWS: usize = 20;

/// Target columns of some rows of a table.
pub(super) struct TargetColumns<'a> {
    /// Of messages.
    pub path: &'a Path,
    /// The table.
    pub table: &'a TextTable,
    /// Its rows that are read.
    pub rows: &'a [usize],
    /// The targets' positions in the header.
    pub columns: &'a [usize],
}

impl TargetColumns<'_> {
    /// The targets as classes or real values: those of a single column of texts or categories are classes unless something else is asked for.
    ///
    /// # Errors
    /// A cell that is missing or not what it has to be; texts that are hardly classes, unless classes are asked for.
    pub(super) fn read(&self, task: Task) -> Result<Targets, DataError> {
        match (task, self.columns) {
            (Task::Classification, _) => self.classes(),
            (Task::Auto, &[column]) if self.table.is_category(column) => self.classes(),
            (Task::Auto, &[column]) if self.is_text(column) => {
                numbers::refuse_thousands(self.path, self.table, self.rows, column)?;
                let classes = self.classes()?;
                self.refuse_distinct(column, classes.names().len())?;
                Ok(classes)
            }
            (Task::Regression | Task::Auto, _) => self.real(),
        }
    }

    /// Whether no value of the column is a number.
    fn is_text(&self, column: usize) -> bool {
        let form = NumberForm::of(self.table, self.rows, column);
        let mut values = self.table.values(self.rows, column);
        values.all(|(_, cell)| numbers::parse(cell, form).is_none())
    }

    /// Refuses texts that are hardly classes, for nearly every row has its own: numbers with a currency, a unit or thousands, or names.
    fn refuse_distinct(&self, column: usize, distinct: usize) -> Result<(), DataError> {
        let count = self.rows.len();
        if count < ENOUGH_ROWS || 10 * distinct < 9 * count {
            return Ok(());
        }
        let row = self.rows[0];
        let problem = format!(
            "`{}` is not a number, and {distinct} of the target's {count} values are distinct; write numbers without currency, unit and thousands, or ask for classification (--task classification) if these are classes",
            excerpt(self.table.cell(row, column))
        );
        let (line, name) = (self.table.lines[row], &self.table.header[column]);
        Err(DataError::cell(self.path, line, name, problem))
    }

    /// Real targets.
    ///
    /// # Errors
    /// A cell that is missing or no finite number.
    pub(super) fn real(&self) -> Result<Targets, DataError> {
        let names: Vec<String> = self.names();
        let advice = "this target has to be a number: correct the cell, or ask for classification";
        let form = |&column: &usize| NumberForm::of(self.table, self.rows, column);
        let forms: Vec<NumberForm> = self.columns.iter().map(form).collect();
        let mut values = Vec::with_capacity(self.rows.len() * names.len());
        for &row in self.rows {
            for ((&column, name), &form) in self.columns.iter().zip(&names).zip(&forms) {
                let (line, cell) = (self.table.lines[row], self.table.cell(row, column));
                values.push(number(self.path, line, name, cell, form, advice)?);
            }
        }
        Ok(Targets::Real { values, names })
    }

    /// The classes of the first target column.
    ///
    /// # Errors
    /// A cell that is missing; too many classes.
    pub(super) fn classes(&self) -> Result<Targets, DataError> {
        let (column, name) = (self.columns[0], &self.table.header[self.columns[0]]);
        let cell = |&row: &usize| self.table.cell(row, column);
        if let Some(row) = self.rows.iter().find(|row| is_missing(cell(row))) {
            return Err(missing(self.path, self.table.lines[*row], name, cell(row)));
        }
        let form = NumberForm::of(self.table, self.rows, column);
        let cells: Vec<String> = self.rows.iter().map(|row| cell(row).to_owned()).collect();
        // numbers of too many digits would be one class with their neighbours
        let number = |cell: &String| match numbers::is_rounded(cell) {
            true => None,
            false => numbers::parse(cell, form).filter(|number| number.is_finite()),
        };
        let numbers: Option<Vec<f64>> = cells.iter().map(number).collect();
        let classes = match numbers {
            Some(numbers) => targets::classes_of_numbers(&numbers, &cells),
            None => targets::classes_of_texts(&cells),
        };
        let (labels, names) =
            classes.map_err(|classes| DataError::too_many_classes(self.path, name, classes))?;
        Ok(Targets::Classes { labels, names })
    }

    /// Names of the targets.
    pub(super) fn names(&self) -> Vec<String> {
        let name = |&column: &usize| self.table.header[column].clone();
        self.columns.iter().map(name).collect()
    }

    /// Rows among those read that lack a target.
    pub(super) fn without(&self) -> impl Iterator<Item = usize> {
        let lacks = |row: usize| {
            self.columns
                .iter()
                .any(|&column| is_missing(self.table.cell(row, column)))
        };
        self.rows.iter().copied().filter(move |&row| lacks(row))
    }
}
