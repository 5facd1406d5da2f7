//! Colours of charts: Okabe & Ito's (2008) palette, which readers with any colour vision can tell apart.

use kuva::Theme;

/// Where the chart will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    /// In an HTML page that sets the variables of [`PAGE_VARIABLES`], for light and for dark.
    Page,
    /// A file by itself: a white background of its own, readable wherever it is put.
    Standalone,
}

/// What a page's style sheet must say for [`Colours::Page`].
///
/// On dark backgrounds blue and black are exchanged for lighter relatives.
pub const PAGE_VARIABLES: &str = "\
:root{color-scheme:light dark;--page:#ffffff;--text:#1c2024;--quiet:#5b6570;--line:#d5dae0;--box:#f5f7f9;\
--series-0:#0072b2;--series-1:#d55e00;--series-2:#009e73;--series-3:#b85c92;--series-4:#e69f00;--series-5:#56b4e9;--series-6:#1c2024}\
@media (prefers-color-scheme:dark){:root{--page:#14171a;--text:#e8ebee;--quiet:#a3adb8;--line:#3a424b;--box:#1d2227;\
--series-0:#4fa8e0;--series-1:#f0803c;--series-2:#2fc79a;--series-3:#dc9cc4;--series-4:#f0b73c;--series-5:#9ad4f5;--series-6:#e8ebee}}";

const SERIES: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#b85c92", "#e69f00", "#56b4e9", "#1c2024",
];

impl Colours {
    /// Of series number `index`.
    pub(super) fn series(self, index: usize) -> String {
        let index = index % SERIES.len();
        match self {
            Self::Page => format!("var(--series-{index})"),
            Self::Standalone => SERIES[index].to_owned(),
        }
    }

    /// Of what is only for comparison.
    pub(super) fn quiet(self) -> &'static str {
        match self {
            Self::Page => "var(--quiet)",
            Self::Standalone => "#5b6570",
        }
    }

    /// Of a cell of a heatmap: more of a blue over the background, never so much that text on it is hard to read.
    pub(super) fn cell(share: f64) -> String {
        if share.is_nan() {
            return "none".to_owned();
        }
        format!("rgba(0,114,178,{:.3})", 0.65 * share.clamp(0.0, 1.0))
    }

    pub(super) fn theme(self) -> Theme {
        let [background, text, line] = match self {
            Self::Page => ["none", "var(--text)", "var(--line)"],
            Self::Standalone => ["#ffffff", "#1c2024", "#d5dae0"],
        }
        .map(str::to_owned);
        Theme {
            background,
            axis_color: self.quiet().to_owned(),
            grid_color: line.clone(),
            tick_color: self.quiet().to_owned(),
            text_color: text.clone(),
            legend_bg: "none".to_owned(),
            legend_border: "none".to_owned(),
            pie_leader: text.clone(),
            box_median: text.clone(),
            violin_border: text.clone(),
            colorbar_border: line,
            font_family: Some("system-ui,sans-serif".to_owned()),
            show_grid: true,
        }
    }
}
