//! The layout of a drawing: its size, the ranges of its axes, labels and the legend.

use kuva::plot::legend::LegendPosition;
use kuva::render::layout::{AxisLabelOverlap, Layout};

use super::drawing::{Drawing, has_numbers};
use super::{Axis, Colours, Mark, scale};

/// Labels of categories longer than this are cut: their tooltips and the table have them whole.
pub(super) const LONGEST_LABEL: usize = 20;

impl Drawing<'_> {
    /// Sizes, ranges, labels and the legend.
    pub fn layout(&mut self, width: f64) -> Layout {
        let heatmap = self.chart.marks.iter().find_map(|mark| match mark {
            Mark::Heatmap {
                rows,
                columns,
                values,
            } => Some((rows, columns, values)),
            _ => None,
        });
        let is_empty = self.x.is_empty();
        let (x_axis, y_axis) = (&self.chart.x, &self.chart.y);
        let mut x_categories = x_axis.categories.clone();
        let mut y_categories = y_axis.categories.clone();
        if let (Some((rows, columns, values)), false) = (heatmap, is_empty) {
            let widest = values.iter().map(Vec::len).max().unwrap_or(0);
            x_categories = columns.clone();
            x_categories.resize(widest, String::new());
            y_categories = rows.clone();
            y_categories.resize(values.len(), String::new());
            y_categories.reverse();
        }
        let x = self.axis_range(x_axis, &x_categories, &self.x);
        let y = self.axis_range(y_axis, &y_categories, &self.y);
        let mut layout = Layout::new(x, y)
            .with_theme(self.colours.theme())
            .with_width(width)
            .with_x_label(shorten(&x_axis.label, (width / 8.0) as usize))
            .with_label_size(13)
            .with_tick_size(12)
            .with_ticks(((width / 80.0) as usize).clamp(3, 7))
            .with_x_label_overlap(AxisLabelOverlap::Thin)
            .with_x_tick_format(scale::ticks(x, x_axis.is_logarithmic))
            .with_y_tick_format(scale::ticks(y, y_axis.is_logarithmic));
        layout.log_x = x_axis.is_logarithmic && x_categories.is_empty();
        layout.log_y = y_axis.is_logarithmic && y_categories.is_empty();
        // exactly these: the library would round them outwards
        if x_categories.is_empty() {
            layout = layout.with_x_axis_min(x.0).with_x_axis_max(x.1);
        }
        if y_categories.is_empty() {
            layout = layout.with_y_axis_min(y.0).with_y_axis_max(y.1);
        }
        let mut height = (width * 0.55).clamp(220.0, 420.0);
        layout = layout.with_y_label(shorten(&y_axis.label, (height / 7.5) as usize));
        if heatmap.is_some() {
            let rows = y_categories.len().max(1) as f64;
            height = (rows * 26.0 + 90.0).clamp(160.0, 900.0);
            let values = heatmap.map_or(&[][..], |(_, _, values)| values);
            let finite = || values.iter().flatten().filter(|value| value.is_finite());
            // a colour bar of one colour says nothing, and numbers say more
            let first = finite().next();
            let varies = first.is_some_and(|first| finite().any(|other| other != first));
            layout.show_colorbar = varies && !has_numbers(values);
        }
        if self.colours == Colours::Standalone && !self.chart.title.is_empty() {
            let wrap = (width / 9.0) as usize;
            layout = layout
                .with_title(self.chart.title.as_str())
                .with_title_size(15)
                .with_title_wrap(wrap);
            height += 40.0;
        }
        if is_empty {
            layout = layout
                .with_stats_box(vec!["no data"])
                .with_stats_box_border(false);
            layout.stats_position = LegendPosition::InsideTopLeft;
            layout.suppress_x_ticks = true;
            layout.suppress_y_ticks = true;
        }
        if self.legend.len() > 1 {
            for entry in &mut self.legend {
                entry.label = shorten(&entry.label, (width / 9.0) as usize);
            }
            let longest = self
                .legend
                .iter()
                .map(|entry| entry.label.chars().count())
                .max();
            let columns =
                (0.85 * width / (50.0 + 7.5 * longest.unwrap_or(0) as f64)).max(1.0) as usize;
            height += 30.0 + 18.0 * self.legend.len().div_ceil(columns) as f64;
            layout = layout
                .with_legend_entries(std::mem::take(&mut self.legend))
                .with_legend_position(LegendPosition::OutsideBottomColumns)
                .with_legend_col_limit(columns)
                .with_legend_box(false);
            layout.show_legend = true;
        }
        let x_labels = cut(&x_categories);
        let letters = x_labels
            .iter()
            .map(|label| label.chars().count())
            .max()
            .unwrap_or(0) as f64;
        if letters * 7.5 * x_labels.len() as f64 > 0.75 * width {
            layout = layout
                .with_x_tick_rotate(-60.0)
                .with_x_label_overlap(AxisLabelOverlap::Allow);
            height += 6.0 * letters;
        }
        layout = layout.with_height(height);
        if !x_categories.is_empty() {
            layout = layout.with_x_categories(x_labels);
        }
        if !y_categories.is_empty() {
            layout = layout.with_y_categories(cut(&y_categories));
        }
        layout
    }

    fn axis_range(&self, axis: &Axis, categories: &[String], seen: &[f64]) -> (f64, f64) {
        if !categories.is_empty() {
            return (0.5, categories.len() as f64 + 0.5);
        }
        let asked = axis
            .range
            .filter(|(low, high)| axis.places(*low) && axis.places(*high) && low < high);
        let empty = match axis.is_logarithmic {
            true => (1.0, 10.0),
            false => (0.0, 1.0),
        };
        if let Some(range) = asked {
            return scale::widen(range, axis.is_logarithmic);
        }
        let seen = scale::range(seen.iter().copied()).unwrap_or(empty);
        let range = scale::widen(seen, axis.is_logarithmic);
        let has_bars = (self.chart.marks.iter()).any(|mark| matches!(mark, Mark::Bars { .. }));
        scale::pad(range, axis.is_logarithmic, has_bars)
    }
}

fn cut(names: &[String]) -> Vec<String> {
    names
        .iter()
        .map(|name| shorten(name, LONGEST_LABEL))
        .collect()
}

/// At most `most` characters. A dollar sign would start a formula.
pub(super) fn shorten(text: &str, most: usize) -> String {
    let mut short: String = match text.chars().count() > most {
        true => text
            .chars()
            .take(most.saturating_sub(1))
            .chain(['…'])
            .collect(),
        false => text.to_owned(),
    };
    if short.contains('$') {
        short = short.replace('$', "＄");
    }
    short
}
