//! Bands, bars and the cells of heatmaps.

use std::sync::Arc;

use kuva::plot::legend::LegendShape;
use kuva::plot::{BandPlot, ColorMap, Heatmap, Histogram, LinePlot};
use kuva::render::plots::Plot;

use super::drawing::{DASHES, Drawing, prefix, style};
use super::layout::has_numbers;
use super::{Colours, Mark, thin};

impl Drawing<'_> {
    pub(super) fn band(&mut self, name: &str, x: &[f64], lower: &[f64], upper: &[f64]) {
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

    pub(super) fn bars(&mut self, name: &str, edges: &[f64], heights: &[f64]) {
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

    pub(super) fn heatmap(&mut self, rows: &[String], columns: &[String], values: &[Vec<f64>]) {
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
}
