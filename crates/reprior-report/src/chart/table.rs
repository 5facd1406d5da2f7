//! The data of a chart as a table.

use super::{Axis, Chart, Mark, thin};

/// A number as people write it: six significant digits, without trailing zeros.
pub fn figure(value: f64) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let size = value.abs().log10().floor();
    if !(-4.0..9.0).contains(&size) {
        let text = format!("{value:.5e}");
        return match text.split_once('e') {
            Some((mantissa, exponent)) => {
                let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
                format!("{mantissa}e{exponent}")
            }
            None => text,
        };
    }
    let decimals = (5.0 - size).max(0.0) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

fn place(axis: &Axis, value: f64) -> String {
    let is_index = value >= 0.0 && value.fract() == 0.0;
    match axis.categories.get(value as usize) {
        Some(name) if is_index => name.clone(),
        _ => figure(value),
    }
}

fn or<'a>(text: &'a str, other: &'a str) -> &'a str {
    if text.is_empty() { other } else { text }
}

/// Column names and rows: one column per series where all have the same x, otherwise one row per point of each series.
pub(super) fn table(chart: &Chart) -> (Vec<String>, Vec<Vec<String>>) {
    if let Some(heatmap) = chart.marks.iter().find_map(of_heatmap) {
        return heatmap;
    }
    let x_name = or(&chart.x.label, "x").to_owned();
    let y_name = or(&chart.y.label, "y").to_owned();
    let series: Vec<SeriesColumn> = chart
        .marks
        .iter()
        .map(|mark| SeriesColumn::new(mark, chart))
        .collect();
    let shares_x = series.windows(2).all(|pair| pair[0].x == pair[1].x);
    if shares_x && let Some(first) = series.first() {
        let mut names = vec![x_name];
        for one in &series {
            names.extend(one.columns.iter().map(|column| {
                let parts = [one.name.as_str(), column].into_iter();
                let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
                or(&parts.join(", "), &y_name).to_owned()
            }));
        }
        let row = |index: usize| {
            let cells = series
                .iter()
                .flat_map(|one| one.rows[index].iter().cloned());
            std::iter::once(first.x[index].clone())
                .chain(cells)
                .collect()
        };
        return (names, (0..first.x.len()).map(row).collect());
    }
    let widest = series
        .iter()
        .map(|one| one.columns.len())
        .max()
        .unwrap_or(1);
    let mut names = vec!["series".to_owned(), x_name, y_name];
    // a band has two numbers where a line has one
    names.extend((1..widest).map(|index| match index {
        1 => "to, or plus or minus".to_owned(),
        _ => format!("column {index}"),
    }));
    let mut rows = Vec::new();
    for one in &series {
        for (x, values) in one.x.iter().zip(&one.rows) {
            let mut row = vec![one.name.clone(), x.clone()];
            row.extend(values.iter().cloned());
            row.resize(names.len(), String::new());
            rows.push(row);
        }
    }
    (names, rows)
}

struct SeriesColumn {
    name: String,
    columns: Vec<&'static str>,
    x: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl SeriesColumn {
    fn new(mark: &Mark, chart: &Chart) -> Self {
        let (x, y) = (&chart.x, &chart.y);
        let name = mark.name().to_owned();
        let of_points = |points: &[(f64, f64)], kept: Vec<usize>, errors: &[f64]| {
            let row = |&index: &usize| {
                let mut row = vec![place(y, points[index].1)];
                row.extend(errors.get(index).map(|error| figure(*error)));
                row.resize(if errors.is_empty() { 1 } else { 2 }, String::new());
                row
            };
            let columns = match errors.is_empty() {
                true => vec![""],
                false => vec!["", "plus or minus"],
            };
            Self {
                name: name.clone(),
                columns,
                x: kept
                    .iter()
                    .map(|&index| place(x, points[index].0))
                    .collect(),
                rows: kept.iter().map(row).collect(),
            }
        };
        match mark {
            Mark::Line { points, errors, .. } => of_points(points, thin::line(points), errors),
            Mark::Points { points, .. } => of_points(points, thin::even(points.len()), &[]),
            Mark::Band {
                x: at,
                lower,
                upper,
                ..
            } => {
                let count = at.len().min(lower.len()).min(upper.len());
                let kept = thin::even(count);
                Self {
                    name,
                    columns: vec!["from", "to"],
                    x: kept.iter().map(|&index| place(x, at[index])).collect(),
                    rows: kept
                        .iter()
                        .map(|&index| vec![figure(lower[index]), figure(upper[index])])
                        .collect(),
                }
            }
            Mark::Intervals { intervals, .. } => {
                let kept = thin::even(intervals.len());
                let ends = |&index: &usize| vec![intervals[index].1, intervals[index].2];
                let row = |ends: Vec<f64>| ends.into_iter().map(figure).collect();
                Self {
                    name,
                    columns: vec!["from", "to"],
                    x: kept
                        .iter()
                        .map(|&index| place(x, intervals[index].0))
                        .collect(),
                    rows: kept.iter().map(ends).map(row).collect(),
                }
            }
            Mark::Rug { x: at, .. } => {
                let kept = thin::even(at.len());
                Self {
                    name,
                    columns: vec![""],
                    x: kept.iter().map(|&index| place(x, at[index])).collect(),
                    rows: kept.iter().map(|_| vec![String::new()]).collect(),
                }
            }
            Mark::Bars { edges, heights, .. } => Self {
                name,
                columns: vec![""],
                x: edges
                    .windows(2)
                    .take(heights.len())
                    .map(|pair| format!("{} to {}", figure(pair[0]), figure(pair[1])))
                    .collect(),
                rows: heights.iter().map(|height| vec![figure(*height)]).collect(),
            }
            .trimmed(),
            Mark::Heatmap { .. } => Self {
                name,
                columns: vec![""],
                x: Vec::new(),
                rows: Vec::new(),
            },
        }
    }

    /// As many places as rows.
    fn trimmed(mut self) -> Self {
        self.rows.truncate(self.x.len());
        self
    }
}

fn of_heatmap(mark: &Mark) -> Option<(Vec<String>, Vec<Vec<String>>)> {
    let Mark::Heatmap {
        rows,
        columns,
        values,
    } = mark
    else {
        return None;
    };
    let names = std::iter::once(String::new()).chain(columns.iter().cloned());
    let row = |(index, values): (usize, &Vec<f64>)| {
        let name = rows.get(index).cloned().unwrap_or_default();
        let cells = values.iter().map(|value| figure(*value));
        std::iter::once(name).chain(cells).collect()
    };
    Some((
        names.collect(),
        values.iter().enumerate().map(row).collect(),
    ))
}
