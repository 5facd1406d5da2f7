//! From marks to the drawing library's plots and layout.

use std::sync::Arc;

use kuva::plot::legend::{LegendEntry, LegendShape};
use kuva::plot::line::LineStyle;
use kuva::plot::scatter::MarkerShape;
use kuva::plot::{BandPlot, ColorMap, Heatmap, Histogram, LinePlot, ScatterPlot};
use kuva::render::plots::Plot;

use super::layout::{LONGEST_LABEL, shorten};
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
/// Columns of a heatmap whose cells have numbers, at most.
const MOST_NUMBERED: usize = 12;

/// Plots, legend, and the ranges of what was drawn.
pub(super) struct Drawing<'a> {
    pub chart: &'a Chart,
    pub colours: Colours,
    plots: Vec<Plot>,
    pub legend: Vec<LegendEntry>,
    /// Of the next series.
    index: usize,
    /// Numbers that are drawn.
    pub x: Vec<f64>,
    pub y: Vec<f64>,
}

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
    let layout = drawing.layout(width);
    let spare = if layout.show_legend { 20.0 } else { 0.0 };
    let plots = drawing.plots;
    (kuva::render_to_svg(plots, layout), spare)
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
            Mark::Points { name, points } => {
                let colour = self.colours.series(self.index);
                let kept = thin::even(points.len());
                let points = kept
                    .into_iter()
                    .filter_map(|index| self.placed(points[index]));
                let points: Vec<_> = points.collect();
                let marker = self.marker();
                self.see(&points);
                self.markers(name, &points, &colour, marker, 3.0);
                self.enter(name, &colour, LegendShape::Marker(marker), None);
                self.index += 1;
            }
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
        let style = match dash {
            "" => LineStyle::Solid,
            dash => LineStyle::Custom(dash.to_owned()),
        };
        let kept = thin::line(points);
        let mut segment: Vec<((f64, f64), f64)> = Vec::new();
        let mut all = Vec::new();
        let mut plots = Vec::new();
        let mut end_segment = |segment: &mut Vec<((f64, f64), f64)>, single: &mut Vec<_>| {
            if segment.len() == 1 {
                single.push(segment[0].0);
            }
            if !segment.is_empty() {
                let places: Vec<(f64, f64)> = segment.iter().map(|(point, _)| *point).collect();
                let mut plot = LinePlot::new()
                    .with_data(places)
                    .with_color(colour.as_str())
                    .with_stroke_width(if is_long { 1.2 } else { 1.8 })
                    .with_line_style(style.clone());
                if !errors.is_empty() {
                    plot = plot.with_y_err(segment.iter().map(|(_, error)| *error));
                }
                plots.push(Plot::Line(plot));
            }
            segment.clear();
        };
        let mut single = Vec::new();
        for index in kept {
            let error = errors.get(index).copied().unwrap_or(0.0);
            match self.placed(points[index]) {
                Some(point) => {
                    // an end that cannot be placed is not drawn
                    let low = self.chart.y.places(point.1 - error.abs());
                    let high = self.chart.y.places(point.1 + error.abs());
                    let error = if low && high { error.abs() } else { 0.0 };
                    self.y.extend([point.1 - error, point.1 + error]);
                    segment.push((point, error));
                    all.push(point);
                }
                None => end_segment(&mut segment, &mut single),
            }
        }
        end_segment(&mut segment, &mut single);
        self.plots.append(&mut plots);
        self.see(&all);
        let marker = self.marker();
        let marked: Vec<(f64, f64)> = if has_points {
            all
        } else if is_reference {
            single
        } else if is_long {
            // each series starts elsewhere, so that markers do not fall on one another
            let every = all.len().div_ceil(MARKERS_OF_LONG).max(1);
            let start = (self.index * every / 5) % every;
            all.into_iter().skip(start).step_by(every).collect()
        } else {
            single
        };
        let has_marker = has_points || is_long;
        self.markers(
            name,
            &marked,
            &colour,
            marker,
            if has_points { 3.5 } else { 4.0 },
        );
        let shape = match has_marker && dash.is_empty() {
            true => LegendShape::Marker(marker),
            false => LegendShape::Line,
        };
        let dash = Some(dash.to_owned()).filter(|dash| !dash.is_empty());
        self.enter(name, &colour, shape, dash);
        self.index += usize::from(!is_reference);
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
        self.enter(name, &colour, LegendShape::Rect, None);
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
                let tip = format!(
                    "{}{} to {}: {}",
                    prefix(name),
                    super::figure(pair[0]),
                    super::figure(pair[1]),
                    super::figure(height)
                );
                let bar = Histogram::from_bins(pair.to_vec(), vec![height])
                    .with_color(colour.as_str())
                    .with_tooltip_labels(vec![tip]);
                self.plots.push(Plot::Histogram(bar));
            }
            self.enter(name, &colour, LegendShape::Rect, None);
        } else {
            // filled bars would hide one another: outlines do not
            let mut outline = Vec::new();
            let floor = if y.is_logarithmic { None } else { Some(0.0) };
            for (pair, height) in &bars {
                outline.extend([(pair[0], *height), (pair[1], *height)]);
            }
            if let (Some(floor), Some(first), Some(last)) = (floor, bars.first(), bars.last()) {
                outline.insert(0, (first.0[0], floor));
                outline.push((last.0[1], floor));
            }
            let dash = DASHES[self.index % DASHES.len()];
            let style = match dash {
                "" => LineStyle::Solid,
                dash => LineStyle::Custom(dash.to_owned()),
            };
            let line = LinePlot::new()
                .with_data(outline)
                .with_color(colour.as_str())
                .with_line_style(style);
            self.plots.push(Plot::Line(line));
            let tops: Vec<(f64, f64)> = bars
                .iter()
                .map(|(pair, height)| (pair[0] + (pair[1] - pair[0]) / 2.0, *height))
                .collect();
            let marker = self.marker();
            self.markers(name, &tops, &colour, marker, 2.5);
            let dash = Some(dash.to_owned()).filter(|dash| !dash.is_empty());
            self.enter(name, &colour, LegendShape::Line, dash);
        }
        self.index += 1;
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

    fn markers(
        &mut self,
        name: &str,
        points: &[(f64, f64)],
        colour: &str,
        marker: MarkerShape,
        size: f64,
    ) {
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
            .with_marker(marker)
            .with_size(size)
            .with_tooltip_labels(tips);
        self.plots.push(Plot::Scatter(plot));
    }

    fn enter(&mut self, name: &str, colour: &str, shape: LegendShape, dasharray: Option<String>) {
        if !name.is_empty() {
            self.legend.push(LegendEntry {
                label: shorten(name, 2 * LONGEST_LABEL),
                color: colour.to_owned(),
                shape,
                dasharray,
            });
        }
    }
}

/// Whether the cells of a heatmap have place for numbers, and two decimals are right for them.
pub(super) fn has_numbers(values: &[Vec<f64>]) -> bool {
    let width = values.first().map_or(0, Vec::len);
    let mut rows = values.iter();
    width <= MOST_NUMBERED
        && rows.all(|row| {
            row.len() == width && row.iter().all(|value| value.abs() < 10.0 || value.is_nan())
        })
}

fn prefix(name: &str) -> String {
    match name {
        "" => String::new(),
        name => format!("{name}: "),
    }
}
