//! A figure: which columns of a table are drawn against which.

use std::path::Path;

use reprior_report::chart::{Axis, Chart, Colours, Mark};

use crate::{Failure, Row, Table, Value};

/// Lines or points over a table's rows.
#[derive(Debug, Clone)]
pub struct Figure {
    /// Its file, without `.svg`.
    pub name: &'static str,
    /// The table.
    pub table: &'static str,
    /// Above it.
    pub title: &'static str,
    /// How to read it, in a line.
    pub guide: &'static str,
    /// Column and label of the x axis.
    pub x: (&'static str, &'static str),
    /// Column and label of the y axis.
    pub y: (&'static str, &'static str),
    /// Column of half-widths of error bars.
    pub error: Option<&'static str>,
    /// Columns whose values tell lines apart.
    pub by: &'static [&'static str],
    /// A column for each of whose values there is a picture of its own.
    pub panel: Option<&'static str>,
    /// Whether the axes are logarithmic: x, y.
    pub logarithmic: [bool; 2],
    /// Points without lines.
    pub is_scatter: bool,
}

impl Figure {
    /// Lines of `y` against `x` of the results.
    pub const fn lines(
        name: &'static str,
        title: &'static str,
        guide: &'static str,
        x: (&'static str, &'static str),
        y: (&'static str, &'static str),
        by: &'static [&'static str],
    ) -> Self {
        Self {
            name,
            table: Row::RESULTS,
            title,
            guide,
            x,
            y,
            error: None,
            by,
            panel: None,
            logarithmic: [false; 2],
            is_scatter: false,
        }
    }

    /// Of the rows of another table.
    #[must_use]
    pub const fn of(mut self, table: &'static str) -> Self {
        self.table = table;
        self
    }

    /// With a picture for each value of a column.
    #[must_use]
    pub const fn panels(mut self, column: &'static str) -> Self {
        self.panel = Some(column);
        self
    }

    /// With error bars of the half-widths in a column.
    #[must_use]
    pub const fn errors(mut self, column: &'static str) -> Self {
        self.error = Some(column);
        self
    }

    /// With logarithmic axes.
    #[must_use]
    pub const fn logarithmic(mut self, x: bool, y: bool) -> Self {
        self.logarithmic = [x, y];
        self
    }

    /// With points, without lines.
    #[must_use]
    pub const fn scatter(mut self) -> Self {
        self.is_scatter = true;
        self
    }

    /// Writes the pictures into `folder`; returns their names.
    ///
    /// # Errors
    /// A file that could not be written.
    pub fn write(&self, tables: &[Table], folder: &Path) -> Result<Vec<String>, Failure> {
        let mut written = Vec::new();
        for (suffix, chart) in self.charts(tables) {
            let name = format!("{}{suffix}.svg", self.name);
            let path = folder.join(&name);
            std::fs::write(&path, chart.svg(720.0, Colours::Standalone))
                .map_err(Failure::io(&path))?;
            written.push(name);
        }
        Ok(written)
    }

    /// A chart for each panel, with the end of its name.
    pub fn charts(&self, tables: &[Table]) -> Vec<(String, Chart)> {
        let Some(table) = tables.iter().find(|table| table.name == self.table) else {
            return Vec::new();
        };
        let Some(column) = self.panel else {
            let rows: Vec<&Row> = table.rows.iter().collect();
            return vec![(String::new(), self.chart(&rows, self.title.to_owned()))];
        };
        let panel = |value: Value| {
            let rows = table.select(&[(column, value.clone())]);
            let title = format!("{}: {column} {value}", self.title);
            (
                format!("-{}", slug(&value.to_string())),
                self.chart(&rows, title),
            )
        };
        table.distinct(column).into_iter().map(panel).collect()
    }

    fn chart(&self, rows: &[&Row], title: String) -> Chart {
        let mut lines: Vec<Line> = Vec::new();
        for row in rows {
            let values = self
                .by
                .iter()
                .filter_map(|name| row.get(name).map(|value| (name, value)));
            let name: Vec<String> = values
                .map(|(name, value)| match value {
                    Value::Number(_) => format!("{name} {value}"),
                    _ => value.to_string(),
                })
                .collect();
            let name = name.join(", ");
            let point = (row.number(self.x.0), row.number(self.y.0));
            if !(point.0.is_finite() && point.1.is_finite()) {
                continue;
            }
            let error = self.error.map(|column| row.number(column));
            let error = error.map(|error| if error.is_finite() { error } else { 0.0 });
            let line = match lines.iter_mut().position(|line| line.0 == name) {
                Some(index) => &mut lines[index],
                None => {
                    lines.push((name, Vec::new(), Vec::new()));
                    let last = lines.len() - 1;
                    &mut lines[last]
                }
            };
            line.1.push(point);
            line.2.extend(error);
        }
        let marks = lines.into_iter().map(|(name, points, errors)| {
            if self.is_scatter {
                Mark::Points { name, points }
            } else {
                Mark::Line {
                    has_points: points.len() <= 30,
                    name,
                    points,
                    is_dashed: false,
                    errors,
                }
            }
        });
        let axis = |(_, label): (&str, &'static str), is_logarithmic| {
            let axis = Axis::new(label);
            if is_logarithmic {
                axis.logarithmic()
            } else {
                axis
            }
        };
        Chart {
            title,
            guide: self.guide.to_owned(),
            x: axis(self.x, self.logarithmic[0]),
            y: axis(self.y, self.logarithmic[1]),
            marks: marks.collect(),
        }
    }
}

/// A line's name, its points and the half-widths of its error bars.
type Line = (String, Vec<(f64, f64)>, Vec<f64>);

/// A word for a file's name.
fn slug(text: &str) -> String {
    let allowed = |c: char| {
        if c.is_ascii_alphanumeric() || c == '.' {
            c
        } else {
            '-'
        }
    };
    text.chars().map(allowed).collect()
}
