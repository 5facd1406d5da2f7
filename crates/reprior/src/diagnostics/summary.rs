//! The usual statistics of many variables at once.
//!
//! Cost per variable of S draws in all: one sort of S pairs and five autocovariances, O(S log S); about 3 ms for four chains of 10,000.
//! Memory: of each thread, an estimator's workspace and one variable's draws, whatever the number of variables.

use super::{
    draws::{DiagnosticsError, Draws},
    estimator::Estimator,
    moments::mean_and_squares,
};
use crate::compute::share;

/// Statistics of one variable; `mean`, `sd` and `mcse_mean` in its own unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VariableSummary {
    /// Mean over all chains.
    pub mean: f64,
    /// Standard deviation over all chains, with 1/(S − 1).
    pub sd: f64,
    /// Monte-Carlo standard error of the mean, [`Estimator::mcse_mean`].
    pub mcse_mean: f64,
    /// [`Estimator::ess_bulk`].
    pub ess_bulk: f64,
    /// [`Estimator::ess_tail`].
    pub ess_tail: f64,
    /// The sum of the chains' own effective sample sizes, which does not fall where chains disagree: the smaller of those of the
    /// normal scores and of the folded ones.
    pub ess_within: f64,
    /// [`Estimator::rhat_rank`].
    pub rhat: f64,
}

/// Mean, least and greatest of one statistic over many variables.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Mean over the variables where the statistic is defined; NaN if there are none, as the others.
    pub mean: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// Number of variables where the statistic is NaN, left out of the rest.
    pub undefined: usize,
}

impl Spread {
    /// Of one statistic over variables, such as `Spread::over(&variables, |v| v.rhat).max`.
    pub fn over(
        variables: &[VariableSummary],
        statistic: impl Fn(&VariableSummary) -> f64,
    ) -> Self {
        Self::of(variables.iter().map(statistic))
    }

    /// Mean, least and greatest of the values that are not NaN, and how many are.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let (mut count, mut undefined, mut total) = (0usize, 0, 0.0);
        let (mut min, mut max) = (f64::NAN, f64::NAN);
        for value in values {
            if value.is_nan() {
                undefined += 1;
                continue;
            }
            count += 1;
            total += value;
            min = value.min(min);
            max = value.max(max);
        }
        Self {
            mean: total / count as f64,
            min,
            max,
            undefined,
        }
    }
}

impl Estimator {
    /// Statistics of one variable, from one sort.
    pub fn summary(&mut self, draws: Draws<'_>) -> VariableSummary {
        let (mean, squares) = mean_and_squares(draws.values());
        let variance = squares / (draws.values().len() as f64 - 1.0);
        let mut summary = VariableSummary {
            mean,
            sd: variance.sqrt(),
            mcse_mean: (variance / self.ess_mean(draws)).sqrt(),
            ess_bulk: f64::NAN,
            ess_tail: f64::NAN,
            ess_within: f64::NAN,
            rhat: f64::NAN,
        };
        if draws.usable(1) {
            self.ranks.sort(draws);
            let (bulk, rhat_bulk) = self.sorted_bulk(draws);
            summary.ess_bulk = bulk.pooled;
            // leaves the folded scores behind
            summary.rhat = rhat_bulk.max(self.sorted_folded_rhat(draws));
            summary.ess_within = bulk.within.min(self.transformed_ess(draws).within);
            summary.ess_tail = self.sorted_tail(draws);
        }
        summary
    }

    /// Statistics of `variables` variables, each of `chains` chains of `length` draws, on as many threads as the processor has.
    ///
    /// `read(v, buffer)` writes variable v's draws to the buffer, chains × length, chain-major.
    ///
    /// # Errors
    /// No chains or no draws.
    pub fn summarise(
        variables: usize,
        chains: usize,
        length: usize,
        read: impl Fn(usize, &mut [f64]) + Sync,
    ) -> Result<Vec<VariableSummary>, DiagnosticsError> {
        Self::map_variables(variables, chains, length, read, Self::summary)
    }

    /// As [`summarise`](Self::summarise), with any `statistic` of a variable: one result per variable, in order, the same on any number of threads.
    ///
    /// # Errors
    /// No chains or no draws.
    pub fn map_variables<T: Send>(
        variables: usize,
        chains: usize,
        length: usize,
        read: impl Fn(usize, &mut [f64]) + Sync,
        statistic: impl Fn(&mut Self, Draws<'_>) -> T + Sync,
    ) -> Result<Vec<T>, DiagnosticsError> {
        Draws::new(&vec![0.0; chains * length], chains)?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let state = || (Self::new(), vec![0.0; chains * length]);
        let mut found: Vec<Option<T>> = std::iter::repeat_with(|| None).take(variables).collect();
        share(
            std::iter::repeat_with(state).take(threads),
            found.iter_mut().enumerate(),
            |(estimator, buffer), (variable, found)| {
                read(variable, buffer);
                let draws = Draws::new(buffer, chains).ok();
                *found = draws.map(|draws| statistic(estimator, draws));
            },
        );
        Ok(found.into_iter().flatten().collect())
    }
}
