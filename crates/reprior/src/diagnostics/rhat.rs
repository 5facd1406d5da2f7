//! R-hat: how much the chains' means disagree, given how much each chain moves.
//!
//! With M chains of n draws, W the mean of the chains' variances (1/(n−1)) and B/n the variance of their means (1/(M−1)):
//!
//! * Gelman & Rubin (1992), as Stan and ArviZ: R̂ = √(((n−1)/n · W + B/n)/W);
//! * Gelman & Rubin (1992) and Brooks & Gelman (1998), as TensorFlow Probability, which takes no root:
//!   (M+1)/M · ((n−1)/n · W + B/n)/W − (n−1)/(Mn);
//! * Hron, Novak, Pennington & Sohl-Dickstein (2022), eq. 6: R̂² = (W' + B')/W', W' and B' with 1/n and 1/M.
//!
//! Split means that every chain's two halves count as chains. Cost: two passes over the draws.

use super::{
    draws::Draws,
    moments::{Running, mean_and_squares},
};

/// W and the moments of the chains' means.
struct Between {
    /// Mean over chains of the sums of squared deviations.
    squares: f64,
    means: Running,
}

fn compare<'c>(chains: impl Iterator<Item = &'c [f64]>) -> Between {
    let (mut means, mut squares) = (Running::default(), Running::default());
    for chain in chains {
        let (mean, sum) = mean_and_squares(chain);
        means.push(mean);
        squares.push(sum);
    }
    Between {
        squares: squares.mean,
        means,
    }
}

/// √(((n−1)/n · W + B/n)/W) of chains of n draws.
pub(super) fn gelman_rubin<'c>(chains: impl Iterator<Item = &'c [f64]>, length: usize) -> f64 {
    let found = compare(chains);
    let n = length as f64;
    let within = found.squares / (n - 1.0);
    ((found.means.variance() / within) + (n - 1.0) / n).sqrt()
}

impl Draws<'_> {
    /// R̂ of Gelman & Rubin (1992), as ArviZ's `identity`. At least √((n−1)/n), 1 at convergence.
    /// NaN for fewer than two chains or 4 draws, for a NaN among the draws, and where all are the same.
    pub fn rhat_gelman_rubin(self) -> f64 {
        if !self.usable(2) {
            return f64::NAN;
        }
        gelman_rubin(self.iter(), self.length())
    }

    /// Split R̂: [`rhat_gelman_rubin`](Self::rhat_gelman_rubin) of the chains' halves (the middle draw of an odd chain left out), as ArviZ's `split`.
    /// NaN as there.
    pub fn rhat_split(self) -> f64 {
        if !self.usable(2) {
            return f64::NAN;
        }
        gelman_rubin(self.halves(), self.length() / 2)
    }

    /// R̂² of Hron et al. (2022), eq. 6: (mean of the chains' variances + variance of the chains' means)/(mean of the
    /// chains' variances), normalised by the number of draws and the number of chains, no root taken.
    /// At least 1, and exactly 1 for one chain; they report it less 1. NaN for a NaN among the draws and where every chain is constant with
    /// the same value; ∞ for constant chains that differ.
    pub fn rhat_squared_hron(self) -> f64 {
        let found = compare(self.iter());
        let within = found.squares / self.length() as f64;
        (within + found.means.population_variance()) / within
    }

    /// Potential scale reduction as TensorFlow Probability's (a squared R̂ with its sampling correction; about
    /// 1 + (M+1)/M · B/(nW)). NaN for one chain, fewer than two draws, a NaN among the draws, or where all are the same.
    pub fn potential_scale_reduction(self) -> f64 {
        scale_reduction(self.iter(), self.chains(), self.length())
    }

    /// [`potential_scale_reduction`](Self::potential_scale_reduction) of the chains' halves; of an odd chain the last draw is left out, as TensorFlow Probability
    /// does. Defined for one chain too; NaN for fewer than 4 draws a chain, otherwise as there.
    pub fn potential_scale_reduction_split(self) -> f64 {
        let half = self.length() / 2;
        if half < 2 {
            return f64::NAN;
        }
        let halves = self
            .iter()
            .flat_map(|chain| chain.chunks_exact(half).take(2));
        scale_reduction(halves, 2 * self.chains(), half)
    }
}

fn scale_reduction<'c>(
    chains: impl Iterator<Item = &'c [f64]>,
    count: usize,
    length: usize,
) -> f64 {
    let found = compare(chains);
    let (m, n) = (count as f64, length as f64);
    let within = found.squares / (n - 1.0);
    let total = (n - 1.0) / n * within + found.means.variance();
    (m + 1.0) / m * total / within - (n - 1.0) / (m * n)
}
