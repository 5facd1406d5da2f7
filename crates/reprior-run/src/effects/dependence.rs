//! How predictions depend on one column, the others as they are: partial dependence (Friedman 2001, eq. 47), draw by draw.
//!
//! f_g(v) = (1/n) Σ_i E[y | x_i with g = v] over n training rows; for a class, its probability. Each draw of the posterior is one function and has one such
//! curve: the line is their mean, the bands hold the middle 50 % and 90 % of them at each v. Of a function that is a sum of functions of single columns,
//! f_g is that of g up to a constant. Where columns go together, rows with g = v may be unlike any real one.
//!
//! Where predictions are a closed form without draws, its standard deviation is counted as common to all rows: the bands are then too wide rather than too narrow.
//!
//! Cost: n × places predictions by every draw.

use reprior::metrics::{Mixture, PredictiveFamily};
use serde::Serialize;

use super::columns::Place;
use crate::failure::Failure;
use crate::predictive::{PredictionKind, PredictiveDraws, SMALLEST_VARIANCE};

/// Of the bands: 5 %, 25 %, 75 % and 95 %.
const LEVELS: [f64; 4] = [0.05, 0.25, 0.75, 0.95];

/// The dependence of one output, or of the probability of one class, on one column.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Dependence {
    /// The column's name.
    pub column: String,
    /// The output's or the class's name.
    pub output: String,
    /// Names of the levels, of a column that has some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub levels: Option<Vec<String>>,
    /// Values of the column; of levels 0, 1, 2, ….
    pub places: Vec<f64>,
    /// Mean over draws at each value.
    pub mean: Vec<f64>,
    /// 5 %, 25 %, 75 % and 95 % quantiles over draws at each value.
    pub quantiles: Vec<[f64; 4]>,
    /// Values of training rows, evenly chosen.
    pub training_values: Vec<f64>,
}

/// Mean and [quantiles](LEVELS) over draws at each place.
pub(crate) type Curve = Vec<(f64, [f64; 4])>;

/// Means over rows, of each draw, and of its standard deviation.
struct OverRows {
    means: Vec<f64>,
    spreads: Vec<f64>,
}

/// Mean and quantiles over draws at each place, output by output, of a column whose first input is number `first` in rows of `width`. `functions` predicts for rows without observation noise, every draw one function.
///
/// # Errors
/// What `functions` says; predictions that are not numbers.
pub(crate) fn dependence(
    inputs: &[f64],
    width: usize,
    first: usize,
    places: &[Place],
    outputs: usize,
    mut functions: impl FnMut(&[f64]) -> Result<PredictiveDraws, Failure>,
) -> Result<Vec<Curve>, Failure> {
    let mut curves = vec![Vec::new(); outputs];
    let mut altered = Vec::with_capacity(places.len() * inputs.len());
    for place in places {
        for row in inputs.chunks_exact(width) {
            let at = altered.len() + first;
            altered.extend(row);
            altered[at..at + place.inputs.len()].copy_from_slice(&place.inputs);
        }
    }
    let block = functions(&altered)?;
    let rows = inputs.len() / width.max(1);
    for place in 0..places.len() {
        for (output, curve) in curves.iter_mut().enumerate() {
            let own = over_rows(&block, place * rows..(place + 1) * rows, output);
            curve.push(own.summary()?);
        }
    }
    Ok(curves)
}

fn over_rows(block: &PredictiveDraws, rows: std::ops::Range<usize>, output: usize) -> OverRows {
    let count = rows.len() as f64;
    let (mut means, mut spreads) = (Vec::new(), Vec::new());
    let mut own = vec![0.0; block.outputs];
    for draw in 0..block.draws() {
        let (mut mean, mut spread) = (0.0, 0.0);
        for row in rows.clone() {
            let (of_row, variance) = block.of_draw(draw, row);
            mean += match block.kind {
                PredictionKind::Probabilities => of_row[output].exp(),
                PredictionKind::Codes => {
                    let draw = std::iter::once((of_row, variance));
                    reprior::model::targets::class_log_probabilities(draw, &mut own);
                    own[output].exp()
                }
                PredictionKind::Real(_) | PredictionKind::RealByRow(_) => {
                    let at = (draw * block.rows + row) * block.outputs + output;
                    spread += block.variance.get(at).map_or(0.0, |v| v.max(0.0).sqrt());
                    of_row[output]
                }
            };
        }
        means.push(mean / count);
        spreads.push(spread / count);
    }
    OverRows { means, spreads }
}

impl OverRows {
    fn summary(mut self) -> Result<(f64, [f64; 4]), Failure> {
        let mean = self.means.iter().sum::<f64>() / self.means.len() as f64;
        if self.spreads.iter().any(|spread| *spread > 0.0) {
            let square = |spread: &f64| (spread * spread).max(SMALLEST_VARIANCE);
            let variances: Vec<f64> = self.spreads.iter().map(square).collect();
            let mixture = Mixture::new(PredictiveFamily::NORMAL, &self.means, &variances);
            let mixture = mixture.map_err(Failure::run)?;
            return Ok((mean, LEVELS.map(|level| mixture.quantile(level))));
        }
        self.means.sort_by(f64::total_cmp);
        Ok((mean, LEVELS.map(|level| quantile(&self.means, level))))
    }
}

/// Of sorted numbers, at least one, interpolated.
fn quantile(sorted: &[f64], level: f64) -> f64 {
    let place = level * (sorted.len() - 1) as f64;
    let (low, share) = (place.floor(), place.fract());
    let value = |index: f64| sorted[(index as usize).min(sorted.len() - 1)];
    // equal ends, infinite ones too, are themselves
    match share > 0.0 && value(low) != value(low + 1.0) {
        true => value(low) + share * (value(low + 1.0) - value(low)),
        false => value(low),
    }
}
