//! The layout of a drawing: its size, the ranges of its axes, labels and the legend.

use kuva::plot::legend::{LegendEntry, LegendPosition};
use kuva::render::layout::{AxisLabelOverlap, Layout};

use super::{Axis, Chart, Colours, Mark, scale};

/// Labels of categories longer than this are cut: their tooltips and the table have them whole.
pub(super) const LONGEST_LABEL: usize = 20;
/// Columns of a heatmap whose cells have numbers, at most.
const MOST_NUMBERED: usize = 12;

/// Sizes, ranges, labels and the legend of a drawing; `seen` are the numbers along x and y that are drawn.
pub(super) fn layout(
    chart: &Chart,
    width: f64,
    colours: Colours,
    legend: Vec<LegendEntry>,
    seen: [&[f64]; 2],
) -> Layout {
    let is_empty = seen[0].is_empty();
    let heatmap = chart.marks.iter().find_map(|mark| match mark {
        Mark::Heatmap { values, .. } => Some(values.as_slice()),
        _ => None,
    });
    let categories = categories(chart, is_empty);
    let mut sheet = Sheet::new(chart, width, colours, &categories, seen);
    if let Some(values) = heatmap {
        sheet.size_for_cells(categories[1].len(), values);
    }
    if colours == Colours::Standalone && !chart.title.is_empty() {
        sheet = sheet.with_title(&chart.title);
    }
    if is_empty {
        sheet = sheet.without_data();
    }
    if legend.len() > 1 {
        sheet = sheet.with_legend(legend);
    }
    sheet.with_categories(categories)
}

/// Names along x and y, those of a heatmap from bottom to top; none along axes of numbers.
fn categories(chart: &Chart, is_empty: bool) -> [Vec<String>; 2] {
    let heatmap = chart.marks.iter().find_map(|mark| match mark {
        Mark::Heatmap {
            rows,
            columns,
            values,
        } => Some((rows, columns, values)),
        _ => None,
    });
    let (Some((rows, columns, values)), false) = (heatmap, is_empty) else {
        return [&chart.x, &chart.y].map(|axis| axis.categories.clone());
    };
    let widest = values.iter().map(Vec::len).max().unwrap_or(0);
    let (mut x, mut y) = (columns.clone(), rows.clone());
    x.resize(widest, String::new());
    y.resize(values.len(), String::new());
    y.reverse();
    [x, y]
}

/// A layout and its size so far.
struct Sheet {
    layout: Layout,
    width: f64,
    height: f64,
}

impl Sheet {
    /// Axes and their labels.
    fn new(
        chart: &Chart,
        width: f64,
        colours: Colours,
        categories: &[Vec<String>; 2],
        seen: [&[f64]; 2],
    ) -> Self {
        let has_bars = (chart.marks.iter()).any(|mark| matches!(mark, Mark::Bars { .. }));
        let range = |axis: &Axis, at: usize| range(axis, &categories[at], seen[at], has_bars);
        let (x, y) = (range(&chart.x, 0), range(&chart.y, 1));
        // the same range on both axes is the same scale on both
        let is_square = chart.x.range.is_some() && chart.x.range == chart.y.range;
        let height = match is_square {
            true => (width * 0.9).clamp(220.0, 560.0),
            false => (width * 0.55).clamp(220.0, 420.0),
        };
        let [has_x_numbers, has_y_numbers] = [0, 1].map(|at| categories[at].is_empty());
        let mut layout = Layout::new(x, y)
            .with_theme(colours.theme())
            .with_width(width)
            .with_x_label(shorten(&chart.x.label, (width / 8.0) as usize))
            .with_y_label(shorten(&chart.y.label, (height / 7.5) as usize))
            .with_label_size(13)
            .with_tick_size(12)
            .with_ticks(((width / 80.0) as usize).clamp(3, 7))
            .with_x_label_overlap(AxisLabelOverlap::Thin)
            .with_x_tick_format(scale::ticks(x, chart.x.is_logarithmic))
            .with_y_tick_format(scale::ticks(y, chart.y.is_logarithmic));
        layout.log_x = chart.x.is_logarithmic && has_x_numbers;
        layout.log_y = chart.y.is_logarithmic && has_y_numbers;
        // exactly these: the library would round them outwards
        if has_x_numbers {
            layout = layout.with_x_axis_min(x.0).with_x_axis_max(x.1);
        }
        if has_y_numbers {
            layout = layout.with_y_axis_min(y.0).with_y_axis_max(y.1);
        }
        Self {
            layout,
            width,
            height,
        }
    }

    fn size_for_cells(&mut self, rows: usize, values: &[Vec<f64>]) {
        self.height = (rows.max(1) as f64 * 26.0 + 90.0).clamp(160.0, 900.0);
        let finite = || values.iter().flatten().filter(|value| value.is_finite());
        // a colour bar of one colour says nothing, and numbers say more
        let first = finite().next();
        let varies = first.is_some_and(|first| finite().any(|other| other != first));
        self.layout.show_colorbar = varies && !has_numbers(values);
    }

    fn with_title(mut self, title: &str) -> Self {
        let layout = self.layout.with_title(title).with_title_size(15);
        self.layout = layout.with_title_wrap((self.width / 9.0) as usize);
        self.height += 40.0;
        self
    }

    fn without_data(mut self) -> Self {
        let layout = self.layout.with_stats_box(vec!["no data"]);
        self.layout = layout.with_stats_box_border(false);
        self.layout.stats_position = LegendPosition::InsideTopLeft;
        self.layout.suppress_x_ticks = true;
        self.layout.suppress_y_ticks = true;
        self
    }

    fn with_legend(mut self, mut legend: Vec<LegendEntry>) -> Self {
        for entry in &mut legend {
            entry.label = shorten(&entry.label, (self.width / 9.0) as usize);
        }
        let longest = longest(legend.iter().map(|entry| &entry.label));
        let columns = (0.85 * self.width / (50.0 + 7.5 * longest)).max(1.0) as usize;
        self.height += 30.0 + 18.0 * legend.len().div_ceil(columns) as f64;
        self.layout = self
            .layout
            .with_legend_entries(legend)
            .with_legend_position(LegendPosition::OutsideBottomColumns)
            .with_legend_col_limit(columns)
            .with_legend_box(false);
        self.layout.show_legend = true;
        self
    }

    /// The layout with its height and the names along its axes.
    fn with_categories(mut self, [x, y]: [Vec<String>; 2]) -> Layout {
        let x = cut(&x);
        let letters = longest(x.iter());
        if letters * 7.5 * x.len() as f64 > 0.75 * self.width {
            let layout = self.layout.with_x_tick_rotate(-60.0);
            self.layout = layout.with_x_label_overlap(AxisLabelOverlap::Allow);
            self.height += 6.0 * letters;
        }
        let mut layout = self.layout.with_height(self.height);
        if !x.is_empty() {
            layout = layout.with_x_categories(x);
        }
        if !y.is_empty() {
            layout = layout.with_y_categories(cut(&y));
        }
        layout
    }
}

/// Characters of the longest.
fn longest<'a>(texts: impl Iterator<Item = &'a String>) -> f64 {
    let lengths = texts.map(|text| text.chars().count());
    lengths.max().unwrap_or(0) as f64
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

/// What an axis shows.
fn range(axis: &Axis, categories: &[String], seen: &[f64], has_bars: bool) -> (f64, f64) {
    if !categories.is_empty() {
        return (0.5, categories.len() as f64 + 0.5);
    }
    let asked = axis
        .range
        .filter(|(low, high)| axis.places(*low) && axis.places(*high) && low < high);
    if let Some(range) = asked {
        return scale::widen(range, axis.is_logarithmic);
    }
    let empty = match axis.is_logarithmic {
        true => (1.0, 10.0),
        false => (0.0, 1.0),
    };
    let seen = scale::range(seen.iter().copied()).unwrap_or(empty);
    let range = scale::widen(seen, axis.is_logarithmic);
    scale::pad(range, axis.is_logarithmic, has_bars)
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
