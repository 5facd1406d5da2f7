//! From marks to the drawing library's plots and layout.

use std::sync::Arc;

use kuva::plot::legend::{LegendEntry, LegendShape};
use kuva::plot::line::LineStyle;
use kuva::plot::scatter::MarkerShape;
use kuva::plot::{BandPlot, ColorMap, Heatmap, Histogram, LinePlot, ScatterPlot};
use kuva::render::plots::Plot;

use super::layout::{LONGEST_LABEL, has_numbers, layout, shorten};
use super::{Axis, Chart, Colours, Mark, thin};

const DASHES: [&str; 5] = ["", "8 4", "2 3", "9 3 2 3", "14 4"];
const MARKERS: [MarkerShape; 5] = [
    MarkerShape::Circle,
    MarkerShape::Square,
    MarkerShape::Triangle,
    MarkerShape::Diamond,
    MarkerShape::TriangleDown,
];
/// Lines of more points are not dashed (dashes would be lost in their zigzag) but get a few markers.
const LONG: usize = 60;
/// Markers of a long line.
const MARKERS_OF_LONG: usize = 8;

/// Plots, legend, and the ranges of what was drawn.
struct Drawing<'a> {
    chart: &'a Chart,
    colours: Colours,
    plots: Vec<Plot>,
    legend: Vec<LegendEntry>,
    /// Of the next series.
    index: usize,
    /// Numbers that are drawn.
    x: Vec<f64>,
    y: Vec<f64>,
}

/// A point and the half-width of its error bar.
type WithError = ((f64, f64), f64);

/// The drawing as the library makes it, and how much of its bottom is empty.
pub(super) fn draw(chart: &Chart, width: f64, colours: Colours) -> (String, f64) {
    let mut drawing = Drawing {
        chart,
        colours,
        plots: Vec::new(),
        legend: Vec::new(),
        index: 0,
        x: Vec::new(),
        y: Vec::new(),
    };
    for mark in &chart.marks {
        drawing.add(mark);
    }
    let seen = [drawing.x.as_slice(), &drawing.y];
    let layout = layout(chart, width, colours, drawing.legend, seen);
    let spare = if layout.show_legend { 20.0 } else { 0.0 };
    (kuva::render_to_svg(drawing.plots, layout), spare)
}

impl Drawing<'_> {
    fn add(&mut self, mark: &Mark) {
        match mark {
            Mark::Line {
                name,
                points,
                is_dashed,
                has_points,
                errors,
            } => self.line(name, points, *is_dashed, *has_points, errors),
            Mark::Points { name, points } => self.points(name, points),
            Mark::Band {
                name,
                x,
                lower,
                upper,
            } => self.band(name, x, lower, upper),
            Mark::Bars {
                name,
                edges,
                heights,
            } => self.bars(name, edges, heights),
            Mark::Heatmap {
                rows,
                columns,
                values,
            } => self.heatmap(rows, columns, values),
        }
    }

    fn line(
        &mut self,
        name: &str,
        points: &[(f64, f64)],
        is_dashed: bool,
        has_points: bool,
        errors: &[f64],
    ) {
        // what is only for comparison takes none of the colours
        let is_reference = is_dashed && !has_points;
        let colour = match is_reference {
            true => self.colours.quiet().to_owned(),
            false => self.colours.series(self.index),
        };
        let is_long = points.len() > LONG && !is_dashed;
        let dash = match (is_dashed, is_long) {
            (true, _) => "6 4",
            (false, true) => "",
            (false, false) => DASHES[self.index % DASHES.len()],
        };
        let segments = self.segments(points, errors);
        for segment in &segments {
            let places: Vec<(f64, f64)> = segment.iter().map(|(point, _)| *point).collect();
            let mut plot = LinePlot::new()
                .with_data(places)
                .with_color(colour.as_str())
                .with_stroke_width(if is_long { 1.2 } else { 1.8 })
                .with_line_style(style(dash));
            if !errors.is_empty() {
                plot = plot.with_y_err(segment.iter().map(|(_, error)| *error));
            }
            self.plots.push(Plot::Line(plot));
        }
        let point = |(point, _): &WithError| *point;
        let all: Vec<(f64, f64)> = segments.iter().flatten().map(point).collect();
        let marked: Vec<(f64, f64)> = if has_points {
            all
        } else if is_long {
            // each series starts elsewhere, so that markers do not fall on one another
            let every = all.len().div_ceil(MARKERS_OF_LONG).max(1);
            let start = (self.index * every / 5) % every;
            all.into_iter().skip(start).step_by(every).collect()
        } else {
            // a line through one point is not seen
            let single = segments.iter().filter(|segment| segment.len() == 1);
            single.flatten().map(point).collect()
        };
        let size = if has_points { 3.5 } else { 4.0 };
        self.markers(name, &marked, &colour, size);
        let shape = match (has_points || is_long) && dash.is_empty() {
            true => LegendShape::Marker(self.marker()),
            false => LegendShape::Line,
        };
        self.enter(name, &colour, shape, dash);
        self.index += usize::from(!is_reference);
    }

    /// A line's points between those that cannot be placed.
    fn segments(&mut self, points: &[(f64, f64)], errors: &[f64]) -> Vec<Vec<WithError>> {
        let mut segments = vec![Vec::new()];
        for index in thin::line(points) {
            let Some(point) = self.placed(points[index]) else {
                segments.push(Vec::new());
                continue;
            };
            // an end that cannot be placed is not drawn
            let error = errors.get(index).map_or(0.0, |error| error.abs());
            let ends = [point.1 - error, point.1 + error];
            let error = match ends.iter().all(|end| self.chart.y.places(*end)) {
                true => error,
                false => 0.0,
            };
            self.see(&[(point.0, point.1 - error), (point.0, point.1 + error)]);
            if let Some(segment) = segments.last_mut() {
                segment.push((point, error));
            }
        }
        segments.retain(|segment| !segment.is_empty());
        segments
    }

    fn points(&mut self, name: &str, points: &[(f64, f64)]) {
        let colour = self.colours.series(self.index);
        let kept = thin::even(points.len()).into_iter();
        let placed: Vec<_> = kept.filter_map(|at| self.placed(points[at])).collect();
        self.see(&placed);
        self.markers(name, &placed, &colour, 3.0);
        let shape = LegendShape::Marker(self.marker());
        self.enter(name, &colour, shape, "");
        self.index += 1;
    }

    fn band(&mut self, name: &str, x: &[f64], lower: &[f64], upper: &[f64]) {
        let colour = self.colours.series(self.index);
        let count = x.len().min(lower.len()).min(upper.len());
        let (mut at, mut low, mut high) = (Vec::new(), Vec::new(), Vec::new());
        for index in thin::even(count) {
            let bottom = self.placed((x[index], lower[index]));
            let top = self.placed((x[index], upper[index]));
            if let (Some(bottom), Some(top)) = (bottom, top) {
                at.push(bottom.0);
                low.push(bottom.1);
                high.push(top.1);
            }
        }
        self.x.extend(&at);
        self.y.extend(low.iter().chain(&high));
        let band = BandPlot::new(at, low, high)
            .with_color(colour.as_str())
            .with_opacity(0.25);
        self.plots.push(Plot::Band(band));
        self.enter(name, &colour, LegendShape::Rect, "");
    }

    fn bars(&mut self, name: &str, edges: &[f64], heights: &[f64]) {
        let (x, y) = (&self.chart.x, &self.chart.y);
        let colour = self.colours.series(self.index);
        let others = self.chart.marks.iter();
        let is_alone = others
            .filter(|mark| matches!(mark, Mark::Bars { .. }))
            .count()
            < 2;
        let bars: Vec<([f64; 2], f64)> = edges
            .windows(2)
            .zip(heights)
            .map(|(pair, height)| ([pair[0], pair[1]], *height))
            .filter(|(pair, height)| pair.iter().all(|edge| x.places(*edge)) && y.places(*height))
            .collect();
        for (pair, height) in &bars {
            self.x.extend(pair);
            self.y.push(*height);
            if !y.is_logarithmic {
                self.y.push(0.0);
            }
        }
        if is_alone {
            for (pair, height) in bars {
                let [from, to] = pair.map(super::figure);
                let tip = format!("{}{from} to {to}: {}", prefix(name), super::figure(height));
                let bar = Histogram::from_bins(pair.to_vec(), vec![height])
                    .with_color(colour.as_str())
                    .with_tooltip_labels(vec![tip]);
                self.plots.push(Plot::Histogram(bar));
            }
            self.enter(name, &colour, LegendShape::Rect, "");
        } else {
            self.outline(name, &bars, &colour);
        }
        self.index += 1;
    }

    /// Filled bars of several series would hide one another: outlines do not.
    fn outline(&mut self, name: &str, bars: &[([f64; 2], f64)], colour: &str) {
        let mut outline = Vec::new();
        for (pair, height) in bars {
            outline.extend([(pair[0], *height), (pair[1], *height)]);
        }
        if let (false, Some(first), Some(last)) =
            (self.chart.y.is_logarithmic, bars.first(), bars.last())
        {
            outline.insert(0, (first.0[0], 0.0));
            outline.push((last.0[1], 0.0));
        }
        let dash = DASHES[self.index % DASHES.len()];
        let line = LinePlot::new()
            .with_data(outline)
            .with_color(colour)
            .with_line_style(style(dash));
        self.plots.push(Plot::Line(line));
        let middle = |[low, high]: [f64; 2]| low + (high - low) / 2.0;
        let tops = bars.iter().map(|(pair, height)| (middle(*pair), *height));
        self.markers(name, &tops.collect::<Vec<_>>(), colour, 2.5);
        self.enter(name, colour, LegendShape::Line, dash);
    }

    fn heatmap(&mut self, rows: &[String], columns: &[String], values: &[Vec<f64>]) {
        let width = values.iter().map(Vec::len).max().unwrap_or(0);
        if width == 0 || !values.iter().flatten().any(|value| value.is_finite()) {
            return;
        }
        let name = |names: &[String], index: usize| names.get(index).cloned().unwrap_or_default();
        let (mut cells, mut tips) = (Vec::new(), Vec::new());
        // the library's first row is at the bottom
        for (index, row) in values.iter().enumerate().rev() {
            let value = |column: usize| match row.get(column) {
                Some(value) if value.is_finite() => *value,
                _ => f64::NAN,
            };
            cells.push((0..width).map(value).collect::<Vec<f64>>());
            tips.extend((0..width).map(|column| {
                format!(
                    "{}, {}: {}",
                    name(rows, index),
                    name(columns, column),
                    super::figure(row.get(column).copied().unwrap_or(f64::NAN))
                )
            }));
        }
        let height = cells.len();
        self.x.extend([0.0, width as f64 - 1.0]);
        self.y.extend([0.0, height as f64 - 1.0]);
        let has_numbers = has_numbers(values);
        let mut map = Heatmap::new()
            .with_data(cells)
            .with_color_map(ColorMap::Custom(Arc::new(Colours::cell)))
            .with_tooltip_labels(tips);
        if has_numbers {
            map = map.with_values();
        }
        self.plots.push(Plot::Heatmap(map));
    }

    /// Where a point is drawn; `None` if it cannot be.
    fn placed(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        let (x_axis, y_axis) = (&self.chart.x, &self.chart.y);
        if !x_axis.places(x) || !y_axis.places(y) {
            return None;
        }
        // the library counts categories from one
        let shift = |axis: &Axis, value: f64| match axis.categories.is_empty() {
            true => value,
            false => value + 1.0,
        };
        Some((shift(x_axis, x), shift(y_axis, y)))
    }

    fn see(&mut self, points: &[(f64, f64)]) {
        self.x.extend(points.iter().map(|point| point.0));
        self.y.extend(points.iter().map(|point| point.1));
    }

    fn marker(&self) -> MarkerShape {
        MARKERS[self.index % MARKERS.len()]
    }

    fn markers(&mut self, name: &str, points: &[(f64, f64)], colour: &str, size: f64) {
        if points.is_empty() {
            return;
        }
        let (x, y) = (&self.chart.x, &self.chart.y);
        let say = |axis: &Axis, value: f64| match axis.categories.is_empty() {
            true => super::figure(value),
            false => {
                let at = value - 1.0;
                let name = axis.categories.get(at.max(0.0) as usize);
                name.cloned().unwrap_or_else(|| super::figure(at))
            }
        };
        let tip = |point: &(f64, f64)| {
            format!("{}{}, {}", prefix(name), say(x, point.0), say(y, point.1))
        };
        let tips: Vec<String> = points.iter().map(tip).collect();
        let plot = ScatterPlot::new()
            .with_data(points.iter().copied())
            .with_color(colour)
            .with_marker(self.marker())
            .with_size(size)
            .with_tooltip_labels(tips);
        self.plots.push(Plot::Scatter(plot));
    }

    fn enter(&mut self, name: &str, colour: &str, shape: LegendShape, dash: &str) {
        if !name.is_empty() {
            self.legend.push(LegendEntry {
                label: shorten(name, 2 * LONGEST_LABEL),
                color: colour.to_owned(),
                shape,
                dasharray: (!dash.is_empty()).then(|| dash.to_owned()),
            });
        }
    }
}

fn style(dash: &str) -> LineStyle {
    match dash {
        "" => LineStyle::Solid,
        dash => LineStyle::Custom(dash.to_owned()),
    }
}

fn prefix(name: &str) -> String {
    match name {
        "" => String::new(),
        name => format!("{name}: "),
    }
}
