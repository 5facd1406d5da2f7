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
    /// Columns of the lower and upper ends of a band behind each line.
    pub band: Option<[&'static str; 2]>,
    /// Columns of dashed lines for comparison, with their labels.
    pub limits: &'static [(&'static str, &'static str)],
    /// Columns of the published points: x, y.
    pub published: Option<[&'static str; 2]>,
    /// Columns whose values tell lines apart.
    pub by: &'static [&'static str],
    /// A column for each of whose values there is a picture of its own.
    pub panel: Option<&'static str>,
    /// Whether the axes are logarithmic: x, y.
    pub logarithmic: [bool; 2],
    /// Points without lines.
    pub is_scatter: bool,
    /// A column whose values are colours over x and y.
    pub colour: Option<&'static str>,
    /// Whether the column of y has words: a lane for each, from top to bottom.
    pub has_lanes: bool,
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
            band: None,
            limits: &[],
            published: None,
            by,
            panel: None,
            logarithmic: [false; 2],
            is_scatter: false,
            colour: None,
            has_lanes: false,
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

    /// With a band behind each line, such as from least to greatest.
    #[must_use]
    pub const fn band(mut self, lower: &'static str, upper: &'static str) -> Self {
        self.band = Some([lower, upper]);
        self
    }

    /// With dashed lines for comparison: a column, whose rows need not all have a number, and its label, each.
    #[must_use]
    pub const fn limits(mut self, columns: &'static [(&'static str, &'static str)]) -> Self {
        self.limits = columns;
        self
    }

    /// With points of the published values in a column, at the same x.
    #[must_use]
    pub const fn published(self, column: &'static str) -> Self {
        let x = self.x.0;
        self.published_at(x, column)
    }

    /// With points of the published values in two columns.
    #[must_use]
    pub const fn published_at(mut self, x: &'static str, y: &'static str) -> Self {
        self.published = Some([x, y]);
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

    /// As a map: the values of a column over x and y, the largest darkest.
    #[must_use]
    pub const fn map(mut self, column: &'static str) -> Self {
        self.colour = Some(column);
        self
    }

    /// A point for each row in the lane of its word in the column of y, beside that of a published value: no two lie on each other.
    #[must_use]
    pub const fn lanes(mut self) -> Self {
        self.has_lanes = true;
        self
    }

    /// Writes the pictures into `folder`; returns their names.
    ///
    /// # Errors
    /// A file that could not be written.
    pub fn write(&self, tables: &[Table], folder: &Path) -> Result<Vec<String>, Failure> {
        self.write_where(tables, folder, |_| true)
    }

    /// The same of the pictures that are in `folder` already.
    pub(crate) fn rewrite(&self, tables: &[Table], folder: &Path) -> Result<Vec<String>, Failure> {
        self.write_where(tables, folder, Path::exists)
    }

    fn write_where(
        &self,
        tables: &[Table],
        folder: &Path,
        is_wanted: impl Fn(&Path) -> bool,
    ) -> Result<Vec<String>, Failure> {
        let mut written = Vec::new();
        for (suffix, chart) in self.charts(tables) {
            let name = format!("{}{suffix}.svg", self.name);
            let path = folder.join(&name);
            if is_wanted(&path) {
                let picture = chart.svg(720.0, Colours::Standalone);
                std::fs::write(&path, picture).map_err(Failure::io(&path))?;
                written.push(name);
            }
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
        let limits = self
            .limits
            .iter()
            .filter_map(|limit| self.limit(rows, limit));
        let mut marks: Vec<Mark> = limits.collect();
        let mut lanes = Vec::new();
        if let Some(column) = self.colour {
            marks.push(self.heatmap(rows, column));
        } else if self.has_lanes {
            lanes = self.add_lanes(&mut marks, rows);
        } else {
            for (name, rows) in self.groups(rows) {
                self.add_line(&mut marks, name, &rows);
            }
        }
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
            y: axis(self.y, self.logarithmic[1]).of(lanes),
            marks,
        }
    }

    /// The values of a column, a row of cells for each y from the largest down.
    fn heatmap(&self, rows: &[&Row], column: &str) -> Mark {
        let places = |name: &str| {
            let mut places: Vec<f64> = rows.iter().map(|row| row.number(name)).collect();
            places.sort_by(f64::total_cmp);
            places.dedup();
            places
        };
        let (x, mut y) = (places(self.x.0), places(self.y.0));
        y.reverse();
        let names = |places: &[f64]| {
            let name = |place: &f64| Value::from(*place).to_string();
            places.iter().map(name).collect()
        };
        let mut values = vec![vec![f64::NAN; x.len()]; y.len()];
        for row in rows {
            let at = |places: &[f64], name: &str| {
                let own = row.number(name);
                places.iter().position(|place| *place == own)
            };
            if let (Some(i), Some(j)) = (at(&y, self.y.0), at(&x, self.x.0)) {
                values[i][j] = row.number(column);
            }
        }
        Mark::Heatmap {
            rows: names(&y),
            columns: names(&x),
            values,
        }
    }

    /// The rows of each line, with its name.
    fn groups<'a>(&self, rows: &[&'a Row]) -> Vec<(String, Vec<&'a Row>)> {
        let mut groups: Vec<(String, Vec<&Row>)> = Vec::new();
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
            match groups.iter_mut().find(|group| group.0 == name) {
                Some(group) => group.1.push(row),
                None => groups.push((name, vec![row])),
            }
        }
        groups
    }

    /// A line with its band, its error bars and its published points.
    fn add_line(&self, marks: &mut Vec<Mark>, name: String, rows: &[&Row]) {
        let rows = with_numbers(rows, [self.x.0, self.y.0]);
        let line = points(&rows, [self.x.0, self.y.0]);
        if line.is_empty() {
            return;
        }
        if let Some([lower, upper]) = self.band {
            let rows = with_numbers(&rows, [lower, upper]);
            let column = |name: &str| rows.iter().map(|row| row.number(name)).collect();
            marks.push(Mark::Band {
                name: String::new(),
                x: column(self.x.0),
                lower: column(lower),
                upper: column(upper),
            });
        }
        let errors = self.error.iter().flat_map(|column| {
            let errors = rows.iter().map(|row| row.number(column));
            errors.map(|error| if error.is_finite() { error } else { 0.0 })
        });
        marks.push(if self.is_scatter {
            Mark::Points {
                name: name.clone(),
                points: line,
            }
        } else {
            Mark::Line {
                has_points: line.len() <= 30,
                name: name.clone(),
                points: line,
                is_dashed: false,
                errors: errors.collect(),
            }
        });
        let published = self.published.map_or(Vec::new(), |columns| {
            points(&with_numbers(&rows, columns), columns)
        });
        if !published.is_empty() {
            marks.push(Mark::Points {
                name: format!("{name}, published"),
                points: published,
            });
        }
    }

    /// Points in lanes; gives the lanes' names from the bottom up.
    fn add_lanes(&self, marks: &mut Vec<Mark>, rows: &[&Row]) -> Vec<String> {
        let mut lanes: Vec<String> = Vec::new();
        for row in rows.iter().rev() {
            let own = row.text(self.y.0);
            if !lanes.iter().any(|lane| lane == own) {
                lanes.push(own.to_owned());
            }
        }
        // one above the other, should they be equal
        let of = |column: &str, above: f64| -> Vec<(f64, f64)> {
            let with_numbers = with_numbers(rows, [column; 2]).into_iter();
            let place = |row: &Row| lanes.iter().position(|lane| lane == row.text(self.y.0));
            let points = with_numbers.map(|row| (row.number(column), place(row)));
            points
                .filter_map(|(x, lane)| Some((x, lane? as f64 + above)))
                .collect()
        };
        marks.push(Mark::Points {
            name: "here".to_owned(),
            points: of(self.x.0, 0.15),
        });
        if let Some([column, _]) = self.published {
            marks.push(Mark::Points {
                name: "published".to_owned(),
                points: of(column, -0.15),
            });
        }
        lanes
    }

    /// A dashed line through each number of a column once, from left to right.
    fn limit(&self, rows: &[&Row], (column, label): &(&str, &str)) -> Option<Mark> {
        let columns = [self.x.0, *column];
        let mut points = points(&with_numbers(rows, columns), columns);
        points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        points.dedup();
        (!points.is_empty()).then(|| Mark::reference(*label, points))
    }
}

/// Rows with finite numbers in both columns.
fn with_numbers<'a>(rows: &[&'a Row], columns: [&str; 2]) -> Vec<&'a Row> {
    let are_finite = |row: &&&Row| columns.iter().all(|name| row.number(name).is_finite());
    rows.iter().filter(are_finite).copied().collect()
}

/// x and y of rows.
fn points(rows: &[&Row], [x, y]: [&str; 2]) -> Vec<(f64, f64)> {
    let point = |row: &&Row| (row.number(x), row.number(y));
    rows.iter().map(point).collect()
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_have_the_largest_y_at_the_top() {
        let row = |x: f64, y: f64| Row::new().with("x", x).with("y", y).with("v", x + 10.0 * y);
        let rows = vec![row(0.0, 0.0), row(1.0, 0.0), row(0.0, 1.0), row(1.0, 1.0)];
        let figure = Figure::lines("n", "t", "g", ("x", "x"), ("y", "y"), &[]).map("v");
        let charts = figure.charts(&Table::all(rows));
        let Mark::Heatmap { values, rows, .. } = &charts[0].1.marks[0] else {
            panic!("no map");
        };
        assert_eq!(rows, &["1", "0"]);
        assert_eq!(values, &[[10.0, 11.0], [0.0, 1.0]]);
    }

    /// What is drawn behind and beside lines is of their rows, and what is not there is not drawn.
    #[test]
    fn bands_limits_and_published_points() {
        let row = |method: &str, x: f64, y: f64| {
            Row::new()
                .with("method", method)
                .with("x", x)
                .with("y", y)
                .with("least", y - 1.0)
                .with("greatest", y + 2.0)
                .with("limit", if method == "a" { 5.0 } else { f64::NAN })
                .with("published", if x > 1.0 { y + 0.5 } else { f64::NAN })
        };
        let rows = vec![row("a", 2.0, 3.0), row("b", 1.0, 4.0), row("a", 1.0, 1.0)];
        let figure = Figure::lines("n", "t", "g", ("x", "x"), ("y", "y"), &["method"])
            .band("least", "greatest")
            .limits(&[("limit", "a limit"), ("none", "nothing")])
            .published("published");
        let charts = figure.charts(&Table::all(rows));
        let marks = &charts[0].1.marks;
        let names: Vec<&str> = marks.iter().map(Mark::name).collect();
        assert_eq!(names, ["a limit", "", "a", "a, published", "", "b"]);
        assert_eq!(
            marks[0],
            Mark::reference("a limit", vec![(1.0, 5.0), (2.0, 5.0)])
        );
        let band = Mark::Band {
            name: String::new(),
            x: vec![2.0, 1.0],
            lower: vec![2.0, 0.0],
            upper: vec![5.0, 3.0],
        };
        assert_eq!(marks[1], band);
        let published = Mark::Points {
            name: "a, published".to_owned(),
            points: vec![(2.0, 3.5)],
        };
        assert_eq!(marks[3], published);
    }
}
