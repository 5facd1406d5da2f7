//! Weights of particles: how far a temperature can be raised, what it does to the evidence, and which particles go on.
//!
//! Logarithms of weights are kept up to a common constant. All sums are over particles in their order. O(N) each; O(N) a trial of a temperature,
//! of which there are 80 at most.

use crate::compute::LogSum;

/// Halvings of an interval of Δ: its end is known to the last bit where Δ is 10⁻⁸.
const HALVINGS: usize = 80;

/// The logarithm of the share of N that the conditional effective sample size of a step by `delta` is.
fn log_conditional_share(log_weights: &[f64], log_ratios: &[f64], delta: f64) -> f64 {
    let of = |times: f64| {
        let pairs = log_weights.iter().zip(log_ratios);
        LogSum::of(pairs.map(|(w, l)| w + times * delta * l))
    };
    2.0 * of(1.0) - of(2.0) - of(0.0)
}

/// The largest step from `beta` towards 1 with a conditional effective sample size of `share`·N: less is not reached, as it falls with the step.
pub(super) fn largest_step(log_weights: &[f64], log_ratios: &[f64], beta: f64, share: f64) -> f64 {
    let is_good = |delta| log_conditional_share(log_weights, log_ratios, delta) >= share.ln();
    let (mut good, mut bad) = (0.0, 1.0 - beta);
    if is_good(bad) {
        return bad;
    }
    for _ in 0..HALVINGS {
        let middle = 0.5 * (good + bad);
        match is_good(middle) {
            true => good = middle,
            false => bad = middle,
        }
    }
    good
}

/// Multiplies weights by exp(Δℓ); log Σ W exp(Δℓ) of the weights before, normalised.
pub(super) fn reweight(log_weights: &mut [f64], log_ratios: &[f64], delta: f64) -> f64 {
    let before = LogSum::of(log_weights.iter().copied());
    for (weight, log_ratio) in log_weights.iter_mut().zip(log_ratios) {
        *weight += delta * log_ratio;
    }
    let after = LogSum::of(log_weights.iter().copied());
    for weight in log_weights {
        *weight -= after;
    }
    after - before
}

/// 1/Σ W².
pub(super) fn effective(log_weights: &[f64]) -> f64 {
    let one = LogSum::of(log_weights.iter().copied());
    let two = LogSum::of(log_weights.iter().map(|w| 2.0 * w));
    (2.0 * one - two).exp()
}

/// Systematic resampling: `copies` of each particle, N·W of them up to less than one, from one `uniform` number.
pub(super) fn resample(log_weights: &[f64], uniform: f64, copies: &mut [usize]) {
    let (total, count) = (
        LogSum::of(log_weights.iter().copied()),
        log_weights.len() as f64,
    );
    let (mut passed, mut taken) = (0.0, 0);
    for (copies, weight) in copies.iter_mut().zip(log_weights) {
        passed += (weight - total).exp();
        // points (k + uniform)/N below what has been passed
        let below = (count * passed - uniform).ceil().clamp(0.0, count) as usize;
        *copies = below.saturating_sub(taken);
        taken = taken.max(below);
    }
    // what rounding of the sum has left out
    let left = log_weights.len() - taken;
    if left > 0
        && let Some(last) = copies.iter_mut().rev().find(|copies| **copies > 0)
    {
        *last += left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two particles with weights ½ and ℓ = 0 and −1: (1 + e^(−Δ))²/(2(1 + e^(−2Δ))).
    #[test]
    fn steps_have_the_conditional_ess_asked_for() {
        let (weights, ratios) = ([3.0, 3.0], [0.0, -1.0]);
        let share =
            |delta: f64| (1.0 + (-delta).exp()).powi(2) / (2.0 * (1.0 + (-2.0 * delta).exp()));
        let delta = largest_step(&weights, &ratios, 0.25, share(0.5));
        assert!((delta - 0.5).abs() < 1e-9, "{delta}");
        assert_eq!(largest_step(&weights, &ratios, 0.25, 0.1), 0.75);
        // the unit of ℓ is no matter
        let delta = largest_step(&weights, &[0.0, -1e9], 0.0, share(0.5));
        assert!((1e9 * delta - 0.5).abs() < 1e-6, "{delta}");
        // weights count: only the first particle has any
        assert_eq!(largest_step(&[0.0, -1e6], &ratios, 0.0, 0.9), 1.0);
    }

    #[test]
    fn weights_and_the_evidence_are_those_of_direct_sums() {
        let mut weights = [0.1_f64.ln() + 7.0, 0.3_f64.ln() + 7.0, 0.6_f64.ln() + 7.0];
        let ratios = [-1.0, 2.0, 0.5];
        let gained = reweight(&mut weights, &ratios, 0.5);
        let terms = [
            0.1 * (-0.5_f64).exp(),
            0.3 * 1.0_f64.exp(),
            0.6 * 0.25_f64.exp(),
        ];
        let total: f64 = terms.iter().sum();
        assert!((gained - total.ln()).abs() < 1e-14);
        for (weight, term) in weights.iter().zip(terms) {
            assert!((weight.exp() - term / total).abs() < 1e-14);
        }
        let squares: f64 = terms.iter().map(|t| (t / total).powi(2)).sum();
        assert!((effective(&weights) - 1.0 / squares).abs() < 1e-12);
    }

    /// N in all, N·W rounded up or down each, N·W on average over the uniform number; none of no weight.
    #[test]
    fn copies_are_as_many_as_weights_say() {
        let shares = [0.31, 0.0, 0.05, 0.44, 0.2];
        let weights = shares.map(f64::ln);
        let mut sums = [0.0; 5];
        let tries = 1000;
        for at in 0..tries {
            let mut copies = [9; 5];
            resample(
                &weights,
                (f64::from(at) + 0.5) / f64::from(tries),
                &mut copies,
            );
            assert_eq!(copies.iter().sum::<usize>(), 5);
            for ((copies, share), sum) in copies.iter().zip(shares).zip(&mut sums) {
                assert!((*copies as f64 - 5.0 * share).abs() < 1.0 + 1e-12);
                *sum += *copies as f64 / f64::from(tries);
            }
        }
        for (sum, share) in sums.iter().zip(shares) {
            assert!((sum - 5.0 * share).abs() < 2e-3, "{sum} {share}");
        }
    }
}
