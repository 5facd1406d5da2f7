//! Stochastic weight averaging, Gaussian (Maddox, Izmailov, Garipov, Vetrov & Wilson 2019): a Gaussian around the mean of the
//! positions of a run of SGD, half of whose covariance is diagonal and half of low rank.
//!
//! With the mean θ̄ of all positions, the variance s² = mean of θ² − θ̄² of each parameter and the columns D of the last K positions'
//! differences from the means at their time, a draw is θ̄ + √½·s∘z₁ + D·z₂/√(2(K − 1)): covariance ½(diag s² + DDᵀ/(K − 1)).

use std::collections::VecDeque;

use crate::compute::{Real, Stream, add_scaled, simd};

/// Mean, variance and latest differences.
#[derive(Debug, Clone, PartialEq)]
pub struct Swag<R> {
    /// Differences that are kept.
    pub rank: usize,
    /// Positions so far.
    pub count: u64,
    /// θ̄.
    pub mean: Vec<R>,
    /// Sums of squared distances from the mean: of them, variances do not become negative by rounding.
    pub spread: Vec<R>,
    /// Differences of the last positions from the means at their time, the oldest first.
    pub differences: VecDeque<Vec<R>>,
}

impl<R: Real> Swag<R> {
    /// Of no positions yet, of `length` numbers each; the last `rank` differences are kept (20 in the paper).
    pub fn new(length: usize, rank: usize) -> Self {
        Self {
            rank,
            count: 0,
            mean: vec![R::ZERO; length],
            spread: vec![R::ZERO; length],
            differences: VecDeque::new(),
        }
    }

    /// Takes one more position in. Panics if it is of another length.
    pub fn add(&mut self, position: &[R]) {
        assert_eq!(position.len(), self.mean.len());
        self.count += 1;
        let weight = R::from_f64(1.0 / self.count as f64);
        let values = self.mean.iter_mut().zip(&mut self.spread).zip(position);
        simd(
            #[inline(always)]
            || {
                for ((mean, spread), &theta) in values {
                    let before = theta - *mean;
                    *mean += weight * before;
                    *spread += before * (theta - *mean);
                }
            },
        );
        if self.rank > 0 {
            // the oldest one's memory is used again
            let mut difference = if self.differences.len() == self.rank {
                self.differences.pop_front().unwrap_or_default()
            } else {
                Vec::with_capacity(position.len())
            };
            difference.clear();
            let pairs = position.iter().zip(&self.mean);
            difference.extend(pairs.map(|(&theta, &mean)| theta - mean));
            self.differences.push_back(difference);
        }
    }

    /// Writes a draw. With fewer than two differences there is no part of low rank, and the diagonal has all of the covariance.
    pub fn draw(&self, stream: &mut Stream, position: &mut [R]) {
        let rank = self.differences.len();
        let share: f64 = if rank > 1 { 0.5 } else { 1.0 };
        let scale = R::from_f64((share / (self.count.max(1)) as f64).sqrt());
        stream.fill_normal(position);
        let values = position.iter_mut().zip(&self.mean).zip(&self.spread);
        for ((theta, &mean), &spread) in values {
            *theta = mean + scale * spread.sqrt() * *theta;
        }
        if rank > 1 {
            let scale = (2.0 * (rank - 1) as f64).sqrt().recip();
            for difference in &self.differences {
                add_scaled(position, scale * stream.normal(), difference);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::Purpose;

    /// 40,000 draws against the covariance that the formula gives.
    #[test]
    fn draws_have_the_covariance_of_the_formula() {
        let (length, rank) = (4, 3);
        let mut stream = Stream::new(4, 0, Purpose::Initial, 0);
        let mut swag = Swag::<f64>::new(length, rank);
        let (mut positions, mut differences) = (Vec::<Vec<f64>>::new(), Vec::new());
        let mean = |positions: &[Vec<f64>], at: usize| {
            positions.iter().map(|p| p[at]).sum::<f64>() / positions.len() as f64
        };
        for _ in 0..7 {
            let mut position = vec![0.0; length];
            stream.fill_normal(&mut position);
            swag.add(&position);
            positions.push(position.clone());
            let of = |at: usize| position[at] - mean(&positions, at);
            differences.push((0..length).map(of).collect::<Vec<f64>>());
        }
        let expected = |i: usize, j: usize| {
            let low: f64 = differences[4..].iter().map(|d| d[i] * d[j]).sum::<f64>() / 2.0;
            let variance = positions
                .iter()
                .map(|p| (p[i] - mean(&positions, i)).powi(2));
            let diagonal = if i == j {
                variance.sum::<f64>() / 7.0
            } else {
                0.0
            };
            0.5 * (diagonal + low)
        };
        let (draws, mut sums) = (40_000, vec![0.0; length * length]);
        let mut draw = vec![0.0; length];
        for _ in 0..draws {
            swag.draw(&mut stream, &mut draw);
            for i in 0..length {
                for j in 0..length {
                    let [a, b] = [i, j].map(|at| draw[at] - mean(&positions, at));
                    sums[i * length + j] += a * b / f64::from(draws);
                }
            }
        }
        for i in 0..length {
            for j in 0..length {
                let error = ((expected(i, i) * expected(j, j) + expected(i, j).powi(2))
                    / f64::from(draws))
                .sqrt();
                let off = sums[i * length + j] - expected(i, j);
                assert!(off.abs() < 5.0 * error, "{i} {j}: {off} {error}");
            }
        }
    }

    #[test]
    fn without_differences_the_diagonal_has_everything() {
        let mut swag = Swag::<f64>::new(1, 0);
        (0..2).for_each(|at| swag.add(&[f64::from(at)]));
        let mut stream = Stream::new(1, 0, Purpose::Initial, 0);
        let mut squares = 0.0;
        for _ in 0..20_000 {
            let mut draw = [0.0];
            swag.draw(&mut stream, &mut draw);
            squares += (draw[0] - 0.5).powi(2) / 20_000.0;
        }
        assert!((squares - 0.25).abs() < 0.02, "{squares}");
    }
}
