//! Statistics of batch normalisation while a mode is trained (Ioffe & Szegedy 2015).
//!
//! An update normalises with mean and variance of its minibatch's values of each channel, and takes the gradient through both.
//! Running averages are kept beside the weights: running ← 0.9·running + 0.1·(that of the minibatch), of the variance the
//! unbiased estimate, as in PyTorch. What is trained is the pair of both, and everything that evaluates a network - predictions,
//! validation, curvature, Laplace approximations and diffusions - has the statistics frozen at the running ones.
//!
//! * Training to a mode (SGD, momentum, Adam) has them. A descent that starts at imported weights goes on with theirs.
//! * Langevin dynamics keep the network's own: a density that depends on which rows share a minibatch is no posterior. So do all
//!   methods that use all data at once.
//! * Weights that are averages or draws, as of [`Swag`](super::swag::Swag), have been in no minibatch: their statistics are found
//!   by a pass over the training rows (Maddox et al. 2019),
//!   [`StochasticGradient::statistics_at`](super::update::StochasticGradient::statistics_at).

/// The weight of a minibatch in the running averages.
const MOMENTUM: f64 = 0.1;

/// Takes the statistics of one more minibatch in.
pub(super) fn take_in(running: &mut [f64], batch: &[f64]) {
    for (running, batch) in running.iter_mut().zip(batch) {
        *running += MOMENTUM * (batch - *running);
    }
}

/// A mean of minibatches' statistics, each with the weight of its rows.
#[derive(Debug, Default)]
pub(super) struct StatisticsMean {
    rows: f64,
    mean: Vec<f64>,
}

impl StatisticsMean {
    /// Takes the statistics of one more minibatch in.
    pub fn add(&mut self, batch: &[f64], rows: usize) {
        self.mean.resize(batch.len(), 0.0);
        self.rows += rows as f64;
        let weight = rows as f64 / self.rows;
        for (mean, batch) in self.mean.iter_mut().zip(batch) {
            *mean += weight * (batch - *mean);
        }
    }

    /// The mean.
    pub fn mean(self) -> Vec<f64> {
        self.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `BatchNorm1d(1)` of PyTorch after the minibatches 1, 3 and 2, 4, 9: means 2 and 5, unbiased variances 2 and 13.
    #[test]
    fn running_averages_are_pytorchs() {
        let mut running = [0.0, 1.0];
        take_in(&mut running, &[2.0, 2.0]);
        assert!((running[0] - 0.2).abs() < 1e-15 && (running[1] - 1.1).abs() < 1e-15);
        take_in(&mut running, &[5.0, 13.0]);
        assert!((running[0] - 0.68).abs() < 1e-15 && (running[1] - 2.29).abs() < 1e-15);
    }

    #[test]
    fn means_count_rows() {
        let mut mean = StatisticsMean::default();
        mean.add(&[1.0, 4.0], 30);
        mean.add(&[5.0, 0.0], 10);
        assert_eq!(mean.mean(), [2.0, 3.0]);
    }
}
