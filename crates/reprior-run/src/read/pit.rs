//! Probability integral transforms of the test rows: the probability F(y) that was predicted of a value at most the observed one. Of a calibrated prediction
//! they are uniform on [0, 1] (Dawid 1984).
//!
//! Of counts F jumps, and each row is spread evenly over its jump from F(y − 1) to F(y) (Czado, Gneiting & Held 2009, eq. 2): no random numbers.
//!
//! The band: a bin of n rows holds Binomial(n, 1/J) of them where rows are independent and calibrated. Each of the J bins leaves the band, between the
//! quantiles at α/2J and 1 − α/2J, with a probability of at most α/J, so that any does with at most α = 1 %. What all rows share - one posterior, learned from one
//! training set - is not counted; the check of coverage in the verdict does count it.
//!
//! Cost: one distribution function a row and draw.

use reprior::metrics::Mixture;
use reprior::model::dataset::Targets;
use serde::Serialize;

use super::Recorded;
use crate::failure::Failure;
use crate::predictive::jump;

/// Probability that a calibrated histogram leaves the band.
const ALPHA: f64 = 0.01;
/// Rows that take part, evenly spread over the test rows, at most.
const MOST_ROWS: usize = 2000;
/// Rows below which no histogram says anything.
const FEWEST_ROWS: usize = 20;
/// Bins, and how many rows each should have.
const BINS: [usize; 2] = [5, 20];
const ROWS_OF_BIN: usize = 10;

/// The histogram of one target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PitHistogram {
    /// The target's name.
    pub output: String,
    /// Test rows that took part.
    pub rows: usize,
    /// Rows in each of the bins, which are equally wide; of counts shares of rows.
    pub counts: Vec<f64>,
    /// What a bin of calibrated predictions holds: no bin is outside, with a probability of 99 %.
    pub band: [f64; 2],
}

impl PitHistogram {
    /// Of the intervals [F(y − 1), F(y)] of the rows; of real values both ends are the same.
    pub fn of(output: &str, jumps: &[[f64; 2]]) -> Self {
        let bins = (jumps.len() / ROWS_OF_BIN).clamp(BINS[0], BINS[1]);
        let mut counts = vec![0.0; bins];
        for &[low, high] in jumps {
            let (low, high) = (
                low.clamp(0.0, 1.0) * bins as f64,
                high.clamp(0.0, 1.0) * bins as f64,
            );
            if high - low < 1e-12 {
                counts[(high as usize).min(bins - 1)] += 1.0;
                continue;
            }
            for (bin, count) in counts.iter_mut().enumerate() {
                let common = high.min(bin as f64 + 1.0) - low.max(bin as f64);
                *count += common.max(0.0) / (high - low);
            }
        }
        let tail = ALPHA / (2.0 * bins as f64);
        let probability = 1.0 / bins as f64;
        let band = [tail, 1.0 - tail].map(|level| quantile(jumps.len(), probability, level));
        Self {
            output: output.to_owned(),
            rows: jumps.len(),
            counts,
            band,
        }
    }

    /// Bins outside the band.
    pub fn outside(&self) -> usize {
        let [low, high] = self.band;
        let outside = |count: &&f64| !(low..=high).contains(*count);
        self.counts.iter().filter(outside).count()
    }
}

/// The least k that Binomial(n, p) is at most with a probability of `level`; n up to [`MOST_ROWS`], p up to 1/5, so that (1 − p)ⁿ is no zero.
fn quantile(n: usize, p: f64, level: f64) -> f64 {
    let mut term = (1.0 - p).powi(n as i32);
    let mut sum = term;
    let mut k = 0;
    while sum < level && k < n {
        term *= (n - k) as f64 / (k + 1) as f64 * p / (1.0 - p);
        sum += term;
        k += 1;
    }
    k as f64
}

impl Recorded {
    /// Of every target; nothing of classes, and with fewer than twenty test rows.
    ///
    /// # Errors
    /// A run that cannot be read; predictions that are not numbers.
    pub fn pit(&self) -> Result<Vec<PitHistogram>, Failure> {
        let rows = self.description.test_rows;
        let Some(family) = self.kind.family_of_real() else {
            return Ok(Vec::new());
        };
        let Some(Targets::Real { values, names }) = self.test_targets()? else {
            return Ok(Vec::new());
        };
        if rows < FEWEST_ROWS {
            return Ok(Vec::new());
        }
        let outputs = names.len();
        let every = rows.div_ceil(MOST_ROWS).max(1);
        let mut jumps = vec![Vec::new(); outputs];
        self.for_each_predicting(|start, block, _| {
            for row in (0..block.rows).filter(|row| (start + row).is_multiple_of(every)) {
                for (output, jumps) in jumps.iter_mut().enumerate() {
                    let (means, variances) = block.components(row, output);
                    let mixture = Mixture::new(family, &means, &variances).map_err(Failure::run)?;
                    let y = values[(start + row) * outputs + output];
                    jumps.push(jump(&mixture, y, family.is_discrete()));
                }
            }
            Ok(())
        })?;
        // a run that was killed may have draws whose predictions are not on the disk yet
        let found = names
            .iter()
            .zip(&jumps)
            .filter(|(_, jumps)| !jumps.is_empty());
        Ok(found
            .map(|(name, jumps)| PitHistogram::of(name, jumps))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reprior::metrics::PredictiveFamily;

    /// Of y ~ N(0, 1), evenly spread, under N(0, `scale`²).
    fn histogram(scale: f64) -> PitHistogram {
        let mixture = |y: f64| {
            let (mean, variance) = ([0.0], [scale * scale]);
            Mixture::new(PredictiveFamily::NORMAL, &mean, &variance)
                .expect("a mixture")
                .cdf(y)
        };
        let quantile = |p: f64| {
            Mixture::new(PredictiveFamily::NORMAL, &[0.0], &[1.0])
                .expect("a mixture")
                .quantile(p)
        };
        let jumps: Vec<[f64; 2]> = (0..200)
            .map(|index| [mixture(quantile((f64::from(index) + 0.5) / 200.0)); 2])
            .collect();
        PitHistogram::of("y", &jumps)
    }

    #[test]
    fn calibrated_predictions_stay_within_the_band_and_others_do_not() {
        let calibrated = histogram(1.0);
        assert_eq!(calibrated.counts, vec![10.0; 20]);
        assert_eq!(calibrated.outside(), 0);
        assert_eq!(calibrated.counts.iter().sum::<f64>(), 200.0);
        // too narrow: a U
        let narrow = histogram(0.5);
        assert!(narrow.outside() >= 2, "{narrow:?}");
        assert!(narrow.counts[0] > narrow.band[1] && narrow.counts[19] > narrow.band[1]);
        // too wide: a hump
        let wide = histogram(3.0);
        assert!(
            wide.counts[0] < wide.band[0] && wide.counts[10] > wide.band[1],
            "{wide:?}"
        );
    }

    #[test]
    fn the_band_is_that_of_the_binomial() {
        // P(X <= 1) of Binomial(20, 1/5) is 0.0691753, P(X <= 2) is 0.2060847
        assert_eq!(quantile(20, 0.2, 0.0691752), 1.0);
        assert_eq!(quantile(20, 0.2, 0.0691754), 2.0);
        assert_eq!(quantile(20, 0.2, 0.2060848), 3.0);
        // of 200 rows in 20 bins: 0.00025 in each tail
        let band = histogram(1.0).band;
        assert!(
            band[0] >= 1.0 && band[0] <= 2.0 && (21.0..=24.0).contains(&band[1]),
            "{band:?}"
        );
    }

    /// Bins of random uniform numbers are outside in at most one histogram of a hundred.
    #[test]
    fn the_band_holds_as_often_as_it_says() {
        use reprior::compute::{Purpose, Stream};
        let mut outside = 0;
        for histogram in 0..2000 {
            let mut stream = Stream::new(1, 0, Purpose::Check, histogram);
            let jumps: Vec<[f64; 2]> = (0..150).map(|_| [stream.uniform(); 2]).collect();
            outside += usize::from(PitHistogram::of("y", &jumps).outside() > 0);
        }
        // 1 % of 2000 with 3.5 standard deviations
        assert!((1..36).contains(&outside), "{outside}");
    }

    #[test]
    fn counts_are_spread_over_their_jumps() {
        // a count that is always 0, predicted with probability 1/2 of being 0 or 1
        let jumps = vec![[0.0, 0.5]; 30];
        let found = PitHistogram::of("y", &jumps);
        let expected = [12.0, 12.0, 6.0, 0.0, 0.0];
        for (count, expected) in found.counts.iter().zip(expected) {
            assert!((count - expected).abs() < 1e-9, "{found:?}");
        }
    }
}
