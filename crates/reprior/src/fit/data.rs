//! Rows of numbers as callers have them.

use super::FitError;

/// A row of a table: a number alone, an array, a vector or a slice.
pub trait AsRow {
    /// The row's numbers.
    fn values(&self) -> &[f64];
}

impl AsRow for f64 {
    fn values(&self) -> &[f64] {
        std::slice::from_ref(self)
    }
}

impl<const N: usize> AsRow for [f64; N] {
    fn values(&self) -> &[f64] {
        self
    }
}

impl AsRow for Vec<f64> {
    fn values(&self) -> &[f64] {
        self
    }
}

impl AsRow for &[f64] {
    fn values(&self) -> &[f64] {
        self
    }
}

/// Rows of the same length, finite all of them.
#[derive(Debug, Clone)]
pub(super) struct RowTable {
    /// Row-major.
    pub values: Vec<f64>,
    pub rows: usize,
    pub columns: usize,
}

impl RowTable {
    /// `what` names the rows in messages.
    ///
    /// # Errors
    /// No rows or columns, rows of different lengths, a number that is not finite.
    pub fn new<X: AsRow>(what: &'static str, rows: &[X]) -> Result<Self, FitError> {
        let columns = rows.first().map_or(0, |row| row.values().len());
        if columns == 0 {
            return Err(FitError::Empty(what));
        }
        let mut values = Vec::with_capacity(rows.len() * columns);
        for (row, numbers) in rows.iter().map(AsRow::values).enumerate() {
            if numbers.len() != columns {
                let found = numbers.len();
                return Err(FitError::Columns {
                    what,
                    row,
                    found,
                    expected: columns,
                });
            }
            if let Some(column) = numbers.iter().position(|number| !number.is_finite()) {
                let value = numbers[column];
                return Err(FitError::NotFinite {
                    what,
                    row,
                    column,
                    value,
                });
            }
            values.extend_from_slice(numbers);
        }
        Ok(Self {
            values,
            rows: rows.len(),
            columns,
        })
    }
}
