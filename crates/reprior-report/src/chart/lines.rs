//! Lines, points, intervals and ticks.

use kuva::plot::LinePlot;
use kuva::plot::legend::LegendShape;
use kuva::render::plots::Plot;

use super::drawing::{DASHES, Drawing, style};
use super::{scale, thin};

/// Lines of more points are not dashed (dashes would be lost in their zigzag) but get a few markers.
const LONG: usize = 60;
/// Markers of a long line.
const MARKERS_OF_LONG: usize = 8;

/// A point and the half-width of its error bar.
type WithError = ((f64, f64), f64);

impl Drawing<'_> {
    pub(super) fn line(
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

    pub(super) fn points(&mut self, name: &str, points: &[(f64, f64)]) {
        let colour = self.colours.series(self.index);
        let kept = thin::even(points.len()).into_iter();
        let placed: Vec<_> = kept.filter_map(|at| self.placed(points[at])).collect();
        self.see(&placed);
        self.markers(name, &placed, &colour, 3.0);
        let shape = LegendShape::Marker(self.marker());
        self.enter(name, &colour, shape, "");
        self.index += 1;
    }

    /// In the colour of the next series, as bands are.
    pub(super) fn intervals(&mut self, name: &str, intervals: &[(f64, f64, f64)], is_thick: bool) {
        let colour = self.colours.series(self.index);
        for index in thin::even(intervals.len()) {
            let (x, low, high) = intervals[index];
            let ends = (self.placed((x, low)), self.placed((x, high)));
            if let (Some(low), Some(high)) = ends {
                self.see(&[low, high]);
                self.stroke([low, high], &colour, if is_thick { 4.0 } else { 1.0 });
            }
        }
        self.enter(name, &colour, LegendShape::Line, "");
    }

    pub(super) fn rug(&mut self, name: &str, x: &[f64]) {
        let colour = self.colours.quiet();
        let Some((low, high)) = scale::range(self.y.iter().copied()) else {
            return;
        };
        let height = (high - low).max(f64::MIN_POSITIVE);
        let [from, to] = [low - 0.07 * height, low - 0.02 * height];
        for index in thin::even(x.len()) {
            let ends = [from, to].map(|y| self.placed((x[index], y)));
            if let [Some(from), Some(to)] = ends {
                self.see(&[from, to]);
                self.stroke([from, to], colour, 1.0);
            }
        }
        self.enter(name, colour, LegendShape::Line, "");
    }

    fn stroke(&mut self, ends: [(f64, f64); 2], colour: &str, width: f64) {
        let plot = LinePlot::new()
            .with_data(ends)
            .with_color(colour)
            .with_stroke_width(width);
        self.plots.push(Plot::Line(plot));
    }
}
