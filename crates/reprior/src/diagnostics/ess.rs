//! Effective sample size from autocovariances.
//!
//! a_t is the autocovariance at lag t, divided by the number of draws n at every lag and averaged over M chains;
//! W = a_0 n/(n−1), B/n the variance of the chains' means, and var⁺ = a_0 + B/n.
//!
//! * [`geyer`]: Mn/(−1 + 2 Σ ρ_t) with ρ_t = 1 − (W − a_t)/var⁺ (Vehtari, Gelman, Simpson, Carpenter & Bürkner 2021,
//!   eqs. 10-13), summed over Geyer's (1992) initial positive, then monotone sequence as Stan and ArviZ do, and at most
//!   Mn log₁₀(Mn).
//! * [`truncated`]: Mn/(1 + 2 Σ_t (1 − t/n) ρ_t), ρ_t = 1 − (a_0 − a_t n/(n−t))/var⁺, truncated where the autocorrelations
//!   first turn negative, as TensorFlow Probability's `effective_sample_size`.
//!
//! Cost: that of the autocovariances (O(MS log S)).

use super::{autocovariance::Autocovariance, moments::Running};

/// Where [`super::Estimator::ess_tfp`] stops summing autocorrelations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Truncation {
    /// Before the first negative autocorrelation (TensorFlow Probability's default).
    #[default]
    FirstNegative,
    /// Before the first pair (ρ_2k, ρ_2k+1) with a negative sum (Geyer 1992): right for reversible chains, whose
    /// autocorrelations may alternate in sign.
    NegativePair,
}

/// What [`geyer`] finds.
#[derive(Debug, Clone, Copy)]
pub(super) struct EffectiveSize {
    /// Of all chains together, the differences between their means counted as slow motion.
    pub pooled: f64,
    /// The sum of the chains' own, their means taken as they are: it does not fall where chains disagree.
    pub within: f64,
}

/// ESS of chains of `length` ≥ 2 draws each, with `autocorrelations` as scratch. NaN where it is not defined; the number of draws
/// where they are all the same (to 15 digits). The one within chains has ρ_t = 1 − (W − a_t)/W, the same summation.
pub(super) fn geyer<'c>(
    autocovariance: &mut Autocovariance,
    autocorrelations: &mut Vec<f64>,
    chains: impl Iterator<Item = &'c [f64]> + Clone,
    length: usize,
) -> EffectiveSize {
    let constant = is_constant(chains.clone());
    let covariances = autocovariance.of(chains, length);
    let draws = (covariances.chains * length) as f64;
    if constant {
        return EffectiveSize {
            pooled: draws,
            within: draws,
        };
    }
    let lags = covariances.lags;
    let n = length as f64;
    // W = a_0 n/(n − 1), var⁺ = a_0 + B/n.
    let within = lags[0] * n / (n - 1.0);
    let total = lags[0] + between(covariances.chains, covariances.means);
    let mut size = |total: f64| {
        let autocorrelation = |t: usize| 1.0 - (within - lags[t]) / total;
        initial_monotone(autocorrelations, autocorrelation, length, draws)
    };
    EffectiveSize {
        within: size(within),
        pooled: size(total),
    }
}

/// S/(−1 + 2 Σ ρ_t) over Geyer's (1992) initial positive, then monotone sequence, as Stan and ArviZ have it.
fn initial_monotone(
    autocorrelations: &mut Vec<f64>,
    autocorrelation: impl Fn(usize) -> f64,
    length: usize,
    draws: f64,
) -> f64 {
    let rho = autocorrelations;
    rho.clear();
    rho.resize(length, 0.0);
    let (mut even, mut odd) = (1.0, autocorrelation(1));
    (rho[0], rho[1]) = (even, odd);
    let mut t = 1;
    while t + 3 < length && even + odd > 0.0 {
        even = autocorrelation(t + 1);
        odd = autocorrelation(t + 2);
        if even + odd >= 0.0 {
            (rho[t + 1], rho[t + 2]) = (even, odd);
        }
        t += 2;
    }
    // The pairs before `last` count fully, the even lag `last` itself once and if positive (Stan's improved estimate).
    let last = t - 1;
    if even > 0.0 {
        rho[last] = even;
    }
    for t in (2..last).step_by(2) {
        let previous = rho[t - 2] + rho[t - 1];
        if rho[t] + rho[t + 1] > previous {
            rho[t] = 0.5 * previous;
            rho[t + 1] = rho[t];
        }
    }
    let time = -1.0 + 2.0 * rho[..last].iter().sum::<f64>() + rho[last];
    if !time.is_finite() {
        return f64::NAN;
    }
    draws / time.max(1.0 / draws.log10())
}

/// ESS of chains of `length` draws each, summed up to the truncation. One chain is taken by itself;
/// several share the variance about their common mean. NaN for constant draws.
pub(super) fn truncated<'c>(
    autocovariance: &mut Autocovariance,
    chains: impl Iterator<Item = &'c [f64]> + Clone,
    length: usize,
    truncation: Truncation,
) -> f64 {
    if is_constant(chains.clone()) {
        return f64::NAN;
    }
    let covariances = autocovariance.of(chains, length);
    let lags = covariances.lags;
    let n = length as f64;
    let total = lags[0] + between(covariances.chains, covariances.means);
    // Unbiased, lag t divided by n − t.
    let weight = |t: usize| (n - t as f64) / n;
    let autocorrelation = |t: usize| 1.0 - (lags[0] - lags[t] / weight(t)) / total;
    let mut sum = 0.0;
    match truncation {
        Truncation::FirstNegative => {
            for t in 0..length {
                let rho = autocorrelation(t);
                if rho < 0.0 {
                    break;
                }
                sum += weight(t) * rho;
            }
        }
        Truncation::NegativePair => {
            for t in (1..length).step_by(2) {
                let (even, odd) = (autocorrelation(t - 1), autocorrelation(t));
                if even + odd < 0.0 {
                    break;
                }
                sum += weight(t - 1) * even + weight(t) * odd;
            }
        }
    }
    covariances.chains as f64 * n / (-1.0 + 2.0 * sum)
}

/// B/n, the variance of the chains' means; 0 for one chain.
fn between(chains: usize, means: Running) -> f64 {
    if chains > 1 { means.variance() } else { 0.0 }
}

/// Whether all values agree to 15 digits.
fn is_constant<'c>(chains: impl Iterator<Item = &'c [f64]>) -> bool {
    let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
    for chain in chains {
        for &x in chain {
            least = if x < least { x } else { least };
            most = if x > most { x } else { most };
        }
        if most - least > 1e-15 * most.abs().max(least.abs()) {
            return false;
        }
    }
    most == least || most - least < 1e-15 * most.abs().max(least.abs())
}
