//! Running means of positions.

use serde::{Deserialize, Serialize};

use crate::compute::{Real, simd};

/// The weight μ_t of the t-th position, t = 1, 2, …: mean ← (1 − μ_t)·mean + μ_t·θ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Averaging {
    /// 1/t: the mean of all positions, that of the posterior in the limit.
    #[default]
    Uniform,
    /// 1/√t: mostly the last √t positions (Marceau-Caron & Ollivier 2017).
    Forgetting,
}

/// A running mean.
#[derive(Debug, Clone, PartialEq)]
pub struct PosteriorMean<R> {
    averaging: Averaging,
    /// Positions so far.
    pub count: u64,
    /// Their mean.
    pub mean: Vec<R>,
}

impl<R: Real> PosteriorMean<R> {
    /// Of no positions yet, of `length` numbers each.
    pub fn new(averaging: Averaging, length: usize) -> Self {
        Self {
            averaging,
            count: 0,
            mean: vec![R::ZERO; length],
        }
    }

    /// Takes one more position in. Panics if it is of another length.
    pub fn add(&mut self, position: &[R]) {
        assert_eq!(position.len(), self.mean.len());
        self.count += 1;
        let weight = match self.averaging {
            Averaging::Uniform => 1.0 / self.count as f64,
            Averaging::Forgetting => (self.count as f64).sqrt().recip(),
        };
        let weight = R::from_f64(weight);
        simd(
            #[inline(always)]
            || {
                for (mean, &theta) in self.mean.iter_mut().zip(position) {
                    *mean += weight * (theta - *mean);
                }
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_have_their_weights() {
        let [mut uniform, mut forgetting] =
            [Averaging::Uniform, Averaging::Forgetting].map(|kind| PosteriorMean::new(kind, 2));
        for t in 1..=4 {
            let position = [f64::from(t), -1.0];
            uniform.add(&position);
            forgetting.add(&position);
        }
        assert_eq!(uniform.mean, [2.5, -1.0]);
        // 1, then 1/√2, 1/√3 and 1/2 of what comes
        let second = 1.0 + 0.5_f64.sqrt();
        let third = second + (3.0 - second) / 3.0_f64.sqrt();
        let expected = third + 0.5 * (4.0 - third);
        assert!((forgetting.mean[0] - expected).abs() < 1e-15 && forgetting.mean[1] == -1.0);
    }
}
