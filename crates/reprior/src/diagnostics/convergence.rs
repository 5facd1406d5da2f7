//! Whether a variable's draws can be believed: a statistical claim with an error rate.
//!
//! | finding | when |
//! |---|---|
//! | [`Convergence::Disagreeing`] | R̂ above 1.05, or above 1.01 and above [`Convergence::rhat_by_chance`] |
//! | [`Convergence::TooShort`] | fewer than 100 effective draws in all, in the bulk or in a tail |
//! | [`Convergence::Short`] | fewer than 100 of every chain (Vehtari et al. 2021 recommend 400 for four chains) |
//! | [`Convergence::Unknown`] | a NaN among the draws, one chain, or fewer than 4 draws a chain |
//! | [`Convergence::Converged`] | otherwise |
//!
//! What chance allows is computed from the effective draws *within* the chains, the number that agreement does not change. The pooled number
//! will not do: it is small because chains disagree, and would excuse them. It is a test of its own instead: chains whose
//! means differ by a variance s² that is large beside W/ESS have a pooled size of about M/s².
//!
//! Error rates (simulated in `tests/convergence.rs`): of 600 variables of independent draws, four chains of 250, fewer than 1 run in 100
//! has a variable that is not called converged; one whose chains' means spread by half a standard deviation, with 100 effective
//! draws of every chain or more, is called converged in fewer than 5 runs of 100, by a whole one in fewer than 5 of 1,000.

use super::{beta, summary::VariableSummary};

/// What a variable's draws allow to say, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Convergence {
    /// The chains agree, and there are enough effective draws for means and quantiles.
    Converged,
    /// The chains agree; there are fewer effective draws than recommended, so quantiles are rough.
    Short,
    /// Nothing can be said: one chain, fewer than 4 draws a chain, or a NaN among them.
    Unknown,
    /// Too few effective draws for anything but a rough mean, or for knowing whether the chains agree.
    TooShort,
    /// The chains are in different places, more than chance explains.
    Disagreeing,
}

/// Probability with which R̂ of stationary chains exceeds [`Convergence::rhat_by_chance`]: one run of five hundred where a thousand variables have
/// two R̂ each (bulk and folded). Estimated effective sizes that are too small by chance add about as much.
const FALSE_ALARM: f64 = 1e-6;

impl Convergence {
    /// R̂ from which on chains disagree, however few their effective draws.
    pub const RHAT_APART: f64 = 1.05;
    /// R̂ up to which chains agree, however many their effective draws.
    pub const RHAT_TOGETHER: f64 = 1.01;
    /// Effective draws of all chains below which there are too few.
    pub const ESS_NEEDED: f64 = 100.0;
    /// Effective draws of every chain that are recommended.
    pub const ESS_RECOMMENDED_PER_CHAIN: f64 = 100.0;

    /// Of a variable's draws by `chains` chains.
    pub fn of(summary: &VariableSummary, chains: usize) -> Self {
        let ess = summary.ess_bulk.min(summary.ess_tail);
        if summary.ess_bulk.is_nan() || summary.ess_tail.is_nan() {
            return Self::Unknown;
        }
        if Self::rhat_disagrees(chains, summary.rhat, summary.ess_within) {
            return Self::Disagreeing;
        }
        if ess < Self::ESS_NEEDED {
            return Self::TooShort;
        }
        if chains < 2 {
            return Self::Unknown;
        }
        if ess < Self::ESS_RECOMMENDED_PER_CHAIN * chains as f64 {
            return Self::Short;
        }
        Self::Converged
    }

    /// Whether chains disagree: R̂ above 1.05, or above 1.01 and above what chance explains. A NaN (one chain, draws that are all
    /// the same) does not.
    pub fn rhat_disagrees(chains: usize, rhat: f64, ess_within: f64) -> bool {
        rhat > Self::RHAT_APART
            || rhat > Self::RHAT_TOGETHER.max(Self::rhat_by_chance(chains, ess_within))
    }

    /// A value that one R̂ exceeds by chance with probability 10⁻⁶, for stationary chains with `ess_within` effective draws
    /// in all, each chain's own added up ([`VariableSummary::ess_within`]): (R̂² − 1)·e + 1 with e the effective draws of a half chain is then
    /// about F-distributed with 2·`chains` − 1 and `ess_within` − 2·`chains` degrees of freedom. ∞ where there is less than one effective draw to
    /// compare with.
    pub fn rhat_by_chance(chains: usize, ess_within: f64) -> f64 {
        let halves = 2.0 * chains as f64;
        let (numerator, denominator) = (halves - 1.0, ess_within - halves);
        if denominator.is_nan() || denominator < 1.0 {
            return f64::INFINITY;
        }
        // F = d₂ x / (d₁ (1 − x)) with x of the Beta distribution; 1 − x is the one that keeps its digits
        let rest = beta::quantile(FALSE_ALARM, 0.5 * denominator, 0.5 * numerator);
        let ratio = denominator * (1.0 - rest) / (numerator * rest);
        (1.0 + (ratio - 1.0) * halves / ess_within).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(rhat: f64, ess: f64) -> VariableSummary {
        VariableSummary {
            mean: 0.0,
            sd: 1.0,
            mcse_mean: 0.1,
            ess_bulk: ess,
            ess_tail: ess,
            ess_within: 1000.0,
            rhat,
        }
    }

    #[test]
    fn findings() {
        let of = |rhat, ess| Convergence::of(&variable(rhat, ess), 4);
        assert_eq!(of(1.005, 900.0), Convergence::Converged);
        assert_eq!(of(1.005, 399.0), Convergence::Short);
        assert_eq!(of(1.005, 99.0), Convergence::TooShort);
        assert_eq!(of(1.06, 900.0), Convergence::Disagreeing);
        assert_eq!(of(f64::INFINITY, 4.0), Convergence::Disagreeing);
        assert_eq!(of(1.005, f64::NAN), Convergence::Unknown);
        // every draw the same: as many as there are, and no R-hat
        assert_eq!(of(f64::NAN, 1000.0), Convergence::Converged);
        let one = Convergence::of(&variable(f64::NAN, 1000.0), 1);
        assert_eq!(one, Convergence::Unknown);
        // small pooled sizes excuse nothing
        assert_eq!(of(1.65, 6.6), Convergence::Disagreeing);
    }

    /// F₇,₉₉₂ exceeds 5.894 with probability 1e-6 (SciPy's `f.isf(1e-6, 7, 992)`).
    #[test]
    fn bounds_fall_with_the_draws_within() {
        let found = Convergence::rhat_by_chance(4, 1000.0);
        let expected = (1.0 + (F_7_992 - 1.0) * 8.0 / 1000.0_f64).sqrt();
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        assert!(Convergence::rhat_by_chance(4, 400.0) > found);
        assert!(Convergence::rhat_by_chance(4, 1e5) < 1.001);
        assert_eq!(Convergence::rhat_by_chance(4, 8.0), f64::INFINITY);
        assert_eq!(Convergence::rhat_by_chance(4, f64::NAN), f64::INFINITY);
    }
    const F_7_992: f64 = 5.893_597_070_639_444;
}
