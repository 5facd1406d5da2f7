//! The total variance Σ_i var z_i of a chain's positions, as they come, in memory that does not grow with their dimension.
//!
//! Coordinates are added up in 64 sums, each with a sign (a count sketch: Charikar, Chen & Farach-Colton 2002; every coordinate has a sum of its own
//! while they are enough): over random signs the variances of the sums add up to the total variance, with a relative error of √(2/64) at most.
//! Variances are those of the last window that is over: of 50 positions, then of 100, 200 and so on.
//! O(d) a position.

use serde::{Deserialize, Serialize};

use crate::compute::Real;

/// Sums.
const SUMS: usize = 64;
/// Positions of the first window.
const FIRST_WINDOW: u64 = 50;

/// The total variance of the positions so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TotalVariance {
    window: u64,
    count: u64,
    mean: Vec<f64>,
    squares: f64,
    /// √(Σ_i var z_i/d) of the last window that is over.
    root_mean: Option<f64>,
}

impl Default for TotalVariance {
    fn default() -> Self {
        Self {
            window: FIRST_WINDOW,
            count: 0,
            mean: vec![0.0; SUMS],
            squares: 0.0,
            root_mean: None,
        }
    }
}

/// 64 bits that look random, of a coordinate's number (Steele, Lea & Flood 2014).
fn mixed(index: usize) -> u64 {
    let mut bits = (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

impl TotalVariance {
    /// Takes one more position in.
    pub fn update<R: Real>(&mut self, position: &[R]) {
        let mut sums = [0.0; SUMS];
        if position.len() <= SUMS {
            for (sum, z) in sums.iter_mut().zip(position) {
                *sum = z.to_f64();
            }
        } else {
            for (index, z) in position.iter().enumerate() {
                let bits = mixed(index);
                let sum = &mut sums[bits as usize % SUMS];
                match bits >> 63 {
                    0 => *sum += z.to_f64(),
                    _ => *sum -= z.to_f64(),
                }
            }
        }
        self.count += 1;
        let count = self.count as f64;
        for (mean, sum) in self.mean.iter_mut().zip(sums) {
            let before = sum - *mean;
            *mean += before / count;
            self.squares += before * (sum - *mean);
        }
        if self.count == self.window {
            let mean_square = self.squares / (count - 1.0) / position.len().max(1) as f64;
            self.root_mean = Some(mean_square.sqrt()).filter(|root| *root > 0.0);
            *self = Self {
                window: 2 * self.window,
                root_mean: self.root_mean,
                ..Self::default()
            };
        }
    }

    /// √(Σ_i var z_i/d); none before the first window is over, or where nothing moves.
    pub fn root_mean(&self) -> Option<f64> {
        self.root_mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::{Purpose, Stream};

    /// Independent coordinates, a few of them wide, in dimensions that need no sketch and that do.
    #[test]
    fn is_the_sum_of_the_variances() {
        for dimension in [3, 64, 3000] {
            let sd = |i: usize| if i.is_multiple_of(100) { 5.0 } else { 0.2 };
            let mut found = TotalVariance::default();
            for index in 0..750 {
                let mut position = vec![0.0; dimension];
                Stream::new(2, 0, Purpose::Initial, index).fill_normal(&mut position);
                for (i, z) in position.iter_mut().enumerate() {
                    *z = 3.0 + sd(i) * *z;
                }
                found.update(&position);
            }
            // the window of 400 is the last that is over
            assert_eq!((found.window, found.count), (800, 0));
            let exact = (0..dimension).map(|i| sd(i) * sd(i)).sum::<f64>() / dimension as f64;
            let relative = found.root_mean().unwrap().powi(2) / exact - 1.0;
            // one wide coordinate: √(2/400); thirty: less, and a sixth of the sketch's own 0.18, as they share 64 sums
            assert!(relative.abs() < 0.25, "{dimension}: {relative}");
        }
    }
}
