//! Tables of rows, as text, CSV and JSON.

use crate::{Estimate, Row, Value};

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

    /// The same in ascending order of a column of numbers.
    pub fn sorted<'a>(&'a self, by: &str, wanted: &[(&str, Value)]) -> Vec<&'a Row> {
        let mut rows = self.select(wanted);
        rows.sort_by(|a, b| a.number(by).total_cmp(&b.number(by)));
        rows
    }

    /// A column of the rows in which every named value is as given.
    pub fn numbers(&self, column: &str, wanted: &[(&str, Value)]) -> Vec<f64> {
        self.select(wanted)
            .iter()
            .map(|row| row.number(column))
            .collect()
    }

    /// A column of estimates of the rows in which every named value is as given.
    pub fn estimates(&self, column: &str, wanted: &[(&str, Value)]) -> Vec<Estimate> {
        let rows = self.select(wanted).into_iter();
        rows.map(|row| row.estimate(column)).collect()
    }

    /// Their mean, such as over seeds.
    pub fn estimate(&self, column: &str, wanted: &[(&str, Value)]) -> Estimate {
        Estimate::pooled(&self.estimates(column, wanted))
    }

    /// The first such number; NaN if there is none.
    pub fn number(&self, column: &str, wanted: &[(&str, Value)]) -> f64 {
        self.numbers(column, wanted)
            .first()
            .copied()
            .unwrap_or(f64::NAN)
    }

    /// The last such number; NaN if there is none.
    pub fn last(&self, column: &str, wanted: &[(&str, Value)]) -> f64 {
        self.numbers(column, wanted)
            .last()
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

    /// The table in columns of even width: words to the left, numbers to the right, estimates with their errors in one column.
    pub fn text(&self) -> String {
        let is_shown = |name: &&str| {
            let parts = ["± ", "degrees of ", "doubt of "];
            !parts.iter().any(|part| name.starts_with(part))
        };
        let columns: Vec<&str> = self.columns().into_iter().filter(is_shown).collect();
        let cell = |row: &Row, name: &str| match row.get(&format!("± {name}")) {
            Some(Value::Number(_)) => {
                let estimate = row.estimate(name);
                let doubt = if estimate.doubt.is_some() { "?" } else { "" };
                format!("{estimate}{doubt}")
            }
            _ => row.get(name).unwrap_or(&Value::Missing).to_string(),
        };
        let width = |name: &&str| {
            let widths = self.rows.iter().map(|row| cell(row, name).chars().count());
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
            lines.push(line(columns.iter().map(|name| cell(row, name)).collect()));
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

    /// The table that [`csv`](Self::csv) wrote. What is empty there is not in the row; what has an exponent, which is not written of numbers, is a
    /// word. Other words that look like numbers are numbers: [`Row::word`] has them as they were.
    ///
    /// # Errors
    /// Rows of different lengths.
    pub fn of_csv(name: &str, text: &str) -> Result<Self, csv::Error> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let columns = reader.headers()?.clone();
        let value = |field: &str| match field.parse::<f64>() {
            Ok(number) if number.is_finite() && !field.contains(['e', 'E']) => {
                Value::Number(number)
            }
            _ => Value::Text(field.to_owned()),
        };
        let row = |record: csv::StringRecord| {
            let fields = columns.iter().zip(&record);
            let written = fields.filter(|(_, field)| !field.is_empty());
            Row {
                table: name.to_owned(),
                values: written
                    .map(|(column, field)| (column.to_owned(), value(field)))
                    .collect(),
            }
        };
        let rows = reader.records().map(|record| Ok(row(record?)));
        Ok(Self {
            name: name.to_owned(),
            rows: rows.collect::<Result<_, csv::Error>>()?,
        })
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
        let again = Table::of_csv("results", &tables[0].csv()).unwrap();
        assert_eq!(again.csv(), tables[0].csv());
        assert_eq!(again.rows[0], tables[0].rows[0]);
    }

    #[test]
    fn words_that_look_like_numbers_are_read_as_they_were() {
        let row = |word: &str| Row::new().with("word", word).with("number", 1e-7);
        let table = Table {
            name: Row::RESULTS.to_owned(),
            rows: ["1e-2", "0.01", "0.1", "1"].map(row).to_vec(),
        };
        let again = Table::of_csv(&table.name, &table.csv()).unwrap();
        for (row, other) in table.rows.iter().zip(&again.rows) {
            assert_eq!(row.word("word"), other.word("word"));
            assert_eq!(other.number("number"), 1e-7);
        }
        assert_eq!(again.rows[0], table.rows[0]);
    }
}
