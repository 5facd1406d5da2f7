//! Tables: rows of named values, as text, CSV and JSON.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A finite number.
    Number(f64),
    /// A word.
    Text(String),
    /// Nothing, or no number.
    Missing,
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        if value.is_finite() {
            Self::Number(value)
        } else {
            Self::Missing
        }
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Self::Number(value as f64)
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Number(value as f64)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl fmt::Display for Value {
    /// Numbers with four significant digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Text(text) => text.clone(),
            Self::Missing => "-".to_owned(),
            Self::Number(value) if value.fract() == 0.0 && value.abs() < 1e7 => format!("{value}"),
            // what has few digits anyway: settings such as 0.2
            Self::Number(value) if format!("{value}").len() < 6 => format!("{value}"),
            Self::Number(value) if (1e-3..1e5).contains(&value.abs()) => {
                let digits = 3 - value.abs().log10().floor() as i32;
                format!("{value:.*}", digits.clamp(0, 6) as usize)
            }
            Self::Number(value) => format!("{value:.3e}"),
        };
        f.pad(&text)
    }
}

/// Named values in order, of one table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Which table.
    pub table: String,
    /// Names and values.
    pub values: Vec<(String, Value)>,
}

impl Default for Row {
    fn default() -> Self {
        Self::of(Self::RESULTS)
    }
}

impl Row {
    /// The table that is shown.
    pub const RESULTS: &'static str = "results";

    /// An empty row of the table `name`.
    pub fn of(name: &str) -> Self {
        Self {
            table: name.to_owned(),
            values: Vec::new(),
        }
    }

    /// An empty row of the results.
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more value.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.values.push((name.to_owned(), value.into()));
        self
    }

    /// These values in the table `name`.
    #[must_use]
    pub fn in_table(&self, name: &str) -> Self {
        Self {
            table: name.to_owned(),
            values: self.values.clone(),
        }
    }

    /// The value of that name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let found = self.values.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value)
    }

    /// The number of that name; NaN if there is none.
    pub fn number(&self, name: &str) -> f64 {
        match self.get(name) {
            Some(Value::Number(value)) => *value,
            _ => f64::NAN,
        }
    }

    /// The same as a count.
    pub fn count(&self, name: &str) -> usize {
        self.number(name) as usize
    }

    /// The word of that name; empty if there is none.
    pub fn text(&self, name: &str) -> &str {
        match self.get(name) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    /// `a 1, b 2`.
    pub fn label(&self) -> String {
        let parts: Vec<String> = self
            .values
            .iter()
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        parts.join(", ")
    }
}

/// Rows of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its rows, in the order in which they were measured.
    pub rows: Vec<Row>,
}

impl Table {
    /// The tables of `rows`, in order of appearance.
    pub fn all(rows: Vec<Row>) -> Vec<Self> {
        let mut tables: Vec<Self> = Vec::new();
        for row in rows {
            match tables.iter_mut().find(|table| table.name == row.table) {
                Some(table) => table.rows.push(row),
                None => tables.push(Self {
                    name: row.table.clone(),
                    rows: vec![row],
                }),
            }
        }
        tables
    }

    /// Every name, in order of appearance.
    pub fn columns(&self) -> Vec<&str> {
        let mut columns: Vec<&str> = Vec::new();
        for (name, _) in self.rows.iter().flat_map(|row| &row.values) {
            if !columns.contains(&name.as_str()) {
                columns.push(name);
            }
        }
        columns
    }

    /// The rows in which every named value is as given.
    pub fn select<'a>(&'a self, wanted: &[(&str, Value)]) -> Vec<&'a Row> {
        let fits = |row: &&Row| {
            wanted
                .iter()
                .all(|(name, value)| row.get(name).unwrap_or(&Value::Missing) == value)
        };
        self.rows.iter().filter(fits).collect()
    }

    /// A column of the rows in which every named value is as given.
    pub fn numbers(&self, column: &str, wanted: &[(&str, Value)]) -> Vec<f64> {
        self.select(wanted)
            .iter()
            .map(|row| row.number(column))
            .collect()
    }

    /// The first such number; NaN if there is none.
    pub fn number(&self, column: &str, wanted: &[(&str, Value)]) -> f64 {
        self.numbers(column, wanted)
            .first()
            .copied()
            .unwrap_or(f64::NAN)
    }

    /// Every value of a column, in order of appearance.
    pub fn distinct(&self, column: &str) -> Vec<Value> {
        let mut found = Vec::new();
        for value in self.rows.iter().filter_map(|row| row.get(column)) {
            if !found.contains(value) {
                found.push(value.clone());
            }
        }
        found
    }

    /// The table in columns of even width: words to the left, numbers to the right.
    pub fn text(&self) -> String {
        let columns = self.columns();
        let cell = |row: &Row, name: &str| row.get(name).cloned().unwrap_or(Value::Missing);
        let width = |name: &&str| {
            let widths = self
                .rows
                .iter()
                .map(|row| cell(row, name).to_string().chars().count());
            widths.chain([name.chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = columns.iter().map(width).collect();
        let is_text: Vec<bool> = columns
            .iter()
            .map(|name| {
                self.rows
                    .iter()
                    .any(|row| matches!(row.get(name), Some(Value::Text(_))))
            })
            .collect();
        let line = |cells: Vec<String>| {
            let parts = cells
                .iter()
                .zip(&widths)
                .zip(&is_text)
                .map(|((cell, &width), is_text)| {
                    if *is_text {
                        format!("{cell:<width$}")
                    } else {
                        format!("{cell:>width$}")
                    }
                });
            parts.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let mut lines = vec![line(columns.iter().map(ToString::to_string).collect())];
        for row in &self.rows {
            lines.push(line(
                columns
                    .iter()
                    .map(|name| cell(row, name).to_string())
                    .collect(),
            ));
        }
        lines.join("\n")
    }

    /// The table as CSV, numbers in full.
    pub fn csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let columns = self.columns();
        let mut write = |fields: Vec<String>| {
            // writing to memory cannot fail, and every record has as many fields
            let _ = writer.write_record(fields);
        };
        write(columns.iter().map(ToString::to_string).collect());
        for row in &self.rows {
            let field = |name: &&str| match row.get(name) {
                Some(Value::Number(value)) => format!("{value}"),
                Some(Value::Text(text)) => text.clone(),
                Some(Value::Missing) | None => String::new(),
            };
            write(columns.iter().map(field).collect());
        }
        String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
    }

    /// The table as a list of objects.
    pub fn json(&self) -> serde_json::Value {
        let object = |row: &Row| {
            let pairs = row.values.iter().map(|(name, value)| {
                (
                    name.clone(),
                    serde_json::to_value(value).unwrap_or(serde_json::Value::Null),
                )
            });
            serde_json::Value::Object(pairs.collect())
        };
        serde_json::Value::Array(self.rows.iter().map(object).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_text_and_csv() {
        let rows = vec![
            Row::new()
                .with("method", "pcn")
                .with("width", 512_usize)
                .with("rate", 0.123_456),
            Row::of("other").with("x", 1.0),
            Row::new().with("method", "a, b").with("rate", f64::NAN),
        ];
        let tables = Table::all(rows);
        assert_eq!(tables.len(), 2);
        assert_eq!(
            tables[0].text(),
            "method  width    rate\npcn       512  0.1235\na, b        -       -"
        );
        assert_eq!(
            tables[0].csv(),
            "method,width,rate\npcn,512,0.123456\n\"a, b\",,\n"
        );
        assert_eq!(
            tables[0].number("rate", &[("method", "pcn".into())]),
            0.123_456
        );
        assert_eq!(tables[0].distinct("method").len(), 2);
    }

    #[test]
    fn numbers_keep_four_digits() {
        for (value, text) in [
            (0.012_345, "0.01235"),
            (1234.567, "1235"),
            (3.0, "3"),
            (1e-7, "1.000e-7"),
            (-0.5, "-0.5"),
            (0.32899, "0.3290"),
        ] {
            assert_eq!(Value::from(value).to_string(), text);
        }
    }
}
