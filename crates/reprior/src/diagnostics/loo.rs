//! Leave-one-out cross-validation from draws of the posterior: PSIS-LOO, with ArviZ's conventions.
//!
//! Given ℓ_is = log p(y_i | θ_s), or log p(y_i | y_−i, W_s) where a part of the parameters is integrated out, a draw's weight in the posterior
//! without row i is r_is = exp(−ℓ_is): p(θ | y_−i) ∝ p(θ | y)/p(y_i | θ), and p(W | y_−i) ∝ p(W | y)/p(y_i | y_−i, W). Then
//! p(y_i | y_−i) ≈ Σ_s w_is exp(ℓ_is), w_is the normalised ratios, whose largest are replaced by the quantiles of a generalised Pareto
//! distribution ([`GeneralisedPareto`]) and are at most as large as the largest ratio (Vehtari, Gelman & Gabry 2017, eq. 10; Vehtari, Simpson, Gelman,
//! Yao & Gabry 2024). Its shape k says whether they can be relied on: above 0.7 they cannot, however many draws there are.
//!
//! elpd = Σ_i log p(y_i | y_−i); its standard error √(n·v), v the variance over rows (by n − 1, as ArviZ since 1.0 and the paper); p = Σ_i log p(y_i | y) − elpd, the effective number of parameters, of those that are
//! not integrated out. n rows and S draws: n·S·log S operations.

use super::draws::DiagnosticsError;
use super::pareto::GeneralisedPareto;
use crate::compute::{LogSum, share};

/// Pareto shapes above this are not to be relied on with any number of draws.
pub const LARGEST_PARETO_K: f64 = 0.7;

/// What leave-one-out cross-validation says of every row.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaveOneOut {
    /// Estimates of log p(y_i | y_−i); NaN where a density is not finite.
    pub log_densities: Vec<f64>,
    /// log p(y_i | y), by the mean over draws.
    pub in_sample: Vec<f64>,
    /// k of every row: +∞ where there are too few ratios to tell, −∞ where all are the same, so that there is nothing to smooth.
    pub pareto_k: Vec<f64>,
    /// Draws of all chains.
    pub draws: usize,
}

/// A sum over rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowSum {
    /// Itself.
    pub total: f64,
    /// Its standard error, as if rows were drawn from many; NaN of one.
    pub standard_error: f64,
}

impl RowSum {
    /// Over these.
    pub fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let (mut total, mut count) = (0.0, 0.0);
        for value in values.clone() {
            total += value;
            count += 1.0;
        }
        let mean = total / count;
        let squares: f64 = values.map(|value| (value - mean).powi(2)).sum();
        Self {
            total,
            standard_error: (squares * count / (count - 1.0)).sqrt(),
        }
    }
}

impl LeaveOneOut {
    /// From log-likelihoods, draws × rows. `relative_efficiency` is the share of draws that are effective; 1 where it is not known.
    ///
    /// # Errors
    /// No draws, or not a whole number of them.
    pub fn new(
        log_likelihood: &[f64],
        rows: usize,
        relative_efficiency: f64,
    ) -> Result<Self, DiagnosticsError> {
        if rows == 0 || log_likelihood.is_empty() {
            return Err(DiagnosticsError::NoDraws);
        }
        let values = log_likelihood.len();
        if !values.is_multiple_of(rows) {
            return Err(DiagnosticsError::UnequalChains {
                values,
                chains: rows,
            });
        }
        let draws = values / rows;
        let mut all = Self {
            log_densities: vec![0.0; rows],
            in_sample: vec![0.0; rows],
            pareto_k: vec![0.0; rows],
            draws,
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let results = all.log_densities.iter_mut().zip(&mut all.in_sample);
        let results = results.zip(&mut all.pareto_k).enumerate();
        share(
            std::iter::repeat_with(|| OneRow::new(draws, relative_efficiency)).take(threads),
            results,
            |one, (row, ((density, in_sample), k))| {
                let own = log_likelihood.iter().skip(row).step_by(rows);
                [*density, *in_sample, *k] = one.estimate(own.copied());
            },
        );
        Ok(all)
    }

    /// Σ log p(y_i | y_−i).
    pub fn elpd(&self) -> RowSum {
        RowSum::of(self.log_densities.iter().copied())
    }

    /// The effective number of parameters.
    pub fn effective_parameters(&self) -> f64 {
        self.in_sample.iter().sum::<f64>() - self.log_densities.iter().sum::<f64>()
    }

    /// The shape above which this many draws are too few, at most [`LARGEST_PARETO_K`]: 1 − 1/log₁₀ S (Vehtari et al. 2024, Section 3.2).
    pub fn good_k(&self) -> f64 {
        (1.0 - 1.0 / (self.draws as f64).log10()).min(LARGEST_PARETO_K)
    }

    /// Rows whose shape is above this one, or not known.
    pub fn rows_above(&self, shape: f64) -> usize {
        let above = |k: &&f64| k.is_nan() || **k > shape;
        self.pareto_k.iter().filter(above).count()
    }
}

/// Work space for the draws of one row.
struct OneRow {
    log_likelihood: Vec<f64>,
    log_weights: Vec<f64>,
    /// Draws of the tail, by their ratio.
    tail: Vec<usize>,
    excesses: Vec<f64>,
    /// Ratios that are smoothed at most.
    largest_tail: usize,
}

impl OneRow {
    fn new(draws: usize, relative_efficiency: f64) -> Self {
        let count = draws as f64;
        // min(S/5, 3√(S/r)), rounded down as ArviZ does since 1.0; the paper rounds up
        let tail = (count / 5.0).min(3.0 * (count / relative_efficiency).sqrt());
        Self {
            log_likelihood: Vec::with_capacity(draws),
            log_weights: Vec::with_capacity(draws),
            tail: Vec::new(),
            excesses: Vec::new(),
            largest_tail: tail.floor() as usize,
        }
    }

    /// The leave-one-out and the in-sample log-density, and k.
    fn estimate(&mut self, values: impl Iterator<Item = f64>) -> [f64; 3] {
        self.log_likelihood.clear();
        self.log_likelihood.extend(values);
        let count = self.log_likelihood.len() as f64;
        if !self.log_likelihood.iter().all(|l| l.is_finite()) {
            return [f64::NAN, f64::NAN, f64::INFINITY];
        }
        let in_sample = LogSum::of(self.log_likelihood.iter().copied()) - count.ln();
        let smallest = self.log_likelihood.iter().copied();
        let smallest = smallest.fold(f64::INFINITY, f64::min);
        self.log_weights.clear();
        let ratios = self.log_likelihood.iter().map(|l| smallest - l);
        self.log_weights.extend(ratios);
        let k = self.smooth();
        let total = LogSum::of(self.log_weights.iter().copied());
        let weighted = self.log_likelihood.iter().zip(&self.log_weights);
        [
            LogSum::of(weighted.map(|(l, weight)| l + weight)) - total,
            in_sample,
            k,
        ]
    }

    /// Smooths the largest of the logarithmic ratios, of which the largest is 0; gives k.
    fn smooth(&mut self) -> f64 {
        let weights = &mut self.log_weights;
        self.tail.clear();
        self.tail.extend(0..weights.len());
        self.tail
            .sort_unstable_by(|&a, &b| weights[a].total_cmp(&weights[b]).then(a.cmp(&b)));
        let ends = self.tail.first().zip(self.tail.last());
        if ends.is_none_or(|(&least, &most)| weights[least] == weights[most]) {
            return match weights.len() {
                0..=4 => f64::INFINITY,
                _ => f64::NEG_INFINITY,
            };
        }
        // exactly so many, whether or not some are as large as the largest below
        let below = weights.len().saturating_sub(self.largest_tail + 1);
        // of which those count that are not 0 in double precision
        let smallest = f64::MIN_POSITIVE.ln();
        let cutoff = weights[self.tail[below]].max(smallest);
        self.tail.drain(..=below);
        self.tail.retain(|&at| weights[at] > smallest);
        let count = self.tail.len();
        if count <= 4 {
            return f64::INFINITY;
        }
        let threshold = cutoff.exp();
        self.excesses.clear();
        let excesses = self.tail.iter();
        let excesses = excesses.map(|&at| (weights[at].exp() - threshold).max(0.0));
        self.excesses.extend(excesses);
        let fit = GeneralisedPareto::fit(&self.excesses);
        if !fit.is_finite() {
            return f64::INFINITY;
        }
        for (rank, &at) in self.tail.iter().enumerate() {
            let excess = fit.quantile((rank as f64 + 0.5) / count as f64);
            weights[at] = (excess + threshold).ln().min(0.0);
        }
        fit.shape
    }
}
