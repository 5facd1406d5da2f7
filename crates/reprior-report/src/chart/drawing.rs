//! What is drawn so far: plots of the drawing library, the legend, the numbers that the axes must show.

use kuva::plot::ScatterPlot;
use kuva::plot::legend::{LegendEntry, LegendShape};
use kuva::plot::line::LineStyle;
use kuva::plot::scatter::MarkerShape;
use kuva::render::plots::Plot;

use super::layout::{LONGEST_LABEL, shorten};
use super::{Axis, Chart, Colours};

pub(super) const DASHES: [&str; 5] = ["", "8 4", "2 3", "9 3 2 3", "14 4"];
const MARKERS: [MarkerShape; 5] = [
    MarkerShape::Circle,
    MarkerShape::Square,
    MarkerShape::Triangle,
    MarkerShape::Diamond,
    MarkerShape::TriangleDown,
];
/// Plots, legend, and the ranges of what was drawn.
pub(super) struct Drawing<'a> {
    pub chart: &'a Chart,
    pub colours: Colours,
    pub plots: Vec<Plot>,
    pub legend: Vec<LegendEntry>,
    /// Of the next series.
    pub index: usize,
    /// Numbers that are drawn.
    pub x: Vec<f64>,
    pub y: Vec<f64>,
}

impl<'a> Drawing<'a> {
    pub fn new(chart: &'a Chart, colours: Colours) -> Self {
        Self {
            chart,
            colours,
            plots: Vec::new(),
            legend: Vec::new(),
            index: 0,
            x: Vec::new(),
            y: Vec::new(),
        }
    }

    /// Where a point is drawn; `None` if it cannot be.
    pub fn placed(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
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

    pub fn see(&mut self, points: &[(f64, f64)]) {
        self.x.extend(points.iter().map(|point| point.0));
        self.y.extend(points.iter().map(|point| point.1));
    }

    pub fn marker(&self) -> MarkerShape {
        MARKERS[self.index % MARKERS.len()]
    }

    pub fn markers(&mut self, name: &str, points: &[(f64, f64)], colour: &str, size: f64) {
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

    pub fn enter(&mut self, name: &str, colour: &str, shape: LegendShape, dash: &str) {
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

/// A dash pattern; none is a whole line.
pub(super) fn style(dash: &str) -> LineStyle {
    match dash {
        "" => LineStyle::Solid,
        dash => LineStyle::Custom(dash.to_owned()),
    }
}

/// A name before what is said.
pub(super) fn prefix(name: &str) -> String {
    match name {
        "" => String::new(),
        name => format!("{name}: "),
    }
}
