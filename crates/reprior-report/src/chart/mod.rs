//! Charts: a title, a line that says how to read it, two axes and marks; drawn as SVG by the crate `kuva`.
//!
//! Series are told apart by colour (Okabe & Ito's palette, safe for colour-blind readers) and by dashes or markers.
//! What cannot be drawn - NaN, infinities, numbers that are not positive on a logarithmic axis - is left out of the drawing
//! and stays in the table. Series of more than [`MOST_POINTS`] points are thinned, and [`Chart::reading`] says so.

mod areas;
mod colours;
mod drawing;
mod layout;
mod lines;
mod marks;
mod scale;
mod svg;
mod table;
mod thin;

pub use colours::{Colours, PAGE_VARIABLES};
pub use table::figure;
pub use thin::MOST_POINTS;

/// A chart, not yet drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// How to read it, in one line.
    pub guide: String,
    /// From left to right.
    pub x: Axis,
    /// From bottom to top; the rows of a heatmap from top to bottom.
    pub y: Axis,
    /// In the order in which they are drawn, the last on top.
    pub marks: Vec<Mark>,
}

/// One axis.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Axis {
    /// With its unit.
    pub label: String,
    /// Whether equal distances are equal ratios.
    pub is_logarithmic: bool,
    /// What it shows; `None`: what there is.
    pub range: Option<(f64, f64)>,
    /// Names of the numbers 0, 1, 2, …; empty for a numeric axis.
    pub categories: Vec<String>,
}

impl Axis {
    /// A linear axis as long as the data need.
    pub fn new(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            ..Self::default()
        }
    }

    /// The same with a logarithmic scale.
    pub fn logarithmic(mut self) -> Self {
        self.is_logarithmic = true;
        self
    }

    /// The same from `low` to `high`.
    pub fn within(mut self, low: f64, high: f64) -> Self {
        self.range = Some((low, high));
        self
    }

    /// The same with names instead of the numbers 0, 1, 2, …
    pub fn of(mut self, categories: Vec<String>) -> Self {
        self.categories = categories;
        self
    }
}

/// Something drawn on the axes. Series without a name are not in the legend.
#[derive(Debug, Clone, PartialEq)]
pub enum Mark {
    /// A line through points, in their order.
    Line {
        /// In the legend.
        name: String,
        /// x and y; a point that cannot be drawn interrupts the line.
        points: Vec<(f64, f64)>,
        /// For references, such as what is expected.
        is_dashed: bool,
        /// Whether each point has a marker.
        has_points: bool,
        /// Half-widths of error bars, one per point; or empty.
        errors: Vec<f64>,
    },
    /// Points.
    Points {
        /// In the legend.
        name: String,
        /// x and y.
        points: Vec<(f64, f64)>,
    },
    /// The area between two curves, in the colour of the next series: give it just before its line or points.
    Band {
        /// In the legend.
        name: String,
        /// Where the curves are given.
        x: Vec<f64>,
        /// As many numbers as `x`.
        lower: Vec<f64>,
        /// As many numbers as `x`.
        upper: Vec<f64>,
    },
    /// Bars from low to high, such as intervals of single points.
    Intervals {
        /// In the legend.
        name: String,
        /// x, low and high.
        intervals: Vec<(f64, f64, f64)>,
        /// Whether they are thick: an inner interval.
        is_thick: bool,
    },
    /// Ticks at the bottom: where there are data.
    Rug {
        /// In the legend.
        name: String,
        /// Where.
        x: Vec<f64>,
    },
    /// A histogram: bars side by side.
    Bars {
        /// In the legend.
        name: String,
        /// One more than heights.
        edges: Vec<f64>,
        /// Of each bar.
        heights: Vec<f64>,
    },
    /// A table of numbers as colours; the first row is on top.
    Heatmap {
        /// Names of the rows.
        rows: Vec<String>,
        /// Names of the columns.
        columns: Vec<String>,
        /// One list per row.
        values: Vec<Vec<f64>>,
    },
}

impl Chart {
    /// Draws it `width` units wide. The drawing scales with the width it is given.
    ///
    /// [`Colours::Page`] leaves the title to the page; [`Colours::Standalone`] draws it.
    pub fn svg(&self, width: f64, colours: Colours) -> String {
        let width = if width.is_finite() {
            width.clamp(200.0, 4000.0)
        } else {
            640.0
        };
        let (drawn, spare) = marks::draw(self, width, colours);
        svg::finish(&drawn, spare, self, colours)
    }

    /// Its data: column names, then rows. Numbers that are not finite are there as `NaN`, `inf`, `-inf`.
    ///
    /// A series that is thinned in the drawing is so in the table.
    pub fn table(&self) -> (Vec<String>, Vec<Vec<String>>) {
        table::table(self)
    }

    /// The guide, and after it what was left out of the drawing, if anything was.
    pub fn reading(&self) -> String {
        let mut text = self.guide.clone();
        let mut add = |sentence: String| {
            if !text.is_empty() {
                text.push(' ');
            }
            text += &sentence;
        };
        let most = self.marks.iter().map(Mark::len).max().unwrap_or(0);
        if self.marks.iter().any(Mark::is_thinned) {
            add(format!(
                "Of up to {most} points a series, at most {MOST_POINTS} are drawn (lines keep their extremes)."
            ));
        }
        let hidden = thin::hidden(self);
        if hidden > 0 {
            let why = match self.x.is_logarithmic || self.y.is_logarithmic {
                true => "not finite, or too small for a logarithmic axis",
                false => "not finite",
            };
            add(format!(
                "{hidden} {} {why}.",
                if hidden == 1 {
                    "value is left out:"
                } else {
                    "values are left out:"
                }
            ));
        }
        text
    }
}

impl Mark {
    /// A line without markers.
    pub fn line(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self::Line {
            name: name.into(),
            points,
            is_dashed: false,
            has_points: false,
            errors: Vec::new(),
        }
    }

    /// A line with a marker at each point, and error bars of these half-widths, or none.
    pub fn marked_line(name: impl Into<String>, points: Vec<(f64, f64)>, errors: Vec<f64>) -> Self {
        Self::Line {
            name: name.into(),
            points,
            is_dashed: false,
            has_points: true,
            errors,
        }
    }

    /// A dashed line for comparison.
    pub fn reference(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self::Line {
            name: name.into(),
            points,
            is_dashed: true,
            has_points: false,
            errors: Vec::new(),
        }
    }

    /// Its name; none for a heatmap.
    pub fn name(&self) -> &str {
        match self {
            Self::Line { name, .. }
            | Self::Points { name, .. }
            | Self::Band { name, .. }
            | Self::Intervals { name, .. }
            | Self::Rug { name, .. }
            | Self::Bars { name, .. } => name,
            Self::Heatmap { .. } => "",
        }
    }

    /// Points, bars or cells.
    fn len(&self) -> usize {
        match self {
            Self::Line { points, .. } | Self::Points { points, .. } => points.len(),
            Self::Band { x, .. } | Self::Rug { x, .. } => x.len(),
            Self::Intervals { intervals, .. } => intervals.len(),
            Self::Bars { heights, .. } => heights.len(),
            Self::Heatmap { values, .. } => values.iter().map(Vec::len).sum(),
        }
    }

    fn is_thinned(&self) -> bool {
        let can_be = !matches!(self, Self::Bars { .. } | Self::Heatmap { .. });
        can_be && self.len() > MOST_POINTS
    }
}

#[cfg(test)]
mod tests;
