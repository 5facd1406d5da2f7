//! What of a series is drawn: at most some hundred points, all of which can be placed.

use super::{Axis, Chart, Mark};

/// Points of one series that are drawn at most.
pub const MOST_POINTS: usize = 500;

/// The least number that a logarithmic axis of the drawing library can place.
const LEAST_LOGARITHM: f64 = 1e-10;
/// Beyond, differences of axes would overflow.
const MOST: f64 = 1e300;

impl Axis {
    /// Whether the drawing can place this number.
    pub(super) fn places(&self, value: f64) -> bool {
        value.abs() <= MOST && (!self.is_logarithmic || value >= LEAST_LOGARITHM)
    }
}

/// Indices of at most [`MOST_POINTS`] of `values`: of each of equally long pieces, where it is least and where it is most,
/// so that no excursion is lost; the first and the last are kept.
pub(super) fn extremes(values: &[f64]) -> Vec<usize> {
    if values.len() <= MOST_POINTS {
        return (0..values.len()).collect();
    }
    let pieces = (MOST_POINTS - 2) / 2;
    let mut kept = vec![0];
    for piece in 0..pieces {
        let [start, end] = [piece, piece + 1].map(|piece| piece * values.len() / pieces);
        let order = |&a: &usize, &b: &usize| values[a].total_cmp(&values[b]);
        let least = (start..end).min_by(order);
        let most = (start..end).max_by(order);
        kept.extend(least);
        kept.extend(most);
    }
    kept.push(values.len() - 1);
    kept.sort_unstable();
    kept.dedup();
    kept
}

/// Indices of at most [`MOST_POINTS`] of `count`, evenly spaced.
pub(super) fn even(count: usize) -> Vec<usize> {
    if count <= MOST_POINTS {
        return (0..count).collect();
    }
    let place = |index: usize| index * (count - 1) / (MOST_POINTS - 1);
    (0..MOST_POINTS).map(place).collect()
}

/// The points of a mark that are drawn or stand in the table; finite or not.
pub(super) fn line(points: &[(f64, f64)]) -> Vec<usize> {
    let heights: Vec<f64> = points.iter().map(|point| point.1).collect();
    extremes(&heights)
}

/// Numbers of all marks that cannot be placed.
pub(super) fn hidden(chart: &Chart) -> usize {
    let (x, y) = (&chart.x, &chart.y);
    let count = |mark: &Mark| match mark {
        Mark::Line { points, .. } | Mark::Points { points, .. } => points
            .iter()
            .filter(|point| !x.places(point.0) || !y.places(point.1))
            .count(),
        Mark::Band {
            x: at,
            lower,
            upper,
            ..
        } => at
            .iter()
            .zip(lower)
            .zip(upper)
            .filter(|((at, low), high)| !x.places(**at) || !y.places(**low) || !y.places(**high))
            .count(),
        Mark::Intervals { intervals, .. } => intervals
            .iter()
            .filter(|(at, low, high)| !x.places(*at) || !y.places(*low) || !y.places(*high))
            .count(),
        Mark::Rug { x: at, .. } => at.iter().filter(|at| !x.places(**at)).count(),
        Mark::Bars { heights, .. } => heights.iter().filter(|height| !height.is_finite()).count(),
        Mark::Heatmap { values, .. } => values
            .iter()
            .flatten()
            .filter(|value| !value.is_finite())
            .count(),
    };
    chart.marks.iter().map(count).sum()
}
