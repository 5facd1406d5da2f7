//! Monte-Carlo standard errors of estimates from the draws, in the variable's own unit, as ArviZ (0.23).
//!
//! * Mean: the draws' standard deviation over √ESS (Vehtari et al. 2021, section 3).
//! * Standard deviation s: with c = (x − x̄)², Var(s²) ≈ (mean c² − (mean c)²)/ESS(c), Var(s) ≈ Var(s²)/(4 mean c).
//! * Quantile: half the distance between the draws at the 16 % and 84 % limits of Beta(ESS p + 1, ESS (1−p) + 1).

use super::{
    beta,
    draws::Draws,
    estimator::Estimator,
    moments::{mean, mean_and_squares, sum},
};

impl Estimator {
    /// Standard error of the mean over all chains. NaN as the ESS; 0 where all draws are the same.
    pub fn mcse_mean(&mut self, draws: Draws<'_>) -> f64 {
        let (_, squares) = mean_and_squares(draws.values());
        let variance = squares / (draws.values().len() as f64 - 1.0);
        (variance / self.ess_mean(draws)).sqrt()
    }

    /// Standard error of the standard deviation over all chains. NaN as the ESS, and where all draws are the same.
    pub fn mcse_sd(&mut self, draws: Draws<'_>) -> f64 {
        let values = draws.values();
        let size = values.len() as f64;
        let centre = mean(values);
        let second = sum(values, |x| (x - centre).powi(2)) / size;
        let fourth = sum(values, |x| (x - centre).powi(4)) / size;
        let variance = (fourth - second * second) / self.ess_sd(draws);
        (variance / second / 4.0).sqrt()
    }

    /// Standard error of the quantile at `probability`. NaN as the ESS and for a probability outside [0, 1]; 0 where all
    /// draws are the same.
    pub fn mcse_quantile(&mut self, draws: Draws<'_>, probability: f64) -> f64 {
        const LIMITS: [f64; 2] = [0.1586553, 0.8413447];
        let ess = self.ess_quantile(draws, probability);
        if ess.is_nan() {
            return f64::NAN;
        }
        // The draws are still sorted.
        let last = self.ranks.len() as f64 - 1.0;
        let [low, high] = LIMITS.map(|limit| {
            let at = beta::quantile(
                limit,
                ess * probability + 1.0,
                ess * (1.0 - probability) + 1.0,
            );
            (at * (last + 1.0) - 1.0).clamp(0.0, last)
        });
        let low = self.ranks.at(low.floor() as usize);
        let high = self.ranks.at(high.ceil() as usize);
        0.5 * (high - low)
    }

    /// Standard error of the median: [`Estimator::mcse_quantile`] at ½.
    pub fn mcse_median(&mut self, draws: Draws<'_>) -> f64 {
        self.mcse_quantile(draws, 0.5)
    }
}
