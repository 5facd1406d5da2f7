//! Verdicts: what measurements say of a claim, with an error rate.
//!
//! A claim is made of comparisons of [`Estimate`]s, each a one-sided Student or normal test. It **holds** if every comparison that it
//! takes is significant at the level [`LEVEL`] (an intersection-union test: at most so often does a claim hold of which a comparison is not true);
//! it **does not hold** if the opposite of one of m comparisons is significant at the level [`LEVEL`]/m; else it **cannot be told**.
//! That something rises or falls has one comparison that it takes, of its ends; of the steps between just the opposite is tested: see [`Judgement::rises`].
//! An estimate in doubt - effective draws at the estimator's floor, chains that disagree - lets nothing hold and refutes nothing.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Value;
use crate::estimate::Estimate;

/// Error rate of a verdict.
pub const LEVEL: f64 = 0.01;

/// What measurements say of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// They show it.
    Holds,
    /// They show the opposite.
    DoesNotHold,
    /// They are too few, too noisy or in doubt.
    CannotBeTold,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Holds => "holds",
            Self::DoesNotHold => "DOES NOT HOLD",
            Self::CannotBeTold => "cannot be told at this size",
        })
    }
}

/// What comparisons say together.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Largest error rate at which all of it is shown.
    holds: f64,
    /// Error rate at which the opposite of some of it is shown, the number of comparisons counted.
    fails: f64,
    /// Comparisons.
    count: f64,
    /// What cannot be relied on.
    doubts: Vec<String>,
}

impl Judgement {
    fn of(difference: &Estimate) -> Self {
        let doubts: Vec<String> = difference.doubt.iter().cloned().collect();
        let tail = difference.tail();
        let is_usable = doubts.is_empty() && tail.is_finite();
        Self {
            holds: if is_usable { 1.0 - tail } else { 1.0 },
            fails: if is_usable { tail } else { 1.0 },
            count: 1.0,
            doubts,
        }
    }

    /// `a` is above `b`.
    pub fn above(a: &Estimate, b: &Estimate) -> Self {
        Self::of(&a.minus(b))
    }

    /// `a` is below `b`.
    pub fn below(a: &Estimate, b: &Estimate) -> Self {
        Self::above(b, a)
    }

    /// `a` is below `b` in the mean over pairs, such as two methods on the network of each seed: what both have in common cancels.
    pub fn below_in_pairs(a: &[Estimate], b: &[Estimate]) -> Self {
        Self::of(&differences(a, b).map_or(Estimate::exact(f64::NAN), |all| Estimate::pooled(&all)))
    }

    /// The same where seeds are scored on the same rows: a verdict is of other rows as well.
    pub fn below_on_same_rows(a: &[Estimate], b: &[Estimate]) -> Self {
        let pooled = |all: Vec<Estimate>| Estimate::pooled_on_same_rows(&all);
        Self::of(&differences(a, b).map_or(Estimate::exact(f64::NAN), pooled))
    }

    /// `a` is at least `factor` times `b`, of positive numbers.
    pub fn times_as_large(a: &Estimate, factor: f64, b: &Estimate) -> Self {
        Self::above(&a.ln(), &b.times(factor).ln())
    }

    /// `a` and `b` differ by less than `margin` (Schuirmann 1987: two one-sided tests).
    pub fn within(a: &Estimate, b: &Estimate, margin: f64) -> Self {
        let (difference, margin) = (a.minus(b), Estimate::exact(margin));
        Self::all([
            Self::below(&difference, &margin),
            Self::above(&difference, &margin.times(-1.0)),
        ])
    }

    /// All of several; of nothing it cannot be told.
    pub fn all(judgements: impl IntoIterator<Item = Self>) -> Self {
        let mut all: Option<Self> = None;
        for own in judgements {
            all = Some(match all {
                None => own,
                Some(other) => Self {
                    holds: own.holds.max(other.holds),
                    // error rates of each, less the number of comparisons
                    fails: (own.fails / own.count).min(other.fails / other.count)
                        * (own.count + other.count),
                    count: own.count + other.count,
                    doubts: [other.doubts, own.doubts].concat(),
                },
            });
        }
        all.unwrap_or_else(|| Self::of(&Estimate::exact(f64::NAN)))
    }

    /// One of several at least; of nothing it cannot be told.
    pub fn any(judgements: impl IntoIterator<Item = Self>) -> Self {
        let opposites = judgements.into_iter().map(Self::opposite);
        let mut judgement = Self::all(opposites).opposite();
        if judgement.holds <= LEVEL {
            // one that is not in doubt: whatever is doubted of the others
            judgement.doubts.clear();
        }
        judgement
    }

    /// What is said of the opposite. A doubt lets neither hold.
    fn opposite(self) -> Self {
        Self {
            holds: self.fails,
            fails: if self.doubts.is_empty() {
                self.holds
            } else {
                1.0
            },
            ..self
        }
    }

    /// The potential scale reduction V of one direction of M independent chains of `length` draws, which has no root
    /// ([`potential_scale_reduction`](reprior::diagnostics::Draws::potential_scale_reduction)), is below `bound` where there are infinitely
    /// many of them. V = (n−1)/n + (M+1)/M·b/W, b the variance of the chains' means: (M−1)·b is a chi-squared variable of M − 1 degrees of
    /// freedom times the variance that means have, which at the bound is (bound − 1)·W. `length` is infinite where it is not known: the
    /// less is refuted.
    pub fn is_shrunk_below(reduction: &Estimate, bound: f64, length: f64) -> Self {
        let (rhat, degrees) = (reduction, reduction.degrees);
        let between = (rhat.value - 1.0 + length.recip()) * (degrees + 1.0) / (degrees + 2.0);
        let ratio = between / (bound - 1.0);
        let holds = chi_squared_cdf(degrees * ratio.max(0.0), degrees);
        let is_usable = holds.is_finite() && rhat.doubt.is_none();
        Self {
            holds: if is_usable { holds } else { 1.0 },
            fails: if is_usable { 1.0 - holds } else { 1.0 },
            count: 1.0,
            doubts: rhat.doubt.iter().cloned().collect(),
        }
    }

    /// The share of `successes` among independent trials is within `margin` of `share`, by the binomial law: where all or none succeed
    /// there is no spread to take an error from.
    pub fn share_within(successes: f64, trials: f64, share: f64, margin: f64) -> Self {
        Self::all([
            Self::share_below(successes, trials, share + margin),
            // failures are as many as the trials that do not succeed
            Self::share_below(trials - successes, trials, 1.0 - share + margin),
        ])
    }

    /// The same share is below `bound`.
    pub fn share_below(successes: f64, trials: f64, bound: f64) -> Self {
        let is_usable = successes.is_finite() && trials >= 1.0;
        let of = |range: std::ops::RangeInclusive<u64>| match is_usable {
            true => binomial(range, trials, bound),
            false => 1.0,
        };
        Self {
            holds: of(0..=successes as u64),
            fails: of(successes as u64..=trials as u64),
            count: 1.0,
            doubts: Vec::new(),
        }
    }

    /// The same, of which a refutation shows nothing, for a reason: it can hold, or not be told.
    #[must_use]
    pub fn not_refuted(mut self, reason: &str) -> Self {
        if self.fails <= LEVEL {
            self.doubts.push(reason.to_owned());
            self.fails = 1.0;
        }
        self
    }

    fn is_measured(&self) -> bool {
        self.holds < 1.0 || self.fails < 1.0
    }

    /// The last of `values` is above the first, and no fall is seen between: it **holds** if the former is significant and the latter is not. The
    /// error rate is that of the ends. A fall between that is too small to be seen lets it hold: rising steps are too small to be
    /// seen as well.
    pub fn rises(values: &[Estimate]) -> Self {
        let (Some(first), Some(last)) = (values.first(), values.last()) else {
            return Self::all([]);
        };
        let ends = Self::above(last, first);
        let steps = values.windows(2).map(|pair| {
            let own = Self::above(&pair[1], &pair[0]);
            Self {
                // that it falls refutes; that it rises need not be seen in each step, but each has to be measured
                holds: if own.is_measured() { 0.0 } else { 1.0 },
                ..own
            }
        });
        let mut judgement = Self::all(steps.chain([ends]));
        if judgement.fails <= LEVEL {
            judgement.holds = 1.0;
        }
        judgement
    }

    /// Each of `values` below the one before, as [`rises`](Self::rises).
    pub fn falls(values: &[Estimate]) -> Self {
        let opposites: Vec<Estimate> = values.iter().map(|value| value.times(-1.0)).collect();
        Self::rises(&opposites)
    }

    /// A fact that has no error, such as that something is finite.
    pub fn fact(is_so: bool) -> Self {
        Self::of(&Estimate::exact(if is_so { 1.0 } else { -1.0 }))
    }

    /// At the level [`LEVEL`].
    pub fn verdict(&self) -> Verdict {
        if self.fails <= LEVEL {
            Verdict::DoesNotHold
        } else if self.holds <= LEVEL && self.doubts.is_empty() {
            Verdict::Holds
        } else {
            Verdict::CannotBeTold
        }
    }

    /// Why it cannot be told, where it cannot.
    pub fn because(&self) -> Option<String> {
        if self.verdict() != Verdict::CannotBeTold {
            return None;
        }
        let mut reasons: Vec<String> = Vec::new();
        for doubt in &self.doubts {
            if !reasons.contains(doubt) {
                reasons.push(doubt.clone());
            }
        }
        if reasons.is_empty() {
            reasons.push(if self.is_measured() {
                format!(
                    "p = {} for it, {} against it",
                    Value::from(self.holds.min(1.0)),
                    Value::from(self.fails.min(1.0))
                )
            } else {
                "not all of it was measured".to_owned()
            });
        }
        Some(reasons.join("; "))
    }
}

/// How much each of `b` is above its partner in `a`; none where there are not as many.
fn differences(a: &[Estimate], b: &[Estimate]) -> Option<Vec<Estimate>> {
    let pairs = a.iter().zip(b);
    (a.len() == b.len()).then(|| pairs.map(|(a, b)| b.minus(a)).collect())
}

/// The probability of so many successes in `trials`, each of probability `share`.
fn binomial(successes: std::ops::RangeInclusive<u64>, trials: f64, share: f64) -> f64 {
    let ln_factorial = |k: f64| libm::lgamma(k + 1.0);
    let one = |k: u64| {
        let k = k as f64;
        let ways = ln_factorial(trials) - ln_factorial(k) - ln_factorial(trials - k);
        (ways + k * share.ln() + (trials - k) * (-share).ln_1p()).exp()
    };
    successes.map(one).sum::<f64>().min(1.0)
}

/// P(χ² ≤ x) with `degrees` of freedom, by the series of the incomplete gamma function (Abramowitz & Stegun 1964, 6.5.29).
fn chi_squared_cdf(x: f64, degrees: f64) -> f64 {
    let (a, x) = (0.5 * degrees, 0.5 * x);
    if x > a + 40.0 * (a.sqrt() + 1.0) {
        return 1.0;
    }
    if x <= 0.0 {
        return 0.0;
    }
    let mut term = (a * x.ln() - x - libm::lgamma(a + 1.0)).exp();
    let (mut sum, mut k) = (term, 0.0);
    while term > 1e-17 * sum {
        k += 1.0;
        term *= x / (a + k);
        sum += term;
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_several_is_enough() {
        let judge = |a: f64| Judgement::above(&Estimate::new(a, 1.0), &Estimate::exact(0.0));
        let any = |values: &[f64]| Judgement::any(values.iter().map(|&a| judge(a))).verdict();
        assert_eq!(any(&[-9.0, 5.0, f64::NAN]), Verdict::Holds);
        // one of three at 1 % is none of the best of three
        assert_eq!(any(&[-9.0, 2.4, -9.0]), Verdict::CannotBeTold);
        assert_eq!(any(&[-9.0, -2.4, -9.0]), Verdict::DoesNotHold);
        assert_eq!(any(&[]), Verdict::CannotBeTold);
    }

    #[test]
    fn chi_squared_probabilities_are_those_of_tables() {
        for (x, degrees, p) in [
            (2.0, 2.0, 1.0 - (-1.0_f64).exp()),
            (0.554, 5.0, 0.01),
            (15.086, 5.0, 0.99),
        ] {
            assert!(
                (chi_squared_cdf(x, degrees) - p).abs() < 1e-4,
                "{x} {degrees}"
            );
        }
        assert_eq!(chi_squared_cdf(1e9, 3.0), 1.0);
    }

    /// Of chains whose R-hat is at the bound just a hundredth hold and a hundredth do not, however few chains there are.
    #[test]
    fn shrink_factors_of_few_chains_keep_the_error_rate() {
        let length = 100.0;
        for chains in [3, 6] {
            let (mut held, mut failed) = (0, 0);
            for trial in 0..5000 {
                let mut stream = Stream::new(6, trial, Purpose::Simulation, 0);
                let means: Vec<f64> = (0..chains).map(|_| stream.normal()).collect();
                let m = f64::from(chains);
                let between = Estimate::mean(&means).error.powi(2) * m;
                // at 1.2 chains' means have a variance of 0.2 that of a chain
                let rhat = Estimate {
                    value: (length - 1.0) / length + (m + 1.0) / m * 0.2 * between,
                    error: 0.1,
                    degrees: m - 1.0,
                    doubt: None,
                };
                let verdict = Judgement::is_shrunk_below(&rhat, 1.2, length).verdict();
                held += i32::from(verdict == Verdict::Holds);
                failed += i32::from(verdict == Verdict::DoesNotHold);
            }
            assert!((30..=70).contains(&held), "{chains}: {held}");
            assert!((30..=70).contains(&failed), "{chains}: {failed}");
        }
    }

    /// That of chains as the library has it: its value is what the rule takes apart.
    #[test]
    fn shrink_factors_are_those_of_the_library() {
        let (chains, length) = (5, 40);
        let mut draws = vec![0.0; chains * length];
        Stream::new(8, 0, Purpose::Simulation, 0).fill_normal(&mut draws);
        let moments = |values: &[f64]| {
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
            [mean, squares / (n - 1.0)]
        };
        let of_chains: Vec<[f64; 2]> = draws.chunks(length).map(moments).collect();
        let means: Vec<f64> = of_chains.iter().map(|own| own[0]).collect();
        let within = of_chains.iter().map(|own| own[1]).sum::<f64>() / chains as f64;
        let ratio = moments(&means)[1] / within;
        let found = reprior::diagnostics::Draws::new(&draws, chains).unwrap();
        let rhat = Estimate {
            degrees: chains as f64 - 1.0,
            ..Estimate::new(found.potential_scale_reduction(), 0.1)
        };
        // a bound at which the ratio is just half of what it would be
        let judged = Judgement::is_shrunk_below(&rhat, 1.0 + 2.0 * ratio, length as f64);
        assert!((judged.holds - chi_squared_cdf(2.0, 4.0)).abs() < 1e-9);
    }

    #[test]
    fn shares_are_judged_by_the_binomial_law() {
        let within = |n: f64, of| Judgement::share_within(n, of, 0.9, 0.08).verdict();
        // of six in six nothing can be told: at 0.9 that happens more often than not
        assert_eq!(within(6.0, 6.0), Verdict::CannotBeTold);
        assert_eq!(within(900.0, 1000.0), Verdict::Holds);
        assert_eq!(within(1000.0, 1000.0), Verdict::DoesNotHold);
        assert_eq!(within(500.0, 1000.0), Verdict::DoesNotHold);
        assert_eq!(within(0.0, 0.0), Verdict::CannotBeTold);
        assert_eq!(within(f64::NAN, 9.0), Verdict::CannotBeTold);
        let judged = Judgement::share_below(2.0, 10.0, 0.5);
        // (1 + 10 + 45)/1024, and all but the first two
        assert!((judged.holds - 56.0 / 1024.0).abs() < 1e-12);
        assert!((judged.fails - 1013.0 / 1024.0).abs() < 1e-12);
    }

    #[test]
    fn what_is_not_to_be_refuted_can_still_hold() {
        let of = |a: f64| Judgement::above(&Estimate::new(a, 1.0), &Estimate::exact(0.0));
        let judge = |a: f64| of(a).not_refuted("chosen");
        assert_eq!(judge(9.0).verdict(), Verdict::Holds);
        assert_eq!(judge(-9.0).verdict(), Verdict::CannotBeTold);
        assert_eq!(judge(-9.0).because().as_deref(), Some("chosen"));
        assert_eq!(
            judge(-1.0).because().as_deref(),
            Some("p = 0.8413 for it, 0.1587 against it")
        );
    }

    #[test]
    fn what_is_not_measured_does_not_rise() {
        let values = [0.0, f64::NAN, 2.0].map(|value| Estimate::new(value, 0.01));
        let judgement = Judgement::rises(&values);
        assert_eq!(judgement.verdict(), Verdict::CannotBeTold);
    }
    use reprior::compute::{Purpose, Stream};

    #[test]
    fn comparisons_have_three_ends() {
        let judge = |a: f64, error: f64| {
            Judgement::above(&Estimate::new(a, error), &Estimate::exact(1.0)).verdict()
        };
        assert_eq!(judge(2.0, 0.1), Verdict::Holds);
        assert_eq!(judge(0.0, 0.1), Verdict::DoesNotHold);
        assert_eq!(judge(2.0, 1.0), Verdict::CannotBeTold);
        assert_eq!(judge(1.0, 0.0), Verdict::CannotBeTold);
        assert_eq!(judge(f64::NAN, 0.1), Verdict::CannotBeTold);
        let doubted = Estimate::new(2.0, 0.0).doubted("40 draws");
        let judgement = Judgement::above(&doubted, &Estimate::exact(1.0));
        assert_eq!(judgement.verdict(), Verdict::CannotBeTold);
        assert_eq!(judgement.because().as_deref(), Some("40 draws"));
        assert_eq!(Judgement::all([]).verdict(), Verdict::CannotBeTold);
    }

    #[test]
    fn what_pairs_have_in_common_cancels() {
        let of = |values: [f64; 3]| values.map(|value| Estimate::new(value, 0.1));
        let (a, b) = (of([1.0, 5.0, 9.0]), of([2.0, 6.1, 9.9]));
        assert_eq!(Judgement::below_in_pairs(&a, &b).verdict(), Verdict::Holds);
        let apart = Judgement::below(&Estimate::pooled(&a), &Estimate::pooled(&b));
        assert_eq!(apart.verdict(), Verdict::CannotBeTold);
        let opposite = Judgement::below_in_pairs(&b, &a);
        assert_eq!(opposite.verdict(), Verdict::DoesNotHold);
        let of_others = Judgement::below_in_pairs(&a[..2], &b);
        assert_eq!(of_others.verdict(), Verdict::CannotBeTold);
        // three seeds that agree, on rows that say little of others
        let on_rows = Judgement::below_on_same_rows(&a, &b);
        assert_eq!(on_rows.verdict(), Verdict::CannotBeTold);
        let sure = |all: &[Estimate]| {
            all.iter()
                .map(|one| Estimate::new(one.value, 0.01))
                .collect()
        };
        let [a, b]: [Vec<Estimate>; 2] = [sure(&a), sure(&b)];
        let on_rows = Judgement::below_on_same_rows(&a, &b);
        assert_eq!(on_rows.verdict(), Verdict::Holds);
    }

    #[test]
    fn equality_takes_a_margin() {
        let within = |a: f64, error: f64| {
            Judgement::within(&Estimate::new(a, error), &Estimate::exact(0.0), 1.0).verdict()
        };
        assert_eq!(within(0.1, 0.1), Verdict::Holds);
        assert_eq!(within(2.0, 0.1), Verdict::DoesNotHold);
        assert_eq!(within(0.1, 1.0), Verdict::CannotBeTold);
    }

    #[test]
    fn what_rises_may_pause_but_not_fall() {
        let of = |values: &[f64]| -> Vec<Estimate> {
            values.iter().map(|&v| Estimate::new(v, 0.1)).collect()
        };
        assert_eq!(
            Judgement::rises(&of(&[0.0, 1.0, 0.95, 2.0])).verdict(),
            Verdict::Holds
        );
        assert_eq!(
            Judgement::rises(&of(&[0.0, 3.0, 1.0, 2.0])).verdict(),
            Verdict::DoesNotHold
        );
        assert_eq!(
            Judgement::falls(&of(&[0.0, 1.0])).verdict(),
            Verdict::DoesNotHold
        );
        assert_eq!(
            Judgement::rises(&of(&[0.0, 0.1])).verdict(),
            Verdict::CannotBeTold
        );
    }

    /// Of claims that are just not true, at most a hundredth hold; of just true ones at most a hundredth do not.
    #[test]
    fn error_rates_are_kept() {
        let (mut held, mut failed) = (0, 0);
        let trials = 20_000;
        for trial in 0..trials {
            let mut stream = Stream::new(5, trial, Purpose::Simulation, 0);
            let mut sample = || {
                let values: Vec<f64> = (0..5).map(|_| stream.normal()).collect();
                Estimate::mean(&values)
            };
            let [a, b, c, d] = [(); 4].map(|()| sample());
            let judgement = Judgement::all([Judgement::above(&a, &b), Judgement::above(&c, &d)]);
            held += u32::from(judgement.verdict() == Verdict::Holds);
            failed += u32::from(judgement.verdict() == Verdict::DoesNotHold);
        }
        let most = 1.2 * LEVEL * trials as f64;
        assert!(f64::from(held) < most && f64::from(failed) < most);
        // the opposite of one of two comparisons is seen about as often as the level allows
        assert!(f64::from(failed) > 0.5 * LEVEL * trials as f64, "{failed}");
    }
}
