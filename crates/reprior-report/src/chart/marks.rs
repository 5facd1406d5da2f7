//! From marks to the drawing library's plots and layout.

use super::drawing::Drawing;
use super::layout::layout;
use super::{Chart, Colours, Mark};

/// The drawing as the library makes it, and how much of its bottom is empty.
pub(super) fn draw(chart: &Chart, width: f64, colours: Colours) -> (String, f64) {
    let mut drawing = Drawing::new(chart, colours);
    // ticks are at the bottom of everything else
    let is_rug = |mark: &&Mark| matches!(mark, Mark::Rug { .. });
    for mark in chart.marks.iter().filter(|mark| !is_rug(mark)) {
        drawing.add(mark);
    }
    for mark in chart.marks.iter().filter(is_rug) {
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
            Mark::Intervals {
                name,
                intervals,
                is_thick,
            } => self.intervals(name, intervals, *is_thick),
            Mark::Rug { name, x } => self.rug(name, x),
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
}
