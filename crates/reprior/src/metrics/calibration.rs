//! Calibration: does what is predicted with confidence p come true in a share p of the cases?
//!
//! Rows are sorted into bins by confidence (the probability of the most probable class). With n_b rows, mean confidence c_b
//! and accuracy a_b in bin b, of n rows in all (Naeini, Cooper & Hauskrecht 2015; Guo, Pleiss, Sun & Weinberger 2017):
//!
//! expected calibration error Σ_b (n_b/n) |a_b − c_b|, maximum calibration error max_b |a_b − c_b|.
//!
//! Every row counts in exactly one bin, and empty bins count for nothing.
//! Cost: O(rows × classes), for bins of equal counts also a sort.

use super::classification::ClassPredictions;

/// One row of a reliability table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReliabilityBin {
    /// Least confidence of the bin: its edge, or its least member for bins of equal counts.
    pub lower: f64,
    /// Greatest confidence of the bin: its edge, or its greatest member for bins of equal counts.
    pub upper: f64,
    /// Number of rows in the bin.
    pub count: usize,
    /// Mean confidence, 0 to 1; NaN in an empty bin.
    pub confidence: f64,
    /// Share of rows predicted right, 0 to 1; NaN in an empty bin.
    pub accuracy: f64,
}

impl ClassPredictions<'_> {
    /// Reliability in `bins` equally wide bins on [0, 1]: [k/bins, (k+1)/bins), the last closed at 1; a row's bin is
    /// min(⌊bins · confidence⌋, bins − 1). Always `bins` rows, empty bins included; 15 is the usual number.
    pub fn reliability(&self, bins: usize) -> Vec<ReliabilityBin> {
        let mut sums = vec![BinSums::default(); bins];
        if bins > 0 {
            for (confidence, right) in self.outcomes() {
                let bin = (bins as f64 * confidence).floor() as usize;
                sums[bin.min(bins - 1)].add(confidence, right);
            }
        }
        let edge = |k: usize| k as f64 / bins as f64;
        let table = sums.iter().enumerate();
        table
            .map(|(k, sums)| sums.bin(edge(k), edge(k + 1)))
            .collect()
    }

    /// Reliability in at most `bins` bins of equal counts (to within one row), from the least confident rows to the most
    /// (Nguyen & O'Connor 2015). Rows of equal confidence may fall into two bins: those predicted wrong come first. No bin is empty.
    pub fn reliability_adaptive(&self, bins: usize) -> Vec<ReliabilityBin> {
        let mut outcomes: Vec<(f64, bool)> = self.outcomes().collect();
        outcomes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let rows = outcomes.len();
        (0..bins)
            .map(|k| &outcomes[k * rows / bins..(k + 1) * rows / bins])
            .filter(|members| !members.is_empty())
            .map(|members| {
                let mut sums = BinSums::default();
                for &(confidence, right) in members {
                    sums.add(confidence, right);
                }
                sums.bin(members[0].0, members[members.len() - 1].0)
            })
            .collect()
    }
}

impl ReliabilityBin {
    /// Expected calibration error of a reliability table, 0 to 1; NaN where the table has no rows.
    pub fn expected_calibration_error(table: &[Self]) -> f64 {
        let rows: usize = table.iter().map(|bin| bin.count).sum();
        let total: f64 = gaps(table).map(|(gap, count)| gap * count as f64).sum();
        total / rows as f64
    }

    /// Maximum calibration error of a reliability table: the largest gap of a bin that is not empty, 0 to 1; NaN where the
    /// table has no rows.
    pub fn maximum_calibration_error(table: &[Self]) -> f64 {
        gaps(table).map(|(gap, _)| gap).fold(f64::NAN, f64::max)
    }
}

fn gaps(table: &[ReliabilityBin]) -> impl Iterator<Item = (f64, usize)> {
    let full = table.iter().filter(|bin| bin.count > 0);
    full.map(|bin| ((bin.accuracy - bin.confidence).abs(), bin.count))
}

#[derive(Debug, Clone, Copy, Default)]
struct BinSums {
    count: usize,
    confidence: f64,
    right: usize,
}

impl BinSums {
    fn add(&mut self, confidence: f64, right: bool) {
        self.count += 1;
        self.confidence += confidence;
        self.right += usize::from(right);
    }

    fn bin(&self, lower: f64, upper: f64) -> ReliabilityBin {
        let count = self.count as f64;
        ReliabilityBin {
            lower,
            upper,
            count: self.count,
            confidence: self.confidence / count,
            accuracy: self.right as f64 / count,
        }
    }
}
