//! The workspace of the diagnostics that need one, and effective sample sizes and R-hat by rank.
//!
//! Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021), "Rank-normalization, folding, and localization: an improved R̂
//! for assessing convergence of MCMC", on the halves of the chains, with ArviZ's conventions. One sort serves ranks, folded ranks and
//! quantiles; [`super::summarise`] shares it between all statistics of a variable.

use super::{
    autocovariance::Autocovariance,
    draws::Draws,
    ess::{self, EffectiveSize, Truncation},
    moments::mean,
    ranks::Ranks,
    rhat,
};

/// Fourier plans, tables and buffers of the diagnostics. Make one, use it for every variable: after the first of a
/// shape, no call allocates. Holds about 10 numbers per draw of one variable.
///
/// ```
/// use reprior::diagnostics::{Draws, Estimator};
///
/// let values: Vec<f64> = (0..400).map(|i| f64::from(i * i % 397)).collect();
/// let draws = Draws::new(&values, 4)?; // four chains of 100
/// let mut estimator = Estimator::new();
/// assert!(estimator.ess_bulk(draws) > 100.0);
/// assert!(estimator.rhat_rank(draws) < 1.05);
/// # Ok::<(), reprior::diagnostics::DiagnosticsError>(())
/// ```
pub struct Estimator {
    pub(super) autocovariance: Autocovariance,
    autocorrelations: Vec<f64>,
    pub(super) ranks: Ranks,
    /// A transformed variable: its split chains laid end to end, or all draws.
    transformed: Vec<f64>,
}

impl Default for Estimator {
    fn default() -> Self {
        Self::new()
    }
}

impl Estimator {
    /// An empty workspace; it grows with the first variable.
    pub fn new() -> Self {
        Self {
            autocovariance: Autocovariance::new(),
            autocorrelations: Vec::new(),
            ranks: Ranks::default(),
            transformed: Vec::new(),
        }
    }

    /// ESS for the bulk of the distribution: of the normal scores of the ranks (ArviZ's `bulk`).
    /// Between 0 and S log₁₀ S for S draws in all, as every ArviZ ESS.
    pub fn ess_bulk(&mut self, draws: Draws<'_>) -> f64 {
        if !draws.usable(1) {
            return f64::NAN;
        }
        self.ranks.sort(draws);
        self.sorted_bulk(draws).0.pooled
    }

    /// ESS for the tails: the smaller of those for the 5 % and the 95 % quantile (ArviZ's `tail`,
    /// since ArviZ 1.0 with `prob=(0.05, 0.95)`).
    pub fn ess_tail(&mut self, draws: Draws<'_>) -> f64 {
        if !draws.usable(1) {
            return f64::NAN;
        }
        self.ranks.sort(draws);
        self.sorted_tail(draws)
    }

    /// ESS for the mean (ArviZ's `mean`). NaN if a draw is infinite.
    pub fn ess_mean(&mut self, draws: Draws<'_>) -> f64 {
        if !draws.usable(1) {
            return f64::NAN;
        }
        ess::geyer(
            &mut self.autocovariance,
            &mut self.autocorrelations,
            draws.halves(),
            draws.length() / 2,
        )
        .pooled
    }

    /// ESS for the standard deviation: for the mean of (x − x̄)², x̄ over all chains (ArviZ's `sd` since version 0.20).
    pub fn ess_sd(&mut self, draws: Draws<'_>) -> f64 {
        if !draws.usable(1) {
            return f64::NAN;
        }
        let centre = mean(draws.values());
        self.transformed.clear();
        self.transformed
            .extend(draws.halves().flatten().map(|x| (x - centre).powi(2)));
        self.transformed_ess(draws).pooled
    }

    /// ESS for the quantile at `probability`: for the mean of the indicator x ≤ quantile (ArviZ's `quantile`).
    /// NaN for a probability outside [0, 1].
    pub fn ess_quantile(&mut self, draws: Draws<'_>, probability: f64) -> f64 {
        if !draws.usable(1) || !(0.0..=1.0).contains(&probability) {
            return f64::NAN;
        }
        self.ranks.sort(draws);
        self.sorted_quantile(draws, probability)
    }

    /// ESS for the median: [`Estimator::ess_quantile`] at ½.
    pub fn ess_median(&mut self, draws: Draws<'_>) -> f64 {
        self.ess_quantile(draws, 0.5)
    }

    /// ESS of one chain as TensorFlow Probability's `effective_sample_size`: S/(1 + 2 Σ_k (1 − k/S) ρ_k) up to the
    /// truncation, ρ_k the unbiased autocorrelations. Hron et al. (2022) use it, with [`Truncation::FirstNegative`], which never
    /// exceeds S. NaN for an empty chain, a NaN among its draws, and where all are the same.
    pub fn ess_tfp(&mut self, chain: &[f64], truncation: Truncation) -> f64 {
        if chain.is_empty() {
            return f64::NAN;
        }
        let chains = std::iter::once(chain);
        ess::truncated(&mut self.autocovariance, chains, chain.len(), truncation)
    }

    /// ESS of several chains together as TensorFlow Probability's with `cross_chain_dims`: autocorrelations about the
    /// common variance, ρ_k = 1 − (W − mean a_k)/(W + B/n). NaN for one chain, otherwise as [`Estimator::ess_tfp`].
    pub fn ess_tfp_cross_chain(&mut self, draws: Draws<'_>, truncation: Truncation) -> f64 {
        if draws.chains() < 2 {
            return f64::NAN;
        }
        let length = draws.length();
        ess::truncated(&mut self.autocovariance, draws.iter(), length, truncation)
    }

    /// Rank-normalised split R̂: the larger of that of the normal scores and that of the normal scores of |x − median|
    /// (ArviZ's `rank`). Converged chains stay below 1.01. NaN for one chain.
    pub fn rhat_rank(&mut self, draws: Draws<'_>) -> f64 {
        if !draws.usable(2) {
            return f64::NAN;
        }
        self.ranks.sort(draws);
        self.ranks.scores(&mut self.transformed);
        let bulk = self.transformed_rhat(draws);
        bulk.max(self.sorted_folded_rhat(draws))
    }

    /// The folded part of [`Estimator::rhat_rank`], sensitive to chains that differ in scale (ArviZ's `folded`).
    pub fn rhat_folded(&mut self, draws: Draws<'_>) -> f64 {
        if !draws.usable(2) {
            return f64::NAN;
        }
        self.ranks.sort(draws);
        self.sorted_folded_rhat(draws)
    }

    /// Bulk ESS and the R̂ of the same scores, of draws already sorted.
    pub(super) fn sorted_bulk(&mut self, draws: Draws<'_>) -> (EffectiveSize, f64) {
        self.ranks.scores(&mut self.transformed);
        (self.transformed_ess(draws), self.transformed_rhat(draws))
    }

    /// The R̂ of the folded scores, of draws already sorted.
    pub(super) fn sorted_folded_rhat(&mut self, draws: Draws<'_>) -> f64 {
        self.ranks.folded_scores(&mut self.transformed);
        self.transformed_rhat(draws)
    }

    /// Tail ESS of draws already sorted.
    pub(super) fn sorted_tail(&mut self, draws: Draws<'_>) -> f64 {
        let low = self.sorted_quantile(draws, 0.05);
        let high = self.sorted_quantile(draws, 0.95);
        low.min(high)
    }

    /// Quantile ESS of draws already sorted.
    pub(super) fn sorted_quantile(&mut self, draws: Draws<'_>, probability: f64) -> f64 {
        let quantile = self.ranks.quantile(probability);
        self.transformed.clear();
        self.transformed.extend(
            draws
                .halves()
                .flatten()
                .map(|&x| f64::from(u8::from(x <= quantile))),
        );
        self.transformed_ess(draws).pooled
    }

    pub(super) fn transformed_ess(&mut self, draws: Draws<'_>) -> EffectiveSize {
        let half = draws.length() / 2;
        ess::geyer(
            &mut self.autocovariance,
            &mut self.autocorrelations,
            self.transformed.chunks_exact(half),
            half,
        )
    }

    fn transformed_rhat(&self, draws: Draws<'_>) -> f64 {
        if draws.chains() < 2 {
            return f64::NAN;
        }
        let half = draws.length() / 2;
        rhat::gelman_rubin(self.transformed.chunks_exact(half), half)
    }
}
