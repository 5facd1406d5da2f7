//! A run folder of `reprior` as one self-contained HTML page.
//!
//! [`chart`] draws: marks with axes in, SVG and a table out.

pub mod chart;
